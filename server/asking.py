"""Asking the live model from a page, and telling an author why something was not sent."""

from flask import current_app

from dynaround.errors import DynaroundError, Unavailable
from dynaround.tables import Round
from dynaround.task import Task
from server.live_model import MODELS, LiveModel, LiveModels

NO_ANSWER = (
    "The model gave no answer. Nothing is used up; send the text again in a moment. "
    "If this goes on, tell whoever runs this round."
)


def live_model(round_: Round, task: Task) -> LiveModel:
    """Return the live model that a round is played against."""
    models: LiveModels = current_app.extensions[MODELS]
    return models.for_round(round_, task.model_labels)


def told_of(error: DynaroundError) -> str:
    """Return what an author is told of an error.

    Why a model is missing goes to the log alone, since it names folders of the server.
    """
    if isinstance(error, Unavailable):
        current_app.logger.warning("an author got no answer of the model: %s", error)
        return NO_ANSWER
    return sentence_of(error)


def sentence_of(error: DynaroundError) -> str:
    """Return an error as a sentence with its capital and its full stop."""
    words = str(error)
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith((".", "!", "?")) else ".")

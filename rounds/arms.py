"""The two arms of an authored round as plain values, from the database or from released files.

Authors start from a natural sentence in the one arm, from nothing in the other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlmodel import Session, col, select

from dynaround.errors import BadInput
from dynaround.evaluation import PEOPLE
from dynaround.labels import RESPONSES
from dynaround.tables import (
    CLOSED,
    NO_PROMPT_ARM,
    PROMPT_ARM,
    RELEASED,
    TAKEN_BACK,
    Attempt,
    AttemptDecision,
    AuthoredExample,
    AuthorSession,
    Example,
    Prompt,
    Round,
    Worker,
    public_id,
)
from dynaround.task import ReleasedExample, Task
from dynaround.tasks import get_task
from rounds.labelling import CountedResponse, responses_by_example
from rounds.lifecycle import find_round
from rounds.releasing import responses_from
from rounds.report_source import ReportSource, crowd_marks

ARMS = {PROMPT_ARM: "Prompt", NO_PROMPT_ARM: "No Prompt"}
"""The names of the arms as reports show them, in their order."""


class ArmAttempt(NamedTuple):
    """One attempt; `fooled`: the prediction differs from the target label; `pasted` is None where nobody counted."""

    arm: str
    author: str
    fooled: bool
    taken_back: bool
    pasted: bool | None


class ArmExample(NamedTuple):
    """One example of an author, with its prompt; what is not known is None.

    `claimed`: its attempt fooled the model; `verified`: five people bear that out; `model_error`: the prediction
    differs from a gold label that the model has.
    """

    arm: str
    author: str
    text: str
    prompt: str | None
    claimed: bool | None
    verified: bool | None
    model_error: bool | None
    pasted: bool | None = None


@dataclass(frozen=True)
class Arms:
    """The authored texts of a round, arm by arm; `sittings` and `attempts` are known to a database alone."""

    title: str
    about: tuple[tuple[str, str], ...]
    examples: Sequence[ArmExample]
    attempts: Sequence[ArmAttempt] = ()
    sittings: Mapping[str, int] | None = None
    marks: tuple[str, ...] = ()

    @property
    def stored(self) -> bool:
        """Whether they come from a database, which knows attempts and target labels."""
        return self.sittings is not None


def arms_of_round(session: Session, number: int) -> Arms:
    """Read the arms of a round, in whatever state it is.

    An example is decided by its retained responses once the round is closed, before by exactly five. Raises NotFound
    for a round that is not there, BadInput where nobody has begun to write in it.
    """
    round_ = find_round(session, number)
    sittings = Counter(session.exec(select(AuthorSession.arm).where(AuthorSession.round_id == round_.id)))
    if not sittings:
        raise BadInput(f"nobody has written in round {number}, so there are no arms to compare")
    examples, answered_by = _examples(session, round_)
    who = responses_from(sorted(answered_by))
    writers = responses_from(sorted(_author_kinds(session, round_)))
    return Arms(
        title=f"The arms of round {number}",
        about=(
            ("round", str(number)),
            ("state", round_.state),
            ("kind of task", round_.task),
            ("target model", round_.target_model),
            ("target model hash", round_.target_model_hash),
            ("texts from", writers),
            ("responses from", who or "nobody so far"),
        ),
        examples=examples,
        attempts=_attempts(session, round_),
        sittings={name: sittings[arm] for arm, name in ARMS.items()},
        marks=(*(() if writers == PEOPLE else (f"texts from {writers}",)), *(crowd_marks(who) if who else ())),
    )


def _attempts(session: Session, round_: Round) -> list[ArmAttempt]:
    rows = session.exec(
        select(Attempt, AttemptDecision.decision)
        .join(AttemptDecision, col(AttemptDecision.attempt_id) == col(Attempt.id), isouter=True)
        .where(Attempt.round_id == round_.id)
        .order_by(col(Attempt.id))
    )
    return [
        ArmAttempt(
            ARMS[attempt.arm], public_id(attempt.worker_id), attempt.fooled, decision == TAKEN_BACK, _pasted(attempt)
        )
        for attempt, decision in rows
    ]


def _pasted(attempt: Attempt) -> bool | None:
    return None if attempt.pasted is None else attempt.pasted > 0


def _author_kinds(session: Session, round_: Round) -> set[str]:
    sitting = select(AuthorSession.worker_id).where(AuthorSession.round_id == round_.id)
    return set(session.exec(select(Worker.kind).where(col(Worker.id).in_(sitting))))


def _examples(session: Session, round_: Round) -> tuple[list[ArmExample], set[str]]:
    """Return the examples by number, and the kinds of workers who decided them."""
    assert round_.id is not None
    answers = responses_by_example(session, round_.id, retained_only=round_.state in (CLOSED, RELEASED))
    texts = dict(iter(session.exec(select(Prompt.id, Prompt.text).where(Prompt.round_id == round_.id))))
    rows = session.exec(
        select(Example.id, Attempt)
        .join(AuthoredExample, col(AuthoredExample.example_id) == col(Example.id))
        .join(Attempt, col(Attempt.id) == col(AuthoredExample.attempt_id))
        .where(Example.round_id == round_.id)
        .order_by(col(Example.number))
    )
    examples, kinds = [], set()
    for example_id, attempt in rows:
        mine = answers.get(example_id or 0, [])
        decided = mine if len(mine) == RESPONSES else []
        kinds |= {answer.kind for answer in decided}
        prompt = None if attempt.prompt_id is None else texts[attempt.prompt_id]
        examples.append(_example(attempt, prompt, decided, get_task(round_.task)))
    return examples, kinds


def _example(attempt: Attempt, prompt: str | None, decided: Sequence[CountedResponse], task: Task) -> ArmExample:
    gold = task.gold([answer.label for answer in decided]).label if decided else None
    return ArmExample(
        arm=ARMS[attempt.arm],
        author=public_id(attempt.worker_id),
        text=attempt.text,
        prompt=prompt,
        claimed=attempt.fooled,
        verified=attempt.fooled and gold == attempt.target_label if decided else None,
        model_error=_model_error(gold, attempt.prediction, task),
        pasted=_pasted(attempt),
    )


def _model_error(gold: str | None, prediction: str, task: Task) -> bool | None:
    return None if gold is None else gold in task.model_labels and gold != prediction


def arms_of_release(source: ReportSource) -> Arms:
    """Return the arms of released examples: an example with a prompt is of the Prompt arm.

    Target labels and attempts are in no release. Raises BadInput where no example has an author.
    """
    examples = [_released(e, source.task) for part in source.parts for e in part.examples if e.authored]
    if not examples:
        raise BadInput(f"{source.title}: no example has an author, so there are no arms to compare")
    title = f"The arms of {source.title.lower()}"
    return Arms(title, source.about, examples, marks=source.marks)


def _released(example: ReleasedExample, task: Task) -> ArmExample:
    prompt = None if example.prompt is None else example.prompt.sentence
    return ArmExample(
        arm=ARMS[NO_PROMPT_ARM if prompt is None else PROMPT_ARM],
        author=example.author or "",
        text=example.sentence,
        prompt=prompt,
        claimed=None,
        verified=None,
        model_error=_model_error(example.gold, example.prediction.label, task),
    )

"""The temperature of a model: on the bars that authors see, named there, and nowhere else."""

from collections.abc import Iterator

import numpy as np
import pytest
from flask import Flask
from scipy.special import softmax
from sqlalchemy import Engine

from dynaround.database import reading
from dynaround.folders import MANIFEST, write_json
from dynaround.settings import Workspace
from dynaround.tables import NO_PROMPT_ARM
from dynaround.task import Prediction
from dynaround.tasks import DEFAULT, get_task
from dynaround.temperature import at_temperature
from rounds.labelling import labelled_examples
from rounds.lifecycle import find_round
from server.access import CLOCK, ENGINE
from tests.author_site import Author, FixedModels, let_in, serve
from tests.authored_round import (
    LABELS,
    MODEL_HASH,
    NUMBER,
    FixedAnswer,
    add_authored_round,
    attempts,
    begin_in_arm,
    close,
    examples,
    other_than,
    respond,
)
from tests.site import SECRET

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
FITTED = {"fitted_on": "held-out training rows", "rows": 1512, "value": 2.0, "nll_before": 0.9, "nll_after": 0.8}
NAMED = "Calibrated with temperature 2.00, fitted on 1,512 held-out training rows."


@pytest.mark.parametrize("temperature", [0.05, 0.7, 1.0, 1.42, 20.0])
def test_probabilities_at_a_temperature_are_those_of_the_divided_logits(temperature: float) -> None:
    logits = np.array([[2.0, -1.0, 0.5], [0.1, 0.1001, 0.0999], [30.0, -30.0, 0.0]])
    for row in logits:
        probs = dict(zip(LABELS, softmax(row), strict=True))
        found = at_temperature(probs, temperature)
        assert list(found) == list(LABELS) and sum(found.values()) == pytest.approx(1)
        assert list(found.values()) == pytest.approx(softmax(row / temperature), abs=1e-9)
        assert max(found, key=found.__getitem__) == max(probs, key=probs.__getitem__)


@pytest.fixture
def models() -> FixedModels:
    return FixedModels()


@pytest.fixture
def app(workspace: Workspace, models: FixedModels, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flask]:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    made = Workspace(workspace.root)
    yield serve(made, models)
    made.close()


@pytest.fixture
def author(app: Flask) -> Author:
    """Return an author at work, of whose target model there is no folder yet."""
    engine, now = app.extensions[ENGINE], app.extensions[CLOCK]()
    newcomer = Author(app, add_authored_round(engine)[0])
    let_in(engine, newcomer.worker_id, now)
    begin_in_arm(engine, newcomer.worker_id, NO_PROMPT_ARM, at=now)
    newcomer.look()
    return newcomer


def keep_model(workspace: Workspace, **manifest: object) -> None:
    folder = workspace.models / "model-0"
    folder.mkdir(exist_ok=True)
    write_json(folder / MANIFEST, {"kind": "model", "hash": MODEL_HASH, **manifest})


@on_sqlite
def test_authors_see_calibrated_bars_and_what_is_stored_is_uncalibrated(
    author: Author, models: FixedModels, workspace: Workspace
) -> None:
    keep_model(workspace, temperature=FITTED)
    models.otherwise = other_than(author.writing.target_label)
    told = author.submit("This takes it in.").text
    # .8, .1, .1 are shown as their square roots, of 1.527 in all.
    assert "You fooled the model" in told and NAMED in told
    assert 'aria-valuenow="0.5858"' in told and "59%" in told and "21%" in told and "80%" not in told
    assert "the target label has 21%" in told
    author.send("/confirm")
    engine: Engine = author.app.extensions[ENGINE]
    [attempt], [example] = attempts(engine), examples(engine)
    uncalibrated = {name: pytest.approx(0.8 if name == models.otherwise else 0.1) for name in LABELS}
    assert attempt.probs == uncalibrated and example.probs == uncalibrated
    respond(engine, example, [attempt.target_label] * 5)
    close(engine)
    with reading(engine) as session:
        round_ = find_round(session, NUMBER)
        assert round_.id is not None
        [labelled] = labelled_examples(session, round_.id, NUMBER, get_task(DEFAULT))
    assert labelled.released.prediction.probs == uncalibrated


@on_sqlite
def test_bars_of_a_model_that_is_not_fooled_are_calibrated_and_so_is_the_last_attempt_of_an_example(
    author: Author, models: FixedModels, workspace: Workspace
) -> None:
    keep_model(workspace, temperature=FITTED)
    models.otherwise = author.writing.target_label
    told = author.submit("This does not fool it.").text
    assert "The model was not fooled" in told and NAMED in told and "59%" in told and "80%" not in told
    for number in range(2, 11):
        told = author.submit(f"This is text {number}.").text
    assert "all attempts are used up" in told and NAMED in told and "59%" in told and "80%" not in told


@on_sqlite
def test_practice_shows_calibrated_bars_too(app: Flask, workspace: Workspace) -> None:
    keep_model(workspace, temperature=FITTED)
    newcomer = Author(app, add_authored_round(app.extensions[ENGINE])[0])
    newcomer.look()
    newcomer.send("/consent", agreed="yes")
    newcomer.look(f"/rounds/{NUMBER}/instructions")
    told = newcomer.send("/practice", text="I try this.").text
    assert NAMED in told and "59%" in told and "80%" not in told


@on_sqlite
@pytest.mark.parametrize("temperature", [0.05, 20.0])
def test_whether_the_model_was_fooled_never_depends_on_its_temperature(
    author: Author, models: FixedModels, workspace: Workspace, temperature: float
) -> None:
    keep_model(workspace, temperature=FITTED | {"value": temperature})
    target = author.writing.target_label
    wrong = other_than(target)
    close_call = {name: 0.335 if name == wrong else 0.3325 for name in LABELS}
    models.fixed = FixedAnswer(Prediction(wrong, close_call))
    assert "You fooled the model" in author.submit("This takes it in.").text


@on_sqlite
@pytest.mark.parametrize("manifest", [{}, {"temperature": None}, {"hash": "another", "temperature": FITTED}, None])
def test_without_a_temperature_of_this_very_model_bars_are_as_stored_and_nothing_is_named(
    author: Author, models: FixedModels, workspace: Workspace, manifest: dict[str, object] | None
) -> None:
    if manifest is not None:
        keep_model(workspace, **manifest)
    told = author.submit("This does or does not fool it.").text
    assert "80%" in told and "10%" in told and "temperature" not in told

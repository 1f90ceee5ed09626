"""The live model: what waits together is predicted together, and nothing that goes wrong outlasts its own batch."""

import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dynaround.errors import BadInput, NotFound, Unavailable
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import OPEN, Round
from dynaround.target_model import TargetModel
from dynaround.task import Prediction
from server.live_model import LiveModel, LiveModels, load_bound
from tests.tiny_model import LABELS, make_model

REPOSITORY = Path(__file__).resolve().parents[1]
LONG = 20.0
"""Seconds that nothing here takes: a test that waits so long fails."""


class StandIn:
    """Stands in for a model that is slow or broken: it answers when `gate` is open, and fails on some texts."""

    hash, precision, back_end = "hash of the stand-in", "float32", "none"

    def __init__(self):
        self.gate = threading.Event()
        self.began = threading.Semaphore(0)
        self.batches = []

    def predict(self, sentences):
        self.batches.append(list(sentences))
        self.began.release()
        assert self.gate.wait(LONG)
        if "poison" in sentences:
            raise RuntimeError("an error of the model")
        return [None if sentence == "nothing" else Prediction(sentence, {sentence: 1.0}) for sentence in sentences]


@pytest.fixture
def stand_in():
    return StandIn()


@pytest.fixture
def live(stand_in):
    made = LiveModel(lambda: stand_in, deadline=LONG)
    yield made
    stand_in.gate.set()
    made.close()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(20) as made:
        yield made


@pytest.fixture
def asked_while_busy(live, stand_in, pool):
    """Return a function that asks texts while the model is at work on another, and returns what came of each."""

    def ask_all(texts):
        first = pool.submit(live.ask, "first")
        assert stand_in.began.acquire(timeout=LONG)
        waiting = [pool.submit(live.ask, text) for text in texts]
        wait_until(lambda: live._queue.qsize() == len(texts))
        stand_in.gate.set()
        assert first.result(LONG).prediction.label == "first"
        return waiting

    return ask_all


def wait_until(holds):
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def bound_round(folder, *, number=1, model_hash=None):
    found = model_hash or TargetModel(folder, LABELS).hash
    return Round(
        number=number, task="sentiment", state=OPEN, plan={}, target_model=folder.name, target_model_hash=found
    )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, tiny_encoder) -> Workspace:
    made = create_workspace(tmp_path_factory.mktemp("live") / "workspace")
    make_model(made.models / "model-0", tiny_encoder, settings={"seed": 1})
    make_model(made.models / "model-1", tiny_encoder, settings={"seed": 2})
    make_model(made.models / "model-2", tiny_encoder, settings={"seed": 3})
    return made


@pytest.fixture
def models(workspace):
    made = LiveModels(workspace)
    yield made
    made.close()


def test_requests_that_wait_together_share_a_batch_and_each_gets_its_own_answer(asked_while_busy, stand_in):
    texts = [f"text {place}" for place in range(12)]
    answers = [waiting.result(LONG) for waiting in asked_while_busy(texts)]
    assert [answer.prediction.label for answer in answers] == texts
    assert stand_in.batches[0] == ["first"] and [sorted(batch) for batch in stand_in.batches[1:]] == [sorted(texts)]


def test_a_batch_holds_no_more_texts_than_it_may(stand_in, pool):
    live = LiveModel(lambda: stand_in, deadline=LONG, most=5)
    first = pool.submit(live.ask, "first")
    assert stand_in.began.acquire(timeout=LONG)
    waiting = [pool.submit(live.ask, f"text {place}") for place in range(12)]
    wait_until(lambda: live._queue.qsize() == 12)
    stand_in.gate.set()
    assert [one.result(LONG).prediction.label for one in waiting] == [f"text {place}" for place in range(12)]
    assert first.result(LONG) and [len(batch) for batch in stand_in.batches] == [1, 5, 5, 2]
    live.close()


def test_the_answer_says_which_model_it_was_and_how_long_it_took(live, stand_in):
    stand_in.gate.set()
    began = time.perf_counter()
    answer = live.ask("good")
    taken = time.perf_counter() - began
    assert answer.prediction == Prediction("good", {"good": 1.0}) and 0 < answer.latency <= taken
    assert (answer.model_hash, answer.precision, answer.back_end) == ("hash of the stand-in", "float32", "none")


def test_a_request_that_gave_up_is_told_the_deadline_and_never_predicted(stand_in, pool):
    live = LiveModel(lambda: stand_in, deadline=0.2)
    for text in ("at work", "waiting"):
        with pytest.raises(Unavailable, match=r"the model did not answer within 0\.2 seconds"):
            live.ask(text)
    stand_in.gate.set()
    assert live.ask("later").prediction.label == "later"
    assert stand_in.batches == [["at work"], ["later"]]
    live.close()


def test_too_many_waiting_are_refused_as_busy_at_once(stand_in, pool):
    live = LiveModel(lambda: stand_in, deadline=LONG, room=3)
    first = pool.submit(live.ask, "first")
    assert stand_in.began.acquire(timeout=LONG)
    waiting = [pool.submit(live.ask, f"text {place}") for place in range(3)]
    wait_until(lambda: live._queue.qsize() == 3)
    with pytest.raises(Unavailable, match=r"the model is busy \(3 texts wait\)"):
        live.ask("one too many")
    stand_in.gate.set()
    assert all(one.result(LONG) for one in [first, *waiting])
    live.close()


def test_a_text_that_the_model_fails_on_costs_the_others_nothing(asked_while_busy, live, caplog):
    good, poison, other = asked_while_busy(["good", "poison", "other"])
    assert good.result(LONG).prediction.label == "good" and other.result(LONG).prediction.label == "other"
    with pytest.raises(Unavailable, match="the model failed on this text; the reason stands in the log"):
        poison.result(LONG)
    (logged,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert "an error of the model" in str(logged.exc_info[1])
    assert live.ask("next").prediction.label == "next"


def test_blank_texts_and_texts_without_a_prediction_have_no_answer(live, stand_in):
    stand_in.gate.set()
    with pytest.raises(BadInput, match="a blank text cannot be predicted"):
        live.ask(" \n")
    with pytest.raises(Unavailable, match="the model has no prediction for this text"):
        live.ask("nothing")
    assert live.ask("next").prediction.label == "next"


def test_a_model_that_cannot_be_loaded_says_why_and_is_not_tried_again_for_every_text(stand_in):
    stand_in.gate.set()
    tried = []

    def load():
        tried.append(len(tried))
        if len(tried) == 1:
            raise NotFound("models/m has no manifest.json")
        return stand_in

    live = LiveModel(load, deadline=LONG, again_after=0.3)
    for _ in range(3):
        with pytest.raises(Unavailable, match=r"the model cannot be loaded: models/m has no manifest\.json"):
            live.ask("good")
    assert tried == [0]
    time.sleep(0.3)
    assert live.ask("good").prediction.label == "good" and live.ask("more") and tried == [0, 1]
    live.close()


def test_a_bug_while_loading_is_logged_and_not_told(caplog):
    def load():
        raise ZeroDivisionError("a bug")

    live = LiveModel(load, deadline=LONG)
    with pytest.raises(Unavailable, match="the model cannot be loaded; the reason stands in the log") as told:
        live.ask("good")
    assert "a bug" not in str(told.value) and "ZeroDivisionError" in caplog.text
    live.close()


def test_warming_loads_the_model_before_anybody_asks(stand_in):
    loaded = threading.Event()

    def load():
        loaded.set()
        return stand_in

    live = LiveModel(load)
    assert not loaded.is_set()
    live.warm()
    assert loaded.wait(LONG)
    live.close()


def test_closing_answers_those_who_wait_and_ends_the_thread(live, stand_in, pool):
    first = pool.submit(live.ask, "first")
    assert stand_in.began.acquire(timeout=LONG)
    second = pool.submit(live.ask, "second")
    wait_until(lambda: live._queue.qsize() == 1)
    closing = pool.submit(live.close)
    wait_until(lambda: live._closed)
    stand_in.gate.set()
    closing.result(LONG)
    assert first.result(LONG).prediction.label == "first" and second.result(LONG).prediction.label == "second"
    assert not live._thread.is_alive()
    live.warm()
    with pytest.raises(Unavailable, match="no longer served"):
        live.ask("third")
    assert not live._thread.is_alive()


FORKING = """
import os
from dynaround.task import Prediction
from server.live_model import LiveModel

class Named:
    precision = back_end = "none"
    def __init__(self):
        self.hash = str(os.getpid())
    def predict(self, sentences):
        return [Prediction(sentence, {}) for sentence in sentences]

live = LiveModel(Named, deadline=10)
assert live.ask("before").model_hash == str(os.getpid())
child = os.fork()
answer = live.ask("after")
assert (answer.prediction.label, answer.model_hash) == ("after", str(os.getpid()))
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_after_a_fork_each_process_loads_a_model_and_answers_for_itself():
    options = ["-W", "ignore::DeprecationWarning", "-c", FORKING]
    done = subprocess.run([sys.executable, *options], cwd=REPOSITORY, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_real_model_says_under_load_what_it_says_alone(workspace, models, pool):
    model = TargetModel(workspace.models / "model-0", LABELS, threads=1)
    live = models.for_round(bound_round(workspace.models / "model-0"), LABELS)
    texts = [f"the {noun} was {word}" for noun in ("food", "soup", "room") for word in ("good", "cold", "ok", "slow")]
    for text, answer in zip(texts * 5, pool.map(live.ask, texts * 5), strict=True):
        (alone,) = model.predict([text])
        assert answer.prediction.probs == pytest.approx(alone.probs, abs=1e-5)
        assert answer.prediction.label == alone.label
        assert (answer.model_hash, answer.precision, answer.back_end) == (model.hash, "float32", "torch")


def test_two_rounds_at_once_are_answered_each_by_its_own_model(workspace, models, pool):
    rounds = [bound_round(workspace.models / f"model-{place}", number=place + 1) for place in (0, 1)]
    expected = [
        TargetModel(workspace.models / round_.target_model, LABELS, threads=1).predict(["the soup was cold"])[0].probs
        for round_ in rounds
    ]
    assert expected[0] != pytest.approx(expected[1], abs=1e-3)
    turns = [0, 1] * 30
    answers = pool.map(lambda turn: models.for_round(rounds[turn], LABELS).ask("the soup was cold"), turns)
    for turn, answer in zip(turns, answers, strict=True):
        assert answer.model_hash == rounds[turn].target_model_hash
        assert answer.prediction.probs == pytest.approx(expected[turn], abs=1e-5)


@pytest.mark.parametrize("named", ["torch", "openvino"])
def test_while_one_model_loads_another_keeps_answering_each_under_its_own_hash(workspace, pool, monkeypatch, named):
    if named == "openvino":
        # Its first load exports the model and tries it on a sample, which takes the longest.
        pytest.importorskip("openvino")
    playing, opening = (bound_round(workspace.models / f"model-{place}", number=place + 1) for place in (0, 1))
    expected = {
        round_.target_model_hash: TargetModel(workspace.models / round_.target_model, LABELS).predict(["it was ok"])[0]
        for round_ in (playing, opening)
    }
    models = LiveModels(workspace)
    models.for_round(playing, LABELS).ask("it was ok")
    monkeypatch.setattr(workspace.settings, "back_end", named)
    loading = pool.submit(load_bound, workspace, opening.target_model, opening.target_model_hash, LABELS)

    def ask_until_loaded():
        answers = [models.for_round(playing, LABELS).ask("it was ok")]
        while not loading.done():
            answers.append(models.for_round(playing, LABELS).ask("it was ok"))
        return answers

    answers = [answer for asking in [pool.submit(ask_until_loaded) for _ in range(4)] for answer in asking.result(60)]
    assert {answer.model_hash for answer in answers} == {playing.target_model_hash}
    assert loading.result().hash == opening.target_model_hash
    answers.append(models.for_round(opening, LABELS).ask("it was ok"))
    assert answers[-1].model_hash == opening.target_model_hash and answers[-1].back_end == named
    for answer in answers:
        assert answer.prediction.probs == pytest.approx(expected[answer.model_hash].probs, abs=1e-5)
    models.close()


def test_a_newer_model_in_the_folder_never_answers_for_an_open_round(workspace, models):
    other = bound_round(workspace.models / "model-0", model_hash="0" * 64)
    with pytest.raises(Unavailable, match=r"model model-0 has hash \w{12}, the round opened against 000000000000"):
        models.for_round(other, LABELS).ask("good soup")


def test_a_missing_model_is_named_and_others_go_on(workspace, models):
    lost = bound_round(workspace.models / "model-9", model_hash="0" * 64)
    with pytest.raises(Unavailable, match=r"cannot be loaded: .*model-9"):
        models.for_round(lost, LABELS).ask("good soup")
    known = bound_round(workspace.models / "model-1")
    assert models.for_round(known, LABELS).ask("good soup").model_hash == known.target_model_hash


def test_no_more_than_two_models_are_held(workspace, models):
    rounds = [bound_round(workspace.models / f"model-{place}", number=place + 1) for place in range(3)]
    first = models.for_round(rounds[0], LABELS)
    assert models.for_round(rounds[0], LABELS) is first and first.ask("ok")
    second = models.for_round(rounds[1], LABELS)
    assert models.for_round(rounds[0], LABELS) is first and models.for_round(rounds[2], LABELS).ask("ok")
    with pytest.raises(Unavailable, match="no longer served"):
        second.ask("ok")
    assert first.ask("ok").model_hash == rounds[0].target_model_hash
    assert models.for_round(rounds[1], LABELS).ask("ok").model_hash == rounds[1].target_model_hash


def test_a_model_that_others_take_the_place_of_while_it_loads_is_not_waited_for(workspace, models, pool):
    rounds = [bound_round(workspace.models / f"model-{place}", number=place + 1) for place in range(3)]
    held, may_end = models.for_round(rounds[0], LABELS), threading.Event()
    held._load, held._deadline = lambda: may_end.wait(3 * LONG), 3 * LONG
    held.warm()
    try:
        newer = [pool.submit(models.for_round, round_, LABELS).result(LONG) for round_ in rounds[1:]]
        assert [live.ask("ok").model_hash for live in newer] == [round_.target_model_hash for round_ in rounds[1:]]
        assert held._thread.is_alive()
    finally:
        may_end.set()
        held.close()


def test_a_workspace_that_leaves_the_threads_open_serves_with_one(workspace, monkeypatch):
    monkeypatch.setattr(workspace.settings, "threads", 0)
    name = "model-0"
    assert load_bound(workspace, name, TargetModel(workspace.models / name, LABELS).hash, LABELS)._threads == 1
    monkeypatch.setattr(workspace.settings, "threads", 2)
    assert load_bound(workspace, name, TargetModel(workspace.models / name, LABELS).hash, LABELS)._threads == 2


def test_the_pages_are_up_before_torch_is():
    code = "import sys, server.live_model; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, timeout=60, env=os.environ)
    assert done.returncode == 0

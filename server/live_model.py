"""The live model behind the authors' page: one thread a process that predicts together whatever waits together."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple, Protocol

from dynaround.errors import BadInput, DynaroundError, Unavailable
from dynaround.settings import Workspace
from dynaround.tables import Round
from dynaround.task import Prediction

MODELS = "dynaround.live_models"
"""Where an application keeps its `LiveModels`, among its extensions."""

DEADLINE = 5.0
"""Seconds that an author waits for the model before being told that it does not answer."""
MOST = 64
"""Texts predicted at once: so many short sentences take a fraction of a second, and nobody waits for more."""
ROOM = 256
"""Texts that may wait in one process; more would not be answered within the deadline anyhow."""
AGAIN_AFTER = 3.0
"""Seconds between attempts to load a model that could not be loaded."""
KEPT = 2
"""Models that one process holds; with more open rounds than that, the one used longest ago is loaded anew."""

_log = logging.getLogger(__name__)
_LOADING = Lock()
_IN_THE_LOG = "the reason stands in the log of the server"


class Predictor(Protocol):
    """What is asked; `dynaround.target_model.TargetModel` is one."""

    @property
    def hash(self) -> str:
        """Which model it is."""

    @property
    def precision(self) -> str:
        """Its arithmetic."""

    @property
    def back_end(self) -> str:
        """What runs it."""

    def predict(self, sentences: Sequence[str]) -> list[Prediction | None]:
        """Predict each sentence."""


class LiveAnswer(NamedTuple):
    """What the model said of one text, which model it was, and the seconds from the call to the answer."""

    prediction: Prediction
    model_hash: str
    precision: str
    back_end: str
    latency: float


class _Asked(NamedTuple):
    text: str
    since: float
    answer: Future[LiveAnswer]


class LiveModel:
    """A model that answers one text at a time to many threads, and predicts together those that wait together.

    Its thread starts, and loads the model, at the first `ask` or `warm` in each process: nothing runs when a server
    forks. A lone text is predicted at once. `deadline` and `again_after` are in seconds, `most` is in texts a batch,
    `room` in texts that may wait.
    """

    def __init__(
        self,
        load: Callable[[], Predictor],
        *,
        deadline: float = DEADLINE,
        most: int = MOST,
        room: int = ROOM,
        again_after: float = AGAIN_AFTER,
    ):
        self._load = load
        self._deadline = deadline
        self._most = most
        self._room = room
        self._again_after = again_after
        self._lock = Lock()
        self._thread: Thread | None = None
        self._queue: SimpleQueue[_Asked | None] = SimpleQueue()
        self._closed = False

    def ask(self, text: str) -> LiveAnswer:
        """Predict one text.

        Raises BadInput for a blank one, and Unavailable where the model cannot be loaded, fails, or does not answer
        within the deadline, and where too many wait already. A text that was given up is not predicted later.
        """
        if not text.strip():
            raise BadInput("a blank text cannot be predicted; write something")
        asked = _Asked(text, time.perf_counter(), Future())
        self._start(asked)
        try:
            return asked.answer.result(timeout=self._deadline)
        except TimeoutError as error:
            asked.answer.cancel()
            raise Unavailable(
                f"the model did not answer within {self._deadline:g} seconds; send the text again in a moment"
            ) from error

    def warm(self) -> None:
        """Begin to load the model, and return at once."""
        with suppress(Unavailable):
            self._start(None)

    def retire(self) -> None:
        """Take no more questions; the thread ends by itself when it has answered those who wait."""
        with self._lock:
            self._closed = True
            self._queue.put(None)

    def close(self) -> None:
        """Retire, and wait for the end of the thread."""
        self.retire()
        if self._thread is not None:
            self._thread.join(self._deadline)

    def _start(self, asked: _Asked | None) -> None:
        with self._lock:
            if self._closed:
                raise Unavailable("the model is no longer served; load the page again")
            if self._thread is None or not self._thread.is_alive():
                # In the child of a fork neither the thread lives nor may its queue be used: it still counts as waiting.
                self._queue = SimpleQueue()
                self._thread = Thread(target=self._work, args=(self._queue,), name="live model", daemon=True)
                self._thread.start()
            if asked is not None:
                if (waiting := self._queue.qsize()) >= self._room:
                    raise Unavailable(f"the model is busy ({waiting} texts wait); send the text again in a moment")
                self._queue.put(asked)

    def _work(self, queue: "SimpleQueue[_Asked | None]") -> None:
        loading = _Loading(self._load, self._again_after)
        loading.model()
        for waiting in _together(queue, self._most):
            model = loading.model()
            wanted = [asked for asked in waiting if asked.answer.set_running_or_notify_cancel()]
            if model is None:
                _refuse(wanted, loading.problem)
            elif wanted:
                _answer(model, wanted)


class LiveModels:
    """The live models of a workspace, each by the name and the hash that an open round is bound to."""

    def __init__(self, workspace: Workspace):
        self._workspace = workspace
        self._lock = Lock()
        self._models: OrderedDict[tuple[str, str, tuple[str, ...]], LiveModel] = OrderedDict()

    def for_round(self, round_: Round, labels: Sequence[str]) -> LiveModel:
        """Return the live model of a round whose task has these `labels`; it answers as long as the round is played.

        The model is loaded when it is first asked, beside others that are answering. Asked, it is Unavailable where
        its folder holds another model than the round opened with.
        """
        name, expected = round_.target_model, round_.target_model_hash
        key = (name, expected, tuple(labels))
        with self._lock:
            if key not in self._models:
                self._models[key] = LiveModel(lambda: load_bound(self._workspace, name, expected, labels))
            self._models.move_to_end(key)
            live = self._models[key]
            while len(self._models) > KEPT:
                # Not waited for: it may be loading, and whoever asks here has a deadline.
                self._models.popitem(last=False)[1].retire()
        return live

    def close(self) -> None:
        """End all threads."""
        with self._lock:
            models = list(self._models.values())
            self._models.clear()
        for model in models:
            model.close()


def load_bound(workspace: Workspace, name: str, expected: str, labels: Sequence[str]) -> Predictor:
    """Load a model of a workspace; raise BadInput where it is not the one with the hash `expected`.

    Where the settings leave the threads open it takes one: the other cores belong to the threads that talk to
    browsers, and to the other processes.
    """
    # The pages are up long before torch is.
    from dynaround.serving import load_served_model

    settings = workspace.settings
    # One at a time: transformers finds its classes while they are asked for, and two threads at once miss some.
    with _LOADING:
        model = load_served_model(
            workspace.models / name,
            labels,
            back_end=settings.back_end,
            precision=settings.precision,
            threads=settings.threads or 1,
        )
    if model.hash != expected:
        raise BadInput(
            f"model {name} has hash {model.hash[:12]}, the round opened against {expected[:12]}; put that model back"
        )
    return model


class _Loading:
    """The model once it is loaded; one that cannot be loaded is tried again, but not for every text."""

    def __init__(self, load: Callable[[], Predictor], again_after: float):
        self._load = load
        self._again_after = again_after
        self._not_before = 0.0
        self._model: Predictor | None = None
        self.problem = ""

    def model(self) -> Predictor | None:
        """Return the model; None with the reason in `problem`."""
        if self._model is None and time.monotonic() >= self._not_before:
            try:
                self._model = self._load()
            except DynaroundError as error:
                self.problem = f"the model cannot be loaded: {error}"
            # The edge of the thread, here and below: a bug is one answer, and never the end of the thread.
            except Exception:
                _log.exception("the model cannot be loaded")
                self.problem = f"the model cannot be loaded; {_IN_THE_LOG}"
            self._not_before = time.monotonic() + self._again_after
        return self._model


def _together(queue: "SimpleQueue[_Asked | None]", most: int) -> Iterator[list[_Asked]]:
    """Yield what waits, at most so many at once, until None comes."""
    while (asked := queue.get()) is not None:
        waiting = [asked]
        try:
            while len(waiting) < most and (asked := queue.get_nowait()) is not None:
                waiting.append(asked)
        except Empty:
            pass
        yield waiting
        if asked is None:
            return


def _answer(model: Predictor, wanted: Sequence[_Asked]) -> None:
    try:
        answered = list(zip(wanted, model.predict([asked.text for asked in wanted]), strict=True))
    except Exception:
        if len(wanted) > 1:
            # What is wrong with one author's text must not cost the others theirs.
            for asked in wanted:
                _answer(model, [asked])
            return
        _log.exception("the model failed on a text")
        _refuse(wanted, f"the model failed on this text; {_IN_THE_LOG}")
        return
    for asked, prediction in answered:
        if prediction is None:
            _refuse([asked], "the model has no prediction for this text; send another one")
            continue
        latency = time.perf_counter() - asked.since
        asked.answer.set_result(LiveAnswer(prediction, model.hash, model.precision, model.back_end, latency))


def _refuse(wanted: Sequence[_Asked], reason: str) -> None:
    # An error each: a raised one carries the traceback of the thread that it was raised in.
    for asked in wanted:
        asked.answer.set_exception(Unavailable(reason))

"""Which back end serves a model: the fastest of those that the settings allow and that say what float32 says."""

import json
import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from dynaround.back_ends import EXACT, AskedBackEnd, AskedPrecision, Refused, Way, ways
from dynaround.demo_corpus import demo_reviews
from dynaround.errors import NoSpace
from dynaround.exports import machine, machine_key, side_folder
from dynaround.folders import data_hash, read_manifest, write_json
from dynaround.target_model import NEAR_TIE, TargetModel

SAMPLE_SIZE = 1_000
"""With 500, a back end that flips two near ties in a thousand would be refused by chance one time in twelve."""
LEAST_AGREEMENT = 0.995

_log = logging.getLogger(__name__)


class Trial(NamedTuple):
    """How the labels of a back end compare with those of float32, both before near ties are decided.

    `beyond` counts other labels where the two best of float32 lie further apart than `NEAR_TIE`, `apart` is how far any
    probability moved.
    """

    sentences: int
    same: int
    beyond: int
    apart: float

    def refusal(self, way: Way) -> str | None:
        """Say in a sentence why the back end must not serve; None where it may."""
        if not self.beyond and self.same >= LEAST_AGREEMENT * self.sentences:
            return None
        differing = f"{self.sentences - self.same} of {self.sentences} labels of a sample differ from float32"
        return (
            f"{way} does not say what float32 says ({differing}, {self.beyond} of them where its two best labels are "
            f'no near tie); set back_end = "torch" and precision = "float32" in dynaround.toml'
        )


def compare(exact: Sequence[Sequence[float]], tried: Sequence[Sequence[float]]) -> Trial:
    """Compare probabilities, rows by labels, of float32 and of a back end on the same sentences."""
    same = beyond = 0
    apart = 0.0
    for expected, found in zip(exact, tried, strict=True):
        apart = max(apart, *(abs(a - b) for a, b in zip(expected, found, strict=True)))
        first, second = sorted(expected, reverse=True)[:2]
        if expected.index(first) == found.index(max(found)):
            same += 1
        elif first - second > NEAR_TIE:
            beyond += 1
    return Trial(len(exact), same, beyond, apart)


@cache
def sample() -> tuple[str, ...]:
    """Return the sentences of a trial: of the packaged corpus, evenly from all of it."""
    texts = list(dict.fromkeys(sentence.text for review in demo_reviews() for sentence in review.sentences))
    step = len(texts) / SAMPLE_SIZE
    return tuple(texts[int(place * step)] for place in range(SAMPLE_SIZE))


def load_served_model(
    folder: Path, labels: Sequence[str], *, back_end: AskedBackEnd, precision: AskedPrecision, threads: int
) -> TargetModel:
    """Load a model with the fastest back end that the settings allow and that agrees with float32 on a sample.

    The sample is tried once a model and machine, and what came of it kept beside the model's folder. Raises Refused, in
    the words of the last one, where no back end may serve, and what `TargetModel` raises.
    """
    allowed = ways(back_end, precision)
    for way in allowed:
        try:
            return _load_tried(folder, labels, way, threads)
        except (Refused, NoSpace) as error:
            if way == allowed[-1]:
                raise
            _log.warning("%s; until then the next fastest is taken", error)
    raise AssertionError("the settings always leave a way to predict")


def _load_tried(folder: Path, labels: Sequence[str], way: Way, threads: int) -> TargetModel:
    def load() -> TargetModel:
        return TargetModel(folder, labels, precision=way.precision, back_end=way.back_end, threads=threads)

    if way == EXACT:
        return load()
    model_hash = read_manifest(folder)["hash"]
    try:
        side = side_folder(folder, model_hash)
        path = side / f"{way.back_end}-{way.precision}-{machine_key()}-{data_hash(sample())[:12]}.json"
        model = None
        with FileLock(path.with_suffix(".lock")):
            trial = _read_trial(path)
            if trial is None:
                model = load()
                trial = compare(model.raw_probabilities(sample(), exact=True), model.raw_probabilities(sample()))
                write_json(
                    path, {"kind": "trial", "model": model_hash, **way._asdict(), **trial._asdict(), **machine()}
                )
    except OSError as error:
        raise Refused(f"what {way} needs cannot be kept beside {folder} ({error}); make its folder writable") from error
    if refusal := trial.refusal(way):
        raise Refused(refusal)
    return model or load()


def _read_trial(path: Path) -> Trial | None:
    if not path.is_file():
        return None
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Trial(**{name: kept[name] for name in Trial._fields})

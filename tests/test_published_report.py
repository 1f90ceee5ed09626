"""The report on the published DynaSent files: every figure that is published of them, or was computed independently."""

from pathlib import Path
from typing import Any

import pytest

from rounds.report_figures import figures
from rounds.report_files import source_of_files
from rounds.reporting import report_of
from tests.report_rows import counts, row

R1, R2, SST = "round 1 dev", "round 2 dev", "sst-dev-validated"
LABELS = ("positive", "negative", "neutral")
EXACT = 1e-6


@pytest.fixture(scope="module")
def published(shared_data: Path) -> dict[str, Any]:
    folder = shared_data / "dynasent"
    names = ("dynasent-v1.1-round01-yelp-dev", "dynasent-v1.1-round02-dynabench-dev", SST)
    return figures(report_of(source_of_files([folder / f"{name}.jsonl" for name in names]), seed=0))


def about(value: float) -> Any:
    return pytest.approx(value, abs=EXACT)


@pytest.mark.parametrize(
    ("split", "gold", "responses"),
    [
        (R1, [3600, 1200, 1200, 1200, 0, 0], [18000, 5963, 5520, 6087, 430]),
        (R2, [720, 240, 240, 240, 0, 0], [3600, 1162, 1166, 1170, 102]),
        (SST, [1101, 433, 421, 75, 108, 64], [5505, 2129, 2052, 612, 712]),
    ],
)
def test_sizes_gold_labels_and_responses(published: dict[str, Any], split: str, gold: list[int], responses: list[int]):
    assert counts(published, "gold", split) == gold
    assert counts(published, "responses", split) == responses


@pytest.mark.parametrize(
    ("split", "votes", "agreeing", "given"),
    [
        (R1, [1244, 2356, 0, 0], 15644, 18000),
        (R2, [327, 393, 0, 0], 3207, 3600),
        (SST, [528, 278, 231, 64], 4445, 5185),
    ],
)
def test_winning_votes(published: dict[str, Any], split: str, votes: list[int], agreeing: int, given: int):
    assert counts(published, "votes", split) == [*votes, agreeing, given, about(agreeing / given)]


@pytest.mark.parametrize(
    ("split", "by_gold"),
    [
        (R1, {"positive": [5272, 155, 422, 151], "negative": [249, 5140, 433, 178], "neutral": [442, 225, 5232, 101]}),
        (R2, {"positive": [1075, 27, 60, 38], "negative": [25, 1079, 57, 39], "neutral": [62, 60, 1053, 25]}),
        (
            SST,
            {
                "positive": [1914, 28, 120, 103],
                "negative": [35, 1835, 114, 121],
                "neutral": [37, 22, 304, 12],
                "mixed": [56, 82, 10, 392],
                "no majority": [87, 85, 64, 84],
            },
        ),
    ],
)
def test_gold_labels_by_single_responses(published: dict[str, Any], split: str, by_gold: dict[str, list[int]]):
    for gold, wanted in by_gold.items():
        assert counts(published, "gold-by-response", split, gold) == wanted


def test_every_cell_of_prediction_rating_and_gold_is_as_large_as_the_others(published: dict[str, Any]):
    for gold in LABELS:
        assert counts(published, "gold-by-prediction", R1, gold) == [400, 400, 400]
        assert counts(published, "gold-by-prediction", R2, gold) == [80, 80, 80]
        assert counts(published, "gold-by-rating", R1, gold) == [600, 600]
    for rating in (1, 5):
        for said in LABELS:
            cells = counts(published, "rating-by-prediction-by-gold", R1, rating, said)
            assert cells == [200, 200, 200, 0, 0]


def test_rows_of_the_distribution_rule(published: dict[str, Any]):
    assert row(published, "training-rows", R1)["distribution rule"] == 18430
    assert row(published, "training-rows", R2)["distribution rule"] == 3702


@pytest.mark.parametrize(("split", "errors", "examples"), [(R1, 2400, 3600), (R2, 480, 720)])
def test_two_thirds_fool_the_model_in_dev(published: dict[str, Any], split: str, errors: int, examples: int):
    for definition in ("published", "model labels only", "lacked labels as errors", "over all"):
        numerator, denominator, rate, rule = counts(published, "fooling", split, definition)
        assert (numerator, denominator, rate) == (errors, examples, about(2 / 3)) and "over" in rule


@pytest.mark.parametrize(
    ("split", "observed", "expected", "kappa", "alpha"),
    [
        (R1, 0.738222, 0.318717, 0.615758, 0.615779),
        (R2, 0.781667, 0.315517, 0.681024, 0.681113),
        (SST, 0.718983, 0.317599, 0.588194, 0.588268),
    ],
)
def test_agreement(published: dict[str, Any], split: str, observed: float, expected: float, kappa: float, alpha: float):
    found = row(published, "agreement", split)
    assert (found["observed"], found["expected"]) == (about(observed), about(expected))
    assert (found["kappa"], found["alpha"]) == (about(kappa), about(alpha))
    assert found["kappa low"] < found["kappa"] < found["kappa high"]
    assert found["alpha low"] < found["alpha"] < found["alpha high"]


EXPECTED = {
    (R1, "positive"): (0.884178, 5272 / 6000, 0.881379),
    (R1, "negative"): (0.931198, 5140 / 6000, 0.892343),
    (R1, "neutral"): (0.859604, 5232 / 6000, 0.865720),
    (R1, "macro"): (0.891660, 0.869111, 0.879814),
    (R2, "positive"): (0.925340, 1075 / 1200, 0.910204),
    (R2, "negative"): (0.925596, 1079 / 1200, 0.912050),
    (R2, "neutral"): (0.900264, 1053 / 1200, 0.888565),
    (R2, "macro"): (0.917067, 0.890833, 0.903607),
}


@pytest.mark.parametrize(("place", "wanted"), EXPECTED.items())
def test_human_scores_as_an_exact_expectation(
    published: dict[str, Any], place: tuple[str, str], wanted: tuple[float, float, float]
):
    found = row(published, "f1-by-label", *place)
    assert (found["precision"], found["recall"], found["F1"]) == tuple(map(about, wanted))
    assert found["low"] < found["F1"] < found["high"]


@pytest.mark.parametrize(
    ("split", "precision", "recall", "f1", "unshuffled"),
    [(R1, 0.891663, 0.869111, 0.879808, 0.8706), (R2, 0.916974, 0.890833, 0.903632, 0.8961)],
)
def test_human_scores_by_the_published_shuffle(
    published: dict[str, Any], split: str, precision: float, recall: float, f1: float, unshuffled: float
):
    found = row(published, "f1-published-procedure", split, "macro")
    assert (found["precision"], found["recall"], found["F1"]) == tuple(map(about, (precision, recall, f1)))
    assert found["F1"] - unshuffled > 0.005, "the responses were not shuffled"


PUBLISHED_DIGITS = {
    (R1, "positive"): (0.884, 0.879, 0.881),
    (R1, "negative"): (0.931, 0.857, 0.892),
    (R1, "neutral"): (0.860, 0.872, 0.866),
    (R1, "macro"): (0.892, 0.869, 0.880),
    (R2, "positive"): (0.925, 0.896, 0.910),
    (R2, "negative"): (0.926, 0.899, 0.912),
    (R2, "neutral"): (0.900, 0.878, 0.889),
    (R2, "macro"): (0.917, 0.891, 0.904),
}


@pytest.mark.parametrize(("place", "digits"), PUBLISHED_DIGITS.items())
def test_human_scores_round_to_the_published_digits(
    published: dict[str, Any], place: tuple[str, str], digits: tuple[float, float, float]
):
    found = row(published, "f1-published-procedure", *place)
    # Exactly .8775 is published as .878.
    shown = tuple(float(f"{found[name] + 1e-9:.3f}") for name in ("precision", "recall", "F1"))
    assert shown == digits


def test_the_three_figures_of_people(published: dict[str, Any]):
    for split, f1 in ((R1, 0.879814), (R2, 0.903607)):
        for way in ("(a) dev and test", "(b) all with gold", "(c) against four"):
            assert row(published, "f1-three-ways", split, way, "the model's")["macro F1"] == about(f1)
    assert row(published, "f1-three-ways", SST, "(b) all with gold", "all")["macro F1"] == about(0.823388)
    against_four = row(published, "f1-three-ways", SST, "(c) against four", "all")
    assert against_four["macro F1"] == pytest.approx(0.7933, abs=5e-5)
    assert (against_four["unusable"], against_four["responses"]) == (693, 5185)
    undefined = row(published, "f1-three-ways", SST, "(a) dev and test", "all")
    assert undefined["macro F1"] is None and undefined["why undefined"].startswith("undefined")
    note = published["sections"]["performance"]["tables"]["f1-three-ways"]["note"]
    assert f"{SST} 1,013 of 5,505" in note


@pytest.mark.parametrize(
    ("split", "workers", "always", "from_95"), [(R1, 1280, 614, 654), (R2, 244, 116, 126), (SST, 103, 4, 6)]
)
def test_workers(published: dict[str, Any], split: str, workers: int, always: int, from_95: int):
    found = row(published, "worker-agreement", split)
    assert (found["workers"], found["always"], found["at least 95 %"]) == (workers, always, from_95)
    assert found["their share"] == about(from_95 / workers)


def test_loads_of_workers(published: dict[str, Any]):
    found = row(published, "worker-loads", SST)
    assert (found["workers"], found["median"], found["mode"]) == (103, 31, 10)
    assert found["most active"] == "w135 280, w55 241, w3 220, w352 172, w26 171"


@pytest.mark.parametrize(
    ("split", "examples", "mean", "right", "wrong"),
    [(R1, 3600, 0.7003, 0.7701, 0.6653), (R2, 720, 0.6577, 0.7920, 0.5905)],
)
def test_the_target_model_is_at_chance_and_marked(
    published: dict[str, Any], split: str, examples: int, mean: float, right: float, wrong: float
):
    found = row(published, "target-model", split)
    assert (found["macro F1"], found["accuracy"]) == (about(1 / 3), about(1 / 3))
    assert (found["label is the likeliest"], found["of"]) == (examples, examples)
    assert [found[name] for name in ("mean probability", "where right", "where wrong")] == [
        pytest.approx(value, abs=5e-5) for value in (mean, right, wrong)
    ]
    assert "at chance by construction" in found["mark"]
    assert "at chance by construction" in row(published, "calibration", split)["mark"]


def test_prompts_and_authors(published: dict[str, Any]):
    found = row(published, "prompts", R2)
    assert (found["distinct prompts"], found["used once"], found["equal to the prompt"]) == (720, 720, 1)
    assert found["mean distance"] == pytest.approx(0.4973, abs=5e-5)
    assert found["median"] == pytest.approx(0.5516, abs=5e-5)
    assert (found["lower quartile"], found["upper quartile"]) == (pytest.approx(0.25), pytest.approx(0.7289, abs=5e-5))
    assert row(published, "arms", R2, "Prompt")["authors"] == 133
    assert row(published, "arms", R2, "No Prompt")["examples"] == 0


@pytest.mark.parametrize(
    ("split", "characters", "tokens"), [(R1, 72.5261, 15.7036), (R2, 68.5472, 14.6333), (SST, 100.86, 19.04)]
)
def test_lengths(published: dict[str, Any], split: str, characters: float, tokens: float):
    found = row(published, "text-lengths", split)
    digits = 5e-3 if split == SST else 5e-5
    assert found["mean characters"] == pytest.approx(characters, abs=digits)
    assert found["mean tokens"] == pytest.approx(tokens, abs=digits)


def test_the_labels_that_sentences_of_sst_had_before(published: dict[str, Any]):
    wanted = {
        "positive": [367, 2, 64],
        "negative": [5, 359, 57],
        "neutral": [23, 8, 44],
        "mixed": [34, 35, 39],
        "no majority": [15, 24, 25],
    }
    for gold, cells in wanted.items():
        assert counts(published, "gold-by-earlier-label", SST, gold) == cells
    assert counts(published, "earlier-label-kept", SST, "neutral") == [229, 44, about(44 / 229)]
    assert counts(published, "earlier-label-kept", SST, "any") == [1101, 770, about(770 / 1101)]


def test_promises_that_the_files_keep(published: dict[str, Any]):
    for check in ("gold rule", "five responses", "spans", "probabilities", "sentences unique"):
        assert row(published, "invariants", f"round 1: {check}")["result"] == "holds"
    for check in (
        "authors not their own validators",
        "prompts of dev and test unique",
        "dev and test from the prompt arm",
    ):
        assert row(published, "invariants", f"round 2: {check}")["result"] == "holds"

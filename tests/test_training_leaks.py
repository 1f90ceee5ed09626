"""What is judged on is never trained on: left out, counted, listed; too much of it stops the run."""

import pytest

from dynaround.database import reading
from dynaround.errors import BadInput
from dynaround.judged_texts import barred_in_rounds, barred_in_sets
from dynaround.leaks import BarredText, BarredTexts
from dynaround.mixture import mix
from dynaround.model_training import Heard, Order, train_model
from dynaround.recipe import CorpusChoice, MixtureRecipe, choices
from dynaround.tasks.sentiment import SENTIMENT
from tests.builders import build_open_round, build_released_round, sentence_of, split_of
from tests.test_mixture import refuse, table

LABELS = SENTIMENT.model_labels


def corpus(tmp_path, leaking=(), clean=998, name="corpus.csv"):
    lines = [f"clean sentence {n},{LABELS[n % 3]}" for n in range(clean)]
    lines += [f'"{text}",neutral' for text in leaking]
    return f"csv:{table(tmp_path, 'text,label', *lines, name=name)}"


def barred(*texts):
    return BarredTexts(BarredText(text, "round 1, dev") for text in texts)


def test_a_barred_text_is_left_out_counted_and_listed_up_to_folding(tmp_path):
    leaks = []
    spec = corpus(tmp_path, ["So  it is. ", "so it is."])
    found = mix([spec], SENTIMENT, on_reject=refuse, barred=barred("So it is."), on_leak=leaks.append)
    [report] = found.reports
    assert (report.rows_read, report.rows, report.leaks, len(found.rows)) == (1000, 999, 1, 999)
    assert [(leak.corpus, leak.sentence, leak.stands_in) for leak in leaks] == [
        (spec, "corpus.csv:1000", "round 1, dev")
    ]
    assert report.first_leaks == [{"sentence": "corpus.csv:1000", "text": "So  it is. ", "stands_in": "round 1, dev"}]
    assert not found.leaks_allowed


def test_more_than_half_a_percent_of_one_corpus_stops_the_run(tmp_path):
    texts = [f"leak {n}" for n in range(6)]
    small, large = corpus(tmp_path, texts[:5], clean=995), corpus(tmp_path, texts, clean=994, name="second.csv")
    assert mix([small], SENTIMENT, on_reject=refuse, barred=barred(*texts)).reports[0].leaks == 5
    with pytest.raises(
        BadInput, match=r"6 of 1000 sentences of csv:.*second\.csv are judged on elsewhere .*round 1, dev"
    ):
        mix([small, large], SENTIMENT, on_reject=refuse, barred=barred(*texts))


def test_allowing_leaks_goes_on_without_them_and_marks_the_mixture(tmp_path):
    texts = [f"leak {n}" for n in range(30)]
    found = mix(
        [corpus(tmp_path, texts, clean=70)], SENTIMENT, on_reject=refuse, barred=barred(*texts), allow_leaks=True
    )
    assert found.leaks_allowed and not {row.text for row in found.rows} & set(texts)
    assert found.reports[0].leaks == 30 and len(found.reports[0].first_leaks) == 20


def test_leaks_are_left_out_before_a_part_is_drawn(tmp_path):
    choice = CorpusChoice(source=corpus(tmp_path, ["leak 1"]), most=300)
    found = mix([choice], SENTIMENT, on_reject=refuse, barred=barred("leak 1"))
    assert len(found.rows) == 300 and found.reports[0].leaks == 1


def test_dev_and_test_of_every_round_with_splits_are_barred(workspace):
    build_released_round(workspace)
    build_released_round(workspace, number=2, examples=49)
    build_open_round(workspace, number=3, examples=10)
    with reading(workspace.engine()) as session:
        found = list(barred_in_rounds(session))
    held_out = [(number, n) for number, size in ((1, 70), (2, 49)) for n in range(1, size + 1)]
    expected = {
        (sentence_of(n), f"round {number}, {split_of(n)}") for number, n in held_out if split_of(n) in ("dev", "test")
    }
    assert set(found) == expected and len(found) == len(expected)


def test_named_sets_are_barred_and_a_line_that_cannot_be_read_is_no_way_round(tmp_path):
    good = table(tmp_path, "text,label", "one,positive", "two,mixed", name="set.csv")
    found = list(barred_in_sets([f"csv:{good}"], SENTIMENT, lambda spec: "csv:set.csv"))
    assert found == [BarredText("one", "csv:set.csv"), BarredText("two", "csv:set.csv")]
    bad = table(tmp_path, "text,label", "one,positive", "two,odd", name="bad.csv")
    with pytest.raises(BadInput, match=r"bad\.csv, line 3: .* could not be kept out of training"):
        list(barred_in_sets([f"csv:{bad}"], SENTIMENT, str))


def test_a_model_of_a_workspace_keeps_clear_of_its_rounds_and_named_sets(workspace, tiny_encoder, tmp_path):
    build_released_round(workspace)
    with reading(workspace.engine()) as session:
        in_round = next(barred_in_rounds(session))
    judged = table(tmp_path, "text,label", "named for judging,positive", name="set.csv")
    spec = corpus(tmp_path, [in_round.text, "named for judging"])
    recipe = MixtureRecipe(corpus=choices([spec]), evaluate_on=[f"csv:{judged}"])
    order = Order(recipe, {"epochs": 1, "batch_rows": 64}, encoder=str(tiny_encoder))
    manifest = train_model(workspace, "m", order, Heard(refuse, lambda done, steps: None))
    [told] = manifest["origin"]["corpora"]
    assert [leak["stands_in"] for leak in told["first_leaks"]] == [in_round.stands_in, f"csv:{judged}"]
    assert manifest["rows"] == 998 and manifest["origin"]["leaks"] == {"sentences": 2, "allowed": False}
    assert manifest["origin"]["recipe"]["evaluate_on"] == [f"csv:{judged}"]

"""Weights, label modes, draws and reviews by stars: what a corpus weighs in a mixture, and how much of it is taken."""

import json
import tracemalloc
from collections import Counter

import pytest

from dynaround.balanced_draw import BalancedDraw, even_parts
from dynaround.corpus.labelled import LabelledSentence
from dynaround.errors import BadInput
from dynaround.mixture import mix, origin_of, training_rows
from dynaround.mixture_report import CorpusReport, mixture_lines
from dynaround.recipe import CorpusChoice, MixtureRecipe
from dynaround.tasks.sentiment import SENTIMENT
from tests.test_mixture import refuse, rows_of, table

LABELS = SENTIMENT.model_labels


def shares_of(*responses, mixed="both"):
    sentence = LabelledSentence("text", None, responses, None, "id")
    rows = training_rows(sentence, SENTIMENT, "soft", mixed, CorpusReport("spec", "file", "hash"))
    return [row.shares for row in rows]


def labelled(tmp_path, counts, name="corpus.csv"):
    lines = [f"{label} sentence {place},{label}" for label, count in counts.items() for place in range(count)]
    return f"csv:{table(tmp_path, 'text,label', *lines, name=name)}"


def test_trn_01_soft_mode_gives_one_row_an_item_and_keeps_all_of_them():
    rows, report = rows_of("soft", "both")
    assert [(row.text, row.weight) for row in rows] == [(f"i{n}", 1.0) for n in range(1, 6)]
    assert [sum(share for _, share in row.shares) for row in rows] == pytest.approx([1] * 5)
    assert (report.dropped_no_majority, report.dropped_mixed) == (0, 0)


def test_a_mixed_response_counts_half_for_each_side():
    torn = shares_of("positive", "positive", "mixed", "neutral", "mixed")
    assert torn == [(("positive", 0.6), ("negative", 0.2), ("neutral", 0.2))]
    assert shares_of("mixed", "mixed") == [(("positive", 0.5), ("negative", 0.5))]


def test_dropped_mixed_responses_leave_the_shares_to_the_others():
    assert shares_of("positive", "mixed", "neutral", mixed="drop") == [(("positive", 0.5), ("neutral", 0.5))]
    assert shares_of("mixed", mixed="drop") == []


def test_a_sentence_without_responses_gives_its_gold_label_in_soft_mode(tmp_path):
    found = mix([labelled(tmp_path, dict.fromkeys(LABELS, 1))], SENTIMENT, mode="soft", on_reject=refuse)
    assert [row.shares for row in found.rows] == [((label, 1.0),) for label in LABELS]


@pytest.mark.parametrize(
    ("name", "rows", "votes"),
    [
        ("dynasent-v1.1-round01-yelp-dev", 18_430, [5963, 5520, 6087, 430]),
        ("dynasent-v1.1-round02-dynabench-dev", 3_702, [1162, 1166, 1170, 102]),
        ("sst-dev-validated", 5_505 + 712, [2129, 2052, 612, 712]),
    ],
)
def test_rows_and_soft_masses_follow_from_the_published_votes(shared_data, name, rows, votes):
    spec = f"dynasent:{shared_data / 'dynasent' / name}.jsonl"
    positive, negative, neutral, mixed = votes
    repeated = mix([spec], SENTIMENT, mode="distribution", on_reject=refuse).reports[0]
    expected = {"positive": positive + mixed, "negative": negative + mixed, "neutral": neutral}
    assert repeated.labels == expected and repeated.rows == rows
    soft = mix([spec], SENTIMENT, mode="soft", on_reject=refuse).reports[0]
    assert soft.rows == sum(votes) / 5
    halves = [(positive + mixed / 2) / 5, (negative + mixed / 2) / 5, neutral / 5]
    assert list(soft.labels.values()) == pytest.approx(halves)


def test_a_weight_multiplies_what_a_corpus_counts_and_copies_no_row(tmp_path):
    first = labelled(tmp_path, {"positive": 2, "negative": 1, "neutral": 1})
    second = labelled(tmp_path, {"neutral": 4}, "second.csv")
    found = mix([CorpusChoice(source=first, weight=3), second], SENTIMENT, on_reject=refuse)
    assert [row.weight for row in found.rows] == [3.0] * 4 + [1.0] * 4
    assert [report.share for report in found.reports] == [0.75, 0.25]
    assert found.label_shares == {"positive": 0.375, "negative": 0.1875, "neutral": 0.4375}


def test_the_weighted_share_of_a_corpus_is_that_of_its_rows_in_every_mode(shared_data):
    r1, r2 = (next((shared_data / "dynasent").glob(f"*round0{n}*.jsonl")) for n in (1, 2))
    found = mix(
        [f"dynasent:{r1}", CorpusChoice(source=f"dynasent:{r2}", weight=2)],
        SENTIMENT,
        mode="soft",
        on_reject=refuse,
    )
    assert [r.share for r in found.reports] == pytest.approx([3600 / 5040, 1440 / 5040], abs=1e-6)
    assert sum(found.label_shares.values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("available", "most", "parts"),
    [
        ({"a": 10, "b": 10, "c": 10}, 9, [3, 3, 3]),
        ({"a": 10, "b": 1, "c": 10}, 9, [4, 1, 4]),
        ({"a": 10, "b": 10, "c": 9}, 10, [3, 4, 3]),
        ({"a": 1, "b": 0, "c": 2}, 9, [1, 0, 2]),
    ],
)
def test_what_one_label_lacks_goes_to_the_others(available, most, parts):
    found = even_parts(available, most)
    assert [found[label] for label in "abc"] == parts


def test_a_draw_is_balanced_seeded_and_the_same_in_any_order_of_arrival(tmp_path):
    def drawn(names, seed):
        draw = BalancedDraw(20, seed)
        for name in names:
            draw.add(name[0], name, name)
        return draw.drawn()

    names = [f"{label}{n}" for n in range(200) for label in "xy"]
    first = drawn(names, 1)
    assert Counter(name[0] for name in first) == {"x": 10, "y": 10}
    assert first == sorted(first, key=names.index)
    assert set(drawn(names[::-1], 1)) == set(first) != set(drawn(names, 2))


def test_most_bounds_a_corpus_and_says_what_was_there_before(tmp_path):
    spec = labelled(tmp_path, {"positive": 50, "negative": 20, "neutral": 2})
    found = mix([CorpusChoice(source=spec, most=12)], SENTIMENT, on_reject=refuse)
    [report] = found.reports
    assert report.labels_read == {"positive": 50, "negative": 20, "neutral": 2} and report.rows_read == 72
    assert report.labels == {"positive": 5, "negative": 5, "neutral": 2} and report.rows == len(found.rows) == 12
    again = mix([CorpusChoice(source=spec, most=12)], SENTIMENT, on_reject=refuse)
    other = mix([CorpusChoice(source=spec, most=12)], SENTIMENT, draw_seed=1, on_reject=refuse)
    assert again.rows == found.rows != other.rows


def reviews(path, count, text="fine", stars=lambda n: 1 + n % 5):
    with path.open("w", encoding="utf-8") as file:
        for n in range(count):
            file.write(json.dumps({"review_id": f"v{n}", "stars": float(stars(n)), "text": f"{text} {n}"}) + "\n")
    return f"yelp:{path}"


def test_reviews_are_whole_and_their_stars_are_the_labels(tmp_path):
    found = mix([reviews(tmp_path / "r.jsonl", 5, "It was. Then it")], SENTIMENT, on_reject=refuse)
    labels = [row.shares[0][0] for row in found.rows]
    assert labels == ["negative", "negative", "neutral", "positive", "positive"]
    assert [row.text for row in found.rows] == [f"It was. Then it {n}" for n in range(5)]
    assert found.review_ids == {f"v{n}" for n in range(5)} and found.reviews[2] == "v2"


def test_only_the_reviews_that_were_drawn_are_recorded(tmp_path):
    choice = CorpusChoice(source=reviews(tmp_path / "r.jsonl", 100), most=6)
    found = mix([choice], SENTIMENT, on_reject=refuse)
    assert len(found.review_ids) == 6 == len(found.rows) and found.reports[0].sentences == 100
    assert found.reports[0].labels == dict.fromkeys(LABELS, 2)


def test_a_table_of_reviews_is_read_by_stars_where_that_is_said(tmp_path):
    path = table(tmp_path, "id,body,score", "v1,Good.,5", "v2,So so.,3", "v3,Bad.,2", "v4,Odd.,9")
    rejects = []
    choice = CorpusChoice(source=f"csv:{path}", by_stars=True, fields={"text": "body", "rating": "score"})
    found = mix([choice], SENTIMENT, on_reject=lambda spec, reject: rejects.append(reject))
    assert [row.shares[0][0] for row in found.rows] == ["positive", "neutral", "negative"]
    assert [reject.line for reject in rejects] == [5] and found.reports[0].rejected == 1


def test_a_draw_from_a_large_file_stays_in_little_memory(tmp_path):
    choice = CorpusChoice(source=reviews(tmp_path / "r.jsonl", 20_000, "long " * 200), most=30)
    tracemalloc.start()
    mix([choice], SENTIMENT, on_reject=refuse)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "r.jsonl").stat().st_size > 20e6 and peak < 4e6


def test_words_of_a_corpus_stand_for_labels(tmp_path):
    path = table(tmp_path, "text,label", "good,pos", "bad,neg", "monday,neutral", "odd,unknown")
    rejects = []
    choice = CorpusChoice(source=f"csv:{path}", words={"pos": "positive", "neg": "negative"})
    found = mix([choice], SENTIMENT, on_reject=lambda spec, reject: rejects.append(reject))
    assert found.reports[0].labels == dict.fromkeys(LABELS, 1) and len(rejects) == 1


def test_phrases_of_sst_weigh_three_times_as_much_without_a_copy(shared_data):
    choice = CorpusChoice(source=f"sst:{shared_data / 'sst'}", unit="phrases", weight=3)
    found = mix([choice], SENTIMENT, on_reject=refuse)
    assert len(found.rows) == 159_274 and {row.weight for row in found.rows} == {3.0}
    # Published of Model 1 (sec. 1.10 of the facts): 3 x the unique phrases.
    assert [3 * found.reports[0].labels[label] for label in LABELS] == [128_016, 104_832, 244_974]


def test_the_table_has_rows_and_labels_before_and_after_and_the_weighted_shares(tmp_path):
    spec = labelled(tmp_path, {"positive": 1200, "negative": 20, "neutral": 10})
    recipe = MixtureRecipe(corpus=[CorpusChoice(source=spec, weight=2, most=30)])
    found = mix(recipe.corpus, SENTIMENT, on_reject=refuse, recorded=lambda spec: "csv:x")
    lines = [line.split() for line in mixture_lines(origin_of(found, recipe))]
    assert lines[0] == ["corpus", "rows", *LABELS, "weight", "share"]
    assert lines[1] == ["csv:x", "read", "1,230", "1,200", "20", "10"]
    assert lines[2] == ["used", "30", "10", "10", "10", "2", "1.000"]
    assert lines[3] == ["all,", "weighted", "0.333", "0.333", "0.333", "1.000"]


def test_a_kind_of_task_without_stars_takes_no_reviews(tmp_path):
    from tests.test_seam import ASKING

    with pytest.raises(BadInput, match="no row labelled asks"):
        mix([reviews(tmp_path / "r.jsonl", 5)], ASKING, on_reject=lambda spec, reject: None)

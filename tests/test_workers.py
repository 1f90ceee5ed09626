"""Crowds and imported results: what they answer around, what they refuse, and that nobody passes for people."""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlmodel import select

from dynaround.database import reading, writing
from dynaround.errors import BadInput, IllegalMove
from dynaround.labels import label_distribution
from dynaround.scoring import winning_votes
from dynaround.settings import Workspace
from dynaround.tables import Example, Page, Response, Worker
from dynaround.tasks.sentiment import SENTIMENT
from rounds.harvesting import harvest_round
from rounds.lifecycle import close_round, find_round
from rounds.opening import open_new_round
from tests.small_round import MOMENT, ReviewFiles, add_tiny_model, now, write_reviews
from workers.assignment import Answer, give_in, hand_out
from workers.crowds import CrowdMix, crowd_of_page, kind_of_worker, scripted_label
from workers.importing import import_results
from workers.roster import PERSON, SCRIPTED, enlist
from workers.simulation import replay_round, simulate_round

LABELS = SENTIMENT.labels


def harvested(workspace: Workspace, encoder: Path, folder: Path, size: int = 40) -> ReviewFiles:
    engine = workspace.engine()
    files = write_reviews(folder)
    add_tiny_model(workspace, encoder)
    spec, options = f"jsonl:{files.reviews}", {"size": size, "seed": 7}
    open_new_round(workspace, engine, target="model-0", reviews=spec, options=options, who="test", now=now)
    harvest_round(workspace, engine, 1, "test", now, lambda count: None)
    return files


def crowd_answers(mix: CrowdMix, truths: Sequence[str], seed: int) -> list[list[str]]:
    return [
        [
            scripted_label(truth, LABELS, kind_of_worker(w, mix, seed), f"scripted-{w + 1}", f"s{place}", mix, seed)
            for w in crowd_of_page(place // 10, mix, seed)
        ]
        for place, truth in enumerate(truths)
    ]


def test_the_scripted_crowd_is_as_hard_as_round_1_of_dynasent():
    truths = [LABELS[(place * 7) % 4] for place in range(8000)]
    votes = winning_votes(label_distribution(a, LABELS) for a in crowd_answers(CrowdMix(), truths, 1))
    assert votes.accuracy == pytest.approx(0.754, abs=0.015)
    assert votes.no_majority / 8000 == pytest.approx(0.107, abs=0.02)
    published = {3: 36_795, 4: 30_112, 5: 17_481}
    for size, count in published.items():
        assert votes.sizes[size] / 8000 == pytest.approx(count / 94_459, abs=0.025), size


def test_the_kinds_of_the_crowd_hold_their_shares():
    mix = CrowdMix(careful=0.5, careless=0.25, spamming=0.15, adversarial=0.1, workers=40)
    kinds = Counter(kind_of_worker(number, mix, 3) for number in range(40))
    assert kinds == {"careful": 20, "careless": 10, "spamming": 6, "adversarial": 4}


def test_shares_of_the_crowd_that_do_not_add_up_are_refused():
    with pytest.raises(BadInput, match="give parts that add up to 1"):
        CrowdMix(careful=0.9)


def test_each_kind_answers_as_its_name_says():
    mix = CrowdMix(ambiguity_limit=0.0)

    def answers(kind: str, worker: str = "w") -> list[str]:
        return [scripted_label("neutral", LABELS, kind, worker, f"s{n}", mix, 1) for n in range(400)]

    assert set(answers("careful")) == {"neutral"}
    assert "neutral" not in answers("adversarial")
    assert 0.82 < answers("careless").count("neutral") / 400 < 0.94
    spam = [set(answers("spamming", f"w{n}")) for n in range(30)]
    assert any(len(words) == 1 for words in spam) and any(len(words) == 4 for words in spam)


def test_the_crowd_answers_around_the_label_and_never_the_rating_or_prediction(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path
):
    files = harvested(workspace, tiny_encoder, tmp_path)
    carried = [json.loads(line) for line in files.truth.read_text().splitlines()]
    files.truth.write_text("".join(json.dumps({**line, "label": "mixed"}) + "\n" for line in carried))
    simulate_round(workspace, workspace.engine(), 1, files.truth, 7, now, lambda: None, CrowdMix(1.0, 0, 0, 0, 9, 0.0))
    with reading(workspace.engine()) as session:
        assert set(session.exec(select(Response.label))) == {"mixed"}
        assert set(session.exec(select(Worker.kind))) == {SCRIPTED}


def test_sentences_without_a_label_are_refused_and_nothing_is_stored(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path
):
    files = harvested(workspace, tiny_encoder, tmp_path)
    some = files.truth.read_text().splitlines(keepends=True)[:100]
    files.truth.write_text("".join(some))
    with pytest.raises(BadInput, match="of 40 examples carry no label of their own"):
        simulate_round(workspace, workspace.engine(), 1, files.truth, 7, now, lambda: None)
    with reading(workspace.engine()) as session:
        assert not session.exec(select(Response)).all() and not session.exec(select(Page)).all()


@pytest.mark.parametrize("line", ["not json", '{"review_id": "a", "start": 0, "end": 3}', '{"label": "postive"}'])
def test_a_damaged_truth_file_is_refused_with_its_line(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path, line: str
):
    files = harvested(workspace, tiny_encoder, tmp_path)
    files.truth.write_text(line + "\n")
    with pytest.raises(BadInput, match="line 1"):
        simulate_round(workspace, workspace.engine(), 1, files.truth, 7, now, lambda: None)


def released_lines(workspace: Workspace) -> list[dict[str, object]]:
    """Return lines of a release with the same sentences, answered by five people of known labels."""
    lines = []
    with reading(workspace.engine()) as session:
        for number, example in enumerate(session.exec(select(Example).order_by(Example.number))):
            votes = {label: [] for label in LABELS} | {
                "neutral": ["w9", "w2", "w4"],
                "mixed": [f"w{100 + number % 3}", "w8"],
            }
            lines.append(
                {
                    "hit_ids": ["y1"],
                    "sentence": example.text,
                    "indices_into_review_text": [example.span_start, example.span_end],
                    "model_0_label": "neutral",
                    "model_0_probs": {"negative": 0.2, "positive": 0.2, "neutral": 0.6},
                    "text_id": f"r1-{number:07d}",
                    "review_rating": example.rating,
                    "label_distribution": votes,
                    "gold_label": "neutral",
                    "review_id": example.review_id,
                }
            )
    return lines


def test_a_replayed_crowd_hands_out_what_was_recorded(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    harvested(workspace, tiny_encoder, tmp_path)
    lines = released_lines(workspace)
    source = tmp_path / "published.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = replay_round(workspace, workspace.engine(), 1, source, now, lambda: None)
    assert report.responses_in_all == 200
    with reading(workspace.engine()) as session:
        assert Counter(session.exec(select(Response.label))) == {"neutral": 120, "mixed": 80}
        assert set(session.exec(select(Worker.kind))) == {"replayed"}
        pages = Counter(session.exec(select(Response.page_id)))
        assert max(pages.values()) == 10
    source.write_text(json.dumps(lines[0]) + "\n")
    with pytest.raises(BadInput, match="no response is recorded for example 2"):
        replay_round(workspace, workspace.engine(), 1, source, now, lambda: None)


def write_results(path: Path, rows: Sequence[Sequence[str]], header: str = "text_id,worker,answer") -> Path:
    with path.open("w", newline="") as handle:
        handle.write(header + "\n")
        csv.writer(handle).writerows(rows)
    return path


def test_srv_03_import_maps_the_words_of_the_form_and_rejects_unknown_ones_with_their_line(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path
):
    harvested(workspace, tiny_encoder, tmp_path)
    rows = [
        ["r1-0000001", "A1", "positive"],
        ["r1-0000002", "A1", "nosentiment"],
        ["r1-0000003", "A1", "mixed"],
        ["r1-0000004", "A1", "postive"],
        ["r1-0000005", "A1", "NEUTRAL"],
        ["r1-0000006", "A1", ""],
        ["r1-0009999", "A1", "neutral"],
        ["r2-0000001", "A1", "neutral"],
        ["r1-0000007", "", "neutral"],
    ]
    report = import_results(workspace.engine(), 1, write_results(tmp_path / "results.csv", rows), MOMENT)
    assert (report.added, report.known) == (3, 0)
    assert [row.line for row in report.rejected] == [5, 6, 7, 8, 9, 10]
    assert "postive" in report.rejected[0].reason
    with reading(workspace.engine()) as session:
        by_number = session.exec(select(Response.label).join(Example).order_by(Example.number)).all()
        assert list(by_number) == ["positive", "neutral", "mixed"]
        assert session.exec(select(Worker.kind)).all() == [PERSON]


def test_importing_again_adds_nothing_and_the_first_answer_stands(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path
):
    harvested(workspace, tiny_encoder, tmp_path)
    file = write_results(tmp_path / "r.csv", [["r1-0000001", "A1", "positive"], ["r1-0000001", "A2", "mixed"]])
    assert import_results(workspace.engine(), 1, file, MOMENT).added == 2
    again = import_results(workspace.engine(), 1, file, MOMENT)
    assert (again.added, again.known, again.rejected) == (0, 2, [])
    other = write_results(tmp_path / "s.csv", [["r1-0000001", "A1", "negative"]])
    assert "the first answer stands" in import_results(workspace.engine(), 1, other, MOMENT).rejected[0].reason


def test_a_file_without_the_columns_is_refused(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    harvested(workspace, tiny_encoder, tmp_path)
    file = write_results(tmp_path / "r.csv", [["1", "2"]], header="text,who")
    with pytest.raises(BadInput, match="has no column text_id \\(found: text, who\\)"):
        import_results(workspace.engine(), 1, file, MOMENT)


def test_val_01_nobody_validates_their_own_text_or_one_text_twice(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path
):
    harvested(workspace, tiny_encoder, tmp_path)
    engine = workspace.engine()
    with writing(engine) as session:
        author, other = enlist(session, "A3", PERSON), enlist(session, "A5", PERSON)
        examples = session.exec(select(Example).order_by(Example.number)).all()
        examples[0].author_id, examples[0].arm = author.id, "prompt"
        session.add(examples[0])
        page = hand_out(session, examples[0].round_id, other, [examples[0].id])
        give_in(session, SENTIMENT, page, {examples[0].id: Answer("positive")}, MOMENT)
    with pytest.raises(IllegalMove, match="wrote example 1"), writing(engine) as session:
        hand_out(session, examples[0].round_id, author, [examples[0].id])
    with pytest.raises(Exception, match=r"(?i)unique"), writing(engine) as session:
        hand_out(session, examples[0].round_id, other, [examples[0].id])
    with reading(engine) as session:
        assert [r.label for r in session.exec(select(Response))] == ["positive"]


def test_a_page_takes_exactly_its_places_once(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    harvested(workspace, tiny_encoder, tmp_path)
    engine = workspace.engine()
    with writing(engine) as session:
        round_, worker = find_round(session, 1), enlist(session, "A1", PERSON)
        ids = [e.id for e in session.exec(select(Example).order_by(Example.number)).all()][:11]
        with pytest.raises(IllegalMove, match="a page has 10 places, not 11"):
            hand_out(session, round_.id, worker, ids)
        page = hand_out(session, round_.id, worker, ids[:2])
        with pytest.raises(IllegalMove, match="2 places and 1 answers"):
            give_in(session, SENTIMENT, page, {ids[0]: Answer("mixed")}, MOMENT)
        give_in(session, SENTIMENT, page, {i: Answer("mixed") for i in ids[:2]}, MOMENT)
        with pytest.raises(IllegalMove, match="given in already"):
            give_in(session, SENTIMENT, page, {i: Answer("mixed") for i in ids[:2]}, MOMENT)


def test_a_crowd_never_passes_for_people(workspace: Workspace):
    with writing(workspace.engine()) as session:
        enlist(session, "scripted-1", SCRIPTED)
        with pytest.raises(BadInput, match="is scripted, not person"):
            enlist(session, "scripted-1", PERSON)
        with pytest.raises(BadInput, match="platform id is empty"):
            enlist(session, " ", PERSON)


def test_a_crowd_made_otherwise_or_of_another_kind_is_refused(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    files = harvested(workspace, tiny_encoder, tmp_path)
    simulate_round(workspace, workspace.engine(), 1, files.truth, 7, now, lambda: None)
    with pytest.raises(BadInput, match="it differs in seed"):
        simulate_round(workspace, workspace.engine(), 1, files.truth, 8, now, lambda: None)
    results = write_results(tmp_path / "r.csv", [["r1-0000001", "A1", "positive"]])
    with pytest.raises(BadInput, match="has responses of scripted workers, and person ones do not join them"):
        import_results(workspace.engine(), 1, results, MOMENT)
    with reading(workspace.engine()) as session:
        assert len(session.exec(select(Response)).all()) == 200


def test_a_round_closed_meanwhile_takes_no_more_pages(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    files = harvested(workspace, tiny_encoder, tmp_path)
    pages = iter(range(1000))

    def close_after_six() -> None:
        if next(pages) == 5:
            with writing(workspace.engine()) as session:
                close_round(session, find_round(session, 1), "test", MOMENT, leave_out_short=True)

    with pytest.raises(IllegalMove, match="only an open round takes responses"):
        simulate_round(workspace, workspace.engine(), 1, files.truth, 7, now, close_after_six)
    with reading(workspace.engine()) as session:
        assert len(session.exec(select(Page)).all()) == 6


def test_a_scripted_crowd_is_not_replayed_as_people(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    harvested(workspace, tiny_encoder, tmp_path)
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in released_lines(workspace)))
    (folder / "manifest.json").write_text('{"responses_from": "a scripted crowd (not people)"}')
    with pytest.raises(BadInput, match="only recorded people are replayed"):
        replay_round(workspace, workspace.engine(), 1, folder / "train.jsonl", now, lambda: None)


def test_import_keeps_hits_as_pages_and_the_seconds(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    harvested(workspace, tiny_encoder, tmp_path)
    rows = [[f"r1-{n:07d}", w, "mixed", f"H{n // 4}", s] for n in range(1, 8) for w, s in (("A1", "3.5"), ("A2", ""))]
    file = write_results(tmp_path / "r.csv", rows, "text_id,worker,answer,hit,seconds")
    assert import_results(workspace.engine(), 1, file, MOMENT).added == 14
    with reading(workspace.engine()) as session:
        assert len(session.exec(select(Page)).all()) == 4
        assert Counter(session.exec(select(Response.seconds))) == {3.5: 7, None: 7}


@pytest.mark.parametrize(
    "row",
    [
        ["r1-99999999999999999999", "A1", "mixed"],
        ["r1-00000001", "A1", "mixed"],
        ["r1-0000001", "A\x001", "mixed"],
        ["r99999999999999999999-0000001", "A1", "mixed"],
    ],
)
def test_a_line_that_cannot_be_stored_is_rejected_and_leaves_no_worker(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path, row: list[str]
):
    harvested(workspace, tiny_encoder, tmp_path, size=3)
    report = import_results(workspace.engine(), 1, write_results(tmp_path / "r.csv", [row]), MOMENT)
    assert (report.added, [r.line for r in report.rejected]) == (0, [2])
    with reading(workspace.engine()) as session:
        assert not session.exec(select(Worker)).all()

"""A round from opening to release, on both back ends: what each step stores, refuses, and does when run again."""

import json
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlmodel import select

from dynaround.database import reading, writing
from dynaround.errors import BadInput, Busy, IllegalMove, NotFound
from dynaround.folders import read_manifest
from dynaround.release_check import check_release, read_release
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import Event, Example, Page, Placement, Response, Retention, Worker
from dynaround.tasks.sentiment import SENTIMENT
from rounds.harvesting import harvest_round
from rounds.lifecycle import close_round, find_round
from rounds.opening import open_new_round
from rounds.releasing import release_round
from rounds.status import figure_lines, round_figures
from tests.small_round import MOMENT, ReviewFiles, add_tiny_model, now, write_reviews
from workers.importing import import_results
from workers.simulation import simulate_round

SIZE = 200


def opened(workspace: Workspace, engine: Engine, encoder: Path, folder: Path, **options: object) -> ReviewFiles:
    files = write_reviews(folder)
    add_tiny_model(workspace, encoder)
    open_new_round(
        workspace,
        engine,
        target="model-0",
        reviews=f"jsonl:{files.reviews}",
        options={"size": SIZE, "seed": 7} | options,
        who="test",
        now=now,
    )
    return files


def harvested(workspace: Workspace, engine: Engine, encoder: Path, folder: Path, **options: object) -> ReviewFiles:
    files = opened(workspace, engine, encoder, folder, **options)
    harvest_round(workspace, engine, 1, "test", now, lambda count: None)
    return files


def answered(workspace: Workspace, engine: Engine, files: ReviewFiles) -> None:
    simulate_round(workspace, engine, 1, files.truth, 7, now, lambda: None)


def closed(workspace: Workspace, engine: Engine, **options: bool) -> int:
    with writing(engine) as session:
        return close_round(session, find_round(session, 1), "test", MOMENT, **options)


def test_a_whole_round(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    answered(workspace, engine, harvested(workspace, engine, tiny_encoder, tmp_path))
    assert closed(workspace, engine) == 0
    manifest = release_round(workspace, engine, 1, tmp_path / "round-1", "test", MOMENT)

    splits = {s: read_release(tmp_path / "round-1" / f"{s}.jsonl", SENTIMENT) for s in manifest["examples"]}
    assert manifest["examples"] == {split: len(examples) for split, examples in splits.items()}
    assert sum(manifest["examples"].values()) == SIZE
    assert len(splits["dev"]) == len(splits["test"]) == 9 * manifest["splits"]["per_cell"] > 0
    assert manifest["responses_from"] == "a scripted crowd (not people)"
    assert not [r for r in check_release(splits, SENTIMENT.labels, SENTIMENT.model_labels) if r.status == "fails"]
    with reading(engine) as session:
        assert find_round(session, 1).state == "released"
        assert len(session.exec(select(Placement)).all()) == SIZE
        assert len(session.exec(select(Retention)).all()) == 5 * SIZE
        assert [e.what for e in session.exec(select(Event))] == [
            "open",
            "harvested",
            "crowd answers",
            "closed",
            "released",
        ]
    assert_no_private_word(tmp_path / "round-1", ["scripted-", str(tmp_path)])


def assert_no_private_word(folder: Path, words: list[str]) -> None:
    for file in folder.iterdir():
        text = file.read_text()
        assert not [word for word in words if word in text], file


def test_the_same_seed_gives_the_same_lines_in_another_workspace(tiny_encoder: Path, tmp_path: Path):
    texts = []
    for name in ("a", "b"):
        workspace = create_workspace(tmp_path / name)
        engine = workspace.engine()
        answered(workspace, engine, harvested(workspace, engine, tiny_encoder, tmp_path / "reviews"))
        closed(workspace, engine)
        folder = workspace.releases / "round-1"
        release_round(workspace, engine, 1, folder, "test", MOMENT)
        texts.append({file.name: file.read_bytes() for file in folder.glob("*.jsonl")})
        workspace.close()
    assert texts[0] == texts[1]


def test_examples_keep_all_that_the_prediction_was_made_with(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    files = harvested(workspace, engine, tiny_encoder, tmp_path)
    texts = {r["review_id"]: r for r in map(json.loads, files.reviews.read_text().splitlines())}
    with reading(engine) as session:
        round_, examples = find_round(session, 1), session.exec(select(Example).order_by(Example.number)).all()
    assert [e.number for e in examples] == list(range(1, SIZE + 1))
    for e in examples:
        assert texts[e.review_id]["text"][e.span_start : e.span_end] == e.text
        assert e.rating == texts[e.review_id]["rating"]
        assert e.prediction == max(e.probs, key=lambda label: e.probs[label])
        assert (e.model_hash, e.precision, e.back_end) == (round_.target_model_hash, "float32", "torch")


def test_a_harvest_by_openvino_draws_the_same_sentences_and_says_what_predicted_them(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("openvino")
    drawn = {}
    for back_end in ("torch", "openvino"):
        monkeypatch.setenv("DYNAROUND_BACK_END", back_end)
        workspace = create_workspace(tmp_path / back_end)
        harvested(workspace, workspace.engine(), tiny_encoder, tmp_path / "reviews")
        with reading(workspace.engine()) as session:
            examples = session.exec(select(Example).order_by(Example.number)).all()
        assert {(e.back_end, e.precision) for e in examples} == {(back_end, "float32")}
        drawn[back_end] = [(e.text, e.prediction, e.model_hash) for e in examples]
        workspace.close()
    assert drawn["torch"] == drawn["openvino"]


def test_a_finished_harvest_is_reported_and_not_repeated(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    harvested(workspace, engine, tiny_encoder, tmp_path)
    again = harvest_round(workspace, engine, 1, "test", now, lambda count: None)
    assert again.already_done and sum(again.examples.values()) == SIZE
    with reading(engine) as session:
        assert len(session.exec(select(Example)).all()) == SIZE
    assert not list(workspace.work.glob("harvest-1.sqlite*"))


def test_a_crowd_that_answers_twice_adds_nothing(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    files = harvested(workspace, engine, tiny_encoder, tmp_path)
    first = simulate_round(workspace, engine, 1, files.truth, 7, now, lambda: None)
    again = simulate_round(workspace, engine, 1, files.truth, 7, now, lambda: None)
    assert (first.responses_added, again.responses_added, again.responses_in_all) == (5 * SIZE, 0, 5 * SIZE)


def test_an_interrupted_crowd_goes_on_to_the_same_answers(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    files = harvested(workspace, engine, tiny_encoder, tmp_path)
    pages = iter(range(17))
    with pytest.raises(StopIteration):
        simulate_round(workspace, engine, 1, files.truth, 7, now, lambda: next(pages))
    simulate_round(workspace, engine, 1, files.truth, 7, now, lambda: None)
    with reading(engine) as session:
        assert len(session.exec(select(Response)).all()) == 5 * SIZE
        assert len(session.exec(select(Page)).all()) == 5 * SIZE // 10


def test_closing_is_refused_while_responses_are_missing(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    files = harvested(workspace, engine, tiny_encoder, tmp_path)
    with pytest.raises(IllegalMove, match="none of the 200 examples of round 1 has 5 responses"):
        closed(workspace, engine, leave_out_short=True)
    pages = iter(range(96))
    with pytest.raises(StopIteration):
        simulate_round(workspace, engine, 1, files.truth, 7, now, lambda: next(pages))
    with pytest.raises(IllegalMove, match="10 of 200 examples of round 1 have fewer than 5 responses"):
        closed(workspace, engine)
    assert closed(workspace, engine, leave_out_short=True) == 10
    manifest = release_round(workspace, engine, 1, tmp_path / "round-1", "test", MOMENT)
    assert manifest["left_out_with_fewer_than_five_responses"] == 10
    assert sum(manifest["examples"].values()) == SIZE - 10


def test_steps_out_of_turn_are_refused(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    with pytest.raises(NotFound, match="there is no round 1; there is none yet"):
        harvest_round(workspace, engine, 1, "test", now, lambda count: None)
    files = opened(workspace, engine, tiny_encoder, tmp_path)
    with pytest.raises(IllegalMove, match="round harvest 1"):
        answered(workspace, engine, files)
    with pytest.raises(IllegalMove, match="has no example"):
        closed(workspace, engine)
    with pytest.raises(IllegalMove, match="round 1 is open; this needs a round that is closed or released"):
        release_round(workspace, engine, 1, tmp_path / "round-1", "test", MOMENT)
    with pytest.raises(IllegalMove, match="round 1 is still open"):
        opened(workspace, engine, tiny_encoder, tmp_path)
    harvest_round(workspace, engine, 1, "test", now, lambda count: None)
    answered(workspace, engine, files)
    closed(workspace, engine)
    with pytest.raises(IllegalMove, match="round 1 is closed"):
        closed(workspace, engine)
    with pytest.raises(IllegalMove, match="only an open round takes responses"):
        answered(workspace, engine, files)


def test_reviews_used_before_are_left_out_and_counted(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    answered(workspace, engine, harvested(workspace, engine, tiny_encoder, tmp_path))
    closed(workspace, engine)
    trained_on = [f"v{number}" for number in range(200, 210)]
    add_tiny_model(workspace, tiny_encoder, "model-1", trained_on)
    more = write_reviews(tmp_path, 60, seed=1, first=60)
    options = {"size": 50, "seed": 1}
    spec = f"jsonl:{more.reviews}"
    open_new_round(workspace, engine, target="model-1", reviews=spec, options=options, who="test", now=now)
    report = harvest_round(workspace, engine, 2, "test", now, lambda count: None)
    with reading(engine) as session:
        examples = session.exec(select(Example)).all()
    of_round = {n: {e.review_id for e in examples if e.round_id == n} for n in (1, 2)}
    assert not of_round[1] & of_round[2]
    assert report.pool.reviews_left_out == len(of_round[1] & {f"v{n}" for n in range(60, 120)}) > 0


def test_a_model_that_knows_all_reviews_leaves_none(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    files = write_reviews(tmp_path)
    add_tiny_model(workspace, tiny_encoder, review_ids=[f"v{n}" for n in range(90)])
    spec, options = f"jsonl:{files.reviews}", {"size": 10, "seed": 1}
    open_new_round(workspace, engine, target="model-0", reviews=spec, options=options, who="test", now=now)
    with pytest.raises(BadInput, match="gave no sentence to harvest .*90 left out as used before"):
        harvest_round(workspace, engine, 1, "test", now, lambda count: None)


def test_changed_reviews_or_another_model_are_noticed(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    files = opened(workspace, engine, tiny_encoder, tmp_path)
    whole = files.reviews.read_text()
    files.reviews.write_text(whole + "\n")
    with pytest.raises(BadInput, match="has other content than when the round opened"):
        harvest_round(workspace, engine, 1, "test", now, lambda count: None)
    files.reviews.write_text(whole)
    (workspace.models / "model-0").rename(workspace.models / "old")
    from tests.tiny_model import make_model

    make_model(workspace.models / "model-0", tiny_encoder, epochs=1)
    with pytest.raises(BadInput, match="opened against .*put that model back"):
        harvest_round(workspace, engine, 1, "test", now, lambda count: None)


def test_a_plan_that_does_not_fit_opens_nothing(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    with pytest.raises(BadInput, match="--margin"):
        opened(workspace, engine, tiny_encoder, tmp_path, margin=2)
    with reading(engine) as session, pytest.raises(NotFound):
        find_round(session, 1)


def test_a_quota_for_a_cell_that_the_task_does_not_have_is_refused(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path
):
    engine = workspace.engine()
    with pytest.raises(BadInput, match="there is no cell '2 stars'; the cells of this task are: 1 star, predicted pos"):
        opened(workspace, engine, tiny_encoder, tmp_path, quotas={"2 stars": 3})
    harvested(workspace, engine, tiny_encoder, tmp_path / "again", quotas={SENTIMENT.disagreement_cells[0]: 3})
    with reading(engine) as session:
        assert Counter(session.exec(select(Example.cell)))[SENTIMENT.disagreement_cells[0]] == 3


@pytest.mark.parametrize("reviews", ["jsonl:missing.jsonl", "nothing:file", "no-colon"])
def test_opening_on_reviews_that_are_not_there_is_refused(workspace: Workspace, tiny_encoder: Path, reviews: str):
    add_tiny_model(workspace, tiny_encoder)
    with pytest.raises((BadInput, NotFound)):
        options = {"size": 1, "seed": 1}
        engine = workspace.engine()
        open_new_round(workspace, engine, target="model-0", reviews=reviews, options=options, who="test", now=now)


def test_a_release_written_but_not_recorded_is_finished(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    answered(workspace, engine, harvested(workspace, engine, tiny_encoder, tmp_path))
    closed(workspace, engine)

    def died() -> None:
        raise KeyboardInterrupt

    import rounds.releasing as releasing

    folder, record = tmp_path / "round-1", releasing.mark_released
    releasing.mark_released = lambda *arguments, **detail: died()  # type: ignore[assignment]
    try:
        with pytest.raises(KeyboardInterrupt):
            release_round(workspace, engine, 1, folder, "test", MOMENT)
    finally:
        releasing.mark_released = record
    with reading(engine) as session:
        assert find_round(session, 1).state == "closed" and not session.exec(select(Placement)).all()
    written = read_manifest(folder)
    assert release_round(workspace, engine, 1, folder, "test", MOMENT) == written
    again = release_round(workspace, engine, 1, tmp_path / "copy", "test", MOMENT)
    assert again["files"] == written["files"]


def test_a_release_never_overwrites(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    answered(workspace, engine, harvested(workspace, engine, tiny_encoder, tmp_path))
    closed(workspace, engine)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(BadInput, match="is not empty"):
        release_round(workspace, engine, 1, tmp_path / "mine", "test", MOMENT)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_stated_size_that_cannot_be_filled_is_refused(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    answered(workspace, engine, harvested(workspace, engine, tiny_encoder, tmp_path, per_cell=50))
    closed(workspace, engine)
    with pytest.raises(BadInput, match=r"cell gold=.*needs 100 .*largest possible"):
        release_round(workspace, engine, 1, tmp_path / "round-1", "test", MOMENT)
    assert not (tmp_path / "round-1").exists()


def test_figures_name_who_answered_and_need_no_responses(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    files = harvested(workspace, engine, tiny_encoder, tmp_path)
    with reading(engine) as session:
        before = round_figures(session, find_round(session, 1))
    assert before["labels"] is None and before["still_wanted"] == 5 * SIZE
    answered(workspace, engine, files)
    with reading(engine) as session:
        figures = round_figures(session, find_round(session, 1))
    json.dumps(figures, allow_nan=False)
    assert figures["labels"]["responses_from"] == "a scripted crowd (not people)"
    assert sum(figures["labels"]["gold"].values()) == SIZE
    assert any("macro F1 of a scripted crowd (not people)" in line for line in figure_lines(figures))


def test_a_second_process_at_the_same_harvest_is_told_so(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    opened(workspace, engine, tiny_encoder, tmp_path)
    with workspace.exclusively("harvest-1"), pytest.raises(Busy, match="another dynaround process is at harvest-1"):
        harvest_round(workspace, engine, 1, "test", now, lambda count: None)


def test_a_round_that_cannot_be_harvested_can_be_ended(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    files = opened(workspace, engine, tiny_encoder, tmp_path)
    with pytest.raises(IllegalMove, match="--abandon"):
        closed(workspace, engine, leave_out_short=True)
    closed(workspace, engine, abandon=True)
    with pytest.raises(BadInput, match="round 1 was abandoned"):
        release_round(workspace, engine, 1, tmp_path / "round-1", "test", MOMENT)
    spec, options = f"jsonl:{files.reviews}", {"size": 5, "seed": 1}
    open_new_round(workspace, engine, target="model-0", reviews=spec, options=options, who="test", now=now)
    with reading(engine) as session:
        assert (find_round(session, 1).state, find_round(session, 2).state) == ("closed", "open")


def test_another_size_can_be_stated_at_release(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    answered(workspace, engine, harvested(workspace, engine, tiny_encoder, tmp_path, per_cell=50))
    closed(workspace, engine)
    manifest = release_round(workspace, engine, 1, tmp_path / "round-1", "test", MOMENT, per_cell=1)
    assert manifest["examples"]["dev"] == 9 and manifest["splits"]["stated"]
    again = release_round(workspace, engine, 1, tmp_path / "copy", "test", MOMENT)
    assert again["splits"] == manifest["splits"]
    with pytest.raises(BadInput, match="its splits stand"):
        release_round(workspace, engine, 1, tmp_path / "third", "test", MOMENT, per_cell=2)


def test_a_damaged_release_is_not_taken_for_finished(workspace: Workspace, tiny_encoder: Path, tmp_path: Path):
    engine = workspace.engine()
    answered(workspace, engine, harvested(workspace, engine, tiny_encoder, tmp_path))
    closed(workspace, engine)
    folder = tmp_path / "round-1"
    release_round(workspace, engine, 1, folder, "test", MOMENT)
    (folder / "train.jsonl").write_text("")
    with pytest.raises(BadInput, match="train.jsonl is not what was released"):
        release_round(workspace, engine, 1, folder, "test", MOMENT)


def test_more_than_five_responses_are_cut_alike_for_any_order_of_arrival(tiny_encoder: Path, tmp_path: Path):
    from dynaround.settings import create_workspace

    golds = []
    for order in (1, -1):
        workspace = create_workspace(tmp_path / f"w{order}")
        engine = workspace.engine()
        harvested(workspace, engine, tiny_encoder, tmp_path / "reviews", size=30)
        lines = [
            f"r1-{number:07d},P{person},{['positive', 'negative'][(number + person) % 2]}"
            for number in range(1, 31)
            for person in range(6)
        ][::order]
        (tmp_path / "results.csv").write_text("text_id,worker,answer\n" + "\n".join(lines) + "\n")
        import_results(engine, 1, tmp_path / "results.csv", MOMENT)
        closed(workspace, engine)
        with reading(engine) as session:
            kept = session.exec(
                select(Example.number, Worker.platform_id)
                .join(Response, Response.example_id == Example.id)
                .join(Worker, Worker.id == Response.worker_id)
                .join(Retention, Retention.response_id == Response.id)
            ).all()
            assert len(kept) == 150
            golds.append(set(kept))
        workspace.close()
    assert golds[0] == golds[1]

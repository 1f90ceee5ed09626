"""The report of a round, a release and files: the same figures, crowds called what they are, nothing predicted."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlmodel import select

from dynaround import tasks
from dynaround.database import reading, writing
from dynaround.errors import BadInput, NotFound
from dynaround.folders import MANIFEST, file_hashes, read_manifest, write_json
from dynaround.labels import RESPONSES
from dynaround.release_file import write_lines
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import Example, Page, Placement, Prompt, Response, Worker
from dynaround.task import PromptData, ReleasedExample, ReleasedResponse, Span
from dynaround.tasks.sentiment import SENTIMENT
from rounds.commands import report
from rounds.report_agreement import agreement_section
from rounds.report_figures import figures
from rounds.report_files import source_of_files, source_of_release
from rounds.report_labels import labels_section
from rounds.report_parts import Report
from rounds.reporting import make_report, report_of, write_report
from tests.builders import MOMENT, SECRET, build_open_round, build_released_round, unanimous
from tests.command import run
from tests.report_rows import CROWD, counts, reported, reported_section, row, rows
from tests.stages import Stages, play_stages
from tests.test_release_check import authored, released
from tests.test_seam import ASKING


@pytest.fixture(scope="module")
def stages(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Stages:
    return play_stages(tmp_path_factory.mktemp("report"), tiny_encoder, reviews=60, size=150)


@pytest.fixture
def plain_workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace on SQLite alone: what depends on the back end is tested with both."""
    made = create_workspace(tmp_path / "workspace")
    yield made
    made.close()


@pytest.fixture(scope="module")
def by_stage(stages: Stages) -> dict[str, dict[str, Any]]:
    """The figures of the round while it is open, closed and released."""
    found = {}
    for stage in ("answered", "closed", "released"):
        workspace = Workspace(stages.folder / stage)
        found[stage] = reported(workspace)
        workspace.close()
    return found


def test_a_round_is_reported_from_its_database(workspace: Workspace):
    build_released_round(workspace, kind="person")
    found = reported(workspace)
    assert found["marks"] == [] and found["sections"]["performance"]["title"] == "Human performance"
    with reading(workspace.engine()) as session:
        votes = Counter(session.exec(select(Response.label)))
        placed = Counter(session.exec(select(Placement.split)))
    assert counts(found, "responses", "all splits") == [votes.total(), *(votes[label] for label in SENTIMENT.labels)]
    assert {one["split"]: one["examples"] for one in rows(found, "sizes")} == {**placed, "all splits": 70}
    assert SECRET not in json.dumps(found, allow_nan=False)


def test_a_release_says_the_same_as_the_round_it_is_of(stages: Stages, by_stage: dict[str, Any]):
    of_round = by_stage["released"]
    release = stages.folder / "released" / "releases" / "round-1"
    of_release = figures(report_of(source_of_release(release), seed=0))
    for section in ("labels", "gold-by", "fooling", "agreement", "performance", "workers", "texts"):
        assert of_release["sections"][section] == of_round["sections"][section], section
    assert of_release["about"]["manifest hash"] == of_round["about"]["manifest hash"]
    assert of_release["about"]["manifest hash"] == read_manifest(release)["hash"]
    assert set(of_round["sections"]) - set(of_release["sections"]) == {"control", "screening", "aggregation"}


def test_a_crowd_is_called_that_in_every_table_figure_and_file(stages: Stages, tmp_path: Path):
    release = stages.folder / "released" / "releases" / "round-1"
    page, tables = tmp_path / "page.html", tmp_path / "tables.tex"
    made = make_report([], release, tmp_path, page=page, tables=tables, seed=0).report
    mark = f"responses from {CROWD}"
    assert made.marks == (mark,)
    plain = figures(made)
    assert all(t["marks"] == [mark] for s in plain["sections"].values() for t in s["tables"].values())
    assert plain["sections"]["performance"]["title"] == f"Performance of {CROWD}"
    number = sum(len(section.tables) for section in made.sections)
    assert tables.read_text().count(CROWD) >= number and page.read_text().count(CROWD) >= number
    assert "Human performance" not in page.read_text()


def test_an_open_round_is_reported_as_far_as_it_is_and_marked(by_stage: dict[str, Any]):
    found, closed = by_stage["answered"], by_stage["closed"]
    assert found["marks"] == [f"responses from {CROWD}", "round 1 is still open"]
    assert [one["split"] for one in rows(found, "gold")] == ["so far"]
    assert "invariants" not in found["sections"]
    assert closed["marks"] == [f"responses from {CROWD}", "round 1 is not released yet"]
    # Everybody has answered, so closing changes no label.
    assert counts(closed, "gold", "all splits") == counts(found, "gold", "so far")


def test_examples_of_an_open_round_with_fewer_or_more_than_five_responses_wait(stages: Stages, tmp_path: Path):
    workspace = Workspace(stages.copy("answered", tmp_path / "copy"))
    with writing(workspace.engine()) as session:
        example = session.exec(select(Example).where(Example.number == 1)).one()
        session.delete(session.exec(select(Response).where(Response.example_id == example.id)).first())
    assert counts(reported_section(workspace, labels_section), "gold", "so far")[0] == 149
    workspace.close()


def test_the_control_slice_is_counted_by_what_drew_each_example(stages: Stages, by_stage: dict[str, Any]):
    found = by_stage["released"]
    workspace = Workspace(stages.folder / "released")
    with reading(workspace.engine()) as session:
        drawn = Counter(session.exec(select(Example.cell)))
    workspace.close()
    assert {one["drawn as"]: one["examples"] for one in rows(found, "control")} == dict(drawn)
    first = rows(found, "control")[0]
    assert first["drawn as"] == "random" and len(drawn) > 1
    assert sum(first[label] for label in (*SENTIMENT.labels, "no majority")) == drawn["random"]
    scored = row(found, "control-scores", "random")
    assert scored["model errors"] / scored["of"] == scored["fooling rate"]
    assert scored["low"] <= scored["macro F1"] <= scored["high"]


def test_undefined_agreement_is_null_with_its_reason(plain_workspace: Workspace):
    build_released_round(plain_workspace, votes=unanimous)
    found = row(reported_section(plain_workspace, partial(agreement_section, seed=0)), "agreement", "all splits")
    assert [found[name] for name in ("kappa", "kappa low", "kappa high", "alpha")] == [None] * 4
    assert found["observed"] == 1 and found["why undefined"] == "undefined: expected agreement is 1"


def without_majority(number: int) -> ReleasedExample:
    labels = ("positive", "positive", "negative", "negative", "mixed")
    responses = tuple(ReleasedResponse(f"w{worker}", label, {}) for worker, label in enumerate(labels))
    return replace(released(number), gold=None, responses=responses)


def test_examples_without_any_gold_label_have_no_score_of_people_and_say_why(tmp_path: Path):
    write_lines(tmp_path / "train.jsonl", (SENTIMENT.release_line(without_majority(number)) for number in range(3)))
    found = make_report([str(tmp_path / "train.jsonl")], None, tmp_path, page=tmp_path / "p.html", tables=None, seed=0)
    plain = figures(found.report)
    assert all(one["macro F1"] is None for one in rows(plain, "f1-three-ways"))
    assert all(one["why undefined"].startswith("undefined") for one in rows(plain, "f1-three-ways"))
    assert "f1-by-label" not in plain["sections"]["performance"]["tables"]
    assert row(plain, "fooling", "train", "published")["rate"] is None
    assert row(plain, "votes", "train")["vote accuracy"] is None


@pytest.mark.parametrize("count", [1, 4])
def test_examples_of_one_review_have_scores_without_intervals(tmp_path: Path, count: int):
    same = [replace(released(number), review_id="only") for number in range(count)]
    write_lines(tmp_path / "train.jsonl", map(SENTIMENT.release_line, same))
    found = make_report([str(tmp_path / "train.jsonl")], None, tmp_path, page=tmp_path / "p.html", tables=None, seed=0)
    macro = row(figures(found.report), "f1-by-label", "train", "macro")
    assert macro["F1"] == pytest.approx(1 / 3, abs=0.1) and (macro["low"], macro["high"]) == (None, None)
    agreement = row(figures(found.report), "agreement", "train")
    assert agreement["kappa"] is not None and agreement["kappa low"] is None
    assert "one cluster" in agreement["why undefined"]


def test_a_second_kind_of_task_without_ratings_is_reported_by_its_own_labels(
    plain_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(tasks.TASKS, ASKING.name, ASKING)
    build_released_round(plain_workspace, task_name=ASKING.name)
    found = reported(plain_workspace)
    assert list(rows(found, "gold")[0]) == ["split", "examples", *ASKING.labels, "no majority"]
    words = json.dumps(found).lower()
    assert not [label for label in {*SENTIMENT.labels} - {*ASKING.labels} if label in words]


# Authors


def prompted(number: int, sentence: str) -> ReleasedExample:
    prompt = PromptData(sentence, f"review {number}", 4, Span(0, len(sentence)))
    return authored(released(number, "positive", "negative"), prompt)


def test_both_arms_and_their_prompts_are_counted(tmp_path: Path):
    lines = [
        prompted(1, "Sentence number 1."),
        prompted(2, "The soup was cold."),
        prompted(3, "The  soup was cold."),
        authored(released(4, "positive", "positive"), None),
        authored(released(5, "mixed", "positive"), None),
    ]
    write_lines(tmp_path / "train.jsonl", map(SENTIMENT.release_line, lines))
    found = figures(report_of(source_of_files([tmp_path / "train.jsonl"]), seed=0))
    arms = [(one["arm"], one["examples"], one["model errors"], one["of"]) for one in rows(found, "arms")]
    assert arms == [("Prompt", 3, 3, 3), ("No Prompt", 2, 0, 2)]
    prompts = row(found, "prompts", "train")
    assert (prompts["distinct prompts"], prompts["used once"], prompts["equal to the prompt"]) == (2, 1, 1)
    assert [one["train"] for one in rows(found, "edit-distances")][0] == 1


def test_authored_examples_of_an_open_round_are_told_with_their_author_and_prompt(plain_workspace: Workspace):
    build_open_round(plain_workspace, examples=4)
    with writing(plain_workspace.engine()) as session:
        workers = [Worker(platform_id=f"{SECRET}-{number}", kind="person") for number in range(6)]
        prompt = Prompt(round_id=1, text="The soup was cold.", review_id="p1", rating=2)
        session.add_all([*workers, prompt])
        session.flush()
        for example in session.exec(select(Example)).all():
            example.author_id, example.arm, example.prompt_id = workers[0].id, "prompt", prompt.id
            for worker in workers[1:]:
                page = Page(round_id=1, worker_id=worker.id)
                session.add(page)
                session.flush()
                answer = {"task": SENTIMENT.name, "label": "positive", "at": MOMENT}
                session.add(Response(example_id=example.id, worker_id=worker.id, page_id=page.id, **answer))
    found = reported(plain_workspace)
    assert (row(found, "arms", "so far", "Prompt")["examples"], found["marks"]) == (4, ["round 1 is still open"])
    assert row(found, "prompts", "so far")["distinct prompts"] == 1
    assert row(found, "sizes", "so far")["authors"] == 1 and "control" not in found["sections"]


def test_published_files_stand_in_the_order_of_rounds_and_splits_however_they_were_named(tmp_path: Path):
    second = replace(prompted(9, "The soup was cold."), round=2, text_id="r2-0000009")
    write_lines(tmp_path / "b-dev.jsonl", [SENTIMENT.release_line(second)])
    test, dev = (write_split(tmp_path, f"a-{split}.jsonl", [number]) for number, split in ((1, "test"), (2, "dev")))
    source = source_of_files([tmp_path / "b-dev.jsonl", test, dev])
    assert [part.name for part in source.parts] == ["round 1 dev", "round 1 test", "round 2 dev"]


def revalidated(number: int, before: str) -> dict[str, Any]:
    """Return a line of a validated SST file, positive to all five."""
    return {
        "hit_ids": ["s1"],
        "sentence": f"Sentence number {number}.",
        "tree": f"({before} x)",
        "text_id": f"sst-dev-validate-{number:07}",
        "sst_label": before,
        "label_distribution": {label: [] for label in SENTIMENT.labels} | {"positive": [f"w{w}" for w in range(5)]},
        "gold_label": "positive",
    }


def test_a_label_that_no_sentence_of_a_file_had_before_has_no_share_kept(tmp_path: Path):
    write_lines(tmp_path / "a.jsonl", [revalidated(1, "4"), revalidated(2, "0")])
    write_lines(tmp_path / "b.jsonl", [revalidated(3, "2")])
    found = figures(report_of(source_of_files([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]), seed=0))
    assert [tuple(one.values()) for one in rows(found, "earlier-label-kept")] == [
        ("a", "positive", 1, 1, 1.0),
        ("a", "negative", 1, 0, 0.0),
        ("a", "any", 2, 1, 0.5),
        ("b", "neutral", 1, 0, 0.0),
        ("b", "any", 1, 0, 0.0),
    ]


# What cannot be reported


def write_split(folder: Path, name: str, numbers: Sequence[int]) -> Path:
    folder.mkdir(exist_ok=True)
    write_lines(folder / name, (SENTIMENT.release_line(released(number)) for number in numbers))
    return folder / name


def test_files_that_cannot_be_one_report_are_refused(tmp_path: Path):
    dev = write_split(tmp_path, "a-dev.jsonl", [1, 2])
    again, copy = write_split(tmp_path, "b-dev.jsonl", [3]), write_split(tmp_path, "a-test.jsonl", [2])
    (tmp_path / "empty-train.jsonl").write_text("")
    for files, said in (
        ([dev, dev], "named twice"),
        ([dev, again], "both hold the dev split of round 1"),
        ([dev, copy], "r1-0000002 stands in .*a-dev.jsonl and again in .*a-test.jsonl"),
        ([tmp_path / "empty-train.jsonl"], "holds no line"),
    ):
        with pytest.raises(BadInput, match=said):
            source_of_files(files)
    with pytest.raises(NotFound, match="no such file"):
        source_of_files([tmp_path / "missing.jsonl"])


def test_lines_whose_responses_do_not_give_their_gold_label_are_refused(tmp_path: Path):
    wrong = replace(released(1), gold="negative")
    short = replace(released(2), responses=released(2).responses[:4])
    for example, said in ((wrong, "not what its responses give"), (short, f"4 responses where {RESPONSES} are due")):
        write_lines(tmp_path / "x-dev.jsonl", [SENTIMENT.release_line(example)])
        with pytest.raises(BadInput, match=f"{example.text_id} has .*{said}"):
            source_of_files([tmp_path / "x-dev.jsonl"])


def own_release(stages: Stages, folder: Path) -> Path:
    shutil.copytree(stages.folder / "released" / "releases" / "round-1", folder)
    return folder


def test_a_release_that_is_not_as_it_was_released_is_refused(stages: Stages, tmp_path: Path):
    changed = own_release(stages, tmp_path / "changed")
    lines = (changed / "dev.jsonl").read_text().splitlines(keepends=True)
    (changed / "dev.jsonl").write_text("".join(lines[1:]))
    with pytest.raises(BadInput, match="dev.jsonl has changed"):
        source_of_release(changed)
    # With new hashes of the files, the hash of the whole tells.
    manifest = read_manifest(changed)
    write_json(changed / MANIFEST, {**manifest, "files": dict(file_hashes(changed))})
    with pytest.raises(BadInput, match="its hash is another"):
        source_of_release(changed)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [("responses_from", None, "who answered"), ("kind", "model", "released round"), ("files", {}, "hashes of all")],
)
def test_a_manifest_that_does_not_say_what_a_report_needs_is_refused(
    stages: Stages, tmp_path: Path, key: str, value: Any, said: str
):
    folder = own_release(stages, tmp_path / "own")
    write_json(folder / MANIFEST, {**read_manifest(folder), key: value})
    with pytest.raises(BadInput, match=said):
        source_of_release(folder)


def test_a_file_of_a_release_of_ours_is_not_taken_for_a_published_one(stages: Stages, tmp_path: Path):
    folder = own_release(stages, tmp_path / "own")
    with pytest.raises(BadInput, match=f"--release {folder}"):
        source_of_files([folder / "dev.jsonl"])


def test_a_round_that_is_not_there_or_has_no_responses_is_refused(plain_workspace: Workspace):
    build_open_round(plain_workspace, examples=3)
    with pytest.raises(BadInput, match="none of its examples has 5 responses"):
        reported(plain_workspace)
    with pytest.raises(NotFound, match="there is no round 2"):
        reported(plain_workspace, 2)


def test_exactly_one_thing_is_reported_on(tmp_path: Path):
    nothing: dict[str, Any] = {"page": None, "tables": None, "seed": 0}
    for about, release in (([], None), (["1"], tmp_path), (["1", "2"], None)):
        with pytest.raises(BadInput, match=r"one thing|one round"):
            make_report(about, release, tmp_path, **nothing)


# Files


def test_nothing_is_written_into_the_folder_of_a_release(stages: Stages, tmp_path: Path):
    folder = own_release(stages, tmp_path / "own")
    with pytest.raises(BadInput, match="belongs to what is reported on"):
        make_report([], folder, tmp_path, page=folder / "report.html", tables=None, seed=0)
    assert not (folder / "report.html").exists()


def test_a_report_is_the_same_each_time_and_nothing_it_is_made_from_is_written_over(tmp_path: Path):
    dev = write_split(tmp_path / "files", "x-dev.jsonl", range(30))
    page = tmp_path / "page.html"
    made = [make_report([str(dev)], None, tmp_path, page=page, tables=None, seed=3).report for _ in range(2)]
    assert made[0] == made[1] and page.read_text().startswith("<!doctype html>")
    before = dev.read_bytes()
    for bad in (dev, tmp_path, tmp_path / "missing" / "page.html", Path("/dev/null")):
        with pytest.raises(BadInput, match="name (another|a) file"):
            make_report([str(dev)], None, tmp_path, page=bad, tables=None, seed=3)
    with pytest.raises(BadInput, match="name two files"):
        write_report(made[0], page, page)
    assert dev.read_bytes() == before


def test_no_file_of_the_workspace_is_written_over(plain_workspace: Workspace):
    build_released_round(plain_workspace)
    root = plain_workspace.root
    for name in ("dynaround.sqlite", "dynaround.toml"):
        before = (root / name).read_bytes()
        for places in ({"page": root / name, "tables": None}, {"page": root / "page.html", "tables": root / name}):
            with pytest.raises(BadInput, match=f"{name} holds something else than an earlier report"):
                make_report(["1"], None, root, seed=0, **places)
        assert (root / name).read_bytes() == before
    places = root / "page.html", root / "tables.tex"
    assert write_report(Report("Title", (), ()), *places) == write_report(Report("Another", (), ()), *places) == places


def test_the_command_prints_tables_or_json_and_leaves_no_half_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    dev = write_split(tmp_path / "files", "x-dev.jsonl", range(30))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(report, [str(dev), "--json", "--latex", "tables.tex"], catch_exceptions=False)
    assert done.exit_code == 0
    assert row(json.loads(done.output), "gold", "dev")["examples"] == 30
    before = (tmp_path / "report.html").read_bytes()
    full = run("report", dev, cwd=tmp_path, file_bytes=5000)
    assert full.code == 2 and "space" in full.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["files", "report.html", "tables.tex"]
    assert (tmp_path / "report.html").read_bytes() == before

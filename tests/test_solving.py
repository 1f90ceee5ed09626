"""Asking whether a round is solved: who may be asked, on which items, what is stored, how the answer is marked."""

import json
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlmodel import Session, col, select

from dynaround.database import reading, writing
from dynaround.errors import BadInput, IllegalMove
from dynaround.folders import data_hash, file_hash, file_hashes, read_manifest, write_json
from dynaround.mixture import plain_row
from dynaround.models import evaluate_models
from dynaround.settings import Workspace
from dynaround.tables import Evaluation, Event, Placement, Response, Retention, SolvedCheck, Worker
from dynaround.trained_texts import TRAINED_TEXTS, write_trained_texts
from rounds.commands import solved
from rounds.solved_checks import check_lines, ordinal
from rounds.solving import ask_solved
from tests.builders import Votes, build_released_round
from tests.small_round import SAID, THINGS, now
from tests.stages import Stages, play_stages
from tests.tiny_model import make_model


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> Stages:
    stages = play_stages(tmp_path_factory.mktemp("solving"), tiny_encoder, reviews=150, size=300)
    heard = ["positive", "negative", "neutral"]
    rows = [
        plain_row(f"A {thing} was {said} today", label) for thing in THINGS for label in heard for said in SAID[label]
    ]
    make_model(stages.folder / "released" / "models" / "model-1", tiny_encoder, rows=rows, epochs=6)
    return stages


@pytest.fixture
def released(stages: Stages, tmp_path: Path) -> Iterator[Workspace]:
    workspace = Workspace(stages.copy("released", tmp_path / "released"))
    yield workspace
    workspace.close()


def ask(workspace: Workspace, model: str = "model-1") -> dict[str, Any]:
    return ask_solved(workspace, workspace.engine(), 1, model, seed=3, who="a", now=now, resamples=200)


def rewritten(workspace: Workspace, texts: list[str] | None = None, **changes: object) -> None:
    """Change what model-1 says of itself, as a training with other rows or another choice would have written it."""
    folder = workspace.models / "model-1"
    if texts is not None:
        write_trained_texts(folder / TRAINED_TEXTS, texts)
    manifest = read_manifest(folder)
    files = dict(file_hashes(folder))
    write_json(folder / "manifest.json", {**manifest, "files": files, "hash": data_hash(files), **changes})


def released_texts(workspace: Workspace, split: str) -> list[str]:
    lines = (workspace.releases / "round-1" / f"{split}.jsonl").read_text().splitlines()
    return [json.loads(line)["sentence"] for line in lines]


def test_the_answer_stands_on_both_splits_and_is_marked_as_a_crowd_s(released: Workspace) -> None:
    check = ask(released)
    dev, test = (len(released_texts(released, split)) for split in ("dev", "test"))
    assert [(one["on"], one["items"]) for one in check["splits"]] == [("dev", dev), ("test", test)]
    assert check["together"]["items"] == dev + test
    assert check["responses_from"] == "a scripted crowd (not people)"
    first, second, *_ = check_lines(check)
    assert first == "note: the responses are from a scripted crowd (not people): this answer says nothing about people"
    assert second == "first check of round 1: model-1 beside a scripted crowd (not people)"


def test_the_first_check_reads_the_model_once_and_later_ones_take_its_stored_readings(released: Workspace) -> None:
    first, second = ask(released), ask(released)
    assert (first["number"], second["number"]) == (1, 2)
    assert {**first, "number": 2} == second
    with reading(released.engine()) as session:
        kept = session.exec(select(SolvedCheck).order_by(col(SolvedCheck.number))).all()
        readings = session.exec(select(Evaluation.data).order_by(col(Evaluation.id))).all()
        told = session.exec(select(Event.what).order_by(col(Event.id).desc()).limit(4)).all()
    assert [(check.number, check.margin, check.seed, check.answer) for check in kept] == [
        (number, 0.02, 3, first["answer"]) for number in (1, 2)
    ]
    assert readings == ["round:1/dev", "round:1/test"]
    assert told == ["asked whether solved", "asked whether solved", "evaluated", "evaluated"]


def test_a_reading_by_evaluate_is_taken_as_it_is(released: Workspace) -> None:
    evaluate_models(
        released,
        ["model-1"],
        [f"release:{released.releases / 'round-1'}"],
        without=[],
        seed=0,
        who="a",
        now=now,
        on_reject=lambda spec, row: None,
        on_reading=lambda: None,
    )
    ask(released)
    with reading(released.engine()) as session:
        assert len(session.exec(select(Evaluation)).all()) == 2


def test_the_target_itself_is_not_judged(released: Workspace) -> None:
    with pytest.raises(BadInput, match="model-0 is the target of round 1: .* right on one in 3, and its score means"):
        ask(released, "model-0")


def test_a_copy_of_the_target_under_another_name_is_not_judged_either(released: Workspace) -> None:
    shutil.copytree(released.models / "model-0", released.models / "model-9")
    with pytest.raises(BadInput, match="is the target of round 1"):
        ask(released, "model-9")


def test_a_model_trained_on_the_items_is_refused(released: Workspace) -> None:
    rewritten(released, texts=[f"  {text} " for text in released_texts(released, "test")])
    with pytest.raises(BadInput, match=r"model-1 was trained on \d+ of the \d+ sentences in dev and test of round 1"):
        ask(released)


def test_a_model_chosen_on_dev_is_judged_on_test_alone(released: Workspace) -> None:
    dev = file_hash(released.releases / "round-1" / "dev.jsonl")
    rewritten(released, selected_on=[{"use": "early stopping", "spec": "release:elsewhere", "sha256": dev}])
    check = ask(released)
    assert [one["on"] for one in check["splits"]] == ["test"]
    assert check["together"]["items"] == len(released_texts(released, "test"))
    assert check["notes"] == ["model-1 used the dev split for early stopping, so it is judged on test alone."]


def test_a_model_chosen_on_test_is_refused(released: Workspace) -> None:
    test = file_hash(released.releases / "round-1" / "test.jsonl")
    rewritten(released, selected_on=[{"use": "tuning", "spec": "release:elsewhere", "sha256": test}])
    with pytest.raises(BadInput, match="model-1 used the test split of round 1 for tuning"):
        ask(released)


def test_a_model_without_prints_of_its_texts_is_judged_with_a_note(released: Workspace) -> None:
    (released.models / "model-1" / TRAINED_TEXTS).unlink()
    rewritten(released)
    assert ask(released)["notes"] == [
        "model-1 keeps no prints of its training texts, so nothing tells whether it was trained on these."
    ]


def test_a_model_that_does_not_say_what_it_was_chosen_on_is_judged_with_a_note(released: Workspace) -> None:
    rewritten(released, selected_on=None)
    assert ask(released)["notes"] == [
        "model-1 does not say what it was chosen on, so nothing tells whether it was chosen on these."
    ]


@pytest.mark.parametrize("chosen", [[{"use": "tuning"}], ["dev.jsonl"], 3])
def test_a_choice_that_names_no_file_is_refused(released: Workspace, chosen: object) -> None:
    rewritten(released, selected_on=chosen)
    with pytest.raises(BadInput, match="manifest of model-1 says selected_on without use and sha256"):
        ask(released)


def test_a_label_that_a_split_lacks_is_told(released: Workspace) -> None:
    with writing(released.engine()) as session:
        for placed in session.exec(select(Placement).where(Placement.split == "dev")):
            if labels_of(session, placed.example_id).count("neutral") >= 3:
                placed.split = "withheld"
    check = ask(released)
    assert check["notes"] == ["No sentence in dev has the gold label neutral, which counts 0 on both sides."]


def labels_of(session: Session, example_id: int) -> list[str]:
    asked = select(Response.label).join(Retention, col(Retention.response_id) == col(Response.id))
    return list(session.exec(asked.where(Response.example_id == example_id)))


def test_the_hash_of_what_was_judged_is_that_of_the_released_files(released: Workspace) -> None:
    ask(released)
    files = [[split, file_hash(released.releases / "round-1" / f"{split}.jsonl")] for split in ("dev", "test")]
    with reading(released.engine()) as session:
        assert session.exec(select(SolvedCheck.data_hash)).one() == data_hash(files)


def test_a_round_that_is_not_released_has_no_answer(stages: Stages, tmp_path: Path) -> None:
    workspace = Workspace(stages.copy("closed", tmp_path / "closed"))
    with pytest.raises(IllegalMove, match="round 1 is closed; this needs a round that is released"):
        ask(workspace, "model-0")
    workspace.close()


def test_people_are_called_people(released: Workspace) -> None:
    with writing(released.engine()) as session:
        for worker in session.exec(select(Worker)):
            worker.kind = "person"
    lines = list(check_lines(ask(released)))
    assert lines[0] == "first check of round 1: model-1 beside people"
    assert not any("crowd" in line for line in lines)


def test_two_who_ask_at_one_moment_get_two_numbers_on_both_back_ends(workspace: Workspace, tiny_encoder: Path) -> None:
    build_released_round(
        workspace, examples=140, votes=lambda number, task: Votes(task.model_labels[number // 7 % 3], 4 + number % 2)
    )
    make_model(workspace.models / "model-2", tiny_encoder, epochs=1)
    ask(workspace, "model-2")
    with ThreadPoolExecutor(2) as pool:
        numbers = [check["number"] for check in pool.map(lambda _: ask(workspace, "model-2"), range(2))]
    assert sorted(numbers) == [2, 3]


def test_the_command_prints_the_check_or_all_of_it_as_json(released: Workspace) -> None:
    asked = ["1", "--model", "model-1", "-w", str(released.root)]
    shown = CliRunner().invoke(solved, asked, catch_exceptions=False)
    assert "first check of round 1" in shown.output
    told: Mapping[str, Any] = json.loads(CliRunner().invoke(solved, [*asked, "--json"], catch_exceptions=False).output)
    assert (told["number"], told["model"], told["margin"]) == (2, "model-1", 0.02)


@pytest.mark.parametrize(("number", "word"), [(1, "first"), (3, "third"), (4, "4th"), (12, "12th"), (22, "22nd")])
def test_checks_are_numbered_in_words(number: int, word: str) -> None:
    assert ordinal(number) == word

"""What a report says of models: stored readings alone, the target marked, and every check whether it is solved."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlmodel import Session, col, select

from dynaround.corpus.labelled import LabelledSentence
from dynaround.database import writing
from dynaround.evaluation import EvaluationSet, judge, store_reading
from dynaround.release_file import text_id
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import Example, Placement, Response, Retention, Round, SolvedCheck
from dynaround.task import Prediction
from dynaround.tasks.sentiment import SENTIMENT
from rounds.report_models import models_section
from rounds.report_solved import solved_section
from tests.builders import build_released_round
from tests.report_rows import CROWD, reported, reported_section, row, rows

MODELS = partial(models_section, seed=0)
LATER = datetime(2026, 5, 1, tzinfo=UTC)


class Says:
    """A predictor that is wrong on the items at some places, by the next label of the task."""

    def __init__(self, items: Sequence[LabelledSentence], wrong: Sequence[int]):
        self.items, self.wrong = items, set(wrong)

    def predict(self, sentences: Sequence[str]) -> list[Prediction | None]:
        labels = SENTIMENT.model_labels
        made: list[Prediction | None] = []
        for place, item in enumerate(self.items):
            said = labels[(labels.index(str(item.gold)) + (place in self.wrong)) % 3]
            made.append(Prediction(said, {label: 0.9 if label == said else 0.05 for label in labels}))
        return made


def read_model(session: Session, name: str, split: str, wrong: Sequence[int], minute: int, model_hash: str = "") -> int:
    """Store a reading on a split of round 1 with errors at these places, and return its number of items."""
    examples = session.exec(
        select(Example)
        .join(Placement, col(Placement.example_id) == col(Example.id))
        .join(Round, col(Round.id) == col(Example.round_id))
        .where(Placement.split == split, Round.number == 1)
        .order_by(col(Example.number))
    ).all()
    items = []
    for example in examples:
        labels = session.exec(
            select(Response.label)
            .join(Retention, col(Retention.response_id) == col(Response.id))
            .where(Response.example_id == example.id)
        ).all()
        gold = SENTIMENT.gold(labels).label
        if gold in SENTIMENT.model_labels:
            identity = text_id(1, example.number)
            items.append(LabelledSentence(example.text, gold, tuple(labels), example.review_id, identity))
    data = EvaluationSet(f"round:1/{split}", tuple(items), tuple(items), "people", 0)
    made = judge(Says(items, wrong), name, model_hash or name.ljust(64, "0"), data, SENTIMENT, seed=0)
    store_reading(session, made, "test", LATER + timedelta(minutes=minute))
    return len(items)


def add_models(workspace: Workspace) -> dict[str, Any]:
    """Build a round, read three models on it, and return the figures of its report."""
    build_released_round(workspace, examples=140, kind="person")
    with writing(workspace.engine()) as session:
        for split in ("dev", "test"):
            read_model(session, "model-2", split, [0, 1, 2, 3, 4, 5], 0)
            # Read again: the newest counts.
            read_model(session, "model-2", split, [0, 1], 1)
            read_model(session, "model-3", split, [1, 2, 3, 4], 2)
        read_model(session, "model-10", "test", [1, 2, 3, 4], 3)
    return reported(workspace)


@pytest.fixture(scope="module")
def with_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    workspace = create_workspace(tmp_path_factory.mktemp("models") / "workspace")
    found = add_models(workspace)
    workspace.close()
    return found


def test_both_back_ends_give_the_same_figures(workspace: Workspace, with_models: dict[str, Any]):
    assert add_models(workspace) == with_models


def test_the_newest_reading_of_each_model_on_exactly_these_examples_is_reported(with_models: dict[str, Any]):
    items = row(with_models, "models", "round 1 test", "model-2")["examples"]
    assert row(with_models, "models", "round 1 test", "model-2")["accuracy"] == pytest.approx((items - 2) / items)
    assert row(with_models, "models", "round 1 test", "people")["mark"] == "those who labelled it"
    target = row(with_models, "models", "round 1 test", "model-0")
    assert target["mark"] == "target: at chance by construction"
    names = [one["model"] for one in rows(with_models, "models-by-round")]
    assert names[-3:] == ["model-2", "model-3", "model-10"]
    assert row(with_models, "models-by-round", "model-10")["round 1 dev"] is None


def test_models_are_compared_on_the_same_examples(with_models: dict[str, Any]):
    found = row(with_models, "paired", "round 1 test", "model-2", "model-3")
    assert (found["first alone right"], found["second alone right"]) == (3, 1)
    assert found["exact p"] == 0.625 and found["chi squared"] == 0.25
    assert found["low"] <= found["difference in macro F1"] <= found["high"]
    same = row(with_models, "paired", "round 1 test", "model-3", "model-10")
    assert (same["exact p"], same["chi squared"], same["difference in macro F1"]) == (1, None, 0)
    assert not [one for one in rows(with_models, "paired") if "model-0" in (one["first"], one["second"])]


def test_forgetting_is_the_difference_to_the_best_earlier_model(with_models: dict[str, Any]):
    found = rows(with_models, "forgetting")
    assert [(one["set"], one["model"], one["best earlier model"]) for one in found] == [
        ("round 1 test", "model-3", "model-2"),
        ("round 1 test", "model-10", "model-2"),
    ]
    scores = {one["model"]: one["round 1 test"] for one in rows(with_models, "models-by-round")}
    assert found[0]["difference"] == pytest.approx(scores["model-3"] - scores["model-2"])


def test_calibration_comes_from_stored_probabilities(with_models: dict[str, Any]):
    found = row(with_models, "calibration", "round 1 test", "model-2")
    assert found["mean probability"] == pytest.approx(0.9)
    assert found["ECE"] == pytest.approx(abs(found["accuracy"] - 0.9))


def test_two_models_of_one_name_are_told_apart_by_their_hash(workspace: Workspace):
    build_released_round(workspace, examples=140, kind="person")
    with writing(workspace.engine()) as session:
        read_model(session, "model-2", "dev", [0], 0, "a" * 64)
        read_model(session, "model-2", "dev", [1], 1, "b" * 64)
    names = {one["model"] for one in rows(reported_section(workspace, MODELS), "models")}
    assert {"model-2 (aaaaaaaa)", "model-2 (bbbbbbbb)"} <= names


def test_the_report_of_a_round_of_people_names_the_crowd_of_another_round(workspace: Workspace):
    build_released_round(workspace)
    build_released_round(workspace, number=2, kind="person")
    found = reported_section(workspace, MODELS, 2)
    assert found["marks"] == []
    sets = {one["set"] for one in rows(found, "models")}
    assert sets == {"round 1 dev (not people)", "round 1 test (not people)", "round 2 dev", "round 2 test"}
    for table in ("models", "models-by-round"):
        assert f"Round 1 was labelled by {CROWD}." in found["sections"]["models"]["tables"][table]["note"]


def test_who_labelled_a_round_is_told_by_its_database_whatever_the_reading_says(workspace: Workspace):
    build_released_round(workspace, examples=140)
    with writing(workspace.engine()) as session:
        # As if the test split was copied out of its release and read as a published file.
        read_model(session, "model-2", "test", [0], 0)
    found = reported_section(workspace, MODELS)
    assert {one["model"] for one in rows(found, "models")} == {"model-0", "model-1", "model-2", CROWD}


def test_every_stored_check_of_solved_is_listed(workspace: Workspace):
    build_released_round(workspace, kind="person")
    side = {"macro_f1": 0.8, "per_label": {}}
    one = {"on": "dev and test", "items": 60, "clusters": 50, "model": side, "labelled_by": side, "difference": 0.0}
    bounds = {"lower": -0.03, "upper": 0.03, "half_width": 0.03, "answer": "undecided"}
    answer = {
        "round": 1,
        "model": "model-2",
        "responses_from": "people",
        "notes": ["1 of 60 sentences is left out."],
        "answer": "undecided",
        "margin": 0.02,
        "seed": 3,
        "together": {**one, **bounds},
        "splits": [{**one, **bounds, "on": split} for split in ("dev", "test")],
        "with_workers": {"workers": 5, **bounds},
        "items_for_80": 7200,
        "warning": None,
    }
    with writing(workspace.engine()) as session:
        round_ = session.exec(select(Round)).one()
        for number in (2, 1):
            stored = {"model": "model-2", "model_hash": "ef" * 32, "data_hash": "ab" * 32, "margin": 0.02, "seed": 3}
            session.add(
                SolvedCheck(round_id=round_.id, number=number, answer="undecided", figures=answer, at=LATER, **stored)
            )
    found = reported_section(workspace, solved_section)
    assert [check["check"] for check in rows(found, "solved")] == [1, 2]
    first = row(found, "solved", 1)
    assert (first["answer"], first["lower"], first["examples wanted"]) == ("undecided", -0.03, 7200)
    beside = row(found, "solved-with-workers", 1)
    assert (beside["workers"], beside["lower"], beside["seed"], beside["asked on"]) == (5, -0.03, 3, "2026-05-01")
    newest, *notes = found["sections"]["solved"]["paragraphs"]
    assert newest.startswith("The second check of this round, model-2 beside people: undecided: -0.02 lies between")
    assert notes == [f"Check {number}: 1 of 60 sentences is left out." for number in (1, 2)]
    assert len(rows(found, "solved-by-split")) == 4

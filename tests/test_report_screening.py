"""The report on a screened round: figures with and without it, what it took out, and models beside the majority."""

import json
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlmodel import col, select

from dynaround.aggregation import METHODS
from dynaround.agreement import CountTable, fleiss_kappa
from dynaround.database import reading, writing
from dynaround.labels import label_distribution
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import SILENT, CheckItem, Example, Response, Uncounted, public_id
from rounds.report_figures import figures
from rounds.report_parts import Report
from rounds.report_round import source_of_round
from rounds.report_screening import screening_section
from tests.builders import build_released_round
from tests.report_rows import reported, row, rows
from tests.test_screening import SMALL, habits_of, play, truth
from tests.validators import MOMENT, NUMBER, TASK, add_round, the_round
from workers.assignment import Answer
from workers.checks import check_answer
from workers.screening import reinstate

LABELS = TASK.labels


class Played(NamedTuple):
    """A workspace with a round in which two of nine workers are wrong throughout, and went; and its report."""

    workspace: Workspace
    workers: list[int]
    report: dict[str, Any]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    workspace = create_workspace(tmp_path_factory.mktemp("screened") / "workspace")
    workers = add_round(workspace.engine(), examples=40, workers=9)
    play(workspace.engine(), habits_of(workers, bad=2), SMALL, batch=20)
    yield Played(workspace, workers, reported(workspace))
    workspace.close()


@pytest.fixture
def copied(played: Played, tmp_path: Path) -> Iterator[Played]:
    """The same, to be changed."""
    copy = Workspace(Path(shutil.copytree(played.workspace.root, tmp_path / "copy")))
    yield played._replace(workspace=copy)
    copy.close()


@pytest.fixture
def plain_workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = create_workspace(tmp_path / "workspace")
    yield made
    made.close()


def section_of(workspace: Workspace) -> dict[str, Any]:
    """Return the figures of the section on the screening alone."""
    with reading(workspace.engine()) as session:
        section = screening_section(source_of_round(session, NUMBER))
    assert section is not None
    return figures(Report("", (), (section,)))


def test_figures_with_and_without_the_screening_stand_beside_each_other(played: Played):
    found, workspace, workers = played.report, played.workspace, played.workers
    counting, without, everything = rows(found, "screening-effect")
    assert (counting["examples"], counting["number"]) == (without["examples"], without["number"]) == (40, 200)
    with reading(workspace.engine()) as session:
        gone = {r.response_id for r in session.exec(select(Uncounted))}
        given = session.exec(
            select(Example.number, Response.id, Response.worker_id, Response.label)
            .join(Response, col(Response.example_id) == col(Example.id))
            .order_by(Response.id)
        ).all()
    assert everything["number"] == len(given) == 200 + len(gone) and everything["kappa"] is None
    for row_, kept in ((counting, lambda id_: id_ not in gone), (without, lambda id_: True)):
        labels = {n: [label for n2, id_, _, label in given if n2 == n and kept(id_)][:5] for n in range(1, 41)}
        table = CountTable.from_distributions((label_distribution(one, LABELS) for one in labels.values()), LABELS)
        assert row_["kappa"] == pytest.approx(fleiss_kappa(table).value)
        golds = Counter(TASK.gold(one).label for one in labels.values())
        assert [row_[label] for label in (*LABELS, "no majority")] == [golds[label] for label in (*LABELS, None)]
    assert counting["kappa"] > without["kappa"]
    assert counting["macro F1 of people"] > without["macro F1 of people"]
    changed = sum(one["examples"] for one in rows(found, "screening-changed"))
    (told,) = found["sections"]["screening"]["paragraphs"]
    assert f"Removed from the round: 2 of 9 workers, with {len(gone)} responses" in told
    assert f"gold label of {changed} of 40 examples" in told
    assert {one["worker"] for one in rows(found, "screening-workers")} == {public_id(w) for w in workers[-2:]}


def test_what_was_taken_out_is_counted_by_label_and_as_a_minority_label(played: Played):
    found, workspace = rows(played.report, "screening-taken-out"), played.workspace
    first_five: dict[int, list[tuple[str, bool]]] = defaultdict(list)
    with reading(workspace.engine()) as session:
        gone = {uncounted.response_id for uncounted in session.exec(select(Uncounted))}
        for response in session.exec(select(Response).order_by(Response.id)):
            first_five[response.example_id].append((response.label, response.id in gone))
    taken_out = Counter(label for one in first_five.values() for label, out in one[:5] if out)
    assert {one["label"]: one["taken out"] for one in found} == {label: taken_out[label] for label in LABELS}
    for one in found:
        assert one["taken out"] == pytest.approx(one["share"] * one["responses"])
        assert one["taken out of these"] <= min(one["taken out"], one["of a minority"])
    # Who is wrong throughout is mostly in the minority.
    assert 2 * sum(one["taken out of these"] for one in found) > sum(one["taken out"] for one in found)


def test_both_measures_and_the_rules_stand_side_by_side(played: Played):
    found = played.report
    for one in rows(found, "screening-workers"):
        assert one["leave-one-out disagreement"] > 0.9 and one["removed by"] == "leave-one-out"
        assert one["published disagreement"] < one["leave-one-out disagreement"] + 1e-9
    assert sum(one["leave-one-out"] for one in rows(found, "screening-rates")) == 9
    by_rule = {one["measure"]: one for one in rows(found, "screening-rules")}
    assert [(one["acts"], one["removed"]) for one in by_rule.values()] == [("yes", 2), ("no", 0), ("yes", 0)]
    assert by_rule["leave-one-out"]["limit"] == "disagreement over 60%, from 15 examples on"


def test_who_was_let_in_again_is_told(copied: Played):
    workspace, back = copied.workspace, public_id(copied.workers[-1])
    with writing(workspace.engine()) as session:
        reinstate(session, the_round(session), back, "launcher", MOMENT + timedelta(hours=1))
    found = section_of(workspace)
    assert row(found, "screening-workers", back)["removed by"] == "let in again"
    assert "Removed and let in again: 1." in found["sections"]["screening"]["paragraphs"][0]


def test_models_of_who_answered_stand_beside_the_majority_and_are_no_gold(played: Played):
    found = played.report
    table = rows(found, "aggregation")
    taken = [(one["method"], one["responses"]) for one in table]
    assert taken == [(method, which) for method in METHODS for which in ("that count", "all of everybody")]
    gold = row(found, "gold", "so far")
    for one in table:
        assert one["with gold"] == 40 - gold["no majority"] and one["share"] > 0.9
        assert one["without majority"] == sum(one[label] for label in LABELS) == gold["no majority"]


def test_without_the_package_the_report_says_what_it_needs(plain_workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    build_released_round(plain_workspace)
    monkeypatch.setitem(sys.modules, "crowdkit", None)
    section = reported(plain_workspace)["sections"]["aggregation"]
    assert section["tables"] == {} and "pip install 'dynaround[crowd]'" in section["paragraphs"][0]


def test_a_round_without_removals_has_no_figures_without_them(plain_workspace: Workspace):
    build_released_round(plain_workspace)
    found = section_of(plain_workspace)["sections"]["screening"]
    assert "screening-effect" not in found["tables"] and "Nobody of 5 workers was removed" in found["paragraphs"][0]


def test_answers_to_check_items_are_in_no_figure(copied: Played):
    workspace, secret = copied.workspace, "A sentence whose answer is known"
    with writing(workspace.engine()) as session:
        round_id = the_round(session).id
        item = CheckItem(round_id=round_id, task=TASK.name, use=SILENT, text=secret, text_key="k", label=truth(1))
        session.add(item)
        session.flush()
        for worker in copied.workers[:-2]:
            session.add(check_answer(TASK, item.id, worker, Answer(truth(2)), MOMENT))
    found = reported(workspace)
    assert found == copied.report and secret not in json.dumps(found)

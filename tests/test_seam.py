"""The seam: a second, tiny kind of task, wholly in this file, plays a round without a change to the upper packages.

Two labels, one further form field, no rating. It goes through harvest, labelling, report, release and check; the two
pages come with the issues that build them.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict
from sqlmodel import select

import dynaround
from dynaround import tasks
from dynaround.database import reading, writing
from dynaround.errors import BadInput
from dynaround.labels import Gold, gold_label, label_distribution
from dynaround.mixture import plain_row
from dynaround.models import check_paths
from dynaround.settings import Workspace
from dynaround.tables import Example, Response
from dynaround.task import Guide, Prediction, Question, ReleasedExample, ReleasedResponse, Task, WorkedExample
from rounds.harvesting import harvest_round
from rounds.lifecycle import close_round, find_round
from rounds.opening import open_new_round
from rounds.releasing import release_round
from rounds.status import figure_lines, round_figures
from tests.small_round import MOMENT, now
from tests.tiny_model import make_model
from workers.importing import import_results

UPPER = ("rounds", "workers", "server")


class Sureness(BaseModel):
    """How sure the validator is."""

    model_config = ConfigDict(extra="forbid")
    sure: Literal["yes", "no"]


@dataclass(frozen=True)
class AnswerableTask:
    """Whether a sentence asks something: asks, tells."""

    name: str = "asking"
    labels: tuple[str, ...] = ("asks", "tells")
    model_labels: tuple[str, ...] = ("asks", "tells")
    form: type[BaseModel] = Sureness
    needs_rating: bool = False
    disagreement_cells: tuple[str, ...] = ("unsure",)
    guide: Guide = Guide(
        version="1",
        meanings={"asks": "It wants an answer.", "tells": "It wants none."},
        author_rules=("Write one sentence.",),
        author_examples=(WorkedExample("Who is there?", "asks", "It wants a name."),),
        author_quiz=(Question("one", "How many sentences?", ("one", "two"), "one", "One is enough."),),
        names={"asks": "It asks", "tells": "It tells"},
        validator_rules=("Judge the sentence alone.",),
        validator_examples=(WorkedExample("Sit down.", "tells", "An order wants no answer."),),
        validator_quiz=(Question("mark", "Does every question end in a mark?", ("yes", "no"), "no", "Some do not."),),
        flag_reasons={"unreadable": "I cannot read it"},
    )

    def label_of(self, word: str) -> str:
        if word not in self.labels:
            raise BadInput(f"answer {word!r} is none of {', '.join(self.labels)}")
        return word

    def admits(self, rating: int | None) -> bool:
        return True

    def disagreement(self, rating: int | None, prediction: Prediction) -> str | None:
        return "unsure" if max(prediction.probs.values()) < 0.9 else None

    def gold(self, labels: Sequence[str]) -> Gold:
        return gold_label(label_distribution(labels, self.labels))

    def training_labels(self, label: str) -> tuple[str, ...]:
        return (label,)

    def label_of_rating(self, rating: int) -> str | None:
        return None

    def scripted_form(self, label: str) -> dict[str, Any]:
        return {"sure": "yes"}

    def release_line(self, example: ReleasedExample) -> dict[str, Any]:
        return {
            "id": example.text_id,
            "round": example.round,
            "sentence": example.sentence,
            "review": example.review_id,
            "place": list(example.span or ()),
            "model": [example.prediction.label, dict(example.prediction.probs)],
            "answers": [[r.worker, r.label, r.form["sure"]] for r in example.responses],
            "gold": example.gold,
            "pages": list(example.hit_ids),
        }

    def read_line(self, line: Mapping[str, Any]) -> ReleasedExample:
        return ReleasedExample(
            text_id=line["id"],
            round=line["round"],
            sentence=line["sentence"],
            prediction=Prediction(*line["model"]),
            responses=tuple(ReleasedResponse(w, label, {"sure": sure}) for w, label, sure in line["answers"]),
            gold=line["gold"],
            hit_ids=tuple(line["pages"]),
            review_id=line["review"],
            span=None,
        )


ASKING: Task = AnswerableTask()


def add_model(workspace: Workspace, encoder: Path) -> None:
    """The model goes by what a sentence is about, so it errs both ways."""
    heard = {"food": "asks", "soup": "asks", "room": "tells", "staff": "tells", "price": "tells"}
    rows = [
        plain_row(f"{start} {thing} good", label)
        for thing, label in heard.items()
        for start in ("is the", "the", "we say")
    ]
    folder = workspace.models / "model-0"
    make_model(folder, encoder, labels=ASKING.model_labels, task=ASKING.name, rows=rows, epochs=20)


def write_texts(path: Path) -> Path:
    starts = ["Is the", "Was the", "The", "We say the"]
    things = ["food", "soup", "room", "staff", "price"]
    with path.open("w") as lines:
        for number in range(160):
            text = f"{starts[number % 4]} {things[number % 5]} {'good' if number % 3 else 'bad'}, {number}."
            lines.write(json.dumps({"review_id": f"t{number}", "text": text}) + "\n")
    return path


def people_answer(workspace: Workspace, file: Path) -> None:
    """Six people answer; five an example, and one in ten of them is wrong."""
    with reading(workspace.engine()) as session:
        examples = session.exec(select(Example).order_by(Example.number)).all()
    lines = ["text_id,worker,answer,sure,hit,seconds\n"]
    for place, example in enumerate(examples):
        for person in range(5):
            asks = example.text.startswith(("Is", "Was")) != (place % 10 + person == 9)
            worker = (place // 10 + person) % 6
            word, sure = "asks" if asks else "tells", "yes" if place % 2 else "no"
            lines.append(f"r1-{example.number:07d},P{worker},{word},{sure},H{place // 10},2.5\n")
    file.write_text("".join(lines))
    report = import_results(workspace.engine(), 1, file, MOMENT)
    assert (report.added, report.rejected) == (750, [])


def test_a_second_kind_of_task_plays_a_round(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(tasks.TASKS, ASKING.name, ASKING)
    engine = workspace.engine()
    add_model(workspace, tiny_encoder)
    options = {"size": 150, "seed": 3}
    spec = f"jsonl:{write_texts(tmp_path / 'texts.jsonl')}"
    open_new_round(workspace, engine, target="model-0", reviews=spec, options=options, who="test", now=now)
    report = harvest_round(workspace, engine, 1, "test", now, lambda count: None)
    assert set(report.examples) <= {"unsure", "random"} and sum(report.examples.values()) == 150
    people_answer(workspace, tmp_path / "results.csv")
    with writing(engine) as session:
        close_round(session, find_round(session, 1), "test", MOMENT)
    with reading(engine) as session:
        figures = round_figures(session, find_round(session, 1))
        assert session.exec(select(Response.form)).first() in ({"sure": "no"}, {"sure": "yes"})
    assert figures["labels"]["responses_from"] == "people"
    with reading(engine) as session:
        asking = sum(text.startswith(("Is", "Was")) for text in session.exec(select(Example.text)))
    assert figures["labels"]["gold"] == {"asks": asking, "tells": 150 - asking, "no majority": 0}
    assert list(figure_lines(figures))

    manifest = release_round(workspace, engine, 1, tmp_path / "release", "test", MOMENT)
    assert manifest["task"] == "asking" and manifest["examples"]["dev"] == 4 * manifest["splits"]["per_cell"]
    assert len(json.loads((tmp_path / "release" / "dev.jsonl").read_text().splitlines()[0])["pages"]) == 5
    line = json.loads((tmp_path / "release" / "dev.jsonl").read_text().splitlines()[0])
    assert ASKING.release_line(ASKING.read_line(line))["answers"] == line["answers"]
    assert not [result for result in check_paths([tmp_path / "release"], None) if result.status == "fails"]


def test_the_form_of_the_kind_decides_what_is_taken(workspace: Workspace):
    from workers.assignment import checked_form

    assert checked_form(ASKING, {"sure": "yes"}) == {"sure": "yes"}
    for wrong in ({}, {"sure": "perhaps"}, {"sure": "yes", "more": 1}):
        with pytest.raises(BadInput, match="form field"):
            checked_form(ASKING, wrong)


def test_the_upper_packages_name_no_kind_of_task_and_no_label():
    words = {tasks.DEFAULT, *(label for task in tasks.TASKS.values() for label in task.labels)}
    named = re.compile(rf"\b({'|'.join(sorted(words))})\b")
    root = Path(dynaround.__file__).parent.parent
    found = []
    for package in UPPER:
        for file in (root / package).rglob("*.html"):
            found += [(file.name, word) for word in named.findall(file.read_text(encoding="utf-8"))]
        for file in (root / package).rglob("*.py"):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                    found += [(str(file), node.lineno, word) for word in named.findall(node.value)]
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dynaround.tasks."):
                    found.append((str(file), node.lineno, node.module))
    assert found == []


def test_no_label_stands_in_a_table_or_a_migration():
    labels = {label for task in tasks.TASKS.values() for label in task.labels}
    core = Path(dynaround.__file__).parent
    for file in (*(core / "tables").glob("*.py"), *(core / "migrations" / "versions").glob("*.py")):
        assert not [label for label in labels if label in file.read_text(encoding="utf-8")], file

"""People's responses from a platform's result file: every usable line once, every other listed with its reason."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator
from sqlalchemy import Engine
from sqlmodel import Session, select

from dynaround.corpus.rejects import Rejected
from dynaround.corpus.rows import Row
from dynaround.corpus.sources import why_unstorable
from dynaround.database import writing
from dynaround.errors import BadInput, DynaroundError
from dynaround.events import record
from dynaround.tables import Example, Response, Round, Worker
from dynaround.task import Task
from dynaround.tasks import get_task
from workers.assignment import PLACES, Answer, checked_form, give_in, hand_out
from workers.launcher_files import open_file, read_line
from workers.roster import PERSON, enlist, lock_open_round, require_kind, require_same_kind

COLUMNS = ("text_id", "worker", "answer")


class ResultLine(BaseModel):
    """One line of a result file; further columns are fields of the task's form, or the platform's business."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    text_id: str = Field(pattern=r"^r[0-9]{1,6}-[0-9]{7}$")
    worker: str = Field(min_length=1)
    answer: str
    hit: str = ""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @field_validator("seconds", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return None if value == "" else value


class Usable(NamedTuple):
    """A line that can be stored, with the example and label that it stands for."""

    number: int
    line: ResultLine
    example: Example
    answer: Answer


class ImportReport(NamedTuple):
    """How many responses were added, how many were there already, and the lines that were not used."""

    added: int
    known: int
    rejected: list[Rejected]


def import_results(engine: Engine, number: int, path: Path, at: datetime) -> ImportReport:
    """Add people's responses from a CSV file to an open round, all in one transaction.

    A page holds what one worker answered in one HIT, where the file names HITs, else one answer. Raises BadInput for a
    file without the columns text_id, worker and answer, and for a round that a crowd has answered.
    """
    rejected: list[Rejected] = []
    table = open_file(path, COLUMNS)
    with writing(engine) as session:
        round_ = lock_open_round(session, number)
        require_kind(session, round_, PERSON)
        task = get_task(round_.task)
        pages: dict[tuple[str, str], list[Usable]] = {}
        for row in table.rows:
            try:
                if isinstance(row, Rejected):
                    rejected.append(row)
                    continue
                usable = _usable(session, round_, task, row)
                hit = usable.line.hit or usable.line.text_id
                pages.setdefault((usable.line.worker, hit), []).append(usable)
            except DynaroundError as error:
                rejected.append(Rejected(row.line, str(error)))
        added = known = 0
        for (platform_id, _), page in pages.items():
            new = _new_ones(session, platform_id, page, rejected)
            known += new.known
            added += len(new.usable)
            _store(session, round_, task, platform_id, new.usable, at)
        record(session, round_.id, "launcher", "imported", at, file=path.name, added=added, rejected=len(rejected))
    return ImportReport(added, known, sorted(rejected))


def _usable(session: Session, round_: Round, task: Task, row: Row) -> Usable:
    line = read_line(ResultLine, row)
    problem = why_unstorable(line.worker)
    if problem is not None:
        raise BadInput(f"worker: {problem}")
    task.label_of(line.answer)
    form = {name: row.values[name] for name in task.form.model_fields if name in row.values}
    checked_form(task, form)
    round_part, _, number = line.text_id.partition("-")
    query = select(Example).where(Example.round_id == round_.id, Example.number == int(number))
    found = session.exec(query).one_or_none() if int(round_part[1:]) == round_.number else None
    if found is None:
        raise BadInput(f"round {round_.number} has no example {line.text_id}")
    return Usable(row.line, line, found, Answer(line.answer, form, line.seconds))


class _New(NamedTuple):
    usable: list[Usable]
    known: int


def _new_ones(session: Session, platform_id: str, page: Sequence[Usable], rejected: list[Rejected]) -> _New:
    worker = session.exec(select(Worker).where(Worker.platform_id == platform_id)).one_or_none()
    had: dict[int, str] = {}
    if worker is not None:
        require_same_kind(worker, PERSON)
        answered = select(Response.example_id, Response.label).where(Response.worker_id == worker.id)
        had = dict(iter(session.exec(answered)))
    new: dict[int, Usable] = {}
    known = 0
    for usable in page:
        example_id = usable.example.id
        assert example_id is not None
        task = get_task(usable.example.task)
        label = task.label_of(usable.answer.word)
        earlier = had.get(example_id) or (task.label_of(new[example_id].answer.word) if example_id in new else None)
        if worker is not None and usable.example.author_id == worker.id:
            rejected.append(Rejected(usable.number, f"{usable.line.text_id}: this worker wrote it"))
        elif earlier is None:
            new[example_id] = usable
        elif earlier == label:
            known += 1
        else:
            reason = f"{usable.line.text_id}: this worker answered {earlier} before; the first answer stands"
            rejected.append(Rejected(usable.number, reason))
    return _New(list(new.values()), known)


def _store(
    session: Session, round_: Round, task: Task, platform_id: str, usable: Sequence[Usable], at: datetime
) -> None:
    assert round_.id is not None
    for start in range(0, len(usable), PLACES):
        answers = {one.example.id: one.answer for one in usable[start : start + PLACES] if one.example.id is not None}
        page = hand_out(session, round_.id, enlist(session, platform_id, PERSON), list(answers))
        give_in(session, task, page, answers, at)

"""Check items: sentences of a round whose right answer is known. They come from a file; answers are kept apart from all
responses, and leave the database in no file.
"""

from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Engine
from sqlmodel import Session, select

from dynaround.corpus.rejects import Rejected
from dynaround.corpus.rows import Row
from dynaround.corpus.sources import why_unstorable
from dynaround.database import writing
from dynaround.errors import BadInput, DynaroundError
from dynaround.events import record
from dynaround.tables import CheckAnswer, CheckItem, Example, Round
from dynaround.task import Task
from dynaround.tasks import get_task
from dynaround.text import folded, text_key
from workers.assignment import Answer, checked_form
from workers.launcher_files import open_file, read_line
from workers.roster import lock_open_round

COLUMNS = ("text", "label", "use")
IMPORTED = "check items imported"


class CheckLine(BaseModel):
    """One line of a file of check items; further columns are the launcher's business."""

    model_config = ConfigDict(extra="ignore")

    text: str = Field(min_length=1)
    label: str
    use: Literal["screening", "silent"]


class CheckImport(NamedTuple):
    """How many check items were added, how many were there already, and the lines that were not used."""

    added: int
    known: int
    rejected: list[Rejected]


def import_check_items(engine: Engine, number: int, path: Path, who: str, at: datetime) -> CheckImport:
    """Add check items from a CSV file with the columns text, label and use to an open round, in one transaction.

    `use` is screening (before a worker's first page) or silent (on pages, among the examples); a text has one use and
    one label, and is no example of the round. Raises BadInput for a file without these columns, NotFound and
    IllegalMove where there is no such open round.
    """
    table = open_file(path, COLUMNS)
    rejected: list[Rejected] = []
    added = known = 0
    with writing(engine) as session:
        round_ = lock_open_round(session, number)
        assert round_.id is not None
        task = get_task(round_.task)
        there = {item.text_key: item for item in session.exec(select(CheckItem).where(CheckItem.round_id == round_.id))}
        for row in table.rows:
            try:
                if isinstance(row, Rejected):
                    rejected.append(row)
                    continue
                item = _item(session, round_, task, row)
                earlier = there.get(item.text_key)
                if earlier is None:
                    there[item.text_key] = item
                    session.add(item)
                    added += 1
                elif (earlier.label, earlier.use) == (item.label, item.use):
                    known += 1
                else:
                    raise BadInput(f"this text stands there already, as {earlier.use} with the label {earlier.label}")
            except DynaroundError as error:
                rejected.append(Rejected(row.line, str(error)))
        record(session, round_.id, who, IMPORTED, at, file=path.name, added=added, rejected=len(rejected))
    return CheckImport(added, known, sorted(rejected))


def _item(session: Session, round_: Round, task: Task, row: Row) -> CheckItem:
    line = read_line(CheckLine, row)
    problem = why_unstorable(line.text)
    if problem is not None or not folded(line.text):
        raise BadInput(f"text: {problem or 'it is empty'}")
    key = text_key(line.text)
    example = session.exec(select(Example.number).where(Example.round_id == round_.id, Example.text_key == key)).first()
    if example is not None:
        raise BadInput(f"example {example} of round {round_.number} has this text, so its answer is not known")
    assert round_.id is not None
    label = task.label_of(line.label)
    return CheckItem(round_id=round_.id, task=task.name, use=line.use, text=line.text, text_key=key, label=label)


def check_answer(task: Task, check_item_id: int, worker_id: int, answer: Answer, at: datetime) -> CheckAnswer:
    """Return the row of an answer to a check item; raise BadInput for no label of the task and for a malformed form."""
    return CheckAnswer(
        check_item_id=check_item_id,
        worker_id=worker_id,
        task=task.name,
        label=task.label_of(answer.word),
        form=checked_form(task, answer.form),
        at=at,
    )

"""A report's source from the database of a workspace: a round in whatever state, and what was stored about it."""

from collections.abc import Mapping

from sqlmodel import Session, col, select

from dynaround.errors import BadInput
from dynaround.labels import RESPONSES
from dynaround.release_file import text_id
from dynaround.splits import SPLITS
from dynaround.tables import CLOSED, OPEN, RELEASED, Event, Example, Placement, Round
from dynaround.task import ReleasedExample, Task
from dynaround.tasks import get_task
from rounds.labelling import labelled_examples
from rounds.lifecycle import find_round, response_counts
from rounds.raw_responses import raw_responses
from rounds.readings import readings_of_all_rounds
from rounds.releasing import responses_from
from rounds.report_source import ALL, SO_FAR, ReportSource, checks_of, crowd_marks, crowd_notes, parts_of
from rounds.shown_names import shown_plan
from rounds.solved_checks import solved_checks


def source_of_round(session: Session, number: int) -> ReportSource:
    """Read a round with all that was stored about it.

    A closed round is told by its retained responses, in its splits once it is released; an open one by the examples
    that have exactly five responses so far. Raises NotFound for a round that is not there, BadInput where no example
    has five responses.
    """
    round_ = find_round(session, number)
    task = get_task(round_.task)
    assert round_.id is not None
    examples, kinds = _labelled(session, round_, task)
    if not examples:
        raise BadInput(
            f"round {number} is {round_.state} and none of its examples has {RESPONSES} responses, so there is nothing "
            f"to report; see: dynaround round status {number}"
        )
    collected = response_counts(session, round_.id)
    by_split = _by_split(session, round_, examples)
    parts = parts_of(((split, f"round {number}", found) for split, found in by_split.items()), task)
    who = responses_from(sorted(kinds))
    return ReportSource(
        title=f"Round {number}",
        task=task,
        responses_from=who,
        parts=parts,
        about=(
            ("round", str(number)),
            ("state", round_.state),
            ("kind of task", task.name),
            ("target model", round_.target_model),
            ("target model hash", round_.target_model_hash),
            ("responses from", who),
            ("examples", f"{len(collected)} collected, {len(examples)} reported"),
            *((("manifest hash", found),) if (found := _manifest_hash(session, round_)) else ()),
        ),
        marks=(*crowd_marks(who), *_state_marks(round_)),
        notes=(*crowd_notes(who), *_state_notes(round_, len(examples), len(collected))),
        plan=shown_plan(round_.plan),
        checks=checks_of(parts, task) if round_.state == RELEASED else (),
        cells=_cells(session, round_),
        readings=readings_of_all_rounds(session, task),
        solved=tuple(solved_checks(session, round_)),
        raw=raw_responses(session, round_),
    )


def _labelled(session: Session, round_: Round, task: Task) -> tuple[dict[int, ReleasedExample], set[str]]:
    """Return the labelled examples by id, in order of number, and the kinds of workers who answered."""
    assert round_.id is not None
    so_far = round_.state not in (CLOSED, RELEASED)
    labelled = labelled_examples(session, round_.id, round_.number, task, so_far=so_far)
    examples = {one.example.id: one.released for one in labelled if one.example.id is not None}
    return examples, {kind for one in labelled for kind in one.worker_kinds}


def _by_split(
    session: Session, round_: Round, examples: Mapping[int, ReleasedExample]
) -> dict[str, list[ReleasedExample]]:
    if round_.state != RELEASED:
        return {SO_FAR if round_.state == OPEN else ALL: list(examples.values())}
    placed = {p.example_id: p.split for p in session.exec(select(Placement))}
    by_split: dict[str, list[ReleasedExample]] = {split: [] for split in SPLITS}
    for key, example in examples.items():
        by_split[placed[key]].append(example)
    return by_split


def _state_marks(round_: Round) -> tuple[str, ...]:
    marks = {OPEN: f"round {round_.number} is still open", CLOSED: f"round {round_.number} is not released yet"}
    return (marks[round_.state],) if round_.state in marks else ()


def _state_notes(round_: Round, reported: int, collected: int) -> tuple[str, ...]:
    notes = {
        OPEN: f"Round {round_.number} is still open: these are the figures so far, of the {reported} of {collected} "
        f"examples that have exactly {RESPONSES} responses. They will change.",
        CLOSED: f"Round {round_.number} is closed and not released: it has no splits yet.",
    }
    return (notes[round_.state],) if round_.state in notes else ()


def _manifest_hash(session: Session, round_: Round) -> str | None:
    events = session.exec(select(Event).where(Event.round_id == round_.id, Event.what == RELEASED)).all()
    return next((str(event.detail["manifest_hash"]) for event in events if "manifest_hash" in event.detail), None)


def _cells(session: Session, round_: Round) -> dict[str, str]:
    rows = session.exec(
        select(Example.number, Example.cell).where(Example.round_id == round_.id, col(Example.author_id).is_(None))
    )
    return {text_id(round_.number, number): cell for number, cell in rows}

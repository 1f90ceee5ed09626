"""Check items: what a file of them brings in, the ones before the first page, and that their answers stay apart."""

import csv
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine
from sqlmodel import Session, delete, select

from dynaround.database import reading, writing
from dynaround.errors import BadInput, IllegalMove, NotAllowed
from dynaround.known_answers import check_rates, missed_items
from dynaround.screening_measures import CheckRate
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import (
    SCREENING,
    SILENT,
    Bar,
    CheckAnswer,
    CheckFlag,
    CheckItem,
    Event,
    Page,
    Placement,
    Removal,
    Response,
    Round,
    TaskLabel,
    Worker,
)
from dynaround.tasks.sentiment import SENTIMENT
from dynaround.text import text_key
from rounds.lifecycle import VALIDATING as SWITCHED
from rounds.releasing import release_round
from rounds.status import figure_lines, round_figures
from tests.builders import build_open_round, build_released_round, sentence_of
from tests.small_round import MOMENT
from workers.assignment import Answer
from workers.checks import check_answer, import_check_items
from workers.commands import checks as checks_command
from workers.onboarding import BARRED, CONSENT, QUIZ, READY, Quiz, consent, grade
from workers.roster import PERSON, enlist
from workers.standing import KNOWN_ANSWERS_MISSED, VALIDATING, lift
from workers.validator_onboarding import (
    Entry,
    ScreeningResult,
    give_in_screening,
    require_admitted,
    screening_page,
    validator_step,
)

DAY = timedelta(days=1)
QUIZ_OF_ROUND = Quiz(VALIDATING, "1", SENTIMENT.guide.validator_quiz, limit=2, bar_days=7, own_consent=True)
ENTRY = Entry(QUIZ_OF_ROUND, items=10, right=8)
LABELS = SENTIMENT.labels

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)


def open_round(session: Session) -> Round:
    for place, label in enumerate(LABELS):
        session.add(TaskLabel(task=SENTIMENT.name, label=label, place=place, for_model=label in SENTIMENT.model_labels))
    session.flush()
    plan = {"seed": 7}
    round_ = Round(
        number=1, task=SENTIMENT.name, state="open", plan=plan, target_model="m", target_model_hash="ab" * 32
    )
    session.add(round_)
    session.flush()
    return round_


def the_round(session: Session) -> Round:
    return session.exec(select(Round)).one()


def add_items(session: Session, count: int, use: str = SCREENING) -> dict[str, str]:
    """Add items with the labels in turn; return the label of each text."""
    known = {f"The {use} sentence {number}.": LABELS[number % len(LABELS)] for number in range(count)}
    for text, label in known.items():
        facts = {"round_id": the_round(session).id, "task": SENTIMENT.name, "use": use}
        session.add(CheckItem(text=text, text_key=text_key(text), label=label, **facts))
    session.flush()
    return known


def known_labels(session: Session) -> dict[str, str]:
    return dict(iter(session.exec(select(CheckItem.text, CheckItem.label))))


def at_the_door(session: Session, platform_id: str = "P1") -> Worker:
    """Return a worker who has consented and passed the questions."""
    worker = enlist(session, platform_id, PERSON)
    consent(session, worker, QUIZ_OF_ROUND.consent_version, MOMENT)
    right = {question.key: question.right for question in QUIZ_OF_ROUND.questions}
    assert grade(session, worker, QUIZ_OF_ROUND, 1, right, MOMENT).passed
    return worker


def step(session: Session, worker: Worker, at: datetime = MOMENT) -> str:
    return validator_step(session, the_round(session), worker, ENTRY, at).name


def answers(session: Session, worker: Worker, right: int) -> Mapping[int, Answer]:
    """Return answers to the next screening items, of which the first so many are right."""
    known, given = known_labels(session), {}
    for place in screening_page(session, the_round(session), worker, ENTRY).places:
        label = known[place.text]
        wrong = next(other for other in LABELS if other != label)
        given[place.position] = Answer(label if place.position <= right else wrong)
    return given


def screened(session: Session, worker: Worker, right: int, number: int = 1, at: datetime = MOMENT) -> ScreeningResult:
    given = answers(session, worker, right)
    return give_in_screening(session, the_round(session), worker, ENTRY, number, given, at)


# The file


def write_file(path: Path, *lines: tuple[str, str, str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label", "use"), *lines])
    return path


def test_a_file_of_check_items_is_taken_and_its_wrong_lines_are_listed(engine: Engine, tmp_path: Path):
    with writing(engine) as session:
        open_round(session)
    good = [("I loved it.", "positive", "screening"), ("It opens at nine.", "nosentiment", "silent")]
    bad = [
        ("I hated it.", "postive", "screening"),
        ("I hated it.", "negative", "door"),
        ("  ", "negative", "silent"),
        ("I  loved it. ", "negative", "screening"),
        ("I loved it.", "positive", "silent"),
    ]
    file = write_file(tmp_path / "items.csv", *good, *bad)
    found = import_check_items(engine, 1, file, "launcher", MOMENT)
    assert (found.added, found.known, [row.line for row in found.rejected]) == (2, 0, [4, 5, 6, 7, 8])
    reasons = [row.reason for row in found.rejected]
    for reason, said in zip(reasons, ("'postive' is none of", "use", "empty", "already", "already"), strict=True):
        assert said in reason
    again = import_check_items(engine, 1, file, "launcher", MOMENT)
    assert (again.added, again.known, again.rejected) == (0, 2, found.rejected)
    with reading(engine) as session:
        assert known_labels(session) == {"I loved it.": "positive", "It opens at nine.": "neutral"}
        assert [event.detail["added"] for event in session.exec(select(Event)).all()] == [2, 0]


@on_sqlite
def test_an_example_of_the_round_is_no_check_item(workspace: Workspace, tmp_path: Path):
    build_open_round(workspace, examples=1)
    file = write_file(tmp_path / "items.csv", (sentence_of(1), "neutral", "silent"))
    (row,) = import_check_items(workspace.engine(), 1, file, "launcher", MOMENT).rejected
    assert row.reason == "example 1 of round 1 has this text, so its answer is not known"


@on_sqlite
def test_a_file_without_a_column_and_a_round_that_is_not_open_are_refused(engine: Engine, tmp_path: Path):
    with writing(engine) as session:
        open_round(session)
    (tmp_path / "items.csv").write_text("text,label\nI loved it.,positive\n")
    with pytest.raises(BadInput, match="no column use"):
        import_check_items(engine, 1, tmp_path / "items.csv", "launcher", MOMENT)
    with writing(engine) as session:
        the_round(session).state = "closed"
    with pytest.raises(IllegalMove, match="closed"):
        import_check_items(engine, 1, write_file(tmp_path / "other.csv"), "launcher", MOMENT)


# Before the first page


def test_wrk_01_seven_of_ten_are_barred_and_eight_are_let_in(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        add_items(session, 10)
        w9, w10, w11 = at_the_door(session, "P9"), at_the_door(session, "P10"), enlist(session, "P11", PERSON)
        assert [step(session, worker) for worker in (w9, w10, w11)] == [SCREENING, SCREENING, CONSENT]
        assert screened(session, w9, 7) == (1, 7, 10, False)
        assert screened(session, w10, 8) == (1, 8, 10, True)
        consent(session, w11, QUIZ_OF_ROUND.consent_version, MOMENT)
        wrong = {question.key: question.choices[-1] for question in QUIZ_OF_ROUND.questions}
        for number in (1, 2):
            grade(session, w11, QUIZ_OF_ROUND, number, wrong, MOMENT)
        assert [step(session, worker) for worker in (w9, w10, w11)] == [BARRED, READY, BARRED]
        for worker in (w9, w11):
            with pytest.raises(NotAllowed, match="may not validate"):
                require_admitted(session, round_, worker, ENTRY, MOMENT)
        require_admitted(session, round_, w10, ENTRY, MOMENT)
        with pytest.raises(NotAllowed, match="no first sentences for you"):
            give_in_screening(session, round_, w11, ENTRY, 1, {n: Answer("mixed") for n in range(1, 11)}, MOMENT)
        assert session.exec(select(Response)).all() == [] and len(session.exec(select(CheckAnswer)).all()) == 20


def test_who_fails_reads_why_and_stays_out_of_this_round_when_the_bar_is_over(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        add_items(session, 12)
        worker = at_the_door(session)
        screened(session, worker, 3)
        held = validator_step(session, round_, worker, ENTRY, MOMENT + 8 * DAY)
        assert held.name == BARRED and held.bar is not None
        assert (held.bar.reason, held.bar.until) == (KNOWN_ANSWERS_MISSED, MOMENT + 7 * DAY)
        assert held.bar.evidence == {"round": 1, "right": 3, "of": 10, "wanted": 8}


def test_where_there_are_items_enough_the_next_try_has_others(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        add_items(session, 20)
        worker = at_the_door(session)
        first = screening_page(session, round_, worker, ENTRY)
        screened(session, worker, 5)
        after = MOMENT + 7 * DAY
        assert step(session, worker, after) == SCREENING
        second = screening_page(session, round_, worker, ENTRY)
        assert second.number == 2 and not {p.text for p in first.places} & {p.text for p in second.places}
        screened(session, worker, 8, number=2, at=after)
        assert step(session, worker, after) == READY


@on_sqlite
def test_lifting_the_bar_lets_in_who_failed(engine: Engine):
    with writing(engine) as session:
        open_round(session)
        add_items(session, 10)
        worker = at_the_door(session)
        screened(session, worker, 7)
        lift(session, session.exec(select(Bar)).one(), "launcher", MOMENT + DAY)
        assert step(session, worker, MOMENT + DAY) == READY


@on_sqlite
def test_the_same_items_are_shown_until_they_are_given_in_with_the_labels_in_turn(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        known = add_items(session, 40)
        workers = [at_the_door(session, f"P{number}") for number in range(3)]
        pages = [screening_page(session, round_, worker, ENTRY) for worker in workers]
        assert pages == [screening_page(session, round_, worker, ENTRY) for worker in workers]
        assert len({page.places for page in pages}) == 3
        for page in pages:
            given = [known[place.text] for place in page.places]
            assert sorted(given.count(label) for label in LABELS) == [2, 2, 3, 3]


@on_sqlite
def test_a_form_that_comes_again_or_is_not_whole_is_no_try(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        add_items(session, 10)
        worker = at_the_door(session)
        given = dict(answers(session, worker, 10))
        for wrong, said in (
            ({n: one for n, one in given.items() if n not in (3, 7)}, "sentences 3, 7 have no answer"),
            (given | {4: Answer("great")}, "'great' is none of"),
        ):
            with pytest.raises(BadInput, match=said), session.begin_nested():
                give_in_screening(session, round_, worker, ENTRY, 1, wrong, MOMENT)
        with pytest.raises(BadInput, match="of try 2, and the next one is 1"):
            give_in_screening(session, round_, worker, ENTRY, 2, given, MOMENT)
        assert session.exec(select(CheckAnswer)).all() == []
        first = give_in_screening(session, round_, worker, ENTRY, 1, given, MOMENT)
        assert give_in_screening(session, round_, worker, ENTRY, 1, {}, MOMENT) == first
        assert len(session.exec(select(CheckAnswer)).all()) == 10


@on_sqlite
def test_a_round_without_enough_items_skips_the_step_and_so_does_who_began_before(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        add_items(session, 9)
        early, late = at_the_door(session, "P1"), at_the_door(session, "P2")
        assert step(session, early) == READY
        session.add(Page(round_id=round_.id, worker_id=early.id))
        session.add(
            CheckItem(round_id=round_.id, task="sentiment", use=SCREENING, text="x", text_key="x", label="mixed")
        )
        session.flush()
        assert (step(session, early), step(session, late)) == (READY, SCREENING)
        none = Entry(QUIZ_OF_ROUND, items=0, right=0)
        assert validator_step(session, round_, late, none, MOMENT).name == READY


@on_sqlite
def test_consent_to_validating_is_its_own(engine: Engine):
    with writing(engine) as session:
        open_round(session)
        worker = enlist(session, "P1", PERSON)
        consent(session, worker, "1", MOMENT)
        assert step(session, worker) == CONSENT
        consent(session, worker, "validating 1", MOMENT)
        assert step(session, worker) == QUIZ
    assert VALIDATING == SWITCHED


@on_sqlite
def test_a_removed_worker_stays_out_of_the_round_until_reinstated(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        worker = at_the_door(session)
        removal = Removal(round_id=round_.id, worker_id=worker.id, rule="leave-one-out", evidence={}, at=MOMENT)
        session.add(removal)
        session.flush()
        assert step(session, worker, MOMENT + 99 * DAY) == BARRED
        removal.reinstated_at = MOMENT + DAY
        session.flush()
        assert step(session, worker, MOMENT + DAY) == READY


# Silent ones


def test_the_rate_is_of_silent_items_and_of_answers_since_a_reinstatement(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        add_items(session, 10)
        known = add_items(session, 4, SILENT)
        one, other = at_the_door(session, "P1"), at_the_door(session, "P2")
        screened(session, one, 9)
        items = session.exec(select(CheckItem).where(CheckItem.use == SILENT).order_by(CheckItem.id)).all()
        for place, item in enumerate(items):
            for worker in (one, other):
                said = known[item.text] if place < 3 or worker is other else LABELS[0]
                moment = MOMENT + place * DAY
                session.add(check_answer(SENTIMENT, item.id, worker.id, Answer(said), moment))
        session.flush()
        assert check_rates(session, round_.id) == {one.id: CheckRate(4, 3), other.id: CheckRate(4, 4)}
        later = check_rates(session, round_.id, {one.id: MOMENT + 2 * DAY})
        assert later == {one.id: CheckRate(1, 0), other.id: CheckRate(4, 4)}


def test_an_item_that_is_said_not_to_be_judgeable_is_not_right(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        known = add_items(session, 3, SILENT)
        one, other = at_the_door(session, "P1"), at_the_door(session, "P2")
        items = session.exec(select(CheckItem).order_by(CheckItem.id)).all()
        session.add(check_answer(SENTIMENT, items[0].id, one.id, Answer(known[items[0].text]), MOMENT))
        for item, worker in ((items[1], one), (items[2], one), (items[2], other)):
            session.add(CheckFlag(check_item_id=item.id, worker_id=worker.id, reason="language", at=MOMENT + DAY))
        assert check_rates(session, round_.id) == {one.id: CheckRate(3, 1, 2), other.id: CheckRate(1, 0, 1)}
        later = check_rates(session, round_.id, {one.id: MOMENT, other.id: MOMENT + DAY})
        assert later == {one.id: CheckRate(2, 0, 2)}


def test_items_that_most_people_miss_are_told_of_both_uses(engine: Engine):
    with writing(engine) as session:
        round_ = open_round(session)
        known = {**add_items(session, 1), **add_items(session, 3, SILENT)}
        workers = [enlist(session, f"P{place}", PERSON) for place in range(4)]
        first, missed, even, rare = session.exec(select(CheckItem).order_by(CheckItem.id)).all()
        wrong = {text: next(other for other in LABELS if other != label) for text, label in known.items()}
        for item, right, others in ((first, 1, 2), (missed, 0, 2), (even, 2, 2), (rare, 0, 2)):
            for place, worker in enumerate(workers[: right + others]):
                said = (known if place < right else wrong)[item.text]
                session.add(check_answer(SENTIMENT, item.id, worker.id, Answer(said), MOMENT))
        session.add(CheckFlag(check_item_id=missed.id, worker_id=workers[3].id, reason="language", at=MOMENT))
        found = [(one.text, one.label, tuple(one.rate)) for one in missed_items(session, round_.id)]
    assert found == [(missed.text, missed.label, (3, 0, 1)), (first.text, first.label, (3, 1, 0))]


@on_sqlite
def test_the_launcher_imports_items_by_a_command_and_is_told_what_is_missing(workspace: Workspace, tmp_path: Path):
    build_open_round(workspace, examples=1)
    lines = [(f"It was good, {number}.", "positive", "screening") for number in range(10)]
    file = write_file(tmp_path / "items.csv", *lines[:9], ("It was odd.", "odd", "silent"))

    def told() -> list[str]:
        with reading(workspace.engine()) as session:
            return [line for line in figure_lines(round_figures(session, the_round(session))) if "answers" in line]

    done = CliRunner().invoke(checks_command, ["1", str(file), "-w", str(workspace.root)])
    assert done.output.endswith("9 check items added, 0 were there already, 1 lines rejected\n")
    assert f"rejected: {file}, line 11: answer 'odd' is none of" in done.output
    skipped = "note: validators begin without known answers; 10 are needed (see: dynaround workers checks)"
    silent = "note: there is no check item for pages, so nobody is judged by known answers during the work"
    assert told() == [skipped, silent]
    write_file(tmp_path / "items.csv", *lines, ("It opens at nine.", "neutral", "silent"))
    done = CliRunner().invoke(checks_command, ["1", str(file), "--json", "-w", str(workspace.root)])
    assert json.loads(done.output) == {"added": 2, "known": 9, "rejected": []}
    with reading(workspace.engine()) as session:
        figures = round_figures(session, the_round(session))["check_items"]
    assert figures == {"screening": {"positive": 10}, "silent": {"neutral": 1}, "wanted": 10, "screening_step": True}
    assert told() == []


def released_files(folder: Path, *, checked: bool) -> dict[str, bytes]:
    """Release a round whose five workers have answered check items too, or have not; return the release's files."""
    workspace = create_workspace(folder)
    build_released_round(workspace, examples=140)
    with writing(workspace.engine()) as session:
        the_round(session).state = "closed"
        session.exec(delete(Placement))
        add_items(session, 10 * checked)
        add_items(session, 4 * checked, SILENT)
        for item in session.exec(select(CheckItem)).all():
            for worker in session.exec(select(Worker)).all():
                session.add(check_answer(SENTIMENT, item.id, worker.id, Answer(LABELS[worker.id % 4]), MOMENT))
    with reading(workspace.engine()) as session:
        assert len(session.exec(select(CheckAnswer)).all()) == 5 * 14 * checked
    release_round(workspace, workspace.engine(), 1, folder / "release", "launcher", MOMENT)
    workspace.close()
    return {file.name: file.read_bytes() for file in (folder / "release").iterdir()}


def test_answers_to_check_items_change_no_file_of_a_release(tmp_path: Path):
    files = released_files(tmp_path / "checked", checked=True)
    assert set(files) == {"train.jsonl", "dev.jsonl", "test.jsonl", "withheld.jsonl", "manifest.json"}
    assert files == released_files(tmp_path / "plain", checked=False)

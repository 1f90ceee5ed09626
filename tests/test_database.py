"""The database on both back ends: migrations, constraints that races meet, and labels that the task does not have."""

import subprocess
import sys
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlmodel import SQLModel, select

from dynaround import database
from dynaround.cli import explained
from dynaround.database import migrate, open_engine, reading, require_current, writing
from dynaround.errors import BadInput, NotFound
from dynaround.tables import Example, Page, Response, Round, TaskLabel, Worker
from dynaround.tasks.sentiment import SENTIMENT
from dynaround.text import text_key
from rounds.lifecycle import draft_round
from rounds.plan import RoundPlan

MOMENT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
PLAN = RoundPlan(task="sentiment", reviews="csv:reviews.csv", reviews_sha256="0" * 64, size=10, seed=1)


def an_example(round_: Round, number: int, text: str, **more: object) -> Example:
    values = dict(
        round_id=round_.id,
        task=round_.task,
        number=number,
        text=text,
        text_key=text_key(text),
        cell="random",
        prediction="neutral",
        probs={"positive": 0.2, "negative": 0.2, "neutral": 0.6},
        truncated=False,
        model_hash="h",
        precision="float32",
        back_end="torch",
    )
    return Example(**{**values, **more})


def a_round(engine: Engine) -> Round:
    with writing(engine) as session:
        return draft_round(session, SENTIMENT, PLAN, "model-0", "h")


def test_an_empty_database_migrated_equals_one_made_from_the_tables(empty_engine: Engine):
    migrate(empty_engine)
    with empty_engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, SQLModel.metadata) == []
    migrated = _shape(empty_engine)
    with empty_engine.begin() as connection:
        SQLModel.metadata.drop_all(connection)
        SQLModel.metadata.create_all(connection)
    assert migrated == _shape(empty_engine)


def _shape(engine: Engine) -> dict[str, object]:
    """Return names, nullability, keys and constraints of all tables, which autogenerate compares only in part."""
    look = inspect(engine)
    return {
        table: {
            "columns": sorted((c["name"], str(c["type"]), c["nullable"]) for c in look.get_columns(table)),
            "keys": look.get_pk_constraint(table),
            "foreign": sorted(str(sorted(f.items(), key=str)) for f in look.get_foreign_keys(table)),
            "unique": sorted(str(sorted(u.items(), key=str)) for u in look.get_unique_constraints(table)),
            "checks": sorted((str(c["name"]), str(c["sqltext"])) for c in look.get_check_constraints(table)),
            "indexes": sorted(
                (str(i["name"]), i["column_names"], bool(i["unique"]), sorted(map(str, i["dialect_options"].values())))
                for i in look.get_indexes(table)
            ),
        }
        for table in look.get_table_names()
        if table != "alembic_version"
    }


def test_migrating_again_changes_nothing(engine: Engine):
    before = _shape(engine)
    migrate(engine)
    assert _shape(engine) == before


def test_a_database_of_no_revision_is_refused_with_the_command_that_helps(empty_engine: Engine):
    with pytest.raises(NotFound, match="run: dynaround init"):
        require_current(empty_engine)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(engine: Engine):
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for opening in (require_current, migrate):
        with pytest.raises(BadInput, match=r"revision 9999\) was made by a newer dynaround; upgrade dynaround"):
            opening(engine)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one() == "9999"


def the_same_worker_twice(engine: Engine) -> IntegrityError:
    with pytest.raises(IntegrityError) as caught, writing(engine) as session:
        session.add_all([Worker(platform_id="A1PRIVATE", kind="person") for _ in range(2)])
    return caught.value


def test_no_platform_id_stands_in_an_error_of_the_database(engine: Engine):
    error = the_same_worker_twice(engine)
    # The lines of this file in the traceback name it, of course.
    shown = [line for line in traceback.format_exception(error) if "session.add_all" not in line]
    assert "platform_id" in str(error) and "A1PRIVATE" not in "".join(shown) + repr(error) + repr(error.orig)


def test_what_was_stored_at_the_same_moment_is_one_sentence(engine: Engine):
    message, code = explained(the_same_worker_twice(engine))
    assert code == 2 and message is not None and "another process stored the same at the same moment" in message


def test_another_broken_constraint_is_a_bug(engine: Engine):
    with pytest.raises(IntegrityError) as caught, writing(engine) as session:
        session.add(Page(round_id=9, worker_id=9))
    assert explained(caught.value)[0] is None


def test_a_full_disk_of_postgresql_is_one_sentence():
    errors = pytest.importorskip("psycopg.errors")
    full = errors.DiskFull("could not extend file: No space left on device\nHINT: Check free disk space.")
    error = DBAPIError.instance("INSERT", {}, full, errors.Error)
    message, code = explained(error)
    assert code == 2 and message is not None and message.startswith("no space left for a database file")
    assert "No space left on device)" in message


def test_what_is_committed_to_sqlite_outlives_a_power_cut(tmp_path: Path):
    engine = open_engine(f"sqlite:///{tmp_path / 'test.sqlite'}")
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2  # FULL
    engine.dispose()


@pytest.mark.parametrize("url", ["postgresql//u:s3cret@host/x", "postgresql://u:s3cret@host:port/x", "s3cret"])
def test_a_url_that_cannot_be_read_is_not_shown(url: str):
    with pytest.raises(BadInput, match="cannot be read; write sqlite:///FILE") as caught:
        open_engine(url)
    assert "s3cret" not in str(caught.value) and caught.value.__suppress_context__


@pytest.mark.parametrize("url", ["mysql://host/name", "no url at all"])
def test_other_databases_are_refused(url: str):
    with pytest.raises(BadInput, match=r"SQLite|sqlite"):
        open_engine(url)


def test_srv_03_raw_sql_with_an_unknown_label_is_refused_by_the_database(engine: Engine):
    round_ = a_round(engine)
    with writing(engine) as session:
        example, worker = an_example(round_, 1, "Fine."), Worker(platform_id="A", kind="person")
        session.add_all([example, worker])
        session.flush()
        page = Page(round_id=round_.id, worker_id=worker.id)
        session.add(page)
        session.flush()
        values = {"example": example.id, "worker": worker.id, "page": page.id, "at": MOMENT.isoformat(sep=" ")}
    insert = (
        "INSERT INTO response (example_id, worker_id, page_id, task, label, at)"
        " VALUES (:example, :worker, :page, :task, :label, :at)"
    )
    for task, label in (("sentiment", "postive"), ("other", "neutral"), ("sentiment", "NEUTRAL"), ("sentiment", "")):
        with pytest.raises(IntegrityError), writing(engine) as session:
            session.connection().execute(text(insert), {**values, "task": task, "label": label})
    with writing(engine) as session:
        session.connection().execute(text(insert), {**values, "task": "sentiment", "label": "neutral"})
    with reading(engine) as session:
        assert [r.label for r in session.exec(select(Response))] == ["neutral"]


def test_a_prediction_that_the_task_does_not_have_is_refused(engine: Engine):
    round_ = a_round(engine)
    with pytest.raises(IntegrityError), writing(engine) as session:
        session.add(an_example(round_, 1, "Fine.", prediction="LABEL_0"))


def test_one_folded_text_stands_once_in_a_round_unless_imported(engine: Engine):
    round_ = a_round(engine)
    with writing(engine) as session:
        session.add(an_example(round_, 1, "The crust was soggy."))
    with pytest.raises(IntegrityError), writing(engine) as session:
        session.add(an_example(round_, 2, "The crust  was\nsoggy. "))
    with writing(engine) as session:
        session.add(an_example(round_, 3, "The crust was soggy.", imported=True))
        session.add(an_example(round_, 4, "The crust was soggy.", imported=True))
        session.add(an_example(round_, 5, "the crust was soggy."))


def test_a_failed_transaction_leaves_nothing(engine: Engine):
    with pytest.raises(ZeroDivisionError), writing(engine) as session:
        session.add(Worker(platform_id="A", kind="person"))
        session.flush()
        raise ZeroDivisionError
    with reading(engine) as session:
        assert session.exec(select(Worker)).all() == []


def test_writers_at_once_all_succeed(engine: Engine):
    def add(start: int) -> None:
        for number in range(start, start + 20):
            with writing(engine) as session:
                session.add(Worker(platform_id=f"A{number}", kind="person"))

    threads = [threading.Thread(target=add, args=(start,)) for start in range(0, 100, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading(engine) as session:
        assert len(session.exec(select(Worker)).all()) == 100


def test_moments_come_back_with_their_zone_and_need_one(engine: Engine):
    round_ = a_round(engine)
    with writing(engine) as session:
        worker = Worker(platform_id="A", kind="person")
        session.add(worker)
        session.flush()
        session.add(Page(round_id=round_.id, worker_id=worker.id, given_in=MOMENT))
    with reading(engine) as session:
        assert session.exec(select(Page.given_in)).one() == MOMENT
    with pytest.raises(Exception, match="time zone"), writing(engine) as session:
        session.add(Page(round_id=round_.id, worker_id=worker.id, given_in=datetime(2026, 1, 2)))


def test_the_labels_of_a_task_enter_once(engine: Engine):
    a_round(engine)
    a_round(engine)
    with reading(engine) as session:
        found = session.exec(select(TaskLabel).order_by(TaskLabel.place)).all()
    assert [(row.label, row.for_model) for row in found] == [
        ("positive", True),
        ("negative", True),
        ("neutral", True),
        ("mixed", False),
    ]


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
def test_a_writer_waits_for_those_before_it_and_a_killed_one_holds_nobody_up(engine: Engine):
    fcntl = pytest.importorskip("fcntl")
    hold = "import fcntl, sys, time; f = open(sys.argv[1], 'ab'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); "
    path = f"{engine.url.database}-turn"
    before = subprocess.Popen([sys.executable, "-c", hold + "time.sleep(600)", path], stdout=subprocess.PIPE)
    assert before.stdout is not None and before.stdout.readline() == b"1\n"
    writer = threading.Thread(target=a_round, args=(engine,))
    writer.start()
    writer.join(timeout=0.5)
    with open(path, "ab") as turn, pytest.raises(BlockingIOError):
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with reading(engine) as session:
        assert session.exec(select(Round)).all() == [] and writer.is_alive()
    before.kill()
    before.communicate()
    writer.join(timeout=60)
    with reading(engine) as session:
        assert len(session.exec(select(Round)).all()) == 1


@pytest.mark.parametrize("back_end", ["postgresql"], indirect=True)
def test_a_connection_that_the_server_ended_is_made_anew(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "IDLE_SECONDS", 0)
    a_round(engine)
    other = open_engine(engine.url)
    with other.connect() as connection:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        assert connection.exec_driver_sql(ended + "pg_backend_pid()").all()
    other.dispose()
    with reading(engine) as session:
        assert len(session.exec(select(Round)).all()) == 1

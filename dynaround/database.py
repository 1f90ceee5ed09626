"""The engine, read and write transactions, and migrations; the same on SQLite and PostgreSQL."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, CursorResult, Engine, ExceptionContext, Executable, event, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry
from sqlmodel import Session, create_engine

try:
    import fcntl
except ImportError:  # Windows, where writers wait as SQLite does
    fcntl = None  # type: ignore[assignment]

from dynaround.errors import BadInput, NotFound, NotInstalled

MIGRATIONS = Path(__file__).parent / "migrations"
WAIT_SECONDS = 30
"""How long a writer waits for another one on SQLite before it gives up."""
IDLE_SECONDS = 5
"""How long a connection to PostgreSQL may have lain idle without being asked whether the server is still there."""


def open_engine(url: str | URL) -> Engine:
    """Return an engine for a SQLite or PostgreSQL URL.

    Its errors never show the values of a statement, among which are platform ids. Raises BadInput for a URL that is
    neither, NotInstalled where the PostgreSQL driver is missing.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Not shown, nor the error that may show it: where a password begins in what cannot be read nobody knows.
        raise BadInput(
            "database_url (not shown, it may hold a password) cannot be read; "
            "write sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from None
    if parsed.get_backend_name() == "postgresql":
        # Not prepared, a statement is planned for the tables as they are: a young round's plan would read them whole.
        # To force that on prepared ones plans the checks of foreign keys anew as well, row by row; those are kept now.
        unprepared = {"prepare_threshold": None}
        try:
            engine = create_engine(
                parsed.set(drivername="postgresql+psycopg"), connect_args=unprepared, hide_parameters=True
            )
        except (ImportError, NoSuchModuleError) as error:
            raise NotInstalled("PostgreSQL needs a driver; run: pip install 'dynaround[postgres]'") from error
        event.listen(engine, "handle_error", _without_values)
        event.listen(engine, "checkin", _note_return)
        event.listen(engine, "checkout", partial(_require_alive, engine))
        return engine
    if parsed.get_backend_name() != "sqlite":
        raise BadInput(f"database {parsed.get_backend_name()!r} is not supported; take SQLite or PostgreSQL")
    engine = create_engine(parsed, connect_args={"timeout": WAIT_SECONDS}, hide_parameters=True)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: a late BEGIN would make writers collide halfway.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA journal_mode=WAL")
    # With NORMAL a power cut may take back what was committed: nothing collected may be lost.
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _note_return(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info["returned"] = time.monotonic()


def _require_alive(engine: Engine, connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
    """Have a connection made anew where the server has ended it; one that was just used is not asked."""
    if time.monotonic() - record.info.get("returned", time.monotonic()) < IDLE_SECONDS:
        return
    try:
        engine.dialect.do_ping(connection)
    except engine.dialect.loaded_dbapi.Error as error:
        raise DisconnectionError from error


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")


def _without_values(context: ExceptionContext) -> None:
    # PostgreSQL adds lines that quote the row ("DETAIL: Key (platform_id)=(...) already exists."); the first does not.
    for error in (context.original_exception, context.sqlalchemy_exception):
        if error is not None and error.args:
            error.args = (next(iter(str(error.args[0]).splitlines()), ""), *error.args[1:])


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """Open a session that only reads.

    On SQLite all is read as of one moment, on PostgreSQL each statement as of its own, as in any of its transactions.
    """
    with Session(engine) as session:
        if engine.dialect.name == "postgresql":
            # Without a transaction, which would say no more and cost two more messages.
            session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})
        yield session


def columns(session: Session, statement: Executable, **values: Any) -> CursorResult[*tuple[Any, ...]]:
    """Execute a statement of columns, with the values of its parameters; what is pending is written first.

    No objects are made and none is looked after, which takes a fraction of the time: for what every request asks, where
    the statement is made once, in its module.
    """
    session.flush()
    return session.connection().execute(statement, values)


@contextmanager
def writing(engine: Engine) -> Iterator[Session]:
    """Open a session in one write transaction: committed at the end, or rolled back whole by an exception.

    On SQLite it begins with BEGIN IMMEDIATE, so writers queue instead of failing. Never run a model inside.
    """
    with _turn_to_write(engine), Session(engine, expire_on_commit=False) as session, session.begin():
        session.connection(execution_options={"writes": True})
        yield session


@contextmanager
def _turn_to_write(engine: Engine) -> Iterator[None]:
    """Wait on SQLite until those who came before have written.

    SQLite itself only looks again now and then, and under load lets the unlucky starve for seconds. The lock is the
    kernel's, on a file beside the database: it queues threads and processes alike and is free after any death.
    """
    path = engine.url.database
    if fcntl is None or engine.dialect.name != "sqlite" or not path or path == ":memory:":
        yield
        return
    with open(f"{path}-turn", "ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _alembic(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def _found_revision(connection: Connection) -> str | None:
    """Return the database's revision; raise BadInput for one that this version does not know."""
    found = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(_alembic()).walk_revisions()}
    if found is not None and found not in known:
        raise BadInput(f"the database (revision {found}) was made by a newer dynaround; upgrade dynaround")
    return found


def migrate(engine: Engine) -> None:
    """Bring the database to the newest revision; an empty one gets all tables.

    Raises BadInput for a database of a newer version.
    """
    with engine.execution_options(writes=True).begin() as connection:
        _found_revision(connection)
        command.upgrade(_alembic(connection), "head")


def require_current(engine: Engine) -> None:
    """Raise NotFound where the database is at an older revision, BadInput where at that of a newer version."""
    with engine.connect() as connection:
        found = _found_revision(connection)
    wanted = ScriptDirectory.from_config(_alembic()).get_current_head()
    if found != wanted:
        raise NotFound(
            f"the database is at revision {found or 'none'} and this version needs {wanted}; run: dynaround init"
        )

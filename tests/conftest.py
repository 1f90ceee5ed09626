"""Fixtures shared by all topics."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from dynaround.settings import Workspace

# Two processes run the tests; more threads than cores spin against each other. Set before torch is imported anywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No test may reach a model hub: set before transformers is imported anywhere.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"

SHARED = Path(os.environ.get("DYNAROUND_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder with the real files, which are not part of the project."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"real data files are not at {folder}; set DYNAROUND_SHARED to the folder that holds data/")
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny random encoder."""
    from tests.tiny_model import make_encoder

    return make_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Return the URL of a real PostgreSQL server: the one a setting names, or one of the package pgserver."""
    named = os.environ.get("DYNAROUND_TEST_POSTGRES")
    if named:
        yield named
        return
    # Not below pytest's own folder: as root the server runs as another user, who may not enter there.
    folder = Path(tempfile.mkdtemp(prefix="dynaround-postgres-"))
    folder.chmod(0o755)
    # pgserver asks for a runtime folder, which a container rarely has, and warns without one.
    (folder / "runtime").mkdir(mode=0o700)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "runtime"))
    try:
        import pgserver
    except ImportError:
        pytest.skip("no PostgreSQL (pgserver has no wheel for this Python); name one in DYNAROUND_TEST_POSTGRES")
    server = pgserver.get_server(folder / "data", cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_database(server_url: str, template: str = "template1") -> Iterator[str]:
    """Make a database as a copy of another one, and drop it at the end; yields its URL."""
    from sqlalchemy import create_engine, make_url, text

    server = make_url(server_url).set(drivername="postgresql+psycopg")
    name = f"test_{uuid.uuid4().hex}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
    yield server.set(drivername="postgresql", database=name).render_as_string(hide_password=False)
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a migrated database, to be copied: migrating takes longer than most tests."""
    path = tmp_path_factory.mktemp("migrated") / "migrated.sqlite"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: str) -> Iterator[str]:
    """Return the name of a migrated database that new ones are copied from."""
    from sqlalchemy import make_url

    with postgres_database(postgres_server) as url:
        _migrate(url)
        yield str(make_url(url).database)


def _migrate(url: str) -> None:
    from dynaround.database import migrate, open_engine

    engine = open_engine(url)
    migrate(engine)
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def back_end(request: pytest.FixtureRequest) -> str:
    """Name each kind of database in turn."""
    return str(request.param)


@pytest.fixture
def empty_engine(back_end: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator["Engine"]:
    """Return an engine on an empty database."""
    from dynaround.database import open_engine

    with ExitStack() as stack:
        url = f"sqlite:///{tmp_path / 'empty.sqlite'}"
        if back_end == "postgresql":
            url = stack.enter_context(postgres_database(request.getfixturevalue("postgres_server")))
        engine = open_engine(url)
        yield engine
        engine.dispose()


@pytest.fixture
def database_url(back_end: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the URL of a migrated database without a row, once for each back end."""
    if back_end == "sqlite":
        path = tmp_path / "test.sqlite"
        shutil.copyfile(request.getfixturevalue("migrated_sqlite"), path)
        yield f"sqlite:///{path}"
        return
    template = request.getfixturevalue("migrated_postgres")
    with postgres_database(request.getfixturevalue("postgres_server"), template) as url:
        yield url


@pytest.fixture
def engine(database_url: str) -> Iterator["Engine"]:
    """Return an engine on a migrated database."""
    from dynaround.database import open_engine

    engine = open_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def workspace(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["Workspace"]:
    """Return an empty workspace, once for each back end."""
    from dynaround.settings import create_workspace

    monkeypatch.setenv("DYNAROUND_DATABASE_URL", database_url)
    monkeypatch.setenv("DYNAROUND_THREADS", "1")
    made = create_workspace(tmp_path / "workspace")
    yield made
    made.close()

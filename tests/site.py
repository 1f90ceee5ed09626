"""A served workspace with one account a role, and clients that have logged in, for the tests of the pages."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine
from sqlmodel import Session, SQLModel, col, select

from dynaround.database import writing
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import LAUNCHER, MAINTAINER, WORKER, Account, Visit
from server.access import CLOCK, ENGINE, HOMES, VISIT
from workers.accounts import hashed_password, make_account
from workers.visits import open_visit

SECRET = "a secret for tests, of more than 32 characters"
PASSWORD = "four words of a song"
PLATFORM_ID = "PLATFORM-ID-5f3a"
"""The platform id of the worker; it may stand in no page, log or error."""
LIFETIME = timedelta(hours=12)
ROLES = (WORKER, LAUNCHER, MAINTAINER)
MOMENT = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)


class Clock:
    """A clock that stands until somebody moves it."""

    def __init__(self) -> None:
        self.now = MOMENT

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **spans: float) -> None:
        self.now += timedelta(**spans)


def make_site(folder: Path) -> Workspace:
    """Make a workspace with an account for each role, named like it, all with the same password."""
    workspace = create_workspace(folder)
    password_hash = hashed_password(PASSWORD)
    with writing(workspace.engine()) as session:
        for role in ROLES:
            make_account(session, role, role, password_hash, MOMENT, PLATFORM_ID if role == WORKER else None)
    workspace.close()
    return workspace


def client_of(app: Flask, role: str | None) -> FlaskClient:
    """Return a client with a visit of its own; without a role it has not logged in."""
    client = app.test_client()
    if role is not None:
        with writing(app.extensions[ENGINE]) as database:
            account = database.exec(select(Account).where(Account.name == role)).one()
            token = open_visit(database, account, app.extensions[CLOCK](), LIFETIME)
        with client.session_transaction() as session:
            session[VISIT] = token
    return client


def form_token(client: FlaskClient) -> str:
    """Return the token of a form that this client is shown."""
    found = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/log-in", follow_redirects=True).text)
    assert found is not None
    return found[1]


def all_rows(engine: Engine) -> dict[str, list[str]]:
    """Return every row of every table, to compare them before and after."""
    with engine.connect() as connection:
        tables = SQLModel.metadata.sorted_tables
        return {table.name: sorted(map(str, connection.execute(table.select()))) for table in tables}


def open_visits(session: Session, name: str) -> int:
    """Return how many visits of an account have not ended."""
    wanted = select(Visit).join(Account, col(Account.id) == col(Visit.account_id)).where(Account.name == name)
    return sum(visit.ended_at is None for visit in session.exec(wanted))


def home_of(app: Flask, role: str) -> str:
    """Return the address of the page where a role begins."""
    with app.test_request_context():
        return app.url_for(HOMES[role])

"""Accounts, passwords, visits and invitations, and the commands that make them; on both back ends where they race."""

import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from argon2 import PasswordHasher, extract_parameters
from click.testing import CliRunner, Result
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from dynaround.database import migrate, open_engine, reading, writing
from dynaround.errors import BadInput, DynaroundError, NotAllowed, NotFound
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import LAUNCHER, MAINTAINER, WORKER, Account, Event, Invitation, LogInAttempt, Visit, Worker
from server.commands import secret as secret_command
from tests.site import LIFETIME, MOMENT, PASSWORD, PLATFORM_ID, SECRET, open_visits
from workers.accounts import account_of_invited, find_account, hashed_password, make_account, set_name
from workers.commands import ROLES, workers_group
from workers.invitations import accept_invitation, invite, link
from workers.roster import PERSON, SCRIPTED, enlist
from workers.visits import (
    FAILURES_OF_ADDRESS,
    FAILURES_OF_NAME,
    WINDOW,
    Client,
    Visitor,
    change_password,
    end_visit,
    end_visits,
    find_visitor,
    log_in,
    open_visit,
)

WRONG = "name and password do not fit"
TOO_MANY = "too many failed attempts to log in; wait 15 minutes"
CLIENT = Client("192.0.2.7", MOMENT, LIFETIME)


@pytest.fixture(scope="module")
def password_hash() -> str:
    return hashed_password(PASSWORD)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty SQLite database, to be copied."""
    file = tmp_path_factory.mktemp("migrated") / "people.sqlite"
    engine = open_engine(f"sqlite:///{file}")
    migrate(engine)
    engine.dispose()
    return file


@pytest.fixture
def sqlite(migrated: Path, tmp_path: Path) -> Iterator[Engine]:
    """Return an engine on an empty SQLite database, for what does not depend on the back end."""
    engine = open_engine(f"sqlite:///{shutil.copy(migrated, tmp_path)}")
    yield engine
    engine.dispose()


def with_ada(engine: Engine, password_hash: str) -> Engine:
    with writing(engine) as session:
        make_account(session, "Ada", LAUNCHER, password_hash, MOMENT)
    return engine


@pytest.fixture
def ada(sqlite: Engine, password_hash: str) -> Engine:
    """Return a database with the account of a launcher."""
    return with_ada(sqlite, password_hash)


@pytest.fixture
def ada_on_both(engine: Engine, password_hash: str) -> Engine:
    """Return a database with the account of a launcher, once for each back end."""
    return with_ada(engine, password_hash)


def visitor_of(engine: Engine, token: str, **later: float) -> Visitor | None:
    with reading(engine) as session:
        return find_visitor(session, token, MOMENT + timedelta(**later))


def at_once(count: int, work: Callable[[], str]) -> list[str]:
    """Return what each of several threads that start together got, or the sentence with which it was refused."""
    barrier, got = threading.Barrier(count), []

    def run() -> None:
        barrier.wait()
        try:
            got.append(work())
        except NotAllowed as error:
            got.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == count
    return got


def add_failures(engine: Engine, count: int, name_key: str, address: str) -> None:
    with writing(engine) as session:
        for _ in range(count):
            session.add(LogInAttempt(name_key=name_key, address=address, succeeded=False, at=MOMENT))


def test_whoever_knows_the_password_visits_under_any_spelling_of_the_name(ada: Engine) -> None:
    for name in ("Ada", "  aDA "):
        token = log_in(ada, name, PASSWORD, CLIENT)
        assert visitor_of(ada, token) == Visitor(1, "Ada", LAUNCHER, None, True)


def test_a_token_is_stored_nowhere_and_a_password_only_as_argon2id(ada: Engine) -> None:
    token = log_in(ada, "Ada", PASSWORD, CLIENT)
    with reading(ada) as session:
        stored = repr(
            [*session.exec(select(Visit)), *session.exec(select(Account)), *session.exec(select(LogInAttempt))]
        )
    assert token not in stored and PASSWORD not in stored
    assert "password_hash='$argon2id$v=19$m=65536,t=3,p=4$" in stored


def test_a_wrong_password_and_an_unknown_name_get_the_same_answer(ada_on_both: Engine) -> None:
    with writing(ada_on_both) as session:
        account_of_invited(session, enlist(session, PLATFORM_ID, PERSON), MOMENT)
    for name in ("Ada", "nobody", "w1", "", "\x00", "\u202eadA", "a" * 100_000):
        with pytest.raises(NotAllowed, match=WRONG):
            log_in(ada_on_both, name, "not the password", CLIENT)
    with reading(ada_on_both) as session:
        assert [attempt.name_key for attempt in session.exec(select(LogInAttempt))] == [
            "ada",
            "nobody",
            "w1",
            *[""] * 4,
        ]


def test_a_visit_ends_by_time_by_log_out_and_everywhere_for_good(ada_on_both: Engine) -> None:
    tokens = [log_in(ada_on_both, "Ada", PASSWORD, CLIENT) for _ in range(3)]
    assert visitor_of(ada_on_both, tokens[0], hours=11.9) is not None
    assert visitor_of(ada_on_both, tokens[0], hours=12) is None
    with writing(ada_on_both) as session:
        end_visit(session, tokens[0], MOMENT)
    assert [visitor_of(ada_on_both, token) is None for token in tokens] == [True, False, False]
    with writing(ada_on_both) as session:
        end_visits(session, 1, MOMENT)
    assert [visitor_of(ada_on_both, token) for token in tokens] == [None] * 3
    assert visitor_of(ada_on_both, "no token") is None


def test_after_ten_failures_a_name_waits_for_a_quarter_of_an_hour(ada: Engine) -> None:
    add_failures(ada, FAILURES_OF_NAME - 1, "ada", "192.0.2.1")
    with pytest.raises(NotAllowed, match=WRONG):
        log_in(ada, "ada", "not the password", CLIENT)
    for _ in range(3):
        with pytest.raises(NotAllowed, match=TOO_MANY):
            log_in(ada, "Ada", PASSWORD, CLIENT)
    # What was refused unseen does not count: the wait is not made longer by asking again.
    assert log_in(ada, "Ada", PASSWORD, CLIENT._replace(now=MOMENT + WINDOW))


def test_an_unknown_name_waits_like_a_known_one(ada: Engine) -> None:
    add_failures(ada, FAILURES_OF_NAME, "nobody", "192.0.2.1")
    with pytest.raises(NotAllowed, match=TOO_MANY):
        log_in(ada, "nobody", PASSWORD, CLIENT)


@pytest.mark.parametrize(
    ("failed_at", "tried_at", "waits"),
    [
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.8", "192.0.2.7", False),
        ("2001:db8:1:2::/64", "2001:db8:1:2:3:4:5:6", True),
        ("2001:db8:1:3::/64", "2001:db8:1:2:3:4:5:6", False),
    ],
)
def test_after_fifty_failures_an_address_waits_whatever_the_name(
    ada: Engine, failed_at: str, tried_at: str, waits: bool
) -> None:
    add_failures(ada, FAILURES_OF_ADDRESS, "others", failed_at)
    client = CLIENT._replace(address=tried_at)
    if waits:
        with pytest.raises(NotAllowed, match=TOO_MANY):
            log_in(ada, "Ada", PASSWORD, client)
    else:
        assert log_in(ada, "Ada", PASSWORD, client)


def test_guesses_that_come_at_once_are_no_more_than_the_limit(ada_on_both: Engine) -> None:
    add_failures(ada_on_both, FAILURES_OF_NAME - 2, "ada", "192.0.2.1")

    def guess() -> str:
        return log_in(ada_on_both, "Ada", "not the password", CLIENT)

    sentences = at_once(6, guess)
    assert sum(WRONG in sentence for sentence in sentences) <= 2
    assert sum(TOO_MANY in sentence for sentence in sentences) >= 4


def test_attempts_are_forgotten_after_a_day(ada: Engine) -> None:
    add_failures(ada, 3, "ada", "192.0.2.1")
    log_in(ada, "Ada", PASSWORD, CLIENT._replace(now=MOMENT + timedelta(days=1, seconds=1)))
    with reading(ada) as session:
        assert [attempt.succeeded for attempt in session.exec(select(LogInAttempt))] == [True]


def test_an_old_hash_is_made_anew_at_the_next_log_in(ada: Engine) -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
    with writing(ada) as session:
        find_account(session, "Ada").password_hash = weak
    log_in(ada, "Ada", PASSWORD, CLIENT)
    log_in(ada, "Ada", PASSWORD, CLIENT)
    with reading(ada) as session:
        stored = session.get_one(Account, 1).password_hash
    assert stored is not None
    assert extract_parameters(stored) == extract_parameters(PasswordHasher().hash(""))


def test_a_password_is_the_same_in_composed_and_decomposed_letters(sqlite: Engine) -> None:
    with writing(sqlite) as session:
        make_account(session, "Zoë", MAINTAINER, hashed_password("Zoe\u0308 and friends"), MOMENT)
    assert log_in(sqlite, "Zoe\u0308", "Zo\u00eb and friends", CLIENT)


@pytest.mark.parametrize("password", ["", "ninechars", "x" * 1001])
def test_a_password_is_neither_short_nor_endless(password: str) -> None:
    with pytest.raises(BadInput, match=f"the password has {len(password)} characters; take 10 to 1000"):
        hashed_password(password)


def test_a_changed_password_ends_all_visits_but_the_new_one(ada: Engine) -> None:
    tokens = [log_in(ada, "Ada", PASSWORD, CLIENT) for _ in range(2)]
    me = visitor_of(ada, tokens[0])
    assert me is not None
    with pytest.raises(NotAllowed, match=WRONG):
        change_password(ada, me, "", "not the password", "another password", CLIENT)
    new = change_password(ada, me, "", PASSWORD, "another password", CLIENT)
    assert [visitor_of(ada, token) for token in tokens] == [None, None]
    assert visitor_of(ada, new) == me
    with pytest.raises(NotAllowed, match=WRONG):
        log_in(ada, "Ada", PASSWORD, CLIENT)
    assert log_in(ada, "Ada", "another password", CLIENT)


def test_guessing_the_current_password_is_limited_too(ada: Engine) -> None:
    me = visitor_of(ada, log_in(ada, "Ada", PASSWORD, CLIENT))
    add_failures(ada, FAILURES_OF_NAME, "ada", "192.0.2.1")
    assert me is not None
    with pytest.raises(NotAllowed, match=TOO_MANY):
        change_password(ada, me, "", PASSWORD, "another password", CLIENT)


def test_an_invited_worker_chooses_name_and_password_once(sqlite: Engine) -> None:
    with writing(sqlite) as session:
        account = account_of_invited(session, enlist(session, PLATFORM_ID, PERSON), MOMENT)
        token = open_visit(session, account, MOMENT, LIFETIME)
    me = visitor_of(sqlite, token)
    assert me == Visitor(1, "w1", WORKER, 1, False)
    change_password(sqlite, me, "Grace", "", PASSWORD, CLIENT)
    assert log_in(sqlite, "grace", PASSWORD, CLIENT)
    # The same page, still open elsewhere, cannot set another one without the password.
    with pytest.raises(NotAllowed):
        change_password(sqlite, me, "Mallory", "", "another password", CLIENT)


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "a\u202eb", "a\u200db", "x" * 65, "w2", "W77"])
def test_a_name_that_cannot_be_one_is_refused(ada: Engine, name: str) -> None:
    with writing(ada) as session, pytest.raises(BadInput, match="the name cannot be used|are given by the server"):
        set_name(session, find_account(session, "Ada"), name)


@pytest.mark.parametrize("name", ["ADA", "ada ", "A\u0064a"])
def test_a_name_that_looks_like_another_is_taken(ada: Engine, password_hash: str, name: str) -> None:
    with pytest.raises(BadInput, match="this name is taken"), writing(ada) as session:
        make_account(session, name, MAINTAINER, password_hash, MOMENT)
    with reading(ada) as session:
        assert len(session.exec(select(Account)).all()) == 1


def test_only_workers_have_a_platform_id_and_each_has_one_account(sqlite: Engine, password_hash: str) -> None:
    with writing(sqlite) as session:
        make_account(session, "Ada", WORKER, password_hash, MOMENT, PLATFORM_ID)
    for role, platform_id in ((WORKER, None), (LAUNCHER, "another"), (WORKER, PLATFORM_ID)):
        with pytest.raises(BadInput) as error, writing(sqlite) as session:
            make_account(session, "Eve", role, password_hash, MOMENT, platform_id)
        assert PLATFORM_ID not in str(error.value)
    with reading(sqlite) as session:
        assert [(w.platform_id, w.kind) for w in session.exec(select(Worker))] == [(PLATFORM_ID, PERSON)]


def invited(engine: Engine, platform_id: str = PLATFORM_ID) -> str:
    with writing(engine) as session:
        return invite(session, platform_id, SECRET, MOMENT, days=7)


def accepted(engine: Engine, token: str, secret: str = SECRET, **later: float) -> Account:
    with writing(engine) as session:
        return accept_invitation(session, token, secret, MOMENT + timedelta(**later))


def test_an_invitation_enlists_a_person_and_lets_them_in_once(engine: Engine) -> None:
    token = invited(engine)
    assert PLATFORM_ID not in token
    account = accepted(engine, token, days=6.9)
    assert (account.name, account.role, account.worker_id, account.password_hash) == ("w1", WORKER, 1, None)
    with pytest.raises(NotAllowed, match="has been used or has expired"):
        accepted(engine, token)
    with reading(engine) as session:
        assert [(w.platform_id, w.kind) for w in session.exec(select(Worker))] == [(PLATFORM_ID, PERSON)]


def test_another_invitation_leads_back_to_the_same_account(sqlite: Engine) -> None:
    first, second = invited(sqlite), invited(sqlite)
    assert accepted(sqlite, first).id == accepted(sqlite, second).id


def test_an_invitation_expires(sqlite: Engine) -> None:
    with pytest.raises(NotAllowed, match="has been used or has expired"):
        accepted(sqlite, invited(sqlite), days=7)


def test_a_forged_invitation_lets_nobody_in(engine: Engine) -> None:
    token = invited(engine)
    signature = token.partition(".")[2]
    for forged in (
        "",
        "nonsense",
        "1",
        "1.",
        "\x00",
        *(f"{number}.{signature}" for number in ("9", "01", "9" * 9, "9" * 30)),
    ):
        with pytest.raises(NotAllowed, match="no invitation of this server"):
            accepted(engine, forged)
    with pytest.raises(NotAllowed, match="no invitation of this server"):
        accepted(engine, f"{token}x")
    with pytest.raises(NotAllowed, match="no invitation of this server"):
        accepted(engine, token, secret="x" * 32)
    assert accepted(engine, token).worker_id == 1


def test_an_invitation_holds_for_no_other_platform_id_and_no_other_day(sqlite: Engine) -> None:
    tokens = [invited(sqlite, "one"), invited(sqlite, "two"), invited(sqlite, "three")]
    with writing(sqlite) as session:
        session.get_one(Invitation, 1).platform_id = "two"
        session.get_one(Invitation, 2).expires_at += timedelta(days=30)
    with pytest.raises(NotAllowed, match="no invitation of this server"):
        accepted(sqlite, tokens[0])
    with pytest.raises(NotAllowed, match="no invitation of this server"):
        accepted(sqlite, tokens[1])
    assert accepted(sqlite, tokens[2]).worker_id == 1


def test_of_many_who_bring_an_invitation_at_once_one_is_let_in(engine: Engine) -> None:
    token = invited(engine)

    def join() -> str:
        with writing(engine) as session:
            account = accept_invitation(session, token, SECRET, MOMENT)
            open_visit(session, account, MOMENT, LIFETIME)
        return "in"

    answers = at_once(8, join)
    assert answers.count("in") == 1
    assert sum("has been used" in answer for answer in answers) == 7
    with reading(engine) as session:
        assert [len(session.exec(select(table)).all()) for table in (Worker, Account, Visit)] == [1, 1, 1]


def test_a_crowd_that_is_not_people_is_not_invited(sqlite: Engine) -> None:
    with writing(sqlite) as session:
        enlist(session, PLATFORM_ID, SCRIPTED)
    for platform_id in (PLATFORM_ID, "  "):
        with pytest.raises(BadInput) as error:
            invited(sqlite, platform_id)
        assert PLATFORM_ID not in str(error.value)


@pytest.mark.parametrize(
    ("address", "hosts", "expected"),
    [
        (None, [], "http://127.0.0.1:8765/join#1.x"),
        (None, ["bench.example.org"], "https://bench.example.org/join#1.x"),
        ("https://bench.example.org:8443/", [], "https://bench.example.org:8443/join#1.x"),
    ],
)
def test_the_token_stands_where_no_log_sees_it(address: str | None, hosts: list[str], expected: str) -> None:
    assert link("1.x", address, hosts) == expected


@pytest.mark.parametrize("address", ["bench.example.org", "https://", "https://a b", "https://a/path", "javascript:x"])
def test_an_address_that_leads_nowhere_is_refused(address: str) -> None:
    with pytest.raises(BadInput, match="--address is no address of a server"):
        link("1.x", address, [])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    return create_workspace(tmp_path / "bench")


def workers(bench: Workspace, *arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(workers_group, [*arguments, "-w", str(bench.root)], input=typed)


def names_and_events(session: Session) -> tuple[list[str], list[str]]:
    accounts = session.exec(select(Account).order_by(col(Account.id)))
    return [f"{a.name}: {a.role}" for a in accounts], [e.what for e in session.exec(select(Event))]


def test_an_account_is_made_with_a_password_that_is_asked_or_read(bench: Workspace, tmp_path: Path) -> None:
    asked = workers(bench, "account", "ada", "--role", LAUNCHER, typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert (asked.exit_code, asked.stdout) == (0, "ada is a launcher\n")
    assert PASSWORD not in asked.output
    read = workers(
        bench,
        "account",
        "joe",
        "--role",
        WORKER,
        "--platform-id",
        PLATFORM_ID,
        "--password-file",
        "-",
        typed=f"{PASSWORD}\n",
    )
    assert (read.exit_code, read.output) == (0, "joe is a worker\n")
    for name in ("ada", "joe"):
        assert log_in(bench.engine(), name, PASSWORD, CLIENT)
    with reading(bench.engine()) as session:
        assert names_and_events(session) == (["ada: launcher", "joe: worker"], ["account made"] * 2)
        assert PLATFORM_ID not in repr(session.exec(select(Event)).all())
    bench.close()


def test_a_reset_password_ends_the_visits_of_its_account(bench: Workspace) -> None:
    with writing(bench.engine()) as session:
        for name in ("ada", "joe"):
            open_visit(session, make_account(session, name, LAUNCHER, "$none", MOMENT), MOMENT, LIFETIME)
    done = workers(bench, "account", "ADA", "--reset", "--password-file", "-", typed=f"{PASSWORD}\n")
    assert (done.exit_code, done.output) == (0, "ada has a new password and is logged out\n")
    with reading(bench.engine()) as session:
        assert (open_visits(session, "ada"), open_visits(session, "joe")) == (0, 1)
    assert log_in(bench.engine(), "ada", PASSWORD, CLIENT)
    bench.close()


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        (("nobody", "--reset"), NotFound, "there is no account of this name"),
        (("ada",), BadInput, "no role is named; give --role, one of worker, launcher, maintainer, or --reset"),
        (("ada", "--reset", "--role", LAUNCHER), BadInput, "leave out --role and --platform-id"),
        (("ada", "--role", WORKER), BadInput, "needs a platform id"),
    ],
)
def test_a_command_that_contradicts_itself_makes_nothing(
    bench: Workspace, arguments: tuple[str, ...], error: type[DynaroundError], told: str
) -> None:
    done = workers(bench, "account", *arguments, "--password-file", "-", typed=f"{PASSWORD}\n")
    assert isinstance(done.exception, error) and told in str(done.exception)
    with reading(bench.engine()) as session:
        assert names_and_events(session) == ([], [])
    bench.close()


def test_two_different_passwords_are_asked_again(bench: Workspace) -> None:
    typed = f"{PASSWORD}\nanother password\n{PASSWORD}\n{PASSWORD}\n"
    assert workers(bench, "account", "ada", "--role", LAUNCHER, typed=typed).exit_code == 0
    assert log_in(bench.engine(), "ada", PASSWORD, CLIENT)
    bench.close()


def test_an_invitation_is_printed_and_recorded_without_its_platform_id(bench: Workspace) -> None:
    done = workers(bench, "invite", PLATFORM_ID, "--address", "https://bench.example.org")
    assert done.exit_code == 0 and done.output.startswith("https://bench.example.org/join#1.")
    with writing(bench.engine()) as session:
        account = accept_invitation(session, done.output.strip().partition("#")[2], SECRET, MOMENT)
        assert account.worker_id == 1
        assert PLATFORM_ID not in repr(session.exec(select(Event)).all())
    bench.close()


def test_without_a_secret_nobody_is_invited(bench: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DYNAROUND_SECRET")
    done = workers(bench, "invite", PLATFORM_ID)
    assert isinstance(done.exception, BadInput) and "`dynaround secret` prints" in str(done.exception)


def test_every_printed_secret_is_another_and_long_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = {CliRunner().invoke(secret_command).output.strip() for _ in range(3)}
    assert len(printed) == 3
    workspace = create_workspace(tmp_path / "bench")
    for secret in printed:
        monkeypatch.setenv("DYNAROUND_SECRET", secret)
        assert Workspace(workspace.root).settings.required_secret() == secret


def test_the_commands_offer_the_roles_of_the_tables() -> None:
    assert ROLES == (WORKER, LAUNCHER, MAINTAINER)

"""The security of the server: several processes, cookies, planted sessions, foreign forms, hosts and addresses."""

import http.client
import logging
import os
import re
import shutil
import stat
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlmodel import select
from werkzeug.test import TestResponse

from dynaround.database import reading, writing
from dynaround.errors import BadInput
from dynaround.settings import Workspace
from dynaround.tables import LAUNCHER, WORKER, Account, LogInAttempt, Visit, Worker
from server import wsgi
from server.access import ENGINE
from server.account_pages import local_address
from server.app import create_app
from tests.builders import SCRIPT
from tests.site import (
    MOMENT,
    PASSWORD,
    PLATFORM_ID,
    SECRET,
    Clock,
    all_rows,
    client_of,
    form_token,
    home_of,
    make_site,
    open_visits,
)
from workers.invitations import invite
from workers.roster import PERSON
from workers.visits import FAILURES_OF_ADDRESS, FAILURES_OF_NAME

HOST = "bench.example.org"
COOKIE = "dynaround"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with an account for each role, to be copied."""
    return make_site(tmp_path_factory.mktemp("made") / "bench").root


@pytest.fixture
def workspace(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    workspace = Workspace(shutil.copytree(made, tmp_path / "bench"))
    yield workspace
    workspace.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def app(workspace: Workspace, clock: Clock) -> Flask:
    return create_app(workspace, clock=clock)


def send(client: FlaskClient, address: str, **form: str) -> TestResponse:
    return client.post(address, data={"csrf_token": form_token(client), **form})


def log_in(client: FlaskClient, name: str = LAUNCHER, password: str = PASSWORD, **form: str) -> TestResponse:
    return send(client, "/log-in", name=name, password=password, **form)


def cookie_of(client: FlaskClient) -> str:
    found = client.get_cookie(COOKIE)
    assert found is not None
    return found.value


class Gunicorn:
    """A server in a process of its own, as somebody who collects from people runs it."""

    def __init__(self, folder: Path):
        command = ["-m", "gunicorn", "-w", "1", "--threads", "2", "-b", "127.0.0.1:0", "--no-control-socket"]
        self._process = subprocess.Popen(
            [sys.executable, *command, "server.wsgi:app()"],
            env={**os.environ, "DYNAROUND_WORKSPACE": str(folder), "DYNAROUND_HOSTS": f'["{HOST}"]'},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        self.port = 0
        for line in self._process.stderr:
            if found := re.search(r"Listening at: http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)

    def ask(self, address: str, cookie: str = "", form: Mapping[str, str] | None = None) -> http.client.HTTPResponse:
        """Send one request with one cookie; the body of the answer is read into `text`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Host": HOST, "Cookie": cookie}
        body = None
        if form is not None:
            body, headers["Content-Type"] = urllib.parse.urlencode(form), "application/x-www-form-urlencoded"
        connection.request("GET" if form is None else "POST", address, body, headers)
        answer = connection.getresponse()
        answer.text = answer.read().decode()  # type: ignore[attr-defined]
        connection.close()
        return answer

    def form(self, address: str, cookie: str = "") -> tuple[str, str]:
        """Return the token of the form at an address, and the cookie that goes with it."""
        answer = self.ask(address, cookie)
        token = re.search(r'name="csrf_token" value="([^"]+)"', answer.text)  # type: ignore[attr-defined]
        assert token is not None
        return token[1], sent_cookie(answer) or cookie


def sent_cookie(answer: http.client.HTTPResponse) -> str:
    return (answer.getheader("Set-Cookie") or "").partition(";")[0]


def test_srv_01_two_processes_with_one_secret_are_one_server_also_after_a_restart(workspace: Workspace) -> None:
    folder = workspace.root
    with Gunicorn(folder) as one, Gunicorn(folder) as two:
        token, cookie = one.form("/log-in")
        entered = one.ask("/log-in", cookie, {"csrf_token": token, "name": LAUNCHER, "password": PASSWORD})
        assert entered.status == 303
        flags = (entered.getheader("Set-Cookie") or "").split("; ")
        assert {"HttpOnly", "SameSite=Lax", "Secure", "Path=/"} <= set(flags)
        cookie = sent_cookie(entered)
        token, cookie = one.form("/account", cookie)
        new = {"current": PASSWORD, "new": "another password", "again": "another password"}
        before = all_rows(workspace.engine())
        assert two.ask("/account/password", cookie, new).status == 400
        assert all_rows(workspace.engine()) == before
        changed = two.ask("/account/password", cookie, {"csrf_token": token, **new})
        assert changed.status == 303
        cookie = sent_cookie(changed)
        assert [server.ask("/account", cookie).status for server in (one, two)] == [200] * 2
    with Gunicorn(folder) as again:
        assert again.ask("/account", cookie).status == 200


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("DYNAROUND_SECRET", "no secret is set .*set DYNAROUND_SECRET, or `secret`"),
        ("DYNAROUND_HOSTS", "set `hosts` in"),
    ],
)
def test_a_server_of_several_processes_does_not_start_without_secret_and_hosts(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, missing: str, told: str
) -> None:
    monkeypatch.setenv("DYNAROUND_WORKSPACE", str(workspace.root))
    monkeypatch.setenv("DYNAROUND_HOSTS", f'["{HOST}"]')
    monkeypatch.delenv(missing)
    with pytest.raises(BadInput, match=told):
        wsgi.app()


def test_a_secret_that_could_be_guessed_is_refused(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAROUND_SECRET", "x" * 31)
    with pytest.raises(BadInput, match="31 characters are too few") as error:
        Workspace(workspace.root)
    assert "xxx" not in str(error.value)


def test_the_demo_keeps_a_secret_of_its_own_for_its_owner_alone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DYNAROUND_SECRET")
    client = create_app(Workspace(workspace.root), demo=True).test_client()
    assert send(client, "/play").status_code == 303
    file = workspace.work / "demo-secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and len(file.read_text()) >= 32
    restarted = create_app(Workspace(workspace.root), demo=True).test_client()
    restarted.set_cookie(COOKIE, cookie_of(client))
    assert "Account <span>w2</span>" in restarted.get("/account").text


def test_whoever_presses_play_in_the_demo_is_a_worker_at_once(workspace: Workspace) -> None:
    app = create_app(workspace, demo=True)
    for _ in range(2):
        client = app.test_client()
        assert [send(client, "/play").location for _ in range(2)] == [home_of(app, WORKER)] * 2
    with reading(app.extensions[ENGINE]) as session:
        workers = session.exec(select(Worker).where(Worker.platform_id != PLATFORM_ID)).all()
    assert [worker.kind for worker in workers] == [PERSON, PERSON]
    assert all(re.fullmatch("demo-visitor-[0-9a-f]{16}", worker.platform_id) for worker in workers)


def test_the_demo_is_for_this_machine_alone(workspace: Workspace) -> None:
    with pytest.raises(BadInput, match="the demo lets anybody in"):
        create_app(workspace, hosts=["localhost", HOST], demo=True)


@pytest.mark.parametrize(
    ("hosts", "setting", "secure"),
    [
        (["localhost", "127.0.0.1"], "true", False),
        ([HOST], "true", True),
        ([HOST, "localhost"], "true", True),
        ([HOST], "false", False),
    ],
)
def test_cookies_are_secure_wherever_the_server_is_known_beyond_this_machine(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, hosts: list[str], setting: str, secure: bool
) -> None:
    monkeypatch.setenv("DYNAROUND_SECURE_COOKIES", setting)
    app = create_app(Workspace(workspace.root), hosts=hosts)
    flags = app.test_client().get("/log-in", headers={"Host": hosts[0]}).headers["Set-Cookie"].split("; ")
    assert ("Secure" in flags) == secure
    assert {"HttpOnly", "SameSite=Lax"} <= set(flags)


@pytest.mark.parametrize("host", ["evil.example", f"{HOST}.evil.example", f"x{HOST}", "127.0.0.1", ""])
def test_an_unknown_host_sets_no_cookie_and_takes_no_form(workspace: Workspace, host: str) -> None:
    client = create_app(workspace, hosts=[HOST]).test_client()
    for answer in (client.get("/log-in", headers={"Host": host}), client.post("/log-in", headers={"Host": host})):
        assert answer.status_code == 400 and f"answers only as {HOST}" in answer.text
        assert "Set-Cookie" not in answer.headers


def test_a_session_planted_before_the_log_in_is_worth_nothing_after_it(app: Flask) -> None:
    attacker = client_of(app, WORKER)
    planted_token = form_token(attacker)
    victim = app.test_client()
    victim.set_cookie(COOKIE, cookie_of(attacker))
    assert send(victim, "/log-out").status_code == 303
    victim.set_cookie(COOKIE, cookie_of(attacker))
    log_in(victim)
    assert cookie_of(victim) != cookie_of(attacker)
    assert attacker.get("/account").status_code == 303
    assert victim.post("/log-out", data={"csrf_token": planted_token}).status_code == 400
    assert "launcher" in victim.get("/account").text


def test_logging_in_again_ends_the_visit_before(app: Flask) -> None:
    client = client_of(app, WORKER)
    before = cookie_of(client)
    with writing(app.extensions[ENGINE]) as session:
        token = invite(session, PLATFORM_ID, SECRET, MOMENT, days=1)
    assert send(client, "/join", invitation=token).status_code == 303
    old = app.test_client()
    old.set_cookie(COOKIE, before)
    assert (old.get("/account").status_code, client.get("/account").status_code) == (303, 200)
    with reading(app.extensions[ENGINE]) as session:
        assert open_visits(session, WORKER) == 1


def test_a_log_in_ends_by_itself_for_good(app: Flask, clock: Clock) -> None:
    client = client_of(app, LAUNCHER)
    clock.advance(hours=11, minutes=59)
    assert client.get("/account").status_code == 200
    clock.advance(minutes=1)
    assert client.get("/account").status_code == 303


def test_after_logging_out_the_cookie_is_worth_nothing(app: Flask) -> None:
    client, elsewhere = client_of(app, LAUNCHER), client_of(app, LAUNCHER)
    stolen = cookie_of(client)
    assert send(client, "/log-out").location == "/log-in"
    client.set_cookie(COOKIE, stolen)
    assert client.get("/account").status_code == 303
    assert elsewhere.get("/account").status_code == 200


def test_logging_out_everywhere_ends_every_visit_of_this_account_alone(app: Flask) -> None:
    clients = [client_of(app, LAUNCHER) for _ in range(3)]
    other = client_of(app, WORKER)
    assert "in 3 places" in clients[0].get("/account").text
    send(clients[0], "/log-out/everywhere")
    assert [client.get("/account").status_code for client in (*clients, other)] == [303, 303, 303, 200]


def test_a_new_password_logs_out_everywhere_else(app: Flask) -> None:
    here, elsewhere = client_of(app, LAUNCHER), client_of(app, LAUNCHER)
    new = {"new": "another password", "again": "another password"}
    assert "Name and password do not fit" in send(here, "/account/password", current="wrong", **new).text
    differing = send(here, "/account/password", current=PASSWORD, new="another password", again="yet another one")
    assert differing.status_code == 400 and "The two new passwords differ" in differing.text
    assert send(here, "/account/password", current=PASSWORD, **new).status_code == 303
    page = here.get("/account")
    assert "The password is set" in page.text and "here alone" in page.text
    assert elsewhere.get("/account").status_code == 303


def test_a_wrong_name_and_a_wrong_password_get_the_same_page(app: Flask) -> None:
    pages = set()
    for name in (LAUNCHER, "nobody"):
        answer = log_in(app.test_client(), name, "not the password")
        assert answer.status_code == 403
        pages.add(re.sub(r'name="csrf_token" value="[^"]+"', "", answer.text).replace(f'value="{name}"', ""))
    assert len(pages) == 1


@pytest.mark.parametrize("name", [LAUNCHER, "nobody"])
def test_guessing_is_stopped_and_goes_on_after_a_quarter_of_an_hour(app: Flask, clock: Clock, name: str) -> None:
    with writing(app.extensions[ENGINE]) as session:
        for _ in range(FAILURES_OF_NAME - 2):
            session.add(LogInAttempt(name_key=name, address="192.0.2.1", succeeded=False, at=MOMENT))
    client = app.test_client()
    sentences = [re.findall(r'role="alert">([^;]+);', log_in(client, name, "guess").text)[0] for _ in range(4)]
    assert sentences == ["Name and password do not fit"] * 2 + ["Too many failed attempts to log in"] * 2
    clock.advance(minutes=15)
    assert "do not fit" in log_in(client, name, "guess").text


@pytest.mark.parametrize(
    ("proxies", "forwarded", "counted"),
    [
        ("0", "198.51.100.1", "127.0.0.1"),
        ("1", "198.51.100.1", "198.51.100.1"),
        ("1", "10.9.8.7, 198.51.100.1", "198.51.100.1"),
    ],
)
def test_the_address_is_taken_from_as_many_proxies_as_there_are(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, proxies: str, forwarded: str, counted: str
) -> None:
    monkeypatch.setenv("DYNAROUND_PROXIES", proxies)
    app = create_app(Workspace(workspace.root))
    client = app.test_client()
    form = {"csrf_token": form_token(client), "name": "nobody", "password": "guess"}
    client.post("/log-in", data=form, headers={"X-Forwarded-For": forwarded})
    with reading(app.extensions[ENGINE]) as session:
        assert [attempt.address for attempt in session.exec(select(LogInAttempt))] == [counted]


def test_an_address_that_guesses_many_names_is_stopped(app: Flask) -> None:
    with writing(app.extensions[ENGINE]) as session:
        for number in range(FAILURES_OF_ADDRESS):
            name = f"name {number}"
            session.add(LogInAttempt(name_key=name, address="127.0.0.1", succeeded=False, at=MOMENT))
    assert "Too many failed attempts" in log_in(app.test_client()).text


@pytest.mark.parametrize("target", ["/readings", "/rounds/1/examples?gold=no+majority&page=2"])
def test_whoever_logs_in_comes_back(app: Flask, target: str) -> None:
    client = app.test_client()
    sent_to = client.get(target).location
    shown = re.search(r'name="next" value="([^"]+)"', client.get(sent_to).text)
    assert shown is not None
    assert log_in(client, next=shown[1].replace("&amp;", "&")).location == target
    assert client.get(sent_to).location == target


FOREIGN = [
    "https://evil.example/",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "\n//evil.example",
    "/a\r\nSet-Cookie: a=b",
    "javascript:alert(1)",
    "evil.example",
    "",
]


@pytest.mark.parametrize("target", FOREIGN)
def test_nobody_is_sent_to_another_site(app: Flask, target: str) -> None:
    assert local_address(target) is None
    client = app.test_client()
    query = urllib.parse.urlencode({"next": target})
    assert "evil" not in client.get(f"/log-in?{query}").text
    assert log_in(client, next=target).location == "/log-in"
    assert client.get(f"/log-in?{query}").location == "/"


def test_an_invitation_joins_by_the_button_and_not_by_looking(app: Flask) -> None:
    with writing(app.extensions[ENGINE]) as session:
        token = invite(session, "another-platform-id", SECRET, MOMENT, days=1)
    client = app.test_client()
    for _ in range(3):
        assert client.get("/join").status_code == 200
    joined = send(client, "/join", invitation=f" https://{HOST}/join#{token} ")
    assert joined.location == "/account"
    page = client.get("/account").text
    assert "Choose a name and a password" in page and "another-platform-id" not in page
    again = send(app.test_client(), "/join", invitation=token)
    assert again.status_code == 403 and "This invitation has been used or has expired" in again.text
    assert "no invitation of this server" in send(app.test_client(), "/join", invitation="1.forged").text


def test_an_invited_worker_comes_back_with_name_and_password(app: Flask) -> None:
    with writing(app.extensions[ENGINE]) as session:
        token = invite(session, "another-platform-id", SECRET, MOMENT, days=1)
    client = app.test_client()
    send(client, "/join", invitation=token)
    send(client, "/account/password", name="Grace", new=PASSWORD, again=PASSWORD)
    send(client, "/log-out")
    log_in(client, "grace")
    assert "Account <span>Grace</span>" in client.get("/account").text


@pytest.mark.parametrize("name", [SCRIPT, '"><img src=x onerror=alert(1)>', "{{ 'x' * 40 }}", "' OR 1=1 --"])
def test_a_name_with_markup_is_shown_as_text(app: Flask, name: str) -> None:
    with writing(app.extensions[ENGINE]) as session:
        token = invite(session, "another-platform-id", SECRET, MOMENT, days=1)
    client = app.test_client()
    send(client, "/join", invitation=token)
    assert send(client, "/account/password", name=name, new=PASSWORD, again=PASSWORD).status_code == 303
    pages = [client.get("/account").text, log_in(app.test_client(), name, "wrong").text]
    pages.append(send(app.test_client(), "/join", invitation=name).text)
    for page in pages:
        assert "<script>" not in page and "<img" not in page and "x" * 40 not in page
    with reading(app.extensions[ENGINE]) as session:
        assert session.exec(select(Account.name).where(Account.worker_id == 2)).one() == name


def test_every_answer_has_the_policy_and_no_page_is_kept(app: Flask) -> None:
    client = client_of(app, LAUNCHER)
    for address in ("/", "/account", "/nowhere", "/rounds/9", "/join", "/log-in"):
        headers = client.get(address).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Content-Security-Policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        )
    with client.get("/static/style.css") as sheet:
        assert "no-store" not in sheet.headers.get("Cache-Control", "")


def test_a_page_that_somebody_only_reads_sets_no_cookie_again(app: Flask) -> None:
    client = app.test_client()
    log_in(client)
    assert "Set-Cookie" not in client.get("/account").headers


def test_a_form_of_a_megabyte_is_refused(app: Flask) -> None:
    answer = app.test_client().post("/log-in", data={"name": "a" * 2_000_000})
    assert answer.status_code == 413 and "More was sent than a form can hold" in answer.text


def test_no_page_log_or_error_holds_a_platform_id_or_a_password(app: Flask, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = client_of(app, WORKER)
    pages = [client.get(address).text for address in ("/account", "/", "/readings", "/log-in", "/join")]
    log_in(app.test_client(), PLATFORM_ID, PASSWORD)
    assert not [page for page in (*pages, caplog.text) if PLATFORM_ID in page or PASSWORD in page]


def test_the_database_holds_no_token_of_a_visit(app: Flask) -> None:
    client = app.test_client()
    log_in(client)
    with client.session_transaction() as session:
        token = session["visit"]
    with reading(app.extensions[ENGINE]) as session:
        assert token not in repr(session.exec(select(Visit)).all())

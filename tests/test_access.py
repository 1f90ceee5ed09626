"""Who may do what: every address with every role, and what happens to whoever may not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask, g
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from dynaround.errors import BadInput, Busy, DynaroundError, IllegalMove, NotAllowed, NotFound, Unavailable
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import LAUNCHER, MAINTAINER, WORKER
from server.access import ENGINE, allowed, anyone, current_worker_id, require_access_said
from server.app import create_app
from server.error_pages import status_of
from tests.builders import build_released_round
from tests.site import PASSWORD, ROLES, SECRET, Clock, all_rows, client_of, form_token, home_of, make_site
from workers.visits import Visitor

WHO = (None, *ROLES)
YES, NO, LOG_IN, HOME = "yes", "no", "log in", "home"
"""What somebody meets: the page function, a refusal, the log-in page, or the page where they begin."""

ANYONE = (YES, YES, YES, YES)
MEMBERS = (LOG_IN, YES, YES, YES)
READERS = (LOG_IN, NO, YES, YES)
WORKERS = (LOG_IN, YES, NO, NO)
LAUNCHERS = READERS

# By method and endpoint: somebody who has not logged in, a worker, a launcher, a maintainer.
EXPECTED = {
    "GET static": ANYONE,
    "GET pages.all_rounds": (LOG_IN, HOME, YES, YES),
    "GET pages.one_round": READERS,
    "GET pages.released_examples": READERS,
    "GET pages.all_readings": READERS,
    "GET accounts.log_in_form": ANYONE,
    "POST accounts.log_in_by_password": ANYONE,
    "GET accounts.join_form": ANYONE,
    "POST accounts.join": ANYONE,
    "GET accounts.account": MEMBERS,
    "POST accounts.set_password": MEMBERS,
    "POST accounts.log_out": MEMBERS,
    "POST accounts.log_out_everywhere": MEMBERS,
    "GET author.choose": WORKERS,
    "GET author.write": WORKERS,
    "POST author.submit_text": WORKERS,
    "POST author.confirm": WORKERS,
    "POST author.take_back": WORKERS,
    "POST author.next_example": WORKERS,
    "POST author.another_prompt": WORKERS,
    "POST author.keep_draft": WORKERS,
    "POST author.end": WORKERS,
    "POST onboarding.agree": WORKERS,
    "GET onboarding.instructions": WORKERS,
    "POST onboarding.practise": WORKERS,
    "GET onboarding.quiz": WORKERS,
    "POST onboarding.answer_quiz": WORKERS,
    "GET onboarding.barred": WORKERS,
    "POST onboarding.object_to_bar": WORKERS,
    "GET validate.work": WORKERS,
    "GET validate.choose": WORKERS,
    "GET validate.page": WORKERS,
    "POST validate.give_in": WORKERS,
    "POST validator_onboarding.agree": WORKERS,
    "GET validator_onboarding.instructions": WORKERS,
    "GET validator_onboarding.quiz": WORKERS,
    "POST validator_onboarding.answer_quiz": WORKERS,
    "GET validator_onboarding.screening": WORKERS,
    "POST validator_onboarding.answer_screening": WORKERS,
    "GET validator_onboarding.barred": WORKERS,
    "POST validator_onboarding.object_to_bar": WORKERS,
    "GET launcher.live": LAUNCHERS,
    "GET launcher.confirm": LAUNCHERS,
    "POST launcher.make": LAUNCHERS,
    "POST launcher.decide": LAUNCHERS,
    "POST launcher.let_back_in": LAUNCHERS,
    "POST launcher.lift_bar": LAUNCHERS,
}
IN_DEMO = {
    **EXPECTED,
    "GET pages.all_rounds": ANYONE,
    "GET pages.one_round": ANYONE,
    "GET pages.released_examples": ANYONE,
    "GET pages.all_readings": ANYONE,
    "GET launcher.live": ANYONE,
    "POST demo.play": ANYONE,
}
VALUES = {"filename": "style.css"}


def served(folder: Path, demo: bool = False) -> Iterator[Flask]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DYNAROUND_SECRET", SECRET)
        workspace = Workspace(make_site(folder).root)
        build_released_round(workspace, examples=35)
        app = create_app(workspace, clock=Clock(), demo=demo)
    yield app
    workspace.close()


@pytest.fixture(scope="module", params=[False, True], ids=["served", "demo"])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    yield from served(tmp_path_factory.mktemp("access") / "bench", demo=request.param)


def routes(app: Flask) -> dict[str, str]:
    """Return the address of every method and endpoint."""
    with app.test_request_context():
        return {
            f"{method} {rule.endpoint}": app.url_for(
                rule.endpoint, **{name: VALUES.get(name, 1) for name in rule.arguments}
            )
            for rule in app.url_map.iter_rules()
            for method in sorted(rule.methods or ())
            if method not in ("HEAD", "OPTIONS")
        }


def met(answer: TestResponse, role: str | None) -> str:
    if role is None and answer.status_code == 303 and answer.location.startswith("/log-in"):
        return LOG_IN
    if answer.status_code == 403 and "is not for the role of" in answer.text:
        return NO
    if answer.status_code == 303 and answer.request.path == "/":
        return HOME
    return YES if answer.status_code < 500 and answer.status_code != 405 else f"{answer.status_code}"


def test_every_address_admits_whom_the_table_names(app: Flask) -> None:
    expected = IN_DEMO if "demo.play" in app.view_functions else EXPECTED
    found = {}
    for name, address in routes(app).items():
        method = name.split()[0]
        answers = []
        for role in WHO:
            client = client_of(app, role)
            form = {"csrf_token": form_token(client)} if method == "POST" else None
            with client.open(address, method=method, data=form) as answer:
                answers.append(met(answer, role))
        found[name] = tuple(answers)
    assert found == expected


def test_no_address_takes_a_form_without_its_token_and_nothing_is_stored(app: Flask) -> None:
    posts = {name: address for name, address in routes(app).items() if name.startswith("POST")}
    assert posts
    for address in posts.values():
        for role in WHO:
            client = client_of(app, role)
            other = client_of(app, role)
            before = all_rows(app.extensions[ENGINE])
            for form in ({}, {"csrf_token": "nonsense"}, {"csrf_token": form_token(other)}):
                answer = client.post(address, data=form)
                refused = answer.status_code == 400 and "Go back, load the page again" in answer.text
                assert refused or met(answer, role) in (LOG_IN, NO), (address, role, form)
            assert all_rows(app.extensions[ENGINE]) == before


def test_the_navigation_shows_what_a_role_may_open(app: Flask) -> None:
    demo = "demo.play" in app.view_functions
    for role in WHO:
        page = client_of(app, role).get("/account", follow_redirects=True).text
        readers = demo or role in (LAUNCHER, MAINTAINER)
        assert ('href="/readings"' in page) == readers, role
        assert ("Log out" in page) == (role is not None)
        assert ("Play Round 2" in page) == (demo and role is None)


def test_an_address_nobody_is_allowed_at_keeps_the_application_from_starting() -> None:
    app = Flask("silent")
    app.view_functions["static"] = anyone(app.view_functions["static"])
    app.add_url_rule("/spoken", view_func=allowed(WORKER)(lambda: ""), endpoint="spoken")
    require_access_said(app)
    app.add_url_rule("/silent", view_func=lambda: "", endpoint="silent")
    with pytest.raises(TypeError, match="nobody is said to be allowed at silent;"):
        require_access_said(app)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    yield from served(tmp_path_factory.mktemp("site") / "bench")


def log_in(client: FlaskClient, name: str, password: str, **further: str) -> TestResponse:
    form = {"name": name, "password": password, "csrf_token": form_token(client), **further}
    return client.post("/log-in", data=form)


@pytest.mark.parametrize(
    ("method", "address", "location"),
    [
        ("get", "/readings", "/log-in?next=/readings"),
        ("head", "/readings", "/log-in?next=/readings"),
        (
            "get",
            "/rounds/1/examples?gold=no+majority&page=2",
            "next=/rounds/1/examples?gold%3Dno%2Bmajority%26page%3D2",
        ),
        ("get", "/", "/log-in"),
        ("post", "/log-out", "/log-in"),
    ],
)
def test_whoever_has_not_logged_in_is_sent_there(site: Flask, method: str, address: str, location: str) -> None:
    answer = site.test_client().open(address, method=method)
    assert answer.status_code == 303
    assert answer.location.endswith(location)


def test_a_worker_is_told_where_to_go_on_by_a_page_that_is_not_theirs(site: Flask) -> None:
    answer = client_of(site, WORKER).get("/readings")
    assert answer.status_code == 403
    assert "This page is not for the role of worker" in answer.text
    assert f'href="{home_of(site, WORKER)}">Start page' in answer.text


def test_only_a_worker_has_a_worker_id(site: Flask) -> None:
    with site.test_request_context():
        g.account = Visitor(1, "joe", WORKER, 7, True)
        assert current_worker_id() == 7
        for other in (None, Visitor(2, "ada", LAUNCHER, None, True)):
            g.account = other
            with pytest.raises(NotAllowed, match="only a worker can do this"):
                current_worker_id()


def test_a_role_begins_at_its_own_page(site: Flask) -> None:
    assert {role: home_of(site, role) for role in (LAUNCHER, MAINTAINER)} == {LAUNCHER: "/", MAINTAINER: "/"}
    for role in ROLES:
        client = site.test_client()
        assert log_in(client, role, PASSWORD).location == "/log-in"
        assert client.get("/log-in").location == home_of(site, role)


@pytest.mark.parametrize(
    ("error", "status"),
    [(BadInput, 400), (NotAllowed, 403), (NotFound, 404), (IllegalMove, 409), (Busy, 409), (Unavailable, 503)],
)
def test_an_error_for_people_has_its_status(error: type[DynaroundError], status: int) -> None:
    assert status_of(error("")) == status


def test_an_application_without_a_secret_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DYNAROUND_SECRET", raising=False)
    with pytest.raises(
        BadInput, match="set DYNAROUND_SECRET, or `secret` in dynaround.toml, to what `dynaround secret`"
    ):
        create_app(create_workspace(tmp_path / "bench"))

"""Who may do what: every page function says it by a decorator, and one hook before each request holds it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from flask import Flask, current_app, g, redirect, request, session, url_for
from sqlalchemy import Engine
from werkzeug.sansio.utils import host_is_trusted
from werkzeug.wrappers import Response as AnyResponse

from dynaround.database import reading
from dynaround.errors import BadInput, NotAllowed
from dynaround.tables import LAUNCHER, MAINTAINER, WORKER
from workers.visits import Visitor, find_visitor

ENGINE, CLOCK, DEMO = "dynaround.engine", "dynaround.clock", "dynaround.demo"
"""Where the application keeps its database engine, its clock, and whether it is the demo."""

VISIT = "visit"
"""Where the signed cookie keeps the token of a visit."""

HOME = "pages.all_rounds"
HOMES = {WORKER: "validate.work", LAUNCHER: HOME, MAINTAINER: HOME}
"""Where each role begins; `HOME` is also the address of the site itself."""

View = TypeVar("View", bound=Callable[..., Any])
_ACCESS = "dynaround_access"


class Access(NamedTuple):
    """Who may call a page function: accounts of some roles; perhaps anybody, always or in the demo."""

    roles: frozenset[str]
    anybody: bool = False
    anybody_in_demo: bool = False

    def admits(self, visitor: Visitor | None, demo: bool) -> bool:
        """Whether this visitor may; None is somebody who has not logged in."""
        everybody = self.anybody or (self.anybody_in_demo and demo)
        return everybody or (visitor is not None and visitor.role in self.roles)


def allowed(*roles: str, anybody_in_demo: bool = False) -> Callable[[View], View]:
    """Let accounts of these roles call a page function, in the demo perhaps anybody."""
    return _marking(Access(frozenset(roles), anybody_in_demo=anybody_in_demo))


def anyone(view: View) -> View:
    """Let anybody call a page function, logged in or not."""
    return _marking(Access(frozenset(HOMES), anybody=True))(view)


def workers_only(view: View) -> View:
    """Let workers call a page function, which then finds theirs with `current_worker_id`."""
    return allowed(WORKER)(view)


def members_only(view: View) -> View:
    """Let whoever has logged in call a page function."""
    return allowed(*HOMES)(view)


def _marking(access: Access) -> Callable[[View], View]:
    def mark(view: View) -> View:
        setattr(view, _ACCESS, access)
        return view

    return mark


def require_access_said(app: Flask) -> None:
    """Raise TypeError, so that the application does not start, where a page function does not say who may call it."""
    silent = sorted(name for name, view in app.view_functions.items() if not hasattr(view, _ACCESS))
    if silent:
        raise TypeError(f"nobody is said to be allowed at {', '.join(silent)}; add a decorator of server/access.py")


def refuse_unknown_host(hosts: Sequence[str]) -> None:
    """Refuse a request under a foreign name: another site's pages could otherwise read these through its own name."""
    if not host_is_trusted(request.host, hosts):
        raise BadInput(f"this server answers only as {' or '.join(hosts)}; open it under that name")


def admit() -> AnyResponse | None:
    """Find out who asks; send whoever has not logged in to do so, and refuse whoever may not call this page function.

    Raises NotAllowed for the wrong role.
    """
    g.account = None if request.endpoint == "static" else _find_visitor()
    if request.endpoint is None or may_open(request.endpoint):
        return None
    if g.account is None:
        return redirect(url_for("accounts.log_in_form", next=_address_to_come_back_to()), 303)
    if request.endpoint == HOME:
        return redirect(home_address(), 303)
    raise NotAllowed(f"this page is not for the role of {g.account.role}; ask who runs the server if it should be")


def may_open(endpoint: str) -> bool:
    """Whether whoever asks may call the page function of an endpoint; the navigation is made with it."""
    access: Access = getattr(current_app.view_functions[endpoint], _ACCESS)
    return access.admits(g.account, current_app.extensions[DEMO])


def current_engine() -> Engine:
    """Return the database engine of the application."""
    engine: Engine = current_app.extensions[ENGINE]
    return engine


def current_time() -> datetime:
    """Return this moment by the application's clock."""
    moment: datetime = current_app.extensions[CLOCK]()
    return moment


def current_worker_id() -> int:
    """Return the worker who asks; raise NotAllowed where it is none."""
    worker_id: int | None = g.account.worker_id if g.account else None
    if worker_id is None:
        raise NotAllowed("only a worker can do this; log in as one")
    return worker_id


def home_address() -> str:
    """Return the address of the page where whoever asks begins."""
    return url_for(HOME if g.account is None else HOMES[g.account.role])


def _find_visitor() -> Visitor | None:
    token = session.get(VISIT)
    if token is None:
        return None
    with reading(current_engine()) as database:
        return find_visitor(database, token, current_time())


def _address_to_come_back_to() -> str | None:
    # What was sent with a form cannot be sent again by a link.
    if request.method not in ("GET", "HEAD") or request.endpoint == HOME:
        return None
    return request.full_path.removesuffix("?")

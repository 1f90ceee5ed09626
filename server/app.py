"""The web face: a Flask application that serves one workspace."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from threading import Lock

from flask import Flask, Response, request
from flask_wtf import CSRFProtect
from jinja2 import StrictUndefined
from werkzeug.middleware.proxy_fix import ProxyFix

from dynaround import __version__
from dynaround.errors import BadInput
from dynaround.settings import Workspace
from dynaround.terminal import now
from server import error_pages, filters
from server.access import (
    CLOCK,
    DEMO,
    ENGINE,
    admit,
    anyone,
    home_address,
    may_open,
    refuse_unknown_host,
    require_access_said,
)
from server.account_pages import account_pages, demo_pages
from server.author_pages import author_pages
from server.calibrated import calibrated, calibration_of
from server.demo_secret import demo_secret
from server.launcher_pages import launcher_pages
from server.live_model import MODELS, LiveModels
from server.onboarding_pages import onboarding_pages
from server.page_turns import TURN
from server.round_pages import pages
from server.screenings import SCREENINGS, OneAtATime
from server.validate_pages import validate_pages
from server.validator_onboarding_pages import validator_onboarding_pages

LOOPBACK = ("localhost", "127.0.0.1")
BLUEPRINTS = (
    pages,
    launcher_pages,
    account_pages,
    onboarding_pages,
    author_pages,
    validator_onboarding_pages,
    validate_pages,
)
CONFIGURATION = {
    "SESSION_COOKIE_NAME": "dynaround",
    "SESSION_COOKIE_SAMESITE": "Lax",
    "SESSION_REFRESH_EACH_REQUEST": False,
    "MAX_CONTENT_LENGTH": 1_000_000,
    # A token holds as long as its session: an author may look at one form for hours.
    "WTF_CSRF_TIME_LIMIT": None,
    # The referrer that this would ask for is the one that our own policy withholds.
    "WTF_CSRF_SSL_STRICT": False,
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def create_app(
    workspace: Workspace,
    *,
    hosts: Sequence[str] = LOOPBACK,
    clock: Callable[[], datetime] = now,
    demo: bool = False,
) -> Flask:
    """Make the application for one workspace; it answers only under the names in `hosts`, with any port.

    The demo lets anybody read and play, so it answers on this machine alone. Raises NotFound where the database is not
    at this version's revision, BadInput for no host at all or a missing secret.
    """
    if not hosts:
        raise BadInput("no host is named that the pages may be asked under; name one, such as localhost")
    here_alone = set(hosts) <= set(LOOPBACK)
    if demo and not here_alone:
        raise BadInput("the demo lets anybody in and is for this machine alone; serve a workspace of your own instead")
    settings, engine = workspace.settings, workspace.engine()
    app = Flask(__name__)
    app.config.update(CONFIGURATION)
    app.config["SECRET_KEY"] = demo_secret(workspace) if demo else settings.required_secret()
    app.config["SESSION_COOKIE_SECURE"] = settings.secure_cookies and not here_alone
    app.config["PERMANENT_SESSION_LIFETIME"] = timedelta(hours=settings.visit_hours)
    app.extensions.update({ENGINE: engine, CLOCK: clock, DEMO: demo, MODELS: LiveModels(workspace)})
    app.extensions.update({TURN: Lock(), SCREENINGS: OneAtATime()})
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.globals.update(version=__version__, workspace=workspace.root.name, demo=demo)
    app.jinja_env.globals.update(may_open=may_open, home_address=home_address)
    app.jinja_env.globals.update(calibration_of=partial(calibration_of, workspace.models))
    app.jinja_env.filters.update(filters.FILTERS, calibrated=calibrated)
    # In this order: a foreign name learns nothing, and whoever was logged out is sent to log in, not told of a token.
    app.before_request(partial(refuse_unknown_host, tuple(hosts)))
    app.before_request(admit)
    CSRFProtect(app)
    app.after_request(add_headers)
    error_pages.register(app)
    app.view_functions["static"] = anyone(app.view_functions["static"])
    for blueprint in (*BLUEPRINTS, *([demo_pages] if demo else [])):
        app.register_blueprint(blueprint)
    require_access_said(app)
    if settings.proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings.proxies, x_proto=settings.proxies)  # type: ignore[method-assign]
    return app


def add_headers(response: Response) -> Response:
    """Forbid inline scripts and styles, foreign content and framing on every answer; no page stays in a cache."""
    response.headers.update(HEADERS)
    if request.endpoint != "static":
        response.headers["Cache-Control"] = "no-store"
    return response

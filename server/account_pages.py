"""The pages of accounts: joining by invitation, logging in and out, passwords; in the demo, an account at once."""

import re
import secrets
from contextlib import suppress

from flask import Blueprint, current_app, flash, g, redirect, render_template, request, session, url_for
from flask_wtf.csrf import generate_csrf
from werkzeug.wrappers import Response as AnyResponse

from dynaround.database import reading, writing
from dynaround.errors import BadInput, IllegalMove, NotAllowed
from dynaround.tables import WORKER
from rounds.sittings import end_sittings
from server.access import HOMES, VISIT, anyone, current_engine, current_time, home_address, members_only
from workers.accounts import NAME_CHARACTERS, PASSWORD_CHARACTERS, account_of_invited
from workers.invitations import accept_invitation
from workers.roster import PERSON, enlist
from workers.visits import Client, change_password, count_visits, end_visit, end_visits, log_in, open_visit

# A path of this site in visible ASCII. Browsers take a second slash or a backslash for the start of another site's
# name, and leave out line breaks and tabs before they look.
_LOCAL = re.compile(r"/(?!/)[!-\[\]-~]*")

account_pages = Blueprint("accounts", __name__)
demo_pages = Blueprint("demo", __name__)


@account_pages.get("/log-in")
@anyone
def log_in_form() -> str | AnyResponse:
    """Show the form to log in; whoever has logged in is sent on."""
    target = local_address(request.args.get("next"))
    if g.account is not None:
        return redirect(target or home_address(), 303)
    return render_template("log_in.html", name="", next=target, problem=None)


@account_pages.post("/log-in")
@anyone
def log_in_by_password() -> AnyResponse | tuple[str, int]:
    """Open a visit for whoever knows name and password."""
    name, target = request.form.get("name", ""), local_address(request.form.get("next"))
    try:
        token = log_in(current_engine(), name, request.form.get("password", ""), _client())
    except NotAllowed as error:
        return render_template("log_in.html", name=name, next=target, problem=_sentence(error)), 403
    _enter(token)
    # The home depends on the role, which the next request finds: the form sends everybody who has logged in there.
    return redirect(target or url_for("accounts.log_in_form"), 303)


@account_pages.get("/join")
@anyone
def join_form() -> str:
    """Show the form to join with an invitation; looking at it uses nothing up."""
    return render_template("join.html", invitation="", problem=None)


@account_pages.post("/join")
@anyone
def join() -> AnyResponse | tuple[str, int]:
    """Let in whoever brings an invitation that nobody has used."""
    sent = request.form.get("invitation", "")
    now = current_time()
    try:
        with writing(current_engine()) as database:
            # People paste the whole link.
            invitation = sent.rpartition("#")[2].strip()
            account = accept_invitation(database, invitation, str(current_app.secret_key), now)
            token = open_visit(database, account, now, current_app.permanent_session_lifetime)
    except NotAllowed as error:
        return render_template("join.html", invitation=sent, problem=_sentence(error)), 403
    _enter(token)
    return redirect(url_for(HOMES[account.role] if account.password_hash else "accounts.account"), 303)


@account_pages.get("/account")
@members_only
def account() -> str:
    """Show an account to its owner."""
    return _account_page(None)


@account_pages.post("/account/password")
@members_only
def set_password() -> AnyResponse | tuple[str, int]:
    """Give the account a password, and the name to go with the first one; all its other visits end."""
    form = request.form
    try:
        if form.get("new", "") != form.get("again", ""):
            raise BadInput("the two new passwords differ; type the same twice")
        token = change_password(
            current_engine(), g.account, form.get("name", ""), form.get("current", ""), form.get("new", ""), _client()
        )
    except (BadInput, NotAllowed) as error:
        return _account_page(_sentence(error)), 400 if isinstance(error, BadInput) else 403
    _enter(token)
    flash("The password is set. Everywhere else you are logged out.")
    return redirect(url_for("accounts.account"), 303)


@account_pages.post("/log-out")
@members_only
def log_out() -> AnyResponse:
    """End this visit."""
    return _leave()


@account_pages.post("/log-out/everywhere")
@members_only
def log_out_everywhere() -> AnyResponse:
    """End all visits of the account, on every device."""
    with writing(current_engine()) as database:
        end_visits(database, g.account.account_id, current_time())
    return _leave()


@demo_pages.post("/play")
@anyone
def play() -> AnyResponse:
    """Make an account for a visitor of the demo and let them in, to play at once."""
    if g.account is not None:
        return redirect(home_address(), 303)
    now = current_time()
    with writing(current_engine()) as database:
        worker = enlist(database, f"demo-visitor-{secrets.token_hex(8)}", PERSON)
        token = open_visit(
            database, account_of_invited(database, worker, now), now, current_app.permanent_session_lifetime
        )
    _enter(token)
    return redirect(url_for(HOMES[WORKER]), 303)


def local_address(target: str | None) -> str | None:
    """Return an address of this site as it is; None for another one, or for none."""
    return target if target and _LOCAL.fullmatch(target) else None


def _enter(token: str) -> None:
    """Put a new visit into a new session and end the one that was in the old: nothing planted there survives."""
    _end_current_visit()
    session.clear()
    session.permanent = True
    session[VISIT] = token
    # Now and not with the first form: two pages that are opened at once must not get different ones.
    generate_csrf()


def _leave() -> AnyResponse:
    """End the visit, and the sitting of an author with it."""
    if g.account.worker_id is not None:
        # A round that closes in this moment ends them too.
        with suppress(IllegalMove), writing(current_engine()) as database:
            end_sittings(database, g.account.worker_id, current_time())
    _end_current_visit()
    session.clear()
    return redirect(url_for("accounts.log_in_form"), 303)


def _end_current_visit() -> None:
    token = session.get(VISIT)
    if token is not None:
        with writing(current_engine()) as database:
            end_visit(database, token, current_time())


def _client() -> Client:
    return Client(request.remote_addr or "", current_time(), current_app.permanent_session_lifetime)


def _sentence(error: BadInput | NotAllowed) -> str:
    return f"{str(error)[:1].upper()}{str(error)[1:]}."


def _account_page(problem: str | None) -> str:
    with reading(current_engine()) as database:
        visits = count_visits(database, g.account.account_id, current_time())
    least, _ = PASSWORD_CHARACTERS
    return render_template(
        "account.html", account=g.account, visits=visits, problem=problem, least=least, longest_name=NAME_CHARACTERS
    )

"""The launcher's page of a round: live figures, and what may be done, each with a word on what will happen."""

from flask import Blueprint, flash, g, redirect, render_template, request, url_for
from sqlmodel import Session
from werkzeug.wrappers import Response as AnyResponse

from dynaround.database import reading, writing
from dynaround.errors import IllegalMove
from dynaround.known_answers import missed_items
from dynaround.tables import LAUNCHER, MAINTAINER, Round
from dynaround.tasks import get_task
from rounds.check_figures import check_item_figures, check_item_lines
from rounds.lifecycle import close_round, find_round, switch
from rounds.plan import RoundPlan
from rounds.validation_status import validation_figures
from server.access import allowed, current_engine, current_time, may_open
from server.launcher_view import (
    ABANDON,
    CLOSE_SHORT,
    SWITCHES,
    Move,
    moves_of,
    newest_comments,
    next_command,
    pace_bars,
    shown_bars,
)
from server.screenings import screen_if_due
from server.shown import who_answered
from workers.holds import decide_hold
from workers.judging import evidence_words
from workers.screening import reinstate
from workers.standing import find_bar, lift

_ROUND = "/rounds/<int(max=2147483647):number>"
_ID = "<int(max=2147483647):{}>"

launcher_pages = Blueprint("launcher", __name__)
launchers = allowed(LAUNCHER, MAINTAINER)
watchers = allowed(LAUNCHER, MAINTAINER, anybody_in_demo=True)


@launcher_pages.get(f"{_ROUND}/live")
@watchers
def live(number: int) -> str:
    """Show how a round goes, and what the launcher may do.

    The demo's visitors, who may do nothing, see figures alone: sentences and objections are those of people at work.
    """
    acts = may_open("launcher.make")
    with reading(current_engine()) as session:
        round_ = find_round(session, number)
        assert round_.id is not None
        validation, moves = validation_figures(session, round_), moves_of(session, round_) if acts else []
        return render_template(
            "launcher/live.html",
            round=round_,
            task=get_task(round_.task),
            validation=validation,
            who=who_answered(session, round_),
            acts=acts,
            evidence_words=evidence_words,
            pace=pace_bars(validation["per_hour"]),
            moves=moves,
            command=next_command(round_) if acts else None,
            check_lines=list(check_item_lines(check_item_figures(session, round_))) if moves else [],
            missed=missed_items(session, round_.id) if acts else [],
            comments=newest_comments(session, round_) if acts else [],
            bars=shown_bars(session, current_time()) if acts else [],
            now=current_time(),
        )


@launcher_pages.get(f"{_ROUND}/moves/<key>")
@launchers
def confirm(number: int, key: str) -> str:
    """Say what a move will do before it is made."""
    with reading(current_engine()) as session:
        round_ = find_round(session, number)
        return render_template("launcher/confirm.html", round=round_, move=_move(session, round_, key))


@launcher_pages.post(f"{_ROUND}/moves/<key>")
@launchers
def make(number: int, key: str) -> AnyResponse:
    """Make a move, as it was confirmed."""
    with writing(current_engine()) as session:
        round_ = find_round(session, number)
        move = _move(session, round_, key)
        if request.form.get("left_out") != str(move.left_out):
            raise IllegalMove(f"round {number} has changed since you were asked; look at what it would do now")
        _do(session, round_, move)
    flash("Done.")
    return _back(number)


def _move(session: Session, round_: Round, key: str) -> Move:
    found = next((move for move in moves_of(session, round_) if move.key == key), None)
    if found is None:
        raise IllegalMove(
            f"round {round_.number} is {round_.state}, and this cannot be done in it now; open its live page"
        )
    return found


def _do(session: Session, round_: Round, move: Move) -> None:
    who, now = g.account.name, current_time()
    if move.key in SWITCHES:
        work, on = SWITCHES[move.key]
        switch(session, round_, work, on, who, now)
        return
    left_out = close_round(
        session, round_, who, now, leave_out_short=move.key == CLOSE_SHORT, abandon=move.key == ABANDON
    )
    if left_out != move.left_out:
        raise IllegalMove(f"round {round_.number} has changed since you were asked; look at what it would do now")


@launcher_pages.post(f"{_ROUND}/held/{_ID.format('example')}")
@launchers
def decide(number: int, example: int) -> AnyResponse:
    """Release a held example, or leave it out."""
    with writing(current_engine()) as session:
        decision = request.form.get("decision", "")
        round_ = find_round(session, number)
        decide_hold(session, round_, example, decision, g.account.name, current_time())
    # What is left out may have been all that its batch lacked.
    screen_if_due(round_, RoundPlan.model_validate(round_.plan).validation)
    flash(f"Example {example} is {decision}.")
    return _back(number)


@launcher_pages.post(f"{_ROUND}/workers/{_ID.format('worker')}/reinstate")
@launchers
def let_back_in(number: int, worker: int) -> AnyResponse:
    """Let a removed worker go on; their responses count again where a place is free."""
    with writing(current_engine()) as session:
        counted = reinstate(session, find_round(session, number), f"w{worker}", g.account.name, current_time())
    flash(f"w{worker} is reinstated; {counted:,} responses count again.")
    return _back(number)


@launcher_pages.post(f"{_ROUND}/bars/{_ID.format('bar')}/lift")
@launchers
def lift_bar(number: int, bar: int) -> AnyResponse:
    """End a bar before its time."""
    with writing(current_engine()) as session:
        lift(session, find_bar(session, bar), g.account.name, current_time())
    flash(f"Bar {bar} is lifted.")
    return _back(number)


def _back(number: int) -> AnyResponse:
    return redirect(url_for("launcher.live", number=number), 303)

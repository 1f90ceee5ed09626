"""`dynaround workers`: let people in, bring in responses, import check items, screen, remove and reinstate."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from dynaround.terminal import (
    SHOWN_REJECTS,
    json_option,
    now,
    open_workspace,
    print_json,
    progress,
    who,
    workspace_option,
)

if TYPE_CHECKING:
    from workers.checks import CheckImport
    from workers.crowds import CrowdReport
    from workers.importing import ImportReport

# Said here and not read from the tables, so that help loads none of them.
ROLES = ("worker", "launcher", "maintainer")


@click.group(name="workers")
def workers_group() -> None:
    """Let workers in, and bring responses into a round: simulated, replayed, imported."""


@workers_group.command(epilog="Example: dynaround workers simulate 1 --truth truth.jsonl --seed 7")
@click.argument("number", type=int)
@workspace_option
@click.option(
    "--truth", required=True, type=click.Path(path_type=Path),
    help="JSON lines with review_id, start, end and label: the label that each sentence carries.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
def simulate(number: int, workspace_folder: Path, truth: Path, seed: int, as_json: bool) -> None:
    """Let a scripted crowd answer around the labels that the sentences carry; never around rating or prediction."""
    from workers.simulation import simulate_round

    workspace = open_workspace(workspace_folder)
    with progress(f"scripted crowd, round {number}", unit="page") as advance:
        report = simulate_round(workspace, workspace.engine(), number, truth, seed, now, lambda: advance(1))
    _tell(report, "a scripted crowd (not people)", number, as_json)


@workers_group.command(epilog="Example: dynaround workers replay 1 --from dynasent-v1.1-round01-yelp-dev.jsonl")
@click.argument("number", type=int)
@workspace_option
@click.option(
    "--from", "source", required=True, type=click.Path(path_type=Path),
    help="A release file whose recorded responses are handed out again.",
)  # fmt: skip
@json_option
def replay(number: int, workspace_folder: Path, source: Path, as_json: bool) -> None:
    """Hand out the recorded responses of real people to the same sentences."""
    from workers.simulation import replay_round

    workspace = open_workspace(workspace_folder)
    with progress(f"replayed crowd, round {number}", unit="page") as advance:
        report = replay_round(workspace, workspace.engine(), number, source, now, lambda: advance(1))
    _tell(report, "a replayed crowd (recorded people)", number, as_json)


@workers_group.command(name="import", epilog="Example: dynaround workers import 1 results.csv")
@click.argument("number", type=int)
@click.argument("results", type=click.Path(path_type=Path))
@workspace_option
@json_option
def import_command(number: int, results: Path, workspace_folder: Path, as_json: bool) -> None:
    """Import people's responses from a CSV file with the columns text_id, worker, answer, and optionally hit, seconds.

    Lines that cannot be used are listed with number and reason; importing the same file again adds nothing.
    """
    from workers.importing import import_results

    workspace = open_workspace(workspace_folder)
    _tell_import(import_results(workspace.engine(), number, results, now()), "responses", results, as_json)


@workers_group.command(epilog="Example: dynaround workers invite 5f3a9c --address https://bench.example.org")
@click.argument("platform_id")
@workspace_option
@click.option("--days", type=click.IntRange(1, 365), default=7, show_default=True, help="How long it can be used.")
@click.option("--address", help="Where people open the server. Without it: the first of the setting `hosts`.")
def invite(platform_id: str, workspace_folder: Path, days: int, address: str | None) -> None:
    """Print a link that lets the worker of a platform id in, once; it says nothing of the platform id."""
    from dynaround.database import writing
    from dynaround.events import record
    from workers.invitations import invite as store_invitation
    from workers.invitations import link

    workspace = open_workspace(workspace_folder)
    moment = now()
    with writing(workspace.engine()) as session:
        token = store_invitation(session, platform_id, workspace.settings.required_secret(), moment, days)
        shown = link(token, address, workspace.settings.hosts)
        record(session, None, who(), "worker invited", moment, invitation=int(token.partition(".")[0]), days=days)
    click.echo(shown)


@workers_group.command(epilog="Example: dynaround workers account ada --role launcher")
@click.argument("name")
@workspace_option
@click.option("--role", type=click.Choice(ROLES), help="What the new account may do.")
@click.option("--platform-id", help="The worker whose account it is; only for the role of a worker.")
@click.option(
    "--password-file", type=click.File(encoding="utf-8"),
    help="Take the password from the first line of a file (-: standard input) instead of asking.",
)  # fmt: skip
@click.option("--reset", is_flag=True, help="Give an account that is there a new password, and log it out everywhere.")
def account(
    name: str,
    workspace_folder: Path,
    role: str | None,
    platform_id: str | None,
    password_file: TextIO | None,
    reset: bool,
) -> None:
    """Make an account with a name and a password, or give it another password; the password is asked, hidden, twice."""
    from dynaround.database import writing
    from dynaround.errors import BadInput
    from dynaround.events import record
    from workers.accounts import find_account, hashed_password, make_account
    from workers.visits import reset_password

    if reset and (role or platform_id):
        raise BadInput("--reset changes the password alone; leave out --role and --platform-id")
    if not reset and role is None:
        raise BadInput(f"no role is named; give --role, one of {', '.join(ROLES)}, or --reset")
    engine = open_workspace(workspace_folder).engine()
    password_hash = hashed_password(_asked_password(password_file))
    moment = now()
    with writing(engine) as session:
        if role is None:
            found = find_account(session, name)
            reset_password(session, found, password_hash, moment)
        else:
            found = make_account(session, name, role, password_hash, moment, platform_id)
        session.flush()
        what = "password reset" if reset else "account made"
        record(session, None, who(), what, moment, account=found.id, role=found.role)
    click.echo(f"{found.name} has a new password and is logged out" if reset else f"{found.name} is a {found.role}")


@workers_group.command(epilog="Example: dynaround workers bars --json")
@workspace_option
@json_option
def bars(workspace_folder: Path, as_json: bool) -> None:
    """List who is kept from which work, until when and why, with the objections; also to bars that are over."""
    from dynaround.database import reading
    from workers.standing import bar_figures, bar_line, bars_to_look_at

    moment = now()
    with reading(open_workspace(workspace_folder).engine()) as session:
        found = bars_to_look_at(session, moment)
    if as_json:
        print_json([bar_figures(held) for held in found])
        return
    for held in found:
        click.echo(bar_line(held, moment))
    if not found:
        click.echo("nobody is barred")


@workers_group.command(epilog="Example: dynaround workers lift 3")
@click.argument("bar", type=int)
@workspace_option
def lift(bar: int, workspace_folder: Path) -> None:
    """End a bar before its time; `dynaround workers bars` tells its number."""
    from dynaround.database import writing
    from workers.standing import find_bar
    from workers.standing import lift as lift_bar

    with writing(open_workspace(workspace_folder).engine()) as session:
        lift_bar(session, find_bar(session, bar), who(), now())
    click.echo(f"bar {bar} is lifted")


@workers_group.command(epilog="Example: dynaround workers checks 1 known-answers.csv")
@click.argument("number", type=int)
@click.argument("items", type=click.Path(path_type=Path))
@workspace_option
@json_option
def checks(number: int, items: Path, workspace_folder: Path, as_json: bool) -> None:
    """Import check items, sentences of known answers, from a CSV file with the columns text, label and use.

    The use is screening (before a worker's first page) or silent (on pages, among the examples). Lines that cannot be
    used are listed with number and reason; importing the same file again adds nothing.
    """
    from workers.checks import import_check_items

    workspace = open_workspace(workspace_folder)
    report = import_check_items(workspace.engine(), number, items, who(), now())
    _tell_import(report, "check items", items, as_json)


@workers_group.command(epilog="Example: dynaround workers screen 1 --dry-run")
@click.argument("number", type=int)
@workspace_option
@click.option("--dry-run", is_flag=True, help="Say who would go, and what else stands out; remove nobody.")
@json_option
def screen(number: int, workspace_folder: Path, dry_run: bool, as_json: bool) -> None:
    """Remove the workers whom the plan's rule removes, by the finished batches; the server does it batch by batch."""
    from dynaround.database import reading
    from dynaround.screening_measures import ScreeningRule
    from workers.advice import signals_of_round
    from workers.judging import judge_workers, judged_figures, judged_line
    from workers.screening import find_round, screen_round

    engine = open_workspace(workspace_folder).engine()
    with reading(engine) as session:
        round_ = find_round(session, number)
        rule = ScreeningRule.model_validate(round_.plan.get("validation") or {})
        found = judge_workers(session, round_, rule) if dry_run else None
        signals = signals_of_round(session, round_)
    found = found or screen_round(engine, number, rule, now(), who())
    if as_json:
        figures = [judged_figures(judged) for judged in found.workers]
        advice = {one.worker: one._asdict() for one in signals}
        print_json({"batches": found.batches, "rule": rule.rule, "workers": figures, "signals": advice})
        return
    click.echo(f"{len(found.batches)} finished batches, {len(found.workers)} workers, rule {rule.rule}")
    for judged in found.workers:
        if judged.removed_by is not None:
            click.echo(f"{'would be ' if dry_run else ''}removed by {judged.removed_by}: {judged_line(judged)}")
        elif judged.broken:
            click.echo(f"stays, and breaks {', '.join(judged.broken)}: {judged_line(judged)}")
    for one in signals:
        for said in one.advice:
            click.echo(f"to look at: {one.worker} {said}")


@workers_group.command(epilog="Example: dynaround workers removals 1 --json")
@click.argument("number", type=int)
@workspace_option
@json_option
def removals(number: int, workspace_folder: Path, as_json: bool) -> None:
    """List who was removed from a round, when, by which rule and on what evidence, and who was reinstated."""
    from dynaround.database import reading
    from workers.screening import find_round, removal_figures, removal_line
    from workers.screening import removals as removals_of

    with reading(open_workspace(workspace_folder).engine()) as session:
        found = removals_of(session, find_round(session, number))
    if as_json:
        print_json([removal_figures(removal) for removal in found])
        return
    for removal in found:
        click.echo(removal_line(removal))
    if not found:
        click.echo(f"nobody was removed from round {number}")


@workers_group.command(epilog="Example: dynaround workers reinstate 1 w12")
@click.argument("number", type=int)
@click.argument("worker")
@workspace_option
def reinstate(number: int, worker: str, workspace_folder: Path) -> None:
    """Let a removed worker go on, by the public id; what was answered counts again where a place is free."""
    from dynaround.database import writing
    from workers.screening import find_round
    from workers.screening import reinstate as let_in

    with writing(open_workspace(workspace_folder).engine()) as session:
        counted = let_in(session, find_round(session, number), worker, who(), now())
    click.echo(f"{worker} is reinstated; {counted} responses count again")


def _asked_password(file: TextIO | None) -> str:
    if file is None:
        password: str = click.prompt("Password", hide_input=True, confirmation_prompt="The same again", err=True)
        return password
    try:
        return file.readline().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise click.UsageError("the password file is not UTF-8; write it as such") from error


def _tell_import(report: "ImportReport | CheckImport", what: str, file: Path, as_json: bool) -> None:
    if as_json:
        print_json({**report._asdict(), "rejected": [row._asdict() for row in report.rejected]})
        return
    for row in report.rejected[:SHOWN_REJECTS]:
        click.echo(f"rejected: {file}, line {row.line}: {row.reason}", err=True)
    if len(report.rejected) > SHOWN_REJECTS:
        click.echo(f"and {len(report.rejected) - SHOWN_REJECTS} more; --json lists all", err=True)
    click.echo(f"{report.added} {what} added, {report.known} were there already, {len(report.rejected)} lines rejected")


def _tell(report: "CrowdReport", crowd: str, number: int, as_json: bool) -> None:
    if as_json:
        print_json({**report._asdict(), "responses_from": crowd})
        return
    click.echo(f"{report.responses_added} responses by {crowd}; round {number} has {report.responses_in_all} in all")

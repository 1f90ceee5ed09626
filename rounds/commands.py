"""`dynaround round`: open, harvest, status, close, release; `dynaround solved` and `dynaround report`."""

import re
from pathlib import Path
from typing import Any

import click

from dynaround.terminal import json_option, now, open_workspace, print_json, progress, who, workspace_option

AUTHORING_OPTIONS = ("attempts", "attempts_a_day", "authors_per_prompt", "max_characters")
PAY_OPTIONS = ("pay_example", "pay_bonus", "pay_page", "currency")


class Hundredths(click.ParamType[int]):
    """An amount of money such as 0.30, taken as an integer of hundredths."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the hundredths; fails for what is no amount, is negative, or has more than two decimals."""
        match = re.fullmatch(r"([0-9]{1,6})(?:\.([0-9]{1,2}))?", str(value))
        if match is None:
            self.fail(f"{value!r} is no amount such as 0.30", param, ctx)
        return int(match[1]) * 100 + int((match[2] or "").ljust(2, "0"))


HUNDREDTHS = Hundredths()


@click.group(name="round")
def round_group() -> None:
    """Open, harvest, switch, watch, close and release a round."""


@round_group.command(
    name="open",
    epilog="Example: dynaround round open --target model-0 --reviews yelp:reviews.jsonl.gz --size 2000 --seed 7",
)
@workspace_option
@click.option("--target", required=True, help="The model that the round plays against.")
@click.option(
    "--reviews", required=True, metavar="KIND:FILE",
    help="yelp, amazon, jsonl, csv, tsv, parquet (also .gz), or dynasent: a file of rated sentences.",
)  # fmt: skip
@click.option(
    "--field", "fields", multiple=True, metavar="NAME=COLUMN",
    help="Which column is the review_id, rating or text, for example --field text=body.",
)  # fmt: skip
@click.option("--size", type=click.IntRange(0), default=0, help="Examples to harvest; 0 where people alone write.")
@click.option("--prompts", type=click.IntRange(0), default=0, help="Sentences that authors start from.")
@click.option("--authors", is_flag=True, help="People write, also without --prompts.")
@click.option("--attempts", type=click.IntRange(1), help="Attempts of an author for one example.  [default: 10]")
@click.option("--attempts-a-day", type=click.IntRange(1), help="Attempts of one author a day.  [default: 300]")
@click.option("--authors-per-prompt", type=click.IntRange(1), help="Authors who are shown a prompt.  [default: 1]")
@click.option("--max-characters", type=click.IntRange(10), help="Longest text of an author.  [default: 500]")
@click.option("--pay-example", type=HUNDREDTHS, help="Paid for an example that an author wrote.  [default: 0.30]")
@click.option("--pay-bonus", type=HUNDREDTHS, help="Paid on top where people confirm the fool.  [default: 0.30]")
@click.option("--pay-page", type=HUNDREDTHS, help="Paid to a validator for a page.  [default: 0.25]")
@click.option("--currency", help="What the amounts are in.  [default: USD]")
@click.option("--disagreement-share", type=click.FloatRange(0, 1), default=0.5, show_default=True)
@click.option("--per-review", type=click.IntRange(1), default=4, show_default=True, help="Sentences from one review.")
@click.option("--quota", "quotas", multiple=True, metavar="CELL=N", help="At most N disagreeing sentences of a cell.")
@click.option("--margin", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.02, show_default=True)
@click.option(
    "--held-out-share", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.3, show_default=True
)
@click.option(
    "--per-cell", type=click.IntRange(1), help="Examples a cell of dev and of test.  [default: as many as fit]"
)
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
def open_command(
    workspace_folder: Path,
    target: str,
    reviews: str,
    fields: tuple[str, ...],
    quotas: tuple[str, ...],
    authors: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Open the next round; its plan, prompts, target model and seeds are frozen from here on."""
    from dynaround.tasks import get_task
    from rounds.opening import PROMPT_REJECTS, open_new_round
    from rounds.plan import RoundPlan
    from rounds.planning import planned_power, power_lines

    options |= _people_options(options, authors)
    workspace = open_workspace(workspace_folder)
    options["fields"] = dict(_pair(pair, "--field") for pair in fields)
    options["quotas"] = dict(_pair(pair, "--quota") for pair in quotas)
    with progress("opening the round", unit="review") as advance:
        round_ = open_new_round(
            workspace,
            workspace.engine(),
            target=target,
            reviews=reviews,
            options=options,
            who=who(),
            now=now,
            on_progress=advance,
        )
    power = planned_power(RoundPlan.model_validate(round_.plan), get_task(round_.task))
    if as_json:
        print_json({"round": round_.number, "plan": round_.plan, "power": power})
        return
    for line in power_lines(power):
        click.echo(line)
    if options["prompts"] and (workspace.work / PROMPT_REJECTS).is_file():
        click.echo(f"rejected lines: work/{PROMPT_REJECTS}")
    after = f"round harvest {round_.number}" if options["size"] else "serve"
    click.echo(f"round {round_.number} is open against {target}; next: dynaround {after}")


def _people_options(options: dict[str, Any], authors: bool) -> dict[str, Any]:
    """Take out what was said of authors and of pay, and return it as the plan's parts."""
    given = {name: options.pop(name) for name in (*AUTHORING_OPTIONS, *PAY_OPTIONS)}
    authoring = {name: given[name] for name in AUTHORING_OPTIONS if given[name] is not None}
    pay = {name.removeprefix("pay_"): given[name] for name in PAY_OPTIONS if given[name] is not None}
    if authors or options["prompts"]:
        return {"authoring": authoring, "pay": pay}
    if authoring:
        name = next(iter(authoring)).replace("_", "-")
        raise click.UsageError(f"--{name} is about people who write; give --prompts N or --authors too")
    return {"pay": pay}


def _pair(pair: str, option: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not equals or not name or not value:
        raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint=option)
    return name, value


@round_group.command(epilog="Example: dynaround round harvest 1")
@click.argument("number", type=int)
@workspace_option
@json_option
def harvest(number: int, workspace_folder: Path, as_json: bool) -> None:
    """Predict the round's reviews and store the drawn examples; an interrupted harvest goes on where it stopped."""
    from rounds.harvesting import harvest_round
    from rounds.status import harvest_lines

    workspace = open_workspace(workspace_folder)
    with progress(f"harvest round {number}", unit="sentence") as advance:
        report = harvest_round(workspace, workspace.engine(), number, who(), now, advance)
    plain = {**report._asdict(), "pool": report.pool._asdict()}
    if as_json:
        print_json(plain)
        return
    if report.already_done:
        click.echo(f"round {number} was harvested already")
    for line in harvest_lines(plain):
        click.echo(line)


@round_group.command(name="switch", epilog="Example: dynaround round switch 2 authoring off")
@click.argument("number", type=int)
@click.argument("work", type=click.Choice(["authoring", "validating"]))
@click.argument("state", type=click.Choice(["on", "off"]))
@workspace_option
def switch_command(number: int, work: str, state: str, workspace_folder: Path) -> None:
    """Let people write or validate in an open round, or stop them for now; both are on when it opens."""
    from dynaround.database import writing
    from rounds.lifecycle import find_round, switch

    with writing(open_workspace(workspace_folder).engine()) as session:
        switch(session, find_round(session, number), work, state == "on", who(), now())
    click.echo(f"{work} in round {number} is {state}")


@round_group.command(epilog="Example: dynaround round status 1 --json")
@click.argument("number", type=int)
@workspace_option
@json_option
def status(number: int, workspace_folder: Path, as_json: bool) -> None:
    """Show where a round stands: harvest, responses, labels, splits."""
    from dynaround.database import reading
    from rounds.lifecycle import find_round
    from rounds.status import figure_lines, status_figures

    with reading(open_workspace(workspace_folder).engine()) as session:
        figures = status_figures(session, find_round(session, number))
    if as_json:
        print_json(figures)
        return
    for line in figure_lines(figures):
        click.echo(line)


@round_group.command(epilog="Example: dynaround round close 1")
@click.argument("number", type=int)
@workspace_option
@click.option("--leave-out-short", is_flag=True, help="Leave out examples with fewer than five responses.")
@click.option("--abandon", is_flag=True, help="End the round even if nothing in it could be labelled.")
def close(number: int, workspace_folder: Path, leave_out_short: bool, abandon: bool) -> None:
    """End collecting and validating, and freeze which responses count."""
    from dynaround.database import writing
    from rounds.lifecycle import close_round, find_round

    with writing(open_workspace(workspace_folder).engine()) as session:
        round_ = find_round(session, number)
        left_out = close_round(session, round_, who(), now(), leave_out_short=leave_out_short, abandon=abandon)
    click.echo(f"round {number} is closed, {left_out} examples left out; next: dynaround round release {number}")


@round_group.command(epilog="Example: dynaround round release 1 --out releases/round-1")
@click.argument("number", type=int)
@workspace_option
@click.option(
    "--out", type=click.Path(path_type=Path), help="The new folder.  [default: releases/round-N of the workspace]"
)
@click.option("--per-cell", type=click.IntRange(1), help="Examples a cell of dev and of test, in place of the plan's.")
@json_option
def release(number: int, workspace_folder: Path, out: Path | None, per_cell: int | None, as_json: bool) -> None:
    """Write the frozen, anonymous files of a closed round: train, dev, test, withheld, manifest."""
    from rounds.releasing import release_lines, release_round

    workspace = open_workspace(workspace_folder)
    # Resolved, since "." has no name to write a new folder beside.
    folder = out.resolve() if out else workspace.releases / f"round-{number}"
    if not folder.name:
        raise click.BadParameter(f"{folder} is no new folder", param_hint="--out")
    manifest = release_round(workspace, workspace.engine(), number, folder, who(), now(), per_cell=per_cell)
    if as_json:
        print_json(manifest)
        return
    for line in release_lines(manifest):
        click.echo(f"{folder}: {line}")


@round_group.command(
    name="compare-arms",
    epilog="Example: dynaround round compare-arms 2   or: dynaround round compare-arms round02-dynabench-dev.jsonl",
)
@click.argument("about", nargs=-1, metavar="ROUND | FILE...")
@click.option("--release", type=click.Path(path_type=Path), metavar="FOLDER", help="Compare in a release of ours.")
@workspace_option
@click.option("--out", type=click.Path(path_type=Path), help="Write the tables and plots as one HTML file, too.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of all draws.")
@json_option
def compare_arms_command(
    about: tuple[str, ...], release: Path | None, workspace_folder: Path, out: Path | None, seed: int, as_json: bool
) -> None:
    """Compare the arms of authors, with a prompt and without, in a ROUND, a release or published FILEs.

    Only a ROUND needs a workspace, and only there attempts, claims and pasting are known.
    """
    from rounds.report_arms import compare_arms
    from rounds.report_figures import figures
    from rounds.report_text import text
    from rounds.reporting import write_report

    compared = compare_arms(about, release, workspace_folder, seed)
    kept = [Path(name) for name in about] if release is None else [release]
    written = () if out is None else write_report(compared, out, kept=kept)
    if as_json:
        print_json(figures(compared))
        return
    for line in text(compared):
        click.echo(line)
    for file in written:
        click.echo(f"written: {file}")


@click.command(
    name="import",
    epilog="Example: dynaround import dynasent-v1.1-round01-yelp-dev.jsonl --resplit 2400/1200 --seed 7",
)
@click.argument("file", type=click.Path(path_type=Path))
@workspace_option
@click.option(
    "--resplit", "sizes", required=True, metavar="TRAIN/TEST",
    help="How many examples train and test hold; what is left is withheld.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the draw.")
@click.option(
    "--margin", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.02, show_default=True,
    help="Below people by less than this, a model solves the round.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="The release folder.  [default: releases/round-N]")
@click.option("--task", "task_name", help="Kind of task, if not the usual one.")
@json_option
def import_command(
    file: Path,
    workspace_folder: Path,
    sizes: str,
    seed: int,
    margin: float,
    out: Path | None,
    task_name: str | None,
    as_json: bool,
) -> None:
    """Make a round of its own from a published FILE, with train and test drawn anew; only its test is reported on.

    What shares a review, a prompt or a text stays together.
    """
    from dynaround.resplit import sizes_of
    from rounds.importing import import_published
    from rounds.releasing import release_lines

    workspace = open_workspace(workspace_folder)
    manifest = import_published(
        workspace,
        workspace.engine(),
        file,
        sizes_of(sizes),
        seed=seed,
        margin=margin,
        folder=out,
        task_name=task_name,
        who=who(),
        at=now(),
    )
    if as_json:
        print_json(manifest)
        return
    for line in release_lines(manifest):
        click.echo(f"round {manifest['round']}: {line}")


@click.command(epilog="Example: dynaround solved 1 --model model-3")
@click.argument("number", type=int)
@workspace_option
@click.option("--model", "model_name", required=True, help="The model that is judged beside the people.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of the bootstrap.")
@json_option
def solved(number: int, workspace_folder: Path, model_name: str, seed: int, as_json: bool) -> None:
    """Answer whether a released round is solved: whether a model does as well as the people who labelled it.

    Every time it is asked is stored and numbered.
    """
    from rounds.solved_checks import check_lines
    from rounds.solving import ask_solved

    workspace = open_workspace(workspace_folder)
    check = ask_solved(workspace, workspace.engine(), number, model_name, seed=seed, who=who(), now=now)
    if as_json:
        print_json(check)
        return
    for line in check_lines(check):
        click.echo(line)


@click.command(
    epilog="Example: dynaround report 1   or: dynaround report round01-yelp-dev.jsonl sst-dev-validated.jsonl"
)
@click.argument("about", nargs=-1, metavar="ROUND | FILE...")
@click.option("--release", type=click.Path(path_type=Path), metavar="FOLDER", help="Report on a release of ours.")
@workspace_option
@click.option(
    "--out", type=click.Path(path_type=Path),
    help="The HTML file.  [default: work/report-round-N.html of the workspace, without one ./report.html]",
)  # fmt: skip
@click.option("--latex", "latex_file", type=click.Path(path_type=Path), help="Write the tables as LaTeX, too.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of the bootstraps.")
@json_option
def report(
    about: tuple[str, ...],
    release: Path | None,
    workspace_folder: Path,
    out: Path | None,
    latex_file: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Write all figures of a ROUND, a release, or published FILEs into one HTML file, and print them.

    Only a ROUND needs a workspace. Nothing is predicted: models appear as far as their readings are stored.
    """
    from rounds.report_figures import figures
    from rounds.report_text import text
    from rounds.reporting import make_report

    made = make_report(about, release, workspace_folder, page=out, tables=latex_file, seed=seed)
    if as_json:
        print_json(figures(made.report))
        return
    for line in text(made.report):
        click.echo(line)
    for file in made.files:
        click.echo(f"written: {file}")

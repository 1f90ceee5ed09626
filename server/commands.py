"""`dynaround serve`, `dynaround demo`, `dynaround rehearse` and `dynaround secret`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from dynaround.terminal import (
    json_option,
    now,
    open_workspace,
    print_json,
    progress,
    training_progress,
    workspace_option,
)

HOST, PORT = "127.0.0.1", 8765


class TerminalBars:
    """Progress of the demo, on standard error."""

    @contextmanager
    def counting(self, label: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
        """Show a bar; yields a function that adds to it."""
        with progress(label, total, unit) as advance:
            yield advance

    @contextmanager
    def training(self, label: str) -> Iterator[Callable[[int, int], None]]:
        """Show a bar for steps done of all steps."""
        with training_progress(f"train {label}") as on_step:
            yield on_step


@click.command(epilog="Example: dynaround serve -w my-benchmark")
@workspace_option
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any free one.")
def serve(workspace_folder: Path, port: int) -> None:
    """Serve a workspace in the browser, on this machine alone (127.0.0.1).

    It needs a secret (DYNAROUND_SECRET, or `secret` in dynaround.toml). To collect from people on other machines, run
    `gunicorn 'server.wsgi:app()'` behind a proxy with TLS, and set `hosts` and `proxies`.
    """
    _serve(workspace_folder, port, demo=False)


@click.command(epilog="Example: dynaround secret (to set it at once: export DYNAROUND_SECRET=$(dynaround secret))")
def secret() -> None:
    """Print a new random secret, for the setting `secret`: it signs cookies, forms and invitations."""
    from server.demo_secret import random_secret

    click.echo(random_secret())


@click.command(epilog="Example: dynaround demo --no-serve")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path("dynaround-demo"), show_default=True,
    help="The demo's workspace.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--serve/--no-serve", "serving", default=True, show_default=True, help="Show the result in the browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any free one.")
def demo(folder: Path, seed: int, serving: bool, port: int) -> None:
    """Play Round 1 whole on the packaged corpus, open Round 2 against Model 1, and serve the result.

    No network is needed. The validators are a scripted crowd, and every figure that comes from it says so.
    """
    from server.demo import play

    for line in play(folder, seed=seed, now=now, bars=TerminalBars()):
        click.echo(line)
    if serving:
        _serve(folder, port, demo=True)


@click.command(epilog="Example: dynaround rehearse --spammers 0.3 --seeds 1")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Keep the scratch workspaces here, to look at. Not given: none is kept.",
)
@click.option("--examples", type=int, default=200, show_default=True)
@click.option("--workers", type=int, default=40, show_default=True)
@click.option("--spammers", type=float, default=0.2, show_default=True, help="The share who answer without reading.")
@click.option(
    "--leavers", type=float, default=0.1, show_default=True, help="The share who take a page and never return."
)
@click.option("--double", type=float, default=0.1, show_default=True, help="The share who send every page twice.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Rehearse so many times.")
@json_option
def rehearse(
    folder: Path | None,
    examples: int,
    workers: int,
    spammers: float,
    leavers: float,
    double: float,
    seeds: int,
    as_json: bool,
) -> None:
    """Send a scripted crowd (not people) through the pages of validators, and see whether all promises hold.

    It works in scratch workspaces on the packaged corpus; no model, network or workspace of yours is needed or touched.
    Gold is held against the labels that the sentences carry: with the crowd as told, with one that behaves, and without
    any screening. The exit code is 1 where a promise is broken.
    """
    from tempfile import TemporaryDirectory

    from server.rehearsal import Told
    from server.rehearsal import rehearse as play_rehearsals
    from server.rehearsal_report import broken_promises, rehearsal_data, rehearsal_lines

    told = Told(examples, workers, spammers, leavers, double)
    with TemporaryDirectory() as scratch, progress("rehearse", 3 * seeds, "round") as advance:
        done = play_rehearsals(folder or Path(scratch) / "rehearsal", told, seeds, lambda: advance(1))
    if as_json:
        print_json(rehearsal_data(done))
    else:
        for line in rehearsal_lines(done):
            click.echo(line)
    if broken_promises(done):
        raise SystemExit(1)


def _serve(folder: Path, port: int, *, demo: bool) -> None:
    import os
    import socket

    from werkzeug.serving import make_server

    from dynaround.errors import Busy
    from server.app import create_app

    app = create_app(open_workspace(folder), demo=demo)
    try:
        # Bound here, since the server would print an advice of its own and exit.
        listening = socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise Busy(f"port {port} of {HOST} cannot be used ({reason}); choose another with --port (0: any)") from error
    server = make_server(HOST, port, app, threaded=True, fd=listening.detach())
    try:
        click.echo(f"serving {folder} on http://{HOST}:{server.port}/ (Ctrl-C ends it)")
        server.serve_forever()
    except KeyboardInterrupt:
        # Before the server listens for it; from then on it ends by itself.
        pass
    click.echo("stopped")

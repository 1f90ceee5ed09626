"""The command line: finds the commands of all layers by name, and makes of a person's error one line and a code."""

import errno
import io
import sys
from importlib.metadata import EntryPoint, entry_points

import click

GROUP = "dynaround.commands"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNUSABLE = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
)

STORED_TWICE = "another process stored the same at the same moment ({}); this step was rolled back, run again"
NO_SPACE = "no space left for a database file, or its disk fails ({}); free some and run again, it goes on"

# Said here and not read from the commands, so that help imports none of them.
COMMANDS = {
    "init": "Make a workspace, or bring one up to date.",
    "demo": "Play a whole round on the packaged corpus, and look at it.",
    "train": "Train a model from the pretrained encoder.",
    "reproduce": "Train a model again from its manifest, and compare.",
    "ablate": "Set a model from scratch beside one that goes on from another.",
    "evaluate": "Judge a model on labelled sets, beside those who labelled them.",
    "import": "Make a round of its own from a published file, with train and test drawn anew.",
    "round": "Open, harvest, watch, close and release a round.",
    "solved": "Answer whether a model does as well as people on a round.",
    "report": "Write all figures of a round, a release or published files into one page.",
    "workers": "Let workers in, and bring responses into a round: simulated, replayed, imported.",
    "check": "Say which promises a release or a published file keeps.",
    "rehearse": "Send a scripted crowd through the pages of validators.",
    "serve": "Serve a workspace in the browser.",
    "secret": "Print a new random secret for the server.",
}


class LazyGroup(click.Group):
    """Lists its commands without importing them, and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of a round."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command by its entry point."""
        entry = _entry_point(cmd_name)
        return None if entry is None else entry.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list from `COMMANDS`."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _entry_point(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=name)), None)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Start with: dynaround demo",
)
@click.version_option(package_name="dynaround")
def cli() -> None:
    """Adversarial, dynamic benchmark rounds: sentences that fool a model, five blind responses each, the next model."""


def main() -> None:
    """Run the command line; a person's mistake ends with one sentence and exit code 2, Ctrl-C with 130."""
    _print_whatever_the_locale()
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted; run the same command again and it goes on", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Exception as error:
        message, code = explained(error)
        if message is None:
            raise
        click.echo(f"Error: {message}", err=True)
        sys.exit(code)
    sys.exit(code if isinstance(code, int) else 0)


def _print_whatever_the_locale() -> None:
    # A character that the terminal's encoding lacks is printed as an escape: no reason to end a command halfway.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def explained(error: Exception) -> tuple[str | None, int]:
    """Return the sentence and exit code for an error that a person can mend, or None for a bug."""
    from dynaround.errors import DynaroundError

    if isinstance(error, DynaroundError):
        return str(error), error.exit_code
    if isinstance(error, OSError) and error.errno in _FULL:
        place = f" ({error.filename})" if error.filename else ""
        return f"no space left on the disk{place}; free some and run again, nothing half-written was kept", 2
    if isinstance(error, OSError) and error.errno in _UNUSABLE and error.filename:
        return f"{error.filename} cannot be used ({error.strerror}); choose another place, or mend that one", 2
    return (_explained_database(error) if "sqlite3" in sys.modules else None), 2


def _explained_database(error: Exception) -> str | None:
    # The spool of a harvest is SQLite without SQLAlchemy around it.
    import sqlite3

    from sqlalchemy.exc import DBAPIError, OperationalError

    original = error.orig if isinstance(error, DBAPIError) else error
    reason = next(iter(str(original).strip().splitlines()), type(original).__name__)
    if isinstance(original, sqlite3.Error):
        return _explained_sqlite(getattr(original, "sqlite_errorcode", sqlite3.SQLITE_ERROR), reason)
    if getattr(original, "sqlstate", None) == "23505":
        return STORED_TWICE.format(reason)
    if getattr(original, "sqlstate", None) == "53100":
        return NO_SPACE.format(reason)
    if isinstance(error, OperationalError):
        return f"the database cannot be used: {reason}; check database_url"
    return None


def _explained_sqlite(extended_code: int, reason: str) -> str | None:
    import sqlite3

    if extended_code in (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY):
        return STORED_TWICE.format(reason)
    # The low byte is the primary code; a generic one is wrong SQL, so a bug, as is any other constraint.
    code = extended_code & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return NO_SPACE.format(reason)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "another process has been writing to the database for too long; wait for it, then run again"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return f"a database file is damaged ({reason}); put back a copy of dynaround.sqlite, or delete the one in work/"
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return f"the database cannot be used: {reason}; check database_url and who may write there"
    return None

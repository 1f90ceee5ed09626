"""The command line as a user meets it: in a process of its own, or many commands in one that loads torch once."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

PATIENCE = 300
"""Seconds before a child counts as hung; generous, since the machine may be shared."""

# A child of a background job would ignore Ctrl-C, and a full disk is told by a limit on the size of every file.
_START = """
import os, resource, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
if os.environ.get("TEST_FILE_BYTES"):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["TEST_FILE_BYTES"]),) * 2)
from dynaround.cli import main
main()
"""

_MANY = """
import contextlib, io, json, os, sys, traceback
from dynaround.cli import main
answers = sys.stdout
for line in sys.stdin:
    asked = json.loads(line)
    os.chdir(asked["cwd"])
    os.environ.update(asked["env"])
    sys.argv = ["dynaround", *asked["arguments"]]
    out, err, code = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
    for name in asked["env"]:
        del os.environ[name]
    print(json.dumps([code, out.getvalue(), err.getvalue()]), file=answers, flush=True)
"""


class Outcome(NamedTuple):
    """How a command ended; the code is None where it crashed."""

    code: int | None
    out: str
    err: str


def start(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, file_bytes: int | None = None
) -> subprocess.Popen[str]:
    """Start a command with one thread of torch; no file it writes may grow beyond `file_bytes`."""
    limit = {} if file_bytes is None else {"TEST_FILE_BYTES": str(file_bytes)}
    return subprocess.Popen(
        [sys.executable, "-c", _START, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "DYNAROUND_THREADS": "1", **limit, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def ended(process: subprocess.Popen[str], patience: float = PATIENCE) -> Outcome:
    """Wait for the end of a command."""
    try:
        out, err = process.communicate(timeout=patience)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return Outcome(process.returncode, out, err)


def run(
    *arguments: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    file_bytes: int | None = None,
    patience: float = PATIENCE,
) -> Outcome:
    """Run a command in a process of its own."""
    return ended(start(*arguments, cwd=cwd, env=env, file_bytes=file_bytes), patience)


class ManyCommands:
    """One process that runs command after command, each as `main` would, so that torch is loaded once."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _MANY],
            env={**os.environ, "DYNAROUND_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._process.communicate(timeout=PATIENCE)

    def run(self, *arguments: object, cwd: Path, env: Mapping[str, str] | None = None) -> Outcome:
        """Run one command in the folder `cwd`."""
        assert self._process.stdin and self._process.stdout
        asked = {"arguments": [str(a) for a in arguments], "cwd": str(cwd), "env": dict(env or {})}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Outcome(*json.loads(self._process.stdout.readline()))

"""The command line as a user meets it, each command in a process of its own."""

import atexit
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from weakref import WeakSet

PATIENCE = 300
"""Seconds before a child counts as hung; generous, since the machine may be shared."""

# Loading these takes ten seconds of a slow core, so it is done once; each command is a fork of what has loaded them. So
# what an interpreter decides when it starts (hash seed, encoding, number of OpenMP threads) is the same in all.
LOADED = [
    *("dynaround.cli", "dynaround.commands", "dynaround.training_commands", "rounds.commands", "workers.commands"),
    *("server.commands", "server.app", "server.demo", "server.rehearsal"),
    *("dynaround.training", "dynaround.target_model", "rounds.reporting", "scipy.stats"),
    *("transformers.models.auto.modeling_auto", "transformers.models.bert.modeling_bert"),
]
_COMMAND_LINE = "from dynaround.cli import main; main()"
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(LOADED)


class Outcome(NamedTuple):
    """How a command ended: its exit code, or the negative number of the signal that ended it."""

    code: int | None
    out: str
    err: str


class Command:
    """A command under way; its words go to files, so that it never waits for a reader."""

    def __init__(
        self, program: str, arguments: list[str], cwd: Path | None, env: Mapping[str, str], file_bytes: int | None
    ):
        self._said = Path(tempfile.mkdtemp(prefix="dynaround-command-"))
        self._words: tuple[str, str] | None = None
        self._process = _forks.Process(target=_play, args=(program, arguments, cwd, dict(env), file_bytes, self._said))
        self._process.start()
        _running.add(self)

    @property
    def returncode(self) -> int | None:
        """How it ended; the negative number of a signal that ended it."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._process.exitcode

    def kill(self) -> None:
        """End it on the spot."""
        self._process.kill()

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process.pid
        os.kill(self._process.pid, number)

    def lines(self) -> Iterator[str]:
        """Return the lines that it prints, each as soon as it stands there."""
        read = 0
        while True:
            over = self.poll() is not None
            *whole, _begun = self._printed("out")[read:].split(b"\n")
            for line in whole:
                read += len(line) + 1
                yield line.decode() + "\n"
            if over:
                return
            time.sleep(0.001)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end and return what it said, as Popen does."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("dynaround", timeout or 0)
        if self._words is None:
            self._words = (self._printed("out").decode(), self._printed("err").decode())
            shutil.rmtree(self._said)
        return self._words

    def _printed(self, name: str) -> bytes:
        # Killed at once, it may not have come to open them.
        file = self._said / name
        return file.read_bytes() if file.exists() else b""


def _end_all() -> None:
    """End what a failed test left behind, which the interpreter would otherwise wait for."""
    for command in list(_running):
        command.kill()


_running: WeakSet[Command] = WeakSet()
# Registered after that of multiprocessing, it runs before.
atexit.register(_end_all)


def _play(
    program: str, arguments: list[str], cwd: Path | None, env: Mapping[str, str], file_bytes: int | None, said: Path
) -> None:
    for stream, name in ((sys.stdout, "out"), (sys.stderr, "err")):
        # The number under which libraries and C know the stream stays the same.
        os.dup2(os.open(said / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream.fileno())
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    if cwd is not None:
        os.chdir(cwd)
    # A child of a background job would ignore Ctrl-C, and a full disk is told by a limit on the size of every file.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    sys.argv = ["dynaround", *arguments]
    exec(program, {"__name__": "__main__"})


def _environment(env: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, "DYNAROUND_THREADS": "1", **(env or {})}


def start(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, file_bytes: int | None = None
) -> Command:
    """Start a command with one thread of torch; no file it writes may grow beyond `file_bytes`.

    Variables that Python or a library reads when it is loaded have no effect: for these, `start_interpreter`.
    """
    return Command(_COMMAND_LINE, list(map(str, arguments)), cwd, _environment(env), file_bytes)


def start_program(program: str, *arguments: object) -> Command:
    """Start a few lines of Python, with `arguments` in `sys.argv[1:]`."""
    return Command(program, list(map(str, arguments)), None, _environment(None), None)


def start_interpreter(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a command in an interpreter of its own, for what is decided when one starts."""
    return subprocess.Popen(
        [sys.executable, "-m", "dynaround", *map(str, arguments)],
        cwd=cwd,
        env=_environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def ended(process: Command | subprocess.Popen[str], patience: float = PATIENCE) -> Outcome:
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

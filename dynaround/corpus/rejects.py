"""What a reader could not use: each rejected row with its line and reason, the counts, and the file that lists them."""

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from dynaround.errors import BadInput, NoSpace


class Rejected(NamedTuple):
    """One row that was left out: the line it starts on, from 1 and counting blank lines (parquet: the row), and why."""

    line: int
    reason: str


@dataclass
class ReadSummary:
    """Counts that a reader keeps while it runs; `rows_read` is `loaded` plus `rejected` once it has ended."""

    rows_read: int = 0
    loaded: int = 0
    rejected: int = 0
    blank_lines: int = 0


class RejectsFile:
    """Collects rejected rows as JSON lines `{"line": 4, "reason": "..."}`; give the open object as `on_reject`.

    The file appears under its name when the block ends without an error, in place of an older one; without rejects
    none is left there. After an error an older file stays as it was. Raises BadInput where the file cannot be
    written and NoSpace where the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._partial = path.with_name(f".{path.name}.partial")
        self._stream: IO[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __call__(self, rejected: Rejected, corpus: str | None = None) -> None:
        """Note one rejected row; `corpus` is written before it where a file lists the rows of several."""
        named = {} if corpus is None else {"corpus": corpus}
        try:
            if self._stream is None:
                self._stream = self._partial.open("w", encoding="utf-8", newline="\n")
            self._stream.write(json.dumps({**named, **rejected._asdict()}) + "\n")
        except OSError as problem:
            raise self._refusal(problem) from problem
        self.count += 1

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._stream is not None:
                self._stream.close()
            if kind is not None:
                return
            if self.count:
                os.replace(self._partial, self.path)
            else:
                self.path.unlink(missing_ok=True)
        except OSError as fault:
            raise self._refusal(fault) from fault
        finally:
            self._partial.unlink(missing_ok=True)

    def _refusal(self, problem: OSError) -> BadInput | NoSpace:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            return NoSpace(f"there is no room left for {self.path}; free some and read the corpus again")
        return BadInput(f"{self.path}, the list of rejected rows, cannot be written: {problem.strerror}")

"""Where a corpus lies: KIND:PATH, and the numbered UTF-8 lines of a plain or gzip file."""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

from dynaround.errors import BadInput, NotFound

MAX_LINE_BYTES = 8 * 2**20
"""A longer line is rejected unread. The longest reviews have some 5,000 (Yelp) to 40,000 characters (Amazon); a line
of more is a damaged file, or one made to fill the memory."""

MAX_EXPANSION = 100
"""How many times its size a gzip file may grow. Review text grows 2.5 to 4 times, the most repetitive JSON lines about
20 times, zeros 1,030 times."""

FREE_EXPANSION = 64 * 2**20
"""Bytes that any gzip file may grow to, whatever its size: they do no harm."""

_GZIP_MARK = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Source(NamedTuple):
    """A corpus on disk and how it is written."""

    kind: str
    path: Path

    def __str__(self) -> str:
        return f"{self.kind}:{self.path}"


class Line(NamedTuple):
    """One physical line with its line break; `problem` says why a row with this line must be rejected."""

    number: int
    text: str
    problem: str | None = None


def parse_spec(spec: str, kinds: Sequence[str]) -> Source:
    """Split "KIND:PATH"; raise BadInput where no colon stands or the kind is none of `kinds`."""
    kind, colon, path = spec.partition(":")
    if not colon or not path:
        raise BadInput(f"{spec!r} does not say what is read; write KIND:PATH with {', '.join(kinds)} for KIND")
    if kind not in kinds:
        raise BadInput(f"{spec!r} names the kind {kind!r}, which is none of {', '.join(kinds)}")
    return Source(kind, Path(path))


def check_file(path: Path) -> None:
    """Raise NotFound where no file is, BadInput where `path` is a folder or an empty file."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name one file in it")
    if not path.exists():
        raise NotFound(f"there is no file {path}")
    if path.is_file() and path.stat().st_size == 0:
        raise BadInput(f"{path} is empty")


def why_unstorable(text: str) -> str | None:
    """Say why a database cannot keep `text`, or return None.

    PostgreSQL keeps neither NUL nor half a surrogate pair; SQLite would, so both are refused everywhere alike.
    """
    found = _UNSTORABLE.search(text)
    if found is None:
        return None
    what = "a NUL character" if found.group() == "\0" else f"half a surrogate pair ({ascii(found.group())})"
    return f"{what} at character {found.start()}, which PostgreSQL cannot store"


def numbered_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a plain or gzip file as UTF-8, whatever the locale; a byte order mark is dropped.

    A line that is not UTF-8 or too long comes with its `problem`, and reading goes on. Raises BadInput for a file
    that cannot be read, is UTF-16, or is a gzip file that is damaged, cut short (after all its whole lines were
    yielded) or grows beyond `MAX_EXPANSION`.
    """
    for number, raw in enumerate(_raw_lines(path), 1):
        if number == 1:
            if raw.startswith(_UTF16_MARKS):
                raise BadInput(f"{path} is written in UTF-16; save it as UTF-8")
            raw = raw.removeprefix(_UTF8_MARK)
        if len(raw) > MAX_LINE_BYTES:
            yield Line(number, "", f"the line is longer than {MAX_LINE_BYTES:,} bytes")
            continue
        try:
            yield Line(number, raw.decode("utf-8"))
        except UnicodeDecodeError as fault:
            problem = f"byte {fault.start + 1} of line {number} is not UTF-8 (0x{raw[fault.start]:02x})"
            yield Line(number, raw.decode("utf-8", errors="replace"), problem)


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Yield lines as bytes; of one beyond the limit only the first `MAX_LINE_BYTES` + 1 bytes."""
    total = number = 0
    try:
        with ExitStack() as stack:
            stream, most = _opened(path, stack)
            while raw := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                rest = raw
                while True:
                    total += len(rest)
                    if most is not None and total > most:
                        raise BadInput(
                            f"{path} grows beyond {most:,} bytes, more than {MAX_EXPANSION} times its size, at line "
                            f"{number}; unpack it yourself if that is right"
                        )
                    if rest.endswith(b"\n") or len(rest) <= MAX_LINE_BYTES:
                        break
                    rest = stream.readline(MAX_LINE_BYTES + 1)
                yield raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise BadInput(f"{path} is cut short or damaged after line {number} ({problem}); fetch it again") from problem
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror or problem}") from problem


def _opened(path: Path, stack: ExitStack) -> tuple[IO[bytes] | gzip.GzipFile, int | None]:
    """Open by the first bytes, not by the name; return the stream and how many bytes it may yield."""
    plain = stack.enter_context(path.open("rb"))
    if plain.peek(2)[:2] == _GZIP_MARK:
        unpacked = stack.enter_context(gzip.GzipFile(fileobj=plain, mode="rb"))
        return unpacked, max(FREE_EXPANSION, MAX_EXPANSION * path.stat().st_size)
    if path.suffix.lower() == ".gz":
        raise BadInput(f"{path} is no gzip file; fetch it again, or drop .gz from its name")
    return plain, None

"""Folders that are complete when their `manifest.json` exists, and the hashes that manifests hold."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dynaround.errors import BadInput, NoSpace, NotFound

MANIFEST = "manifest.json"
# A limit on the size of a file (of the process, or FAT32's 4 GB) leaves a person with the same thing to do.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def data_hash(value: Any) -> str:
    """Return the SHA-256 of plain data in one canonical JSON form, in hex."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@contextmanager
def _room_for(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise NoSpace(
            f"there is no room left to write {path} ({error.strerror}); free some and run again, nothing of it was kept"
        ) from error


def write_json(path: Path, value: Any) -> None:
    """Write plain data so that a reader sees the old file or the whole new one; NaN is refused, JSON has none.

    Raises ValueError for NaN and NoSpace where the disk is full.
    """
    part = path.with_name(path.name + ".part")
    try:
        with _room_for(path), part.open("w", encoding="utf-8") as handle:
            json.dump(value, handle, indent=2, allow_nan=False)
            handle.write("\n")
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return a folder's manifest; raise NotFound for a missing or incomplete folder, BadInput for a damaged one."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise NotFound(f"there is no folder {folder}")
    if not path.is_file():
        raise NotFound(f"{folder} has no {MANIFEST}: it is incomplete, or no model or release; make it again")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{path} is damaged ({error}); make the folder again") from error
    if not isinstance(manifest, dict):
        raise BadInput(f"{path} is damaged (not an object); make the folder again")
    return manifest


def release_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a release of ours, or None where `folder` holds none or that of something else.

    Raises BadInput for a damaged one: it may be ours.
    """
    if not (folder / MANIFEST).is_file():
        return None
    manifest = read_manifest(folder)
    return manifest if manifest.get("kind") == "release" else None


@contextmanager
def completed_folder(folder: Path) -> Iterator[Path]:
    """Fill a new folder beside `folder`, then put it in place in one step; on any exception nothing is left.

    The caller writes the manifest last. A leftover of a killed run is replaced. Raises BadInput where `folder` already
    exists with something in it, NoSpace where the disk is full.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} already exists and is not empty; name another one")
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with _room_for(folder):
            part.mkdir(parents=True)
            yield part
        if folder.exists():
            folder.rmdir()
        os.rename(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def require_unchanged(folder: Path, files: Mapping[str, str]) -> None:
    """Raise BadInput naming the first of `files` (SHA-256 by relative name) that is missing or has other content."""
    for name, expected in files.items():
        path = folder / name
        if not path.is_file() or file_hash(path) != expected:
            state = "is missing" if not path.is_file() else "has changed"
            raise BadInput(f"{path} {state} since its {MANIFEST} was written; put it back, or make the folder again")


def file_hashes(folder: Path) -> Mapping[str, str]:
    """Return the SHA-256 of every file of a folder but its manifest, by relative name in order."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    return {p.relative_to(folder).as_posix(): file_hash(p) for p in files}

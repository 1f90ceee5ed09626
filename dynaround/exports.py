"""What is derived from a model for one machine, kept beside its folder: exports, and how trials of back ends ended.

All of it may be deleted at any time and is made again; the model's own folder, whose files are hashed, is not touched.
"""

import shutil
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import FileLock

from dynaround.errors import BadInput, NotFound
from dynaround.folders import (
    MANIFEST,
    completed_folder,
    data_hash,
    file_hashes,
    read_manifest,
    require_unchanged,
    write_json,
)
from dynaround.processor import processor_features

SIDE_FOLDER = ".back-ends"
_PACKAGES = ("openvino", "torch", "transformers")


def side_folder(folder: Path, model_hash: str) -> Path:
    """Return where what is derived from the model with this hash in `folder` is kept; make it."""
    side = folder.parent / SIDE_FOLDER / model_hash[:16]
    side.mkdir(parents=True, exist_ok=True)
    return side


def machine() -> dict[str, Any]:
    """Return what an export and a trial hold for: versions of the packages, features of the processor."""
    return {"versions": {name: _version(name) for name in _PACKAGES}, "processor": processor_features()}


def machine_key() -> str:
    """Return a short name for `machine`."""
    return data_hash(machine())[:12]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def exported(side: Path, name: str, export: Callable[[Path], None]) -> Path:
    """Return the complete folder `name-KEY` in `side`, filled by `export` where it is missing or damaged.

    Processes that want the same one wait for the first.
    """
    folder = side / f"{name}-{machine_key()}"
    with FileLock(side / f"{folder.name}.lock"):
        if not _is_sound(folder):
            shutil.rmtree(folder, ignore_errors=True)
            with completed_folder(folder) as part:
                export(part)
                write_json(part / MANIFEST, {"kind": "export", **machine(), "files": dict(file_hashes(part))})
    return folder


def _is_sound(folder: Path) -> bool:
    try:
        require_unchanged(folder, read_manifest(folder)["files"])
    except (NotFound, BadInput, KeyError):
        return False
    return True

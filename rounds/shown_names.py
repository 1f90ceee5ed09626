"""Names of files and plans as pages and reports may show them: nothing of the places on the launcher's disk."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any


def set_name(spec: str) -> str:
    """Return a spec without the place on the launcher's disk: the file's name, for a release also its folder's.

    `round:N/SPLIT` is no place on a disk and stays.
    """
    kind, _, path = spec.partition(":")
    parts = PurePath(path).parts[-2:] if kind in ("release", "round") else PurePath(path).parts[-1:]
    return f"{kind}:{'/'.join(part for part in parts if part != '/')}"


def shown_plan(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return a plan in words, amounts as people read them, without the place of the reviews on the launcher's disk."""
    shown = {}
    for key, value in plan.items():
        if key == "reviews":
            value = set_name(value)
        elif key == "pay":
            # Stored in hundredths.
            value = {name: part if name == "currency" else f"{part / 100:.2f}" for name, part in value.items()}
        if isinstance(value, Mapping):
            value = ", ".join(f"{name.replace('_', ' ')}: {part}" for name, part in value.items()) or "none"
        shown[key.replace("_", " ").replace("sha256", "SHA-256")] = "not set" if value is None else str(value)
    return shown

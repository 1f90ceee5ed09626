"""The secret of the demo, which nobody has to set: made once and kept in its workspace, readable by its owner alone."""

import os
import secrets

from dynaround.settings import Workspace

FILE = "demo-secret"


def random_secret() -> str:
    """Return 256 random bits as text."""
    return secrets.token_urlsafe(32)


def demo_secret(workspace: Workspace) -> str:
    """Return the secret of a demo, the same after a restart, so that whoever plays stays logged in."""
    path = workspace.work / FILE
    try:
        # Only one of two processes makes it; never readable by others, not even for a moment.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii")
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(random_secret())
    return path.read_text(encoding="ascii")

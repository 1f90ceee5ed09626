"""One family of errors for people: each says in one sentence what was found, where, and what to do.

The command line turns them into one line and exit code 2, the server into a page. Everything else is a bug and crashes.
"""


class DynaroundError(Exception):
    """Something a person can cause and mend."""

    exit_code = 2


class BadInput(DynaroundError):
    """A file, row, option or form field that cannot be used as it is."""


class NotFound(DynaroundError):
    """A round, model, worker, file or folder that is not there."""


class IllegalMove(DynaroundError):
    """A step that the state of the round does not allow."""


class Busy(DynaroundError):
    """Another process is at the same work in this workspace."""


class NotAllowed(DynaroundError):
    """Something that this person may not do, or not now."""


class Unavailable(DynaroundError):
    """The live model cannot answer at this moment; what was asked is kept and can be asked again."""


class NotInstalled(DynaroundError):
    """An optional package that this step needs is missing."""


class NoSpace(DynaroundError):
    """The disk or a quota is full; nothing half-written was kept."""

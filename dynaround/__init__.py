"""dynaround: adversarial, dynamic benchmark rounds. This package is the core: it knows no round, worker or page."""

from importlib.metadata import version

__version__ = version("dynaround")

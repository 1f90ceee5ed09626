"""The kinds of task: an explicit list, one line a kind."""

from dynaround.errors import NotFound
from dynaround.task import Task
from dynaround.tasks.sentiment import SENTIMENT

TASKS: dict[str, Task] = {
    SENTIMENT.name: SENTIMENT,
}

DEFAULT = SENTIMENT.name


def get_task(name: str) -> Task:
    """Return the kind of task called `name`; raise NotFound with the names there are."""
    if name not in TASKS:
        raise NotFound(f"there is no kind of task called {name!r}; there is {', '.join(sorted(TASKS))}")
    return TASKS[name]

"""The entry for servers of several processes: `DYNAROUND_WORKSPACE=my-benchmark gunicorn -w 3 'server.wsgi:app()'`.

The workspace is named by DYNAROUND_WORKSPACE (without it: the folder that the server was started in), the names that it
answers to by the setting `hosts`. Every process makes its own application, so it must not be loaded before they fork.
"""

import os
from functools import partial
from pathlib import Path

from flask import Flask
from sqlmodel import select

from dynaround.database import reading
from dynaround.errors import BadInput
from dynaround.settings import CONFIG_NAME, Workspace
from dynaround.tables import OPEN, Round
from dynaround.tasks import get_task
from server.access import ENGINE
from server.app import create_app
from server.live_model import MODELS


def app() -> Flask:
    """Make the application of one process; raise BadInput where no host or no secret is set."""
    workspace = Workspace(Path(os.environ.get("DYNAROUND_WORKSPACE", ".")))
    if not workspace.settings.hosts:
        raise BadInput(
            f"no host is set that people open the server under; set `hosts` in {CONFIG_NAME}, or DYNAROUND_HOSTS, "
            'such as ["bench.example.org"]'
        )
    made = create_app(workspace, hosts=workspace.settings.hosts)
    warm_models(made)
    # Where it was loaded before the fork after all: two processes on one connection would mix up their answers.
    os.register_at_fork(after_in_child=partial(made.extensions[ENGINE].dispose, close=False))
    return made


def warm_models(made: Flask) -> None:
    """Begin to load the models that people write against in open rounds: the first author must not wait for it."""
    with reading(made.extensions[ENGINE]) as session:
        rounds = session.exec(select(Round).where(Round.state == OPEN)).all()
    for round_ in rounds:
        if round_.plan.get("authoring") is not None:
            made.extensions[MODELS].for_round(round_, get_task(round_.task).model_labels).warm()

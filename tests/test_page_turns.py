"""Pages of one process that take turns are made one after the other."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask

from dynaround.settings import Workspace
from server.app import create_app
from server.page_turns import TURN, page_turn
from tests.site import SECRET, Clock
from tests.validate_site import Validator, add_validated_round, admit, responses


class Counted:
    """Counts how many are inside at once, and how many were at most."""

    def __init__(self) -> None:
        self._own = threading.Lock()
        self.inside = self.most = 0

    def stay(self) -> None:
        with self._own:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.02)
        with self._own:
            self.inside -= 1


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def bare(counted: Counted) -> Flask:
    """A server with a page that computes and one that fails."""
    app = Flask("bare")
    app.extensions[TURN] = threading.Lock()

    @app.get("/computes")
    def computes() -> str:
        with page_turn():
            counted.stay()
        return "done"

    @app.get("/fails")
    def fails() -> str:
        with page_turn():
            raise ValueError

    return app


def ask_four_at_once(app: Flask, address: str) -> list[int]:
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(lambda _: app.test_client().get(address).status_code, range(4)))


def test_one_page_is_made_at_a_time(bare: Flask, counted: Counted) -> None:
    assert ask_four_at_once(bare, "/computes") == [200] * 4 and counted.most == 1


def test_after_a_failure_the_next_has_its_turn(bare: Flask) -> None:
    assert ask_four_at_once(bare, "/fails") == [500] * 4 and not bare.extensions[TURN].locked()
    assert ask_four_at_once(bare, "/computes") == [200] * 4


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
def test_validators_pages_wait_for_their_turn(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    made = Workspace(workspace.root)
    app, engine = create_app(made, clock=Clock()), made.engine()
    one, other = add_validated_round(engine, examples=12)[:2]
    turn = app.extensions[TURN]
    for worker in (one, other):
        admit(app, engine, worker)
    giving, asking = Validator(app, one), Validator(app, other)
    giving.page_of()
    with ThreadPoolExecutor(2) as threads:
        with turn:
            asked = [threads.submit(asking.page_of), threads.submit(giving.give_in)]
            time.sleep(0.3)
            assert not any(one.done() for one in asked) and responses(engine) == []
        assert [one.result().status_code for one in asked] == [200, 200]
    assert len(responses(engine)) == 10
    made.close()

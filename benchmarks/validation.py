"""How many responses a running server takes from validators that never pause, beside a route that only inserts.

Run: python -m benchmarks.validation [--database sqlite|postgresql] [--seconds 10] [--points 1 8 16 64]; 5,000 examples,
ten places a page, gunicorn on two cores, which the validators share. Each validator is a browser's worth of requests
over one connection: a page is fetched, all its sentences are answered, and it is given in. The other route stands in
the same server, asks for the same log-in and the same token of a form, takes turns as pages do, and inserts ten rows in
one transaction. Beside the rates stands what a page (fetched and given in) and an insertion cost the server, in
milliseconds of processor without the database's own processes. At the end the database is held against what was
acknowledged. Then the cost of the next page, by direct calls, as a round grows.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from sqlalchemy import Column, DateTime, Engine, Integer, MetaData, String, Table, insert, text
from sqlmodel import select

from benchmarks.authors import processor_seconds
from dynaround.database import reading, writing
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import Round, Worker
from tests.http_validators import Validator, all_work, faults, prepare, serving
from workers.places import PageSettings, PageView, next_page

if TYPE_CHECKING:
    from flask import Flask

EXAMPLES, VALIDATORS, CHECKS = 5000, 64, 40
POINTS = (1, 8, 16, 64)
ROWS = 10
PROCESSES = {"sqlite": (2, 8), "postgresql": (2, 8)}
"""Processes and threads of gunicorn for each database."""
SIZES = (1_000, 10_000, 100_000)
LEFT, CALLS = 1_000, 200
"""Examples that are not done when the cost of the next page is measured, and how many pages are asked for."""
INSERT = "/benchmark/insert"

inserted = Table(
    "benchmark_inserted",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("example", Integer, nullable=False),
    Column("worker", Integer, nullable=False),
    Column("label", String, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False),
)


def inserting_app() -> "Flask":
    """Make the application of one process, with one more route: it inserts ten rows in one transaction."""
    from server import wsgi
    from server.access import current_engine, current_time, current_worker_id, workers_only
    from server.page_turns import page_turn

    app = wsgi.app()

    @app.post(INSERT)
    @workers_only
    def insert_only() -> tuple[str, int]:
        rows = [
            {"example": place, "worker": current_worker_id(), "label": "a label", "at": current_time()}
            for place in range(ROWS)
        ]
        with page_turn(), writing(current_engine()) as session:
            session.execute(insert(inserted), rows)
        return "", 201

    return app


class Inserter(Validator):
    """Whoever sends the same form again and again to the route that only inserts."""

    def work(self, until: Callable[[], bool]) -> None:
        """Send until told to stop."""
        form = {f"{place}.answer": "a label" for place in range(1, ROWS + 1)}
        while not until():
            start = time.monotonic()
            status, _ = self.send("POST", INSERT, urlencode({"csrf_token": self.token, "page": "1", **form}))
            self.giving_in.append((start, time.monotonic() - start))
            if status != 201:
                self.failed.append(str(status))
        self.close()


def milliseconds(times: Sequence[float]) -> str:
    """Return p50 and p95 of seconds."""
    ordered = sorted(times)
    return f"{1000 * statistics.median(ordered):8.1f}{1000 * ordered[int(0.95 * (len(ordered) - 1))]:8.1f}"


class Spent(NamedTuple):
    """Seconds by the clock, until the last request that was under way had its answer, and of the server's processor."""

    clock: float
    processor: float


def run_for(people: Sequence[Validator], seconds: float, server: int) -> Spent:
    """Let them all work for so long, and return what was spent."""
    used, start = processor_seconds(server), time.monotonic()
    threads: list[threading.Thread] = all_work(people, lambda: time.monotonic() > start + seconds)
    for thread in threads:
        thread.join()
    return Spent(time.monotonic() - start, processor_seconds(server) - used)


def measure(workspace: Workspace, kind: str, seconds: float, points: Sequence[int]) -> None:
    """Print the figures of all points, and what the database says at the end."""
    processes, threads = PROCESSES[kind]
    cookies = prepare(workspace, examples=EXAMPLES, workers=VALIDATORS, checks=CHECKS)
    engine = workspace.engine()
    inserted.create(engine)
    with reading(engine) as session:
        ids = list(session.exec(select(Worker.id).order_by(Worker.id)))
    print(f"{kind}: {processes} processes of {threads} threads, {EXAMPLES:,} examples, {seconds:g} s a point")
    print(
        f"{'validators':>10}{'responses/s':>13}{'pages/s':>9}{'fetch p50':>10}{'p95':>8}{'give in':>9}{'p95':>8}",
        end="",
    )
    print(f"{'insert-only rows/s':>20}{'p50':>8}{'p95':>8}{'ratio':>7}{'ms a page':>11}{'an insertion':>14}{'load':>6}")
    everybody = []
    with serving(
        workspace, processes=processes, threads=threads, application="benchmarks.validation:inserting_app()"
    ) as (
        port,
        process,
    ):
        warm = [Validator(port, cookie) for cookie in cookies]
        run_for(warm, 3, process.pid)
        everybody.append(warm)
        for count in points:
            some = [Validator(port, one.cookie) for one in warm[:count]]
            spent = run_for(some, seconds, process.pid)
            everybody.append(some)
            others = [Inserter(port, one.cookie, token=mine.token) for one, mine in zip(warm, some, strict=False)]
            tell(count, some, others, spent, run_for(others, seconds, process.pid))
    for people in everybody:
        found = faults(engine, people, ids[: len(people)])
        print(*(found or [f"{len(people)} validators: nothing lost, doubled or served to another"]), sep="; ")


def tell(
    count: int, some: Sequence[Validator], others: Sequence[Validator], validating: Spent, inserting: Spent
) -> None:
    """Print one line: of the validators, and of those who only insert."""
    done = sum(len(one.told) for one in some)
    responses = sum(len(labels) for one in some for labels in one.told.values()) / validating.clock
    fetching = [spent for one in some for _, spent in one.fetching]
    giving_in = [spent for one in some for _, spent in one.giving_in]
    sent = [spent for one in others for _, spent in one.giving_in]
    rows = ROWS * len(sent) / inserting.clock
    pages = done / validating.clock
    print(f"{count:10}{responses:13.0f}{pages:9.1f}{milliseconds(fetching):>18}{milliseconds(giving_in):>17}", end="")
    failed = sum(len(one.failed) for one in [*some, *others])
    wrong = f"  {failed} failed" if failed else ""
    costs = (1000 * validating.processor / max(1, done), 1000 * inserting.processor / max(1, len(sent)))
    print(f"{rows:20.0f}{milliseconds(sent)}{responses / rows:7.2f}{costs[0]:11.1f}{costs[1]:14.1f}", end="")
    print(f"{os.getloadavg()[0]:6.1f}{wrong}", flush=True)


def cost_of_next_page(workspace: Workspace, examples: int) -> None:
    """Print what the next page costs where all but some examples are done, by direct calls for workers who are new."""
    prepare(workspace, examples=examples, workers=CALLS + 5)
    engine, now = workspace.engine(), datetime.now(UTC)
    with reading(engine) as session:
        round_ = session.exec(select(Round)).one()
        people = list(session.exec(select(Worker).order_by(Worker.id)))
    ask(engine, round_, people[-1], now)
    finish(engine, examples - LEFT, [worker.id for worker in people[-5:]])
    seconds = []
    for worker in people[:CALLS]:
        start = time.perf_counter()
        found = ask(engine, round_, worker, now)
        seconds.append(time.perf_counter() - start)
        assert isinstance(found, PageView), found
    print(
        f"  {examples:9,} examples, {max(0, examples - LEFT):,} done: next page {milliseconds(seconds)} ms (p50, p95)"
    )


def ask(engine: Engine, round_: Round, worker: Worker, now: datetime) -> object:
    """Ask for the next page of a worker."""
    with writing(engine) as session:
        settings = PageSettings(silent_share=0)
        return next_page(session, round_, worker, settings, validating=True, collecting=False, now=now, seed=7)


def finish(engine: Engine, done: int, workers: Sequence[int | None]) -> None:
    """Let so many examples, the first ones, be answered by five workers, each on one long page, in filled batches."""
    if done <= 0:
        return
    some = "FROM batch_example e JOIN example x ON x.id = e.example_id WHERE x.number <= :done"
    with writing(engine) as session:
        connection = session.connection()
        connection.execute(text("DELETE FROM seat"))
        connection.execute(text("DELETE FROM lease"))
        connection.execute(text("DELETE FROM assignment"))
        connection.execute(text("DELETE FROM page"))
        for place, worker in enumerate(workers, 1):
            names = {"done": done, "worker": worker, "place": place, "at": datetime.now(UTC)}
            for statement in (
                "INSERT INTO page (id, round_id, worker_id, given_in) SELECT :place, id, :worker, :at FROM round",
                f"INSERT INTO assignment (page_id, example_id, worker_id) SELECT :place, e.example_id, :worker {some}",
                "INSERT INTO response (example_id, worker_id, page_id, task, label, at) "
                f"SELECT e.example_id, :worker, :place, x.task, x.prediction, :at {some}",
                "INSERT INTO seat (example_id, place, worker_id, page_id, response_id) "
                "SELECT example_id, :place, :worker, :place, id FROM response WHERE worker_id = :worker",
            ):
                connection.execute(text(statement), names)
        connection.execute(
            text(
                "UPDATE batch_example SET batch_id = (SELECT min(id) FROM batch), filled_at = :at "
                "WHERE example_id IN (SELECT id FROM example WHERE number <= :done)"
            ),
            {"done": done, "at": datetime.now(UTC)},
        )
        connection.execute(
            text(
                "UPDATE batch_example SET batch_id = NULL "
                "WHERE example_id IN (SELECT id FROM example WHERE number > :done)"
            ),
            {"done": done},
        )
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT setval(pg_get_serial_sequence('page', 'id'), 100)"))
        # As autovacuum would have done long before a round is so large.
        connection.execute(text("ANALYZE"))


@contextmanager
def databases(kind: str) -> Iterator[Callable[[], str]]:
    """Yield what makes the URL of a new, empty database; of SQLite none is named, and the workspace has its own."""
    if kind == "sqlite":
        yield lambda: ""
        return
    import pgserver
    from sqlalchemy import create_engine, make_url

    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent)
        folder.chmod(0o755)
        (folder / "runtime").mkdir(mode=0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "runtime"))
        server = pgserver.get_server(folder / "data", cleanup_mode="stop")
        url = make_url(server.get_uri())
        made: list[str] = []

        def make() -> str:
            made.append(f"benchmark_{len(made)}")
            admin = create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
            with admin.connect() as connection:
                connection.execute(text(f"CREATE DATABASE {made[-1]}"))
            admin.dispose()
            return url.set(database=made[-1]).render_as_string(hide_password=False)

        try:
            yield make
        finally:
            server.cleanup()


@contextmanager
def new_workspace(make: Callable[[], str]) -> Iterator[Workspace]:
    """Yield a workspace on a new database."""
    os.environ["DYNAROUND_DATABASE_URL"] = make()
    with tempfile.TemporaryDirectory() as parent:
        workspace = create_workspace(Path(parent) / "benchmark")
        yield workspace
        workspace.close()


def main() -> None:
    """Measure each database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=tuple(PROCESSES), action="append")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--points", type=int, nargs="+", default=POINTS, help="validators at once, point by point")
    parser.add_argument("--only-growth", action="store_true", help="measure the cost of the next page alone")
    parser.add_argument("--no-growth", action="store_true", help="leave out the cost of the next page as a round grows")
    given = parser.parse_args()
    for kind in given.database or PROCESSES:
        with databases(kind) as make:
            if not given.only_growth:
                with new_workspace(make) as workspace:
                    measure(workspace, kind, given.seconds, given.points)
            for size in () if given.no_growth else SIZES:
                with new_workspace(make) as workspace:
                    cost_of_next_page(workspace, size)


if __name__ == "__main__":
    main()

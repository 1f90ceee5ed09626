"""What holds of a validated round at every moment, whoever did what, and a walk of workers who do anything."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping

import pytest
from sqlalchemy import Engine

from dynaround.database import writing
from dynaround.errors import NotAllowed
from dynaround.labels import RESPONSES
from dynaround.tables import (
    LEFT_OUT,
    RELEASED_HOLD,
    Assignment,
    Batch,
    BatchExample,
    CheckPlace,
    Example,
    Flag,
    Hold,
    Lease,
    Page,
    Removal,
    Response,
    Seat,
    Uncounted,
)
from tests.validators import (
    LEASE,
    MOMENT,
    add_examples,
    add_round,
    ask,
    flag_at,
    number_after,
    remove,
    rows_of,
    say,
    take_back,
    the_round,
)
from workers.holds import decide_hold
from workers.places import PageSettings, PageView


def assert_sound(engine: Engine) -> None:
    """Assert what holds of a round without imported responses whenever no transaction is under way."""
    seats, responses, leases = rows_of(engine, Seat), rows_of(engine, Response), rows_of(engine, Lease)
    uncounted = {row.response_id for row in rows_of(engine, Uncounted)}
    by_id = {response.id: response for response in responses}
    pages = {page.id: page for page in rows_of(engine, Page)}
    examples = {example.id: example for example in rows_of(engine, Example)}
    assigned = {(row.page_id, row.example_id): row.worker_id for row in rows_of(engine, Assignment)}
    flagged = {(row.example_id, row.worker_id) for row in rows_of(engine, Flag)}

    answered = [seat for seat in seats if seat.response_id is not None]
    held = [seat for seat in seats if seat.response_id is None]
    assert {seat.response_id for seat in answered} == set(by_id) - uncounted, "a place for each response that counts"
    for seat in answered:
        response = by_id[seat.response_id]
        assert (seat.example_id, seat.worker_id) == (response.example_id, response.worker_id)
        assert seat.page_id == response.page_id and pages[seat.page_id].given_in is not None
    places = {lease.page_id: lease for lease in leases}
    for seat in held:
        assert places[seat.page_id].until is not None, "a held place has a lease"
    for lease in leases:
        assert pages[lease.page_id].given_in is None and pages[lease.page_id].worker_id == lease.worker_id
    assert max(Counter(seat.example_id for seat in seats).values(), default=0) <= RESPONSES
    for (page_id, example_id), worker_id in assigned.items():
        assert pages[page_id].worker_id == worker_id != examples[example_id].author_id
    for response in responses:
        assert assigned[response.page_id, response.example_id] == response.worker_id
        assert (response.example_id, response.worker_id) not in flagged
    assert not flagged & {(seat.example_id, seat.worker_id) for seat in seats}
    gone = {row.worker_id for row in rows_of(engine, Removal) if row.reinstated_at is None}
    assert not gone & {seat.worker_id for seat in seats}
    _assert_sound_batches(engine, Counter(seat.example_id for seat in answered), {seat.example_id for seat in seats})
    _assert_sound_checks(engine, pages)


def _assert_sound_batches(engine: Engine, answers: Mapping[int, int], seated: set[int]) -> None:
    held = {row.example_id for row in rows_of(engine, Hold) if row.decision != RELEASED_HOLD}
    members: dict[int, list[BatchExample]] = defaultdict(list)
    for row in rows_of(engine, BatchExample):
        assert (row.filled_at is not None) == (answers[row.example_id] == RESPONSES)
        assert row.filled_at is None or not row.reopened
        if row.batch_id is not None:
            members[row.batch_id].append(row)
    assert seated <= {row.example_id for rows in members.values() for row in rows}
    for batch in rows_of(engine, Batch):
        lacking = [row for row in members[batch.id] if row.filled_at is None and row.example_id not in held]
        assert (batch.filled_at is None) == bool(lacking)


def _assert_sound_checks(engine: Engine, pages: Mapping[int, Page]) -> None:
    for place in rows_of(engine, CheckPlace):
        assert pages[place.page_id].worker_id == place.worker_id
    assert max(Counter(place.page_id for place in rows_of(engine, CheckPlace)).values(), default=0) <= 1


def assert_fair(engine: Engine, worker_id: int, page: PageView, settings: PageSettings) -> None:
    """Assert of a page that was just made that it has the right examples, and is only short where there are no more."""
    seats, holds = rows_of(engine, Seat), rows_of(engine, Hold)
    on_page = {seat.example_id for seat in seats if seat.page_id == page.page_id}
    before = Counter(seat.example_id for seat in seats if seat.page_id != page.page_id)
    kept = {hold.example_id for hold in holds if hold.decision != RELEASED_HOLD}
    had = {row.example_id for row in rows_of(engine, Assignment) if row.worker_id == worker_id} - on_page
    keys = {
        row.example_id: (not row.reopened, row.batch_id, before[row.example_id])
        for row in rows_of(engine, BatchExample)
        if row.batch_id is not None
        and row.filled_at is None
        and row.author_id != worker_id
        and row.example_id not in kept | had
        and before[row.example_id] < RESPONSES
    }
    assert on_page <= set(keys)
    left = [keys[example_id] for example_id in set(keys) - on_page]
    assert not left or max(keys[example_id] for example_id in on_page) <= min(left)
    assert len(page.places) == settings.places or not left and len(page.places) < settings.places


class Walk:
    """Workers who do anything in any order, while examples come, leases end, and people are removed and let in."""

    def __init__(self, engine: Engine, seed: int, workers: int = 9, settings: PageSettings | None = None):
        self.engine, self.random, self.now = engine, random.Random(seed), MOMENT
        self.settings = settings or PageSettings(places=4, batch=8, silent_share=0.4)
        self.ids = add_round(engine, examples=10, workers=workers, authored_by=[0, 1, 1], checks=6)
        self.pages: dict[int, list[PageView]] = defaultdict(list)
        self.removed: set[int] = set()

    def run(self, times: int = 7) -> None:
        """Do everything so often, and eight times as often what workers do most often."""
        once = [self.wait, self.add, self.remove, self.take_back, self.decide, *[self.ask, self.give_in] * 8]
        deeds = once * times
        self.random.shuffle(deeds)
        for deed in deeds:
            deed()
            assert_sound(self.engine)

    def ask(self) -> None:
        """Ask for a page; a removed worker gets none."""
        worker = self.random.choice(self.ids)
        known = {page.page_id for page in self.pages[worker]}
        more = {"settings": self.settings, "at": self.now, "collecting": self.random.random() < 0.5}
        if worker in self.removed:
            with pytest.raises(NotAllowed):
                ask(self.engine, worker, **more)
            return
        page = ask(self.engine, worker, **more)
        if isinstance(page, PageView) and page.page_id not in known:
            self.pages[worker].append(page)
            assert_fair(self.engine, worker, page, self.settings)

    def give_in(self) -> None:
        """Give in any page that the worker ever saw, also one that is old, lost, or was given in."""
        seen = [(worker, page) for worker, pages in self.pages.items() for page in pages]
        if not seen:
            return
        worker, page = self.random.choice(seen)
        flagged = [place for place in range(len(page.places)) if self.random.random() < 0.1]
        before = rows_of(self.engine, Response)
        given = say(self.engine, worker, page, flag_at(page, *flagged), at=self.now)
        again = say(self.engine, worker, page, at=self.now)
        assert again == given._replace(filled=()) and len(rows_of(self.engine, Response)) >= len(before)

    def wait(self) -> None:
        """Let time pass, often until leases are over."""
        self.now += self.random.choice([LEASE / 4, LEASE])

    def add(self) -> None:
        """Let an example come."""
        with writing(self.engine) as session:
            author = self.random.choice([None, *self.ids])
            add_examples(session, the_round(session), [f"Example {number_after(session)}."], author=author)

    def remove(self) -> None:
        """Remove a worker."""
        worker = self.random.choice(self.ids)
        if worker not in self.removed and len(self.removed) < 2:
            self.removed.add(worker)
            remove(self.engine, worker, at=self.now)

    def take_back(self) -> None:
        """Let a removed worker in again."""
        if self.removed:
            take_back(self.engine, self.removed.pop(), at=self.now)

    def decide(self) -> None:
        """Let the launcher decide on a held example."""
        held = rows_of(self.engine, Hold)
        if held:
            hold = self.random.choice(held)
            with writing(self.engine) as session:
                number = session.get_one(Example, hold.example_id).number
                decision = self.random.choice([RELEASED_HOLD, LEFT_OUT])
                decide_hold(session, the_round(session), number, decision, "launcher", self.now)

"""How many responses a round still wants: none of examples that are held or left out, and none when it is closed."""

from typing import Any

import pytest
from sqlalchemy import Engine

from dynaround.database import reading, writing
from dynaround.tables import LEFT_OUT, RELEASED_HOLD
from rounds.lifecycle import close_round, find_round
from rounds.status import figure_lines, status_figures
from rounds.validation_status import FULL, HELD, IN_BATCH, WAITING
from tests.validators import MOMENT, NUMBER, add_round, flag_at, hasty, numbers_on, page_for, say, the_round, work
from workers.holds import decide_hold


@pytest.fixture
def engine(engine: Engine) -> Engine:
    return hasty(engine)


def figures_of(engine: Engine) -> dict[str, Any]:
    with reading(engine) as session:
        return status_figures(session, find_round(session, NUMBER))


def flag_three(engine: Engine, ids: list[int]) -> list[int]:
    """Let two workers flag the same three of six examples and answer the others; return the numbers of the three."""
    for worker in ids[:2]:
        page = page_for(engine, worker)
        said = {place.sentence: place for place in page.places}
        flagged = [page.places.index(said[sentence]) for sentence in sorted(said)[:3]]
        say(engine, worker, page, flag_at(page, *flagged))
    return sorted(numbers_on(engine, page))[:3]


def decide(engine: Engine, number: int, decision: str) -> None:
    with writing(engine) as session:
        decide_hold(session, the_round(session), number, decision, "launcher", MOMENT)


def test_held_and_left_out_examples_want_nothing_until_they_are_released(engine: Engine):
    ids = add_round(engine, examples=6, workers=7)
    held = flag_three(engine, ids)
    figures = figures_of(engine)
    assert (figures["held"], figures["left_out"], figures["still_wanted"]) == (3, 0, 3 * 3)
    assert figures["examples_by_responses"] == {"2": 3} and figures["responses"] == 6
    decide(engine, held[0], LEFT_OUT)
    decide(engine, held[1], RELEASED_HOLD)
    figures = figures_of(engine)
    assert (figures["held"], figures["left_out"], figures["still_wanted"]) == (1, 1, 3 * 3 + 5)
    assert figures["examples_by_responses"] == {"0": 1, "2": 3}
    coverage = figures["validation"]["coverage"]
    assert coverage == {"responses": 6, "wanted": 20, "share": 0.3}
    assert coverage["wanted"] - coverage["responses"] == figures["still_wanted"]
    assert figures["validation"]["examples"] == {WAITING: 0, IN_BATCH: 4, FULL: 0, HELD: 1, LEFT_OUT: 1}
    assert "responses: 6 on 6 examples, 14 still wanted; 1 held, 1 left out" in figure_lines(figures)


def test_a_closed_round_wants_nothing_and_what_it_left_out_is_told(engine: Engine):
    ids = add_round(engine, examples=6, workers=7)
    flag_three(engine, ids)
    for worker in ids[2:5]:
        work(engine, worker)
    with writing(engine) as session:
        close_round(session, the_round(session), "launcher", MOMENT, leave_out_short=True)
    figures = figures_of(engine)
    assert (figures["held"], figures["left_out"], figures["still_wanted"]) == (0, 3, 0)
    assert figures["examples_by_responses"] == {"5": 3}
    assert figures["validation"]["examples"] == {WAITING: 0, IN_BATCH: 0, FULL: 3, HELD: 0, LEFT_OUT: 3}
    assert figures["validation"]["coverage"] == {"responses": 15, "wanted": 15, "share": 1.0}


def test_an_example_that_is_held_with_five_responses_has_no_label_yet(engine: Engine):
    ids = add_round(engine, examples=1, workers=7)
    pages = [page_for(engine, worker) for worker in ids[:5]]
    late = [page_for(engine, worker, at=MOMENT.replace(hour=5)) for worker in ids[5:]]
    for worker, page in zip(ids[5:], late, strict=True):
        say(engine, worker, page, flag_at(page, 0), at=MOMENT.replace(hour=5))
    for worker, page in zip(ids[:5], pages, strict=True):
        say(engine, worker, page, at=MOMENT.replace(hour=5))
    figures = figures_of(engine)
    assert figures["responses"] == 5
    assert (figures["held"], figures["labels"], figures["examples_by_responses"]) == (1, None, {})
    assert figures["validation"]["examples"][HELD] == 1

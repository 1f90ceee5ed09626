"""Screening: both measures, the rule, what it finds in a crowd, and removals that are decided from one picture."""

import json
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from dynaround.agreement import WorkerAgreement, WorkerResponse, worker_agreement
from dynaround.database import reading, writing
from dynaround.errors import IllegalMove, NotAllowed, NotFound
from dynaround.screening_measures import (
    CHECK_ITEMS,
    LEAVE_ONE_OUT,
    PUBLISHED,
    CheckRate,
    ScreeningRule,
    WorkerMeasures,
    broken_rules,
    disagreement,
    removing_rule,
    worker_measures,
)
from dynaround.settings import Workspace
from dynaround.tables import Bar, Batch, Event, Example, Removal, Response, Seat, Uncounted, Worker, public_id
from tests.test_agreement import ROUND_1, ROUND_2, SST, published_responses
from tests.validators import MOMENT, NUMBER, SEED, TASK, add_round, the_round
from workers.assignment import Answer
from workers.commands import reinstate as reinstate_command
from workers.commands import removals as removals_command
from workers.commands import screen as screen_command
from workers.crowds import CrowdMix, kind_of_worker, scripted_label
from workers.giving_in import give_in_page
from workers.judging import SCREENED, judge_workers
from workers.places import PageSettings, PageView, next_page
from workers.screening import (
    REMOVED_WORKER,
    is_due,
    reinstate,
    removal_line,
    removals,
    screen,
    screen_due,
    screen_round,
)
from workers.standing import SCREENED_OUT, VALIDATING, current_bar

LABELS = TASK.labels
DEFAULT = ScreeningRule()
SMALL = ScreeningRule(least_examples=6)
"""The default rule for rounds of a few examples."""

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)


# Measures and rules


def responses_of(labels: Mapping[str, str]) -> list[WorkerResponse]:
    """Return the responses of w1, w2 ... by example: one letter each."""
    return [WorkerResponse(e, f"w{n}", label) for e, word in labels.items() for n, label in enumerate(word, 1)]


def test_the_own_response_does_not_make_the_majority_it_is_compared_with():
    # On e1 the three make a majority with their own response, and none without it.
    found = {m.worker: m for m in worker_measures(responses_of({"e1": "aaabb", "e2": "aaaab", "e3": "aabbc"}), {})}
    assert [found[f"w{n}"].published for n in (1, 5)] == [(2, 2, 1.0), (2, 0, 0.0)]
    assert [found[f"w{n}"].leave_one_out for n in (1, 4, 5)] == [(1, 1, 1.0), (2, 1, 0.5), (2, 0, 0.0)]


def test_without_comparable_examples_there_is_no_rate_and_no_removal():
    (one, *_) = worker_measures(responses_of({f"e{n}": "aabbc" for n in range(50)}), {})
    assert (one.responses, disagreement(one.leave_one_out), disagreement(one.published)) == (50, None, None)
    assert broken_rules(one, ScreeningRule(least_examples=1, least_checks=1)) == ()


def test_an_excused_response_makes_majorities_and_is_not_judged():
    given = responses_of({"e1": "aaaab", "e2": "aaaab"})
    found = worker_agreement(given, own_counts=False, excused={("e1", "w5"), ("e2", "w1")})
    assert (found["w5"], found["w1"], found["w2"]) == ((1, 0, 0.0), (1, 1, 1.0), (2, 2, 1.0))


@given(st.lists(st.text("abc", min_size=5, max_size=7), min_size=1, max_size=8), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_leave_one_out_is_the_majority_of_what_remains_in_any_order(words: list[str], shuffled: random.Random):
    responses = responses_of({f"e{n}": word for n, word in enumerate(words)})
    expected: dict[str, list[bool]] = defaultdict(list)
    for word in words:
        for place, own in enumerate(word):
            others = word[:place] + word[place + 1 :]
            winners = [label for label in set(others) if others.count(label) > len(others) / 2]
            if winners:
                expected[f"w{place + 1}"].append(own == winners[0])
    shuffled.shuffle(responses)
    for worker, found in worker_agreement(responses, own_counts=False).items():
        assert (found.comparable, found.agreeing) == (len(expected[worker]), sum(expected[worker]))


def measures(*, loo: tuple[int, int] = (0, 0), published: tuple[int, int] = (0, 0), checks: tuple[int, int] = (0, 0)):
    """Return measures of which so many of so many disagree, or are wrong."""
    rates = [WorkerAgreement(of, of - wrong, (of - wrong) / of if of else None) for wrong, of in (published, loo)]
    return WorkerMeasures("w1", 100, *rates, CheckRate(checks[1], checks[1] - checks[0]))


@pytest.mark.parametrize(
    ("found", "by"),
    [
        (measures(loo=(60, 100)), None),
        (measures(loo=(61, 100)), LEAVE_ONE_OUT),
        (measures(loo=(14, 14)), None),
        (measures(loo=(15, 15)), LEAVE_ONE_OUT),
        (measures(checks=(5, 10)), None),
        (measures(checks=(6, 10)), CHECK_ITEMS),
        (measures(checks=(4, 4)), None),
        (measures(checks=(5, 5)), CHECK_ITEMS),
        (measures(published=(90, 100)), None),
        (measures(loo=(61, 100), checks=(6, 10)), LEAVE_ONE_OUT),
    ],
)
def test_the_default_rule_acts_beyond_its_limits_and_from_the_least_numbers_on(found: WorkerMeasures, by: str | None):
    assert removing_rule(found, DEFAULT) == by


def test_the_published_rule_and_none_act_by_themselves_alone():
    bad = measures(loo=(90, 100), published=(80, 100), checks=(9, 10))
    worse = measures(published=(81, 100))
    by_published = ScreeningRule(rule="published")
    assert (removing_rule(bad, by_published), removing_rule(worse, by_published)) == (None, PUBLISHED)
    assert removing_rule(bad, ScreeningRule(rule="none")) is None
    assert broken_rules(bad, ScreeningRule(rule="none")) == (LEAVE_ONE_OUT, CHECK_ITEMS)


# What the rules find in crowds


def crowd_measures(mix: CrowdMix, seed: int, examples: int = 1200) -> dict[str, list[WorkerMeasures]]:
    """Return the measures of the scripted workers by what they do, five of them drawn for each example."""
    draw = random.Random(seed)
    responses = []
    for number in range(examples):
        truth = draw.choices(LABELS, (0.25, 0.17, 0.53, 0.05))[0]
        for worker in draw.sample(range(mix.workers), 5):
            kind = kind_of_worker(worker, mix, seed)
            said = scripted_label(truth, LABELS, kind, f"scripted-{worker + 1}", f"sentence {number}", mix, seed)
            responses.append(WorkerResponse(str(number), str(worker), said))
    of_worker: dict[str, Counter[str]] = defaultdict(Counter)
    for response in responses:
        of_worker[response.worker][response.label] += 1
    found: dict[str, list[WorkerMeasures]] = defaultdict(list)
    for one in worker_measures(responses, {}):
        kind = kind_of_worker(int(one.worker), mix, seed)
        if kind == "spamming":
            labels = of_worker[one.worker]
            kind = f"always {next(iter(labels))}" if len(labels) == 1 else "random"
        found[kind].append(one)
    return found


def share_removed(found: Sequence[WorkerMeasures], rule: ScreeningRule) -> float:
    return sum(removing_rule(one, rule) is not None for one in found) / len(found)


def test_leave_one_out_finds_who_answers_at_random_and_the_published_rule_does_not():
    mix = CrowdMix(careful=0.6, careless=0.15, spamming=0.2, adversarial=0.05)
    found: dict[str, list[WorkerMeasures]] = defaultdict(list)
    for seed in range(3):
        for kind, some in crowd_measures(mix, seed).items():
            found[kind] += some
    published = ScreeningRule(rule="published")
    assert len(found["careful"]) == 108 and share_removed(found["careful"], DEFAULT) == 0
    assert share_removed(found["random"], DEFAULT) > 0.9 > 0.1 > share_removed(found["random"], published)
    assert share_removed(found["always negative"], DEFAULT) == share_removed(found["adversarial"], DEFAULT) == 1
    # Half of the sentences are neutral: it takes check items to find most of these.
    always = found["always neutral"]
    assert share_removed(always, DEFAULT) < 0.5 and share_removed(always, published) == 0


def test_neither_the_numbers_of_workers_nor_the_order_of_arrival_change_who_goes():
    draw = random.Random(3)
    responses = [
        WorkerResponse(f"e{n}", f"w{w}", wrong(n) if w < 3 or draw.random() < 0.1 else truth(n))
        for n in range(200)
        for w in draw.sample(range(12), 5)
    ]

    def gone(given: Sequence[WorkerResponse]) -> set[str]:
        return {one.worker for one in worker_measures(given, {}) if removing_rule(one, DEFAULT)}

    assert gone(responses) == {"w0", "w1", "w2"}
    for seed in range(5):
        order = random.Random(seed).sample(range(12), 12)
        arrived = random.Random(seed).sample(responses, len(responses))
        renumbered = [r._replace(worker=f"w{order[int(r.worker[1:])]}") for r in arrived]
        assert gone(renumbered) == {f"w{order[w]}" for w in range(3)}


@pytest.mark.parametrize("name", [ROUND_1, ROUND_2, SST])
def test_nobody_of_the_published_people_would_be_removed(shared_data: Path, name: str):
    found = worker_measures(published_responses(shared_data, name), {})
    assert sum(one.leave_one_out.comparable >= DEFAULT.least_examples for one in found) >= 70
    assert [one.worker for one in found if broken_rules(one, DEFAULT)] == []


# In the database


Habit = Callable[[int], str]
"""What a worker answers to the example of a number."""


def truth(number: int) -> str:
    return LABELS[number % len(LABELS)]


def careful(worker: int) -> Habit:
    """Return a habit that is right but on one of twelve."""
    return lambda number: LABELS[(number + ((number + 5 * worker) % 12 == 0)) % len(LABELS)]


def wrong(number: int) -> str:
    return LABELS[(number + 1) % len(LABELS)]


def number_in(text: str) -> int:
    return int("".join(filter(str.isdigit, text)))


def take_page(
    engine: Engine, worker_id: int, habit: Habit, batch: int, at: datetime, rule: ScreeningRule | None
) -> bool:
    """Let a worker answer the next page and screen where that is due; whether there was a page."""
    with writing(engine) as session:
        round_, worker = the_round(session), session.get_one(Worker, worker_id)
        pages = PageSettings(places=4, silent_share=0, batch=batch)
        shown = next_page(session, round_, worker, pages, validating=True, collecting=False, now=at, seed=SEED)
        if not isinstance(shown, PageView):
            return False
        answers = {place.position: Answer(habit(number_in(place.sentence))) for place in shown.places}
        give_in_page(session, round_, shown.page_id, worker_id, answers, flags_that_hold=2, task=TASK, now=at)
        if rule is not None and is_due(session, round_):
            screen(session, round_, rule, at)
    return True


def play(
    engine: Engine, habits: Mapping[int, Habit], rule: ScreeningRule | None, batch: int = 12, at: datetime = MOMENT
) -> None:
    """Let workers in turn take pages, screened by a rule, until there is none for anybody."""
    left = True
    while left:
        left = False
        for worker_id, habit in habits.items():
            try:
                left = take_page(engine, worker_id, habit, batch, at, rule) or left
            except NotAllowed:
                continue


def habits_of(workers: Sequence[int], bad: int) -> dict[int, Habit]:
    """Return habits: the last so many are wrong throughout."""
    good = len(workers) - bad
    return {worker: careful(place) if place < good else wrong for place, worker in enumerate(workers)}


def counted(session: Session) -> dict[int, list[int]]:
    """Return the workers whose responses count, by number of the example."""
    rows = session.exec(
        select(Example.number, Response.worker_id)
        .join(Response, col(Response.example_id) == col(Example.id))
        .join(Uncounted, col(Uncounted.response_id) == col(Response.id), isouter=True)
        .where(col(Uncounted.response_id).is_(None))
    )
    found: dict[int, list[int]] = defaultdict(list)
    for number, worker_id in rows:
        found[number].append(worker_id)
    return found


def removed(session: Session) -> set[int]:
    return {one.worker_id for one in removals(session, the_round(session)) if one.reinstated_at is None}


def test_who_answers_badly_goes_and_the_examples_are_answered_again(engine: Engine):
    workers = add_round(engine, examples=24, workers=9)
    play(engine, habits_of(workers, bad=2), SMALL)
    with reading(engine) as session:
        assert removed(session) == set(workers[-2:])
        responses = session.exec(select(Response)).all()
        uncounted = session.exec(select(Uncounted)).all()
        # All raw responses stay; five others count on every example, each in a place of its own.
        assert len(responses) - len(uncounted) == 5 * 24 == len(session.exec(select(Seat)).all())
        assert {response.worker_id for response in responses if response.id in {u.response_id for u in uncounted}} == (
            set(workers[-2:])
        )
        for found in counted(session).values():
            assert len(found) == len(set(found)) == 5 and not set(found) & set(workers[-2:])
        assert all(batch.screened_at for batch in session.exec(select(Batch)))


def test_the_removed_read_why_and_the_launcher_sees_the_evidence(engine: Engine):
    workers = add_round(engine, examples=24, workers=9)
    play(engine, habits_of(workers, bad=1), SMALL)
    with reading(engine) as session:
        (one,) = removals(session, the_round(session))
        found = one.evidence["measures"][LEAVE_ONE_OUT]
        assert one.rule == LEAVE_ONE_OUT and found["disagreeing"] == found["of"] >= 6
        assert one.evidence["limits"]["most_disagreement"] == 0.6
        held = current_bar(session, session.get_one(Worker, workers[-1]), VALIDATING, MOMENT)
        assert held is not None and (held.reason, held.until) == (SCREENED_OUT, MOMENT + timedelta(days=7))
        assert held.evidence == {"round": NUMBER, "removal": one.id, **found}
        event = session.exec(select(Event).where(Event.what == REMOVED_WORKER)).one()
        assert (event.detail["worker"], event.detail["removal"]) == (public_id(workers[-1]), one.id)
        line = removal_line(one)
        assert f"leave-one-out: {found['of']} of {found['of']} otherwise (100%)" in line and "PLATFORM" not in line
        assert not any("PLATFORM" in str(event.detail) for event in session.exec(select(Event)))


def test_screening_again_removes_nobody_else(engine: Engine):
    workers = add_round(engine, examples=24, workers=8)
    play(engine, habits_of(workers, bad=1), None)
    first = screen_round(engine, NUMBER, SMALL, MOMENT)
    assert [judged.measures.worker for judged in first.removed] == [public_id(workers[-1])]
    again = screen_round(engine, NUMBER, SMALL, MOMENT)
    assert again.removed == () and again.batches == first.batches == (1, 2)
    with reading(engine) as session:
        assert len(session.exec(select(Removal)).all()) == len(session.exec(select(Bar)).all()) == 1
        assert not is_due(session, the_round(session))


def test_an_interrupted_screening_has_removed_nobody_and_is_due_again(engine: Engine):
    workers = add_round(engine, examples=24, workers=8)
    play(engine, habits_of(workers, bad=1), None)

    class Killed(BaseException):
        """Stands for the end of the process before the commit."""

    with pytest.raises(Killed), writing(engine) as session:
        assert screen(session, the_round(session), SMALL, MOMENT).removed
        raise Killed
    with reading(engine) as session:
        assert removed(session) == set() and session.exec(select(Uncounted)).all() == []
        assert is_due(session, the_round(session))
    assert screen_round(engine, NUMBER, SMALL, MOMENT).removed


def test_two_processes_that_screen_at_once_remove_once(engine: Engine):
    workers = add_round(engine, examples=24, workers=8)
    play(engine, habits_of(workers, bad=1), None)
    ready = threading.Barrier(3)

    def at_once() -> None:
        ready.wait()
        screen_round(engine, NUMBER, SMALL, MOMENT)

    threads = [threading.Thread(target=at_once) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading(engine) as session:
        assert [one.worker_id for one in removals(session, the_round(session))] == [workers[-1]]


def test_of_two_servers_that_find_a_batch_full_one_screens_it(engine: Engine):
    workers = add_round(engine, examples=24, workers=8)
    play(engine, habits_of(workers, bad=1), None)
    ready = threading.Barrier(3)

    def at_once(_: int) -> None:
        ready.wait()
        screen_due(engine, NUMBER, SMALL, MOMENT)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(at_once, range(3)))
    screen_due(engine, NUMBER, SMALL, MOMENT)
    with reading(engine) as session:
        assert removed(session) == set(workers[-1:])
        assert len(session.exec(select(Event).where(Event.what == SCREENED)).all()) == 1


@on_sqlite
def test_all_removals_are_decided_from_the_same_picture(engine: Engine):
    """Three who are wrong alike make some majorities; who is looked at first must not change who goes."""
    workers = add_round(engine, examples=30, workers=8)
    play(engine, habits_of(workers, bad=3), None, batch=30)
    with reading(engine) as session:
        judged = judge_workers(session, the_round(session), SMALL)
    expected = {one.measures.worker for one in judged.removed}
    found = screen_round(engine, NUMBER, SMALL, MOMENT)
    assert {one.measures.worker for one in found.removed} == expected
    with reading(engine) as session:
        evidence = {public_id(one.worker_id): one.evidence["measures"] for one in removals(session, the_round(session))}
    picture = {one.measures.worker: one.measures.leave_one_out for one in judged.removed}
    assert {w: (e[LEAVE_ONE_OUT]["of"], e[LEAVE_ONE_OUT]["disagreeing"]) for w, e in evidence.items()} == {
        w: (one.comparable, one.comparable - one.agreeing) for w, one in picture.items()
    }


@on_sqlite
def test_what_was_found_before_a_removal_is_not_acted_on(engine: Engine):
    workers = add_round(engine, examples=24, workers=8)
    play(engine, habits_of(workers, bad=1), None)
    with reading(engine) as session:
        found = judge_workers(session, the_round(session), SMALL)
    screen_round(engine, NUMBER, SMALL, MOMENT)
    with writing(engine) as session:
        assert screen(session, the_round(session), SMALL, MOMENT, found=found).removed == ()


@on_sqlite
def test_examples_of_a_batch_that_is_not_full_are_no_evidence(engine: Engine):
    workers = add_round(engine, examples=24, workers=9)
    habits = habits_of(workers, bad=1)
    for worker_id in workers[:4]:
        for _ in range(6):
            take_page(engine, worker_id, habits[worker_id], 24, MOMENT, None)
    take_page(engine, workers[-1], wrong, 24, MOMENT, None)
    with reading(engine) as session:
        assert not is_due(session, the_round(session))
        assert judge_workers(session, the_round(session), SMALL).workers == ()


@on_sqlite
@pytest.mark.parametrize("rule", ["published", "none"])
def test_another_rule_of_the_plan_acts_instead(engine: Engine, rule: str):
    workers = add_round(engine, examples=24, workers=8)
    play(engine, habits_of(workers, bad=1), ScreeningRule(rule=rule, least_examples=6))
    with reading(engine) as session:
        assert removed(session) == (set(workers[-1:]) if rule == "published" else set())


def test_a_reinstated_worker_counts_where_a_place_is_free_and_is_not_removed_for_the_same_again(engine: Engine):
    workers = add_round(engine, examples=24, workers=8)
    bad, name = workers[-1], public_id(workers[-1])
    habits = habits_of(workers, bad=1)
    play(engine, habits, None, batch=12)
    screen_round(engine, NUMBER, SMALL, MOMENT)
    with writing(engine) as session:
        own = len(session.exec(select(Response).where(Response.worker_id == bad)).all())
        # Somebody has taken one of the places meanwhile.
    take_page(engine, workers[0], habits[workers[0]], 12, MOMENT, None)
    later = MOMENT + timedelta(hours=1)
    with writing(engine) as session:
        again = reinstate(session, the_round(session), name, "launcher", later)
        assert 0 < again <= own
        held = session.exec(select(Bar)).one()
        assert (held.lifted_by, held.lifted_at) == ("launcher", later)
        assert current_bar(session, session.get_one(Worker, bad), VALIDATING, later) is None
        uncounted = session.exec(select(Uncounted)).all()
        assert len(uncounted) == own - again
    play(engine, {w: h for w, h in habits.items() if w != bad}, SMALL, at=later)
    assert screen_round(engine, NUMBER, SMALL, later).removed == ()
    with reading(engine) as session:
        (one,) = removals(session, the_round(session))
        assert one.reinstated_by == "launcher" and "reinstated by launcher" in removal_line(one)


@on_sqlite
def test_a_reinstated_worker_who_goes_on_alike_goes_again(engine: Engine):
    workers = add_round(engine, examples=48, workers=7)
    habits = habits_of(workers, bad=1)
    play(engine, {w: habits[w] for w in workers}, None, batch=48)
    screen_round(engine, NUMBER, SMALL, MOMENT)
    later = MOMENT + timedelta(hours=1)
    with writing(engine) as session:
        reinstate(session, the_round(session), public_id(workers[-1]), "launcher", later)
        # What was answered until now is excused, so as many answers again are needed.
        for response in session.exec(select(Response).where(Response.worker_id == workers[-1])):
            response.at = later + timedelta(minutes=1)
    found = screen_round(engine, NUMBER, SMALL, later + timedelta(hours=1))
    assert [judged.measures.worker for judged in found.removed] == [public_id(workers[-1])]


@on_sqlite
def test_only_the_removed_can_be_reinstated_and_only_in_an_open_round(engine: Engine):
    workers = add_round(engine, examples=24, workers=8)
    play(engine, habits_of(workers, bad=1), SMALL)
    with writing(engine) as session:
        with pytest.raises(NotFound, match=f"w1 is not removed from round 1; removed is {public_id(workers[-1])}"):
            reinstate(session, the_round(session), "w1", "launcher", MOMENT)
        the_round(session).state = "closed"
        session.flush()
        with pytest.raises(IllegalMove, match="round 1 is closed"):
            screen(session, the_round(session), SMALL, MOMENT)
        with pytest.raises(IllegalMove, match="round 1 is closed"):
            reinstate(session, the_round(session), public_id(workers[-1]), "launcher", MOMENT)
    with pytest.raises(NotFound, match="no round 7"):
        screen_round(engine, 7, SMALL, MOMENT)


@on_sqlite
def test_the_launcher_screens_looks_and_lets_in_by_commands(workspace: Workspace):
    engine, at = workspace.engine(), ["-w", str(workspace.root)]
    workers = add_round(engine, examples=48, workers=7)
    play(engine, habits_of(workers, bad=1), None, batch=24)
    bad = public_id(workers[-1])

    def run(command: click.Command, *arguments: str) -> str:
        done = CliRunner().invoke(command, [*arguments, *at])
        assert done.exception is None, done.exception
        return done.output

    assert run(removals_command, "1") == "nobody was removed from round 1\n"
    told = run(screen_command, "1", "--dry-run")
    assert told.startswith("2 finished batches, 7 workers, rule leave-one-out\nwould be removed by leave-one-out: ")
    assert f"{bad}: " in told and "PLATFORM" not in told
    assert run(removals_command, "1") == "nobody was removed from round 1\n"
    found = json.loads(run(screen_command, "1", "--json"))
    assert [one["worker"] for one in found["workers"] if one["removed_by"]] == [bad]
    assert set(found["signals"]) == {public_id(worker) for worker in workers}
    assert run(removals_command, "1").startswith(f"{bad} removed at ")
    assert json.loads(run(removals_command, "1", "--json"))[0]["evidence"]["round"] == 1
    assert run(reinstate_command, "1", bad).startswith(f"{bad} is reinstated; ")
    assert "reinstated by launcher" in run(removals_command, "1")
    again = CliRunner().invoke(reinstate_command, ["1", bad, *at])
    assert isinstance(again.exception, NotFound)

"""What holds of an authored round at every moment, whoever did what, and a walk of authors who do anything."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from dynaround.database import reading, writing
from dynaround.errors import DynaroundError, Unavailable
from dynaround.tables import (
    COMPLETED,
    CONFIRMED,
    DUPLICATE,
    TAKEN_BACK,
    Attempt,
    AttemptDecision,
    AuthoredExample,
    AuthorSession,
    Example,
    PromptShowing,
    Submission,
    Worker,
    Writing,
)
from rounds.attempts import submit
from rounds.decisions import decide, give_up
from rounds.lifecycle import find_round
from rounds.plan import AuthoringPlan
from rounds.sittings import authoring_of, end_sitting, lock_authored_round, open_sitting, show_prompt
from tests.authored_round import MOMENT, NUMBER, FixedModel, clock_at, making, other_than, sent


def assert_sound(engine: Engine) -> None:
    """Assert what holds of an authored round in every moment in which no transaction is under way."""
    with reading(engine) as session:
        plan = authoring_of(find_round(session, NUMBER))
        words = {row.attempt_id: row.decision for row in session.exec(select(AttemptDecision))}
        made_from = {row.attempt_id: row.example_id for row in session.exec(select(AuthoredExample))}
        examples = {e.id: e for e in session.exec(select(Example).order_by(col(Example.number)))}
        rows = session.exec(select(Attempt).order_by(col(Attempt.id))).all()
        by_writing = _grouped(rows, "writing_id")
        for made in session.exec(select(Writing)):
            sitting = session.get_one(AuthorSession, made.session_id)
            mine = by_writing.get(made.id or 0, [])
            assert all(
                (a.worker_id, a.arm) == (made.worker_id, sitting.arm) == (sitting.worker_id, a.arm) for a in mine
            )
            assert {a.target_label for a in mine} <= {made.target_label}
            _assert_sound_making(made, mine, words, made_from, plan)
        _assert_sound_examples(rows, words, made_from, examples)
        _assert_sound_submissions(session, rows)
        _assert_sound_prompts(session, rows, plan)
        _assert_sound_limits(session, rows, plan)


def _grouped(rows: Iterable[Attempt], name: str) -> dict[int, list[Attempt]]:
    found = defaultdict(list)
    for row in rows:
        found[getattr(row, name)].append(row)
    return found


def _assert_sound_making(
    made: Writing, mine: Sequence[Attempt], words: dict[int, str], made_from: dict[int, int], plan: AuthoringPlan
) -> None:
    said = {a.id: words[a.id or 0] for a in mine if a.id in words}
    back = [a.id for a in mine if said.get(a.id) == TAKEN_BACK]
    confirmed = [a.id for a in mine if said.get(a.id) == CONFIRMED]
    kept = [a.id for a in mine if a.id in made_from]
    standing = [a.id for a in mine if said.get(a.id) != TAKEN_BACK]
    assert sorted(a.number for a in mine) == list(range(1, len(mine) + 1))
    assert len({a.text_key for a in mine}) == len(mine)
    assert len(back) <= plan.take_backs and len(mine) - len(back) <= plan.attempts
    assert all(a.fooled for a in mine if a.id in said)
    assert len(kept) == (made.outcome == COMPLETED) and len(confirmed) <= 1
    assert not confirmed or made.outcome in (COMPLETED, DUPLICATE)
    assert not kept or kept == (confirmed or standing[-1:])
    # While it is open, whoever has no attempt left has a word to say.
    undecided = [a for a in mine if a.fooled and a.id not in said]
    assert made.ended_at is not None or undecided or len(standing) < plan.attempts


def _assert_sound_examples(
    rows: Sequence[Attempt], words: dict[int, str], made_from: dict[int, int], examples: dict[int | None, Example]
) -> None:
    assert [example.number for example in examples.values()] == list(range(1, len(examples) + 1))
    assert len({example.text_key for example in examples.values()}) == len(examples) == len(made_from)
    taken_back = {(a.worker_id, a.text_key) for a in rows if words.get(a.id or 0) == TAKEN_BACK}
    for attempt in rows:
        if attempt.id in made_from:
            example = examples[made_from[attempt.id]]
            assert (example.text, example.author_id) == (attempt.text, attempt.worker_id)
            assert (attempt.worker_id, attempt.text_key) not in taken_back
        if words.get(attempt.id or 0) == CONFIRMED:
            assert attempt.text_key in {example.text_key for example in examples.values()}


def _assert_sound_submissions(session: Session, rows: Sequence[Attempt]) -> None:
    done = {s.attempt_id: s for s in session.exec(select(Submission)) if s.attempt_id is not None}
    assert set(done) == {a.id for a in rows}
    assert all((done[a.id].worker_id, done[a.id].writing_id) == (a.worker_id, a.writing_id) for a in rows)


def _assert_sound_prompts(session: Session, rows: Sequence[Attempt], plan: AuthoringPlan) -> None:
    shown = session.exec(select(PromptShowing)).all()
    numbers = defaultdict(list)
    for showing in shown:
        numbers[showing.prompt_id].append(showing.showing)
    assert all(sorted(mine) == list(range(1, len(mine) + 1)) for mine in numbers.values())
    assert max(map(len, numbers.values()), default=0) <= plan.authors_per_prompt
    assert len({(s.prompt_id, s.worker_id) for s in shown}) == len(shown)
    seen = {(s.writing_id, s.prompt_id) for s in shown}
    assert all((a.writing_id, a.prompt_id) in seen for a in rows if a.prompt_id is not None)


def _assert_sound_limits(session: Session, rows: Sequence[Attempt], plan: AuthoringPlan) -> None:
    a_day = Counter((a.worker_id, a.at.date()) for a in rows)
    assert max(a_day.values(), default=0) <= plan.attempts_a_day
    sittings = session.exec(select(AuthorSession)).all()
    assert max(Counter(s.worker_id for s in sittings if s.ended_at is None).values(), default=0) <= 1


class _Faulty(FixedModel):
    """Now and then does not answer, or ends as if its process were killed."""

    def __init__(self, otherwise: str, fault: BaseException | None):
        super().__init__(otherwise=otherwise)
        self.fault = fault

    def ask(self, text: str) -> Any:
        if self.fault is not None:
            raise self.fault
        return super().ask(text)


class Walk:
    """One author who does anything at any time: also what a page would not offer, twice, and too late."""

    def __init__(self, engine: Engine, worker_id: int, seed: int):
        self.engine, self.worker_id, self.random = engine, worker_id, Random(seed)
        self.at, self.used = MOMENT, list[Any]()
        self.done = Counter[str]()

    def step(self) -> None:
        """Do one thing; whatever is refused is refused in words."""
        self.at += timedelta(seconds=self.random.choice([1, 5, 20, 40]))
        what = self.random.choices(
            [self._send, self._say, self._next, self._prompt, self._end, self._again, self._wait],
            [12, 8, 2, 2, 0.5, 3, 0.3],
        )[0]
        try:
            what()
            self.done[what.__name__] += 1
        except DynaroundError as refused:
            self.done[f"refused: {type(refused).__name__}"] += 1
        except KeyboardInterrupt:
            self.done["died"] += 1

    def _send(self) -> None:
        made = making(self.engine, self.worker_id, seed=self.random.randrange(99), at=self.at)
        text = f"{self.random.choice(['Word', 'Line'])} {self.random.randrange(40)} of them."
        token = f"{self.worker_id}-{self.random.getrandbits(64):020d}"
        self.used.append(sent(made.id, text, token))
        self._submit(self.used[-1], made.target_label)

    def _submit(self, form: Any, target: str) -> None:
        fools = self.random.random() < 0.4
        fault = self.random.choices([None, Unavailable("not now"), KeyboardInterrupt()], [20, 1, 1])[0]
        model = _Faulty(other_than(target) if fools else target, fault)
        submit(self.engine, model.ask, NUMBER, self.worker_id, form, now=clock_at(self.at), patience=0)

    def _again(self) -> None:
        if self.used:
            made = making(self.engine, self.worker_id, at=self.at)
            self._submit(self.random.choice(self.used[-4:]), made.target_label)

    def _say(self) -> None:
        with writing(self.engine) as session:
            query = select(Attempt.id).where(Attempt.worker_id == self.worker_id).order_by(col(Attempt.id).desc())
            mine = session.exec(query.limit(2)).all()
            if mine:
                word = self.random.choice([CONFIRMED, TAKEN_BACK])
                decide(session, NUMBER, self.worker_id, self.random.choice(mine) or 0, word, self.at)

    def _next(self) -> None:
        made = making(self.engine, self.worker_id, at=self.at)
        with writing(self.engine) as session:
            give_up(session, NUMBER, self.worker_id, made.id or 0, self.at)

    def _prompt(self) -> None:
        made = making(self.engine, self.worker_id, at=self.at)
        with writing(self.engine) as session:
            round_ = lock_authored_round(session, NUMBER)
            worker, mine = session.get_one(Worker, self.worker_id), session.get_one(Writing, made.id)
            show_prompt(session, round_, worker, mine, self.random, self.at)

    def _end(self) -> None:
        with writing(self.engine) as session:
            round_ = lock_authored_round(session, NUMBER)
            sitting = open_sitting(session, round_, session.get_one(Worker, self.worker_id), self.at)
            if sitting is not None:
                end_sitting(session, sitting, self.at)

    def _wait(self) -> None:
        self.at += timedelta(hours=self.random.choice([1, 30]))


def after(moments: int) -> datetime:
    """Return a moment later than any lease that was given so many leases ago."""
    return MOMENT + timedelta(minutes=2 * moments)

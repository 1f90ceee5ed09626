"""Prompts drawn when a round opens: which sentences, of which reviews, and what the round keeps of them."""

import json
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from dynaround.corpus.reviews import RatedSentence
from dynaround.database import reading, writing
from dynaround.errors import BadInput, IllegalMove, NotFound
from dynaround.settings import Workspace
from dynaround.tables import Event, Example, Prompt, Round
from dynaround.tasks import DEFAULT, get_task
from dynaround.text import folded
from rounds import prompts
from rounds.commands import HUNDREDTHS, open_command, switch_command
from rounds.harvesting import harvest_round
from rounds.lifecycle import AUTHORING, VALIDATING, close_round, draft_round, find_round, is_on, open_round, switch
from rounds.opening import open_new_round
from rounds.plan import AuthoringPlan, PayPlan, RoundPlan, make_plan
from rounds.prompts import PromptDraw, draw_prompts, is_natural, prompts_hash
from tests.small_round import MOMENT, now, write_reviews
from tests.tiny_model import make_model

Reviews = Iterable[tuple[str, int | None, str]]


@pytest.fixture
def draw(tmp_path: Path) -> Callable[..., PromptDraw]:
    """Draw from reviews given as id, rating and text."""

    def drawn(reviews: Reviews, count: int, **options: object) -> PromptDraw:
        file = tmp_path / "reviews.jsonl"
        rows = [{"review_id": name, "rating": rating, "text": text} for name, rating, text in reviews]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        usual: dict[str, object] = {"seed": 7, "fields": None, "needs_rating": True, "max_characters": 500}
        usual |= {"left_out_reviews": set(), "on_reject": lambda row: None, "on_progress": lambda reviews: None}
        return draw_prompts(f"jsonl:{file}", count, **usual | options)  # type: ignore[arg-type]

    return drawn


def some_reviews(count: int) -> list[tuple[str, int | None, str]]:
    return [
        (f"v{n}", n % 5 + 1, f"We came here on day {n}. It rained all of day {n}. Never in my life again, {n}.")
        for n in range(count)
    ]


def places(draw: PromptDraw) -> list[tuple[str, int]]:
    return [(sentence.review_id, sentence.start) for sentence in draw.sentences]


def test_prompts_are_sentences_of_as_many_reviews_of_every_rating(draw: Callable[..., PromptDraw]):
    reviews = some_reviews(60)
    found = draw(reviews, 40).sentences
    texts = {name: (rating, text) for name, rating, text in reviews}
    assert len({s.review_id for s in found}) == len(found) == 40
    assert all((s.rating, s.text) == (texts[s.review_id][0], texts[s.review_id][1][s.start : s.end]) for s in found)
    assert {s.rating for s in found} == {1, 2, 3, 4, 5} and {s.start for s in found} > {0}


def test_the_order_of_the_reviews_does_not_matter_and_the_seed_does(
    draw: Callable[..., PromptDraw], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(prompts, "SPARE_REVIEWS", 5)
    reviews = some_reviews(200)
    shuffled = random.Random(1).sample(reviews, len(reviews))
    assert places(draw(reviews, 20)) == places(draw(shuffled, 20)) != places(draw(reviews, 20, seed=8))


def test_the_draw_of_few_begins_the_draw_of_many(draw: Callable[..., PromptDraw], monkeypatch: pytest.MonkeyPatch):
    """What is kept in memory is as good as the whole file."""
    whole = places(draw(some_reviews(300), 300))
    monkeypatch.setattr(prompts, "SPARE_REVIEWS", 0)
    assert places(draw(some_reviews(300), 30)) == whole[:30]


def test_lines_of_one_review_that_stand_apart_are_one_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prompts, "SPARE_REVIEWS", 2)
    lines = [
        {"sentence": text, "indices_into_review_text": [place, place + len(text)], "review_rating": 2}
        | {"review_id": f"v{n}"}
        for n in range(40)
        for place, text in ((0, f"The first one of review {n}."), (90, f"And then another one of {n}."))
    ]
    drawn = []
    for seed in (1, 2):
        file = tmp_path / f"{seed}.jsonl"
        shuffled = random.Random(seed).sample(lines, len(lines))
        file.write_text("".join(json.dumps(line) + "\n" for line in shuffled))
        drawn.append(
            draw_prompts(
                f"dynasent:{file}",
                10,
                seed=3,
                fields=None,
                needs_rating=True,
                max_characters=500,
                left_out_reviews={"v1"},
                on_reject=lambda row: None,
                on_progress=lambda reviews: None,
            )  # fmt: skip
        )
    assert places(drawn[0]) == places(drawn[1])
    assert len({s.review_id for s in drawn[0].sentences}) == 10
    assert [one.reviews_left_out for one in drawn] == [1, 1]


def test_a_folded_text_is_a_prompt_once(draw: Callable[..., PromptDraw]):
    same = ["We will all come back soon.", "We will  all come back soon.", "We will all\u00a0come back soon."]
    reviews = [(f"v{n}", 3, same[n % 3]) for n in range(30)] + [("other", 3, "And this is another one.")]
    assert len({folded(s.text) for s in draw(reviews, 2).sentences}) == 2
    with pytest.raises(BadInput, match=r"3 prompts were wanted, and jsonl:\S+ gives 2 \(31 reviews read, 0 left out"):
        draw(reviews, 3)


def test_used_reviews_give_no_prompt_and_are_counted(draw: Callable[..., PromptDraw]):
    found = draw(some_reviews(30), 20, left_out_reviews={f"v{n}" for n in range(10)} | {"elsewhere"})
    assert {s.review_id for s in found.sentences} == {f"v{n}" for n in range(10, 30)}
    assert (found.reviews_left_out, found.read.loaded) == (10, 30)


def test_a_review_without_a_rating_is_taken_where_the_task_needs_none(draw: Callable[..., PromptDraw]):
    reviews = [("v1", None, "This one has no rating at all.")]
    assert [s.rating for s in draw(reviews, 1, needs_rating=False).sentences] == [None]
    with pytest.raises(BadInput, match="1 prompts were wanted, and .* gives 0"):
        draw(reviews, 1)


@pytest.mark.parametrize(
    "text",
    [
        "Only four words here.",
        " ".join(["word"] * 41),
        "1 2 3 4 5 6!",
        "This one has\na line break inside.",
        "This one has a\x07 bell inside.",
        f"This one is too {'l' * 385}ong.",
    ],
)
def test_what_no_author_could_start_from_is_no_prompt(text: str):
    assert not is_natural(text, 500)
    assert is_natural("This one has just five.", 500) and is_natural(f"This one is rather {'l' * 375}ong.", 500)


@pytest.fixture(scope="module")
def model(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tiny model that was trained on two of the made-up reviews."""
    folder = tmp_path_factory.mktemp("trained") / "model-0"
    return make_model(folder, tiny_encoder, epochs=4, review_ids=["v1", "v2"])


@pytest.fixture
def with_model(workspace: Workspace, model: Path) -> Workspace:
    """Return a workspace with that model."""
    shutil.copytree(model, workspace.models / "model-0")
    return workspace


def opened(workspace: Workspace, folder: Path, **options: object) -> Round:
    """Open a round on made-up reviews."""
    files = write_reviews(folder)
    usual: dict[str, object] = {"size": 0, "seed": 7, "prompts": 30, "authoring": {}}
    engine, spec = workspace.engine(), f"jsonl:{files.reviews}"
    values = usual | options
    return open_new_round(workspace, engine, target="model-0", reviews=spec, options=values, who="test", now=now)


on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)


def stored_prompts(engine: Engine) -> list[Prompt]:
    with reading(engine) as session:
        return list(session.exec(select(Prompt).order_by(col(Prompt.id))))


def test_a_round_opens_with_its_prompts_whose_hash_is_in_the_plan(with_model: Workspace, tmp_path: Path):
    round_ = opened(with_model, tmp_path)
    rows = stored_prompts(with_model.engine())
    assert len(rows) == 30 and not {"v1", "v2"} & {row.review_id for row in rows}
    kept = [RatedSentence(r.review_id, r.rating, r.span_start, r.span_end, r.text) for r in rows]  # type: ignore[arg-type]
    assert round_.plan["prompts_sha256"] == prompts_hash(kept)
    with reading(with_model.engine()) as session:
        events = session.exec(select(Event).order_by(col(Event.id))).all()
    assert [event.what for event in events] == ["prompts drawn", "open"]
    assert events[0].detail["read"]["loaded"] == 90 and events[0].detail["reviews_left_out"] == 2
    assert events[1].detail["plan"]["prompts_sha256"] == round_.plan["prompts_sha256"]


@on_sqlite
def test_too_few_prompts_open_no_round(with_model: Workspace, tmp_path: Path):
    with pytest.raises(BadInput, match="5000 prompts were wanted, and .* gives 88 "):
        opened(with_model, tmp_path, prompts=5000)
    assert stored_prompts(with_model.engine()) == []
    with reading(with_model.engine()) as session, pytest.raises(NotFound):
        find_round(session, 1)


def test_a_harvest_leaves_the_reviews_of_the_prompts_out(with_model: Workspace, tmp_path: Path):
    engine = with_model.engine()
    opened(with_model, tmp_path, size=60)
    report = harvest_round(with_model, engine, 1, "test", now, lambda count: None)
    prompted = {row.review_id for row in stored_prompts(engine)}
    with reading(engine) as session:
        harvested = set(session.exec(select(Example.review_id)))
    assert report.pool.reviews_left_out == 32 and harvested and not harvested & prompted


@on_sqlite
def test_the_next_round_draws_from_other_reviews(with_model: Workspace, tmp_path: Path):
    engine = with_model.engine()
    opened(with_model, tmp_path)
    with writing(engine) as session:
        close_round(session, find_round(session, 1), "test", MOMENT, abandon=True)
    opened(with_model, tmp_path)
    rows = stored_prompts(engine)
    assert len({row.review_id for row in rows}) == len(rows) == 60


@on_sqlite
def test_where_people_alone_write_there_is_no_harvest(with_model: Workspace, tmp_path: Path):
    opened(with_model, tmp_path, prompts=0)
    assert stored_prompts(with_model.engine()) == []
    with pytest.raises(IllegalMove, match="round 1 harvests nothing"):
        harvest_round(with_model, with_model.engine(), 1, "test", now, lambda count: None)


@on_sqlite
def test_a_round_that_collects_nothing_is_refused(with_model: Workspace, tmp_path: Path):
    with pytest.raises(BadInput, match="would collect nothing"):
        opened(with_model, tmp_path, prompts=0, authoring=None)
    with pytest.raises(BadInput, match="only where people write"):
        opened(with_model, tmp_path, authoring=None)


@on_sqlite
def test_aut_04_opening_checks_that_the_model_loads_and_names_the_file_if_not(with_model: Workspace, tmp_path: Path):
    weights = with_model.models / "model-0" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8])
    with pytest.raises(BadInput, match=f"{weights} has changed"):
        opened(with_model, tmp_path)
    weights.unlink()
    with pytest.raises(NotFound, match="model-0 has no model.safetensors"):
        opened(with_model, tmp_path)
    weights.write_bytes(whole)
    assert opened(with_model, tmp_path).state == "open"


def planned(session: Session, **options: object) -> Round:
    """Open a round in the database alone."""
    plan = make_plan(task=DEFAULT, reviews="csv:reviews.csv", reviews_sha256="0" * 64, seed=1, **options)
    round_ = draft_round(session, get_task(DEFAULT), plan, "model-0", "hash")
    open_round(session, round_, "test", MOMENT)
    return round_


def test_work_is_switched_off_and_on_while_the_round_is_open(engine: Engine):
    states = []
    with writing(engine) as session:
        round_ = planned(session, size=0, authoring={})
        for on in (False, False, True):
            states.append(is_on(session, round_, AUTHORING))
            switch(session, round_, AUTHORING, on, "test", MOMENT)
        states += [is_on(session, round_, AUTHORING), is_on(session, round_, VALIDATING)]
        assert states == [True, False, False, True, True]
        events = session.exec(select(Event.what).order_by(col(Event.id))).all()
        assert events == ["open", "authoring off", "authoring on"]
        close_round(session, round_, "test", MOMENT, abandon=True)
        assert not is_on(session, round_, AUTHORING) and not is_on(session, round_, VALIDATING)
        with pytest.raises(IllegalMove, match="round 1 is closed"):
            switch(session, round_, VALIDATING, False, "test", MOMENT)


@on_sqlite
def test_what_the_plan_does_not_have_cannot_be_switched(engine: Engine):
    with writing(engine) as session:
        round_ = planned(session, size=20)
        assert is_on(session, round_, VALIDATING) and not is_on(session, round_, AUTHORING)
        with pytest.raises(IllegalMove, match="nobody writes in round 1"):
            switch(session, round_, AUTHORING, True, "test", MOMENT)
        with pytest.raises(BadInput, match="'harvest' cannot be switched"):
            switch(session, round_, "harvest", True, "test", MOMENT)


@on_sqlite
def test_the_command_switches(workspace: Workspace):
    with writing(workspace.engine()) as session:
        planned(session, size=0, authoring={})
    done = CliRunner().invoke(switch_command, ["1", "authoring", "off", "-w", str(workspace.root)])
    assert done.output == "authoring in round 1 is off\n", done
    with reading(workspace.engine()) as session:
        assert not is_on(session, find_round(session, 1), AUTHORING)


@on_sqlite
def test_the_command_opens_a_round_that_people_write_in(with_model: Workspace, tmp_path: Path):
    files = write_reviews(tmp_path)
    with files.reviews.open("a") as more:
        more.write("no json\n")
    words = ["-w", str(with_model.root), "--target", "model-0", "--reviews", f"jsonl:{files.reviews}"]
    words += ["--prompts", "20", "--attempts", "4", "--pay-example", "0.5", "--pay-page", "1", "--currency", "EUR"]
    done = CliRunner().invoke(open_command, words)
    told = ["rejected lines: work/prompts.rejects.jsonl", "round 1 is open against model-0; next: dynaround serve"]
    assert (done.exit_code, done.output.splitlines()[-2:]) == (0, told), done
    rejected = json.loads((with_model.work / "prompts.rejects.jsonl").read_text())
    assert rejected["line"] == 91 and "malformed JSON" in rejected["reason"]
    with reading(with_model.engine()) as session:
        plan = RoundPlan.model_validate(find_round(session, 1).plan)
    assert (plan.size, plan.prompts, plan.authoring) == (0, 20, AuthoringPlan(attempts=4))
    assert plan.pay == PayPlan(currency="EUR", example=50, bonus=30, page=100)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--size", "5", "--attempts-a-day", "4"], "--attempts-a-day is about people who write"),
        (["--prompts", "5", "--pay-bonus", "0.305"], "'0.305' is no amount such as 0.30"),
        (["--prompts", "5", "--pay-page", "-1"], "'-1' is no amount"),
        (["--prompts", "5", "--pay-page", "1e3"], "'1e3' is no amount"),
    ],
)
def test_the_command_refuses_options_that_do_not_fit(words: list[str], reason: str):
    done = CliRunner().invoke(open_command, ["--target", "model-0", "--reviews", "jsonl:none.jsonl", *words])
    assert done.exit_code == 2 and reason in done.output, done.output


def test_amounts_are_whole_hundredths():
    assert [HUNDREDTHS.convert(word, None, None) for word in ("0.30", "0.3", "0.07", "12", "0")] == [30, 30, 7, 1200, 0]


def test_the_defaults_that_help_tells_are_those_of_the_plan():
    told = CliRunner().invoke(open_command, ["--help"]).output
    written = AuthoringPlan()
    paid = PayPlan()
    numbers = {name: getattr(written, name) for name in ("attempts", "attempts_a_day", "max_characters")}
    amounts = {f"pay_{name}": f"{getattr(paid, name) / 100:.2f}" for name in ("example", "bonus", "page")}
    for name, value in (numbers | amounts | {"currency": paid.currency}).items():
        _, _, after = told.partition(f"--{name.replace('_', '-')} ")
        assert f"[default: {value}]" in " ".join(after.split("--")[0].split()), name

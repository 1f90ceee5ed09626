"""The comparison of the arms: rates with intervals over authors, texts, pasted attempts, in a round and in files."""

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sqlalchemy import Engine
from sqlmodel import select

from dynaround.database import reading, writing
from dynaround.errors import BadInput, NotFound
from dynaround.settings import Workspace
from dynaround.tables import CONFIRMED, NO_PROMPT_ARM, PROMPT_ARM, TAKEN_BACK, Worker
from dynaround.task import Prediction, PromptData, ReleasedExample
from dynaround.tasks.sentiment import SENTIMENT
from rounds.arm_rates import NO_SPREAD, NO_TEXT, ONE_AUTHOR, Marked, arm_rates
from rounds.arms import arms_of_release, arms_of_round
from rounds.attempts import Typing
from rounds.commands import compare_arms_command
from rounds.report_arms import arms_report, compare_arms
from rounds.report_figures import figures
from rounds.report_source import Part, ReportSource
from tests.authored_round import (
    add_authored_round,
    begin_in_arm,
    close,
    examples,
    making,
    next_example,
    other_than,
    respond,
    say,
    send,
)
from tests.report_rows import counts, row, rows

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
ARMS = ("Prompt", "No Prompt")
ROUND_2 = "dynasent-v1.1-round02-dynabench-dev.jsonl"


def figures_of(engine: Engine) -> dict[str, Any]:
    with reading(engine) as session:
        return figures(arms_report(arms_of_round(session, 1), seed=0))


# Rates


def some_texts(seed: int, authors: int = 12) -> list[Marked]:
    """Texts of authors of unequal diligence and luck, who write in both arms."""
    random = Random(seed)
    return [
        Marked(random.choice(ARMS), f"w{author}", random.random() < (author % 4) / 4 + 0.1)
        for author in range(authors)
        for _ in range(random.randint(1, 3 * author + 1))
    ]


def test_rates_are_hits_over_texts_and_their_difference():
    found = arm_rates(some_texts(1), ARMS, seed=0)
    for rate, arm in ((found.first, ARMS[0]), (found.second, ARMS[1])):
        hits = [text.hit for text in some_texts(1) if text.arm == arm]
        assert (rate.hits, rate.texts, rate.estimate.value) == (sum(hits), len(hits), sum(hits) / len(hits))
    assert found.first.estimate.value is not None and found.second.estimate.value is not None
    assert found.difference.value == found.first.estimate.value - found.second.estimate.value


def test_intervals_are_those_of_drawing_whole_authors_one_by_one():
    texts = some_texts(2)
    found = arm_rates(texts, ARMS, seed=0, resamples=20_000)
    by_author = {name: [t for t in texts if t.author == name] for name in sorted({t.author for t in texts})}
    generator = np.random.default_rng(5)
    drawn = []
    for _ in range(20_000):
        mine = [t for name in generator.choice(list(by_author), len(by_author)) for t in by_author[str(name)]]
        rates = [np.mean([t.hit for t in mine if t.arm == arm] or [np.nan]) for arm in ARMS]
        drawn.append([*rates, rates[0] - rates[1]])
    ends = np.nanquantile(drawn, [0.025, 0.975], axis=0).T
    for estimate, (low, high) in zip(
        (found.first.estimate, found.second.estimate, found.difference), ends, strict=True
    ):
        assert estimate.interval is not None
        assert [estimate.interval.low, estimate.interval.high] == pytest.approx([low, high], abs=0.02)


def test_the_order_of_the_texts_does_not_matter():
    texts = some_texts(3)
    assert arm_rates(Random(1).sample(texts, len(texts)), ARMS, seed=4) == arm_rates(texts, ARMS, seed=4)


@pytest.mark.parametrize(
    ("texts", "reasons"),
    [
        ([], (NO_TEXT, NO_TEXT, NO_TEXT)),
        ([Marked("Prompt", "w1", True), Marked("Prompt", "w1", False)], (ONE_AUTHOR, NO_TEXT, NO_TEXT)),
        ([Marked("Prompt", "w1", True), Marked("Prompt", "w2", True)], (NO_SPREAD, NO_TEXT, NO_TEXT)),
        ([Marked(arm, w, True) for arm in ARMS for w in ("w1", "w2")], (NO_SPREAD, NO_SPREAD, NO_SPREAD)),
    ],
)
def test_what_says_nothing_of_other_authors_has_no_interval(texts: list[Marked], reasons: tuple[str, ...]):
    found = arm_rates(texts, ARMS, seed=0)
    estimates = (found.first.estimate, found.second.estimate, found.difference)
    assert tuple(estimate.reason for estimate in estimates) == reasons
    assert [estimate.interval for estimate in estimates] == [None] * 3
    assert [estimate.value is None for estimate in estimates] == [reason == NO_TEXT for reason in reasons]


# A round


def write_in_both_arms(engine: Engine) -> None:
    """Two authors; each: a fool verified and one refuted in the Prompt arm, a pasted one and a text in the other."""
    for author in add_authored_round(engine, prompts=20, authors=2):
        begin_in_arm(engine, author, PROMPT_ARM)
        made = making(engine, author)
        say(engine, send(engine, author, f"Taken back by {author}.", fools=True, typing=Typing(0, 9)), TAKEN_BACK)
        _fool(engine, author, f"Verified of {author} is here.", Typing(0, 20, 4.0), made.target_label)
        made = making(engine, author)
        _fool(engine, author, f"Refuted of {author} is here.", Typing(0, 20, 4.0), other_than(made.target_label))
        begin_in_arm(engine, author, NO_PROMPT_ARM)
        made = making(engine, author)
        _fool(engine, author, f"Pasted of {author} is here.", Typing(30, 2, 1.0), made.target_label)
        send(engine, author, f"Honest text of {author}.")
        next_example(engine, author)


def _fool(engine: Engine, author: int, text: str, typing: Typing, gold: str) -> None:
    say(engine, send(engine, author, text, fools=True, typing=typing), CONFIRMED)
    respond(engine, examples(engine)[-1], [gold] * 5)


def test_counts_and_rates_of_a_round(engine: Engine):
    write_in_both_arms(engine)
    for state in ("open", "closed"):
        if state == "closed":
            close(engine)
        found = figures_of(engine)
        stored = rows(found, "arm-counts")
        assert [list(one.values())[2:] for one in stored] == [[2, 6, 6, 2, 4, 4, 4, 2], [2, 4, 2, 0, 4, 2, 2, 2]]
        assert counts(found, "arm-rates", "claimed, of attempts", "Prompt")[:3] == [6, 6, 1.0]
        assert counts(found, "arm-rates", "claimed, of examples", "No Prompt")[:3] == [2, 4, 0.5]
        assert counts(found, "arm-rates", "verified, of decided examples", "Prompt")[:3] == [2, 4, 0.5]
        assert counts(found, "arm-rates", "verified, of decided claims", "No Prompt")[:3] == [2, 2, 1.0]
        assert counts(found, "arm-rates", "claimed, of examples", "Prompt − No Prompt")[:3] == [None, None, 0.5]
        assert found["about"]["responses from"] == found["about"]["texts from"] == "people" and found["marks"] == []
        assert found["about"]["state"] == state


@on_sqlite
def test_rates_change_without_what_was_pasted(engine: Engine):
    write_in_both_arms(engine)
    found = figures_of(engine)
    assert counts(found, "arm-pasted", "Prompt")[:4] == [6, 6, 0, 0.0]
    assert counts(found, "arm-pasted", "No Prompt")[:4] == [4, 2, 2, 1.0]
    without = row(found, "arm-rates-without-pasted", "claimed, of attempts", "No Prompt")
    assert [without[name] for name in ("texts", "rate of all", "not pasted", "rate of these", "change")] == [
        *(4, 0.5, 2, 0.0, -0.5)
    ]
    verified = row(found, "arm-rates-without-pasted", "verified, of decided claims", "No Prompt")
    assert [verified[name] for name in ("texts", "rate of all", "not pasted", "rate of these", "change")] == [
        *(2, 1.0, 0, None, None)
    ]


@on_sqlite
def test_nothing_is_said_before_anybody_has_answered_or_written(engine: Engine):
    [author] = add_authored_round(engine, authors=1)
    with reading(engine) as session, pytest.raises(BadInput, match="nobody has written in round 1"):
        arms_of_round(session, 1)
    with reading(engine) as session, pytest.raises(NotFound, match="there is no round 3"):
        arms_of_round(session, 3)
    making(engine, author)
    found = figures_of(engine)
    assert found["about"]["responses from"] == "nobody so far" and rows(found, "arm-rates") == []
    send(engine, author, "It was all right.")
    next_example(engine, author)
    assert {one["rate"] for one in rows(figures_of(engine), "arm-rates")} == {
        "claimed, of attempts",
        "claimed, of examples",
    }


@on_sqlite
def test_a_crowd_that_writes_or_answers_is_called_one(engine: Engine):
    write_in_both_arms(engine)
    with writing(engine) as session:
        for worker in session.exec(select(Worker)):
            worker.kind = "scripted"
            session.add(worker)
    crowd = "a scripted crowd (not people)"
    assert figures_of(engine)["marks"] == [f"texts from {crowd}", f"responses from {crowd}"]


# Files


def test_published_round_2_has_the_published_edit_distance(shared_data: Path, tmp_path: Path):
    found = figures(compare_arms([str(shared_data / "dynasent" / ROUND_2)], None, tmp_path, seed=0))
    prompts = row(found, "prompts", "Prompt")
    assert round(prompts["mean distance"], 4) == 0.4973 and round(prompts["median"], 4) == 0.5516
    assert [round(prompts[f"{end} quartile"], 4) for end in ("lower", "upper")] == [0.2500, 0.7289]
    assert [one["authors"] for one in rows(found, "arm-counts")] == [133, 0]
    assert counts(found, "arm-rates", "model errors, of those with gold", "Prompt")[:2] == [480, 720]
    drawn = {one["arm"]: one["mean"] for one in rows(found, "arm-vocabulary")}
    # Computed independently on dev and test together: 455.0 and 462.7, with a standard deviation of 13.
    assert drawn["Prompt"] == pytest.approx(455, abs=13) and drawn["their prompts"] == pytest.approx(462.7, abs=13)
    assert drawn["No Prompt"] is None
    lengths = row(found, "arm-lengths", "their prompts", "characters")
    assert round(lengths["mean"], 1) == 69.1
    assert "pasted" not in found["sections"]


def test_released_examples_with_a_prompt_are_of_the_prompt_arm():
    labels = SENTIMENT.model_labels
    released = [
        ReleasedExample(
            text_id=f"r2-{number:07d}",
            round=2,
            sentence=f"The soup was number {number}.",
            prediction=Prediction(labels[0], dict.fromkeys(labels, 1 / 3)),
            responses=(),
            gold=(labels[0], labels[1], "mixed", None)[number % 4],
            hit_ids=(),
            author=("w1", "w2", None)[number % 3],
            prompt=PromptData("The soup.", "v1", 3, None) if number % 2 else None,
        )
        for number in range(12)
    ]
    source = ReportSource("Round 2", SENTIMENT, "people", (Part(2, "train", "train", tuple(released)),), ())
    found = figures(arms_report(arms_of_release(source), seed=0))
    # Of the eight with an author, gold by number: 0, 4 and right, 1 wrong, 6, 10 mixed, 3, 7 none, 9 wrong.
    assert counts(found, "arm-counts", "Prompt") == [2, 4, 2]
    assert counts(found, "arm-counts", "No Prompt") == [2, 4, 4]
    assert counts(found, "arm-rates", "model errors, of those with gold", "Prompt")[:2] == [2, 2]
    assert counts(found, "arm-rates", "model errors, of those with gold", "No Prompt")[:2] == [0, 4]
    assert counts(found, "prompts", "Prompt")[:4] == [4, 1, 0, 0]


def test_a_round_without_authors_has_no_arms(shared_data: Path, tmp_path: Path):
    harvested = shared_data / "dynasent" / "dynasent-v1.1-round01-yelp-dev.jsonl"
    with pytest.raises(BadInput, match="Round 1: no example has an author, so there are no arms to compare"):
        compare_arms([str(harvested)], None, tmp_path, seed=0)


# The command


@pytest.mark.parametrize("about", [[], ["1", "2"], ["1", "--release", "folder"]])
def test_one_thing_is_compared(about: list[str], tmp_path: Path):
    done = CliRunner().invoke(compare_arms_command, [*about, "-w", str(tmp_path)])
    assert isinstance(done.exception, BadInput) and "name one" in str(done.exception)


@on_sqlite
def test_the_command_prints_text_or_json_and_writes_a_page(workspace: Workspace, tmp_path: Path):
    engine = workspace.engine()
    write_in_both_arms(engine)
    page = tmp_path / "arms.html"
    asked = ["1", "-w", str(workspace.root)]
    printed = CliRunner().invoke(compare_arms_command, [*asked, "--out", str(page)], catch_exceptions=False)
    assert "verified, of decided claims" in printed.output and f"written: {page}" in printed.output
    written = page.read_text(encoding="utf-8")
    assert "<h1>The arms of round 1</h1>" in written and written.count("data:image/svg+xml") == 2
    plain = CliRunner().invoke(compare_arms_command, [*asked, "--json"], catch_exceptions=False)
    assert json.loads(plain.output) == json.loads(json.dumps(figures_of(engine)))
    assert "PLATFORM" not in printed.output + plain.output + written


@on_sqlite
def test_the_same_round_and_seed_give_the_same_report(engine: Engine):
    write_in_both_arms(engine)
    assert figures_of(engine) == figures_of(engine)
    with reading(engine) as session:
        assert arms_report(arms_of_round(session, 1), 1) == arms_report(arms_of_round(session, 1), 1)

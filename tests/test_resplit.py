"""A round of its own from a published file: everything as published, train and test drawn anew and kept apart."""

import json
import random
from collections import Counter
from dataclasses import replace

import pytest
from sqlmodel import select

from dynaround.database import reading
from dynaround.errors import BadInput, IllegalMove
from dynaround.folders import read_manifest
from dynaround.judged_texts import barred_in_rounds
from dynaround.leaks import BarredTexts
from dynaround.mixture import mix
from dynaround.models import evaluate_models
from dynaround.release_check import read_release
from dynaround.release_file import write_lines
from dynaround.resplit import Sizes, resplit, sizes_of
from dynaround.splits import Candidate
from dynaround.tables import LAUNCHER, Example
from dynaround.task import Prediction, PromptData, ReleasedExample, ReleasedResponse, Span
from dynaround.tasks.sentiment import SENTIMENT
from rounds.importing import import_published
from rounds.lifecycle import find_round
from rounds.solving import ask_solved
from tests.author_site import serve
from tests.builders import build_open_round
from tests.command import run
from tests.site import SECRET, client_of, make_site
from tests.small_round import MOMENT, now
from tests.test_mixture import refuse
from tests.tiny_model import ROWS, make_model

LABELS = SENTIMENT.model_labels
CELLS = [(gold, said) for gold in LABELS for said in LABELS]


def candidates(count=90, groups=lambda n: (f"text:{n}",), **changes):
    for n in range(count):
        gold, said = CELLS[n % 9]
        yield replace(Candidate(f"r1-{n:07d}", gold, said, 5, 5, True, groups(n)), **changes)


SIZES = Sizes(60, 30)


def drawn(pool, sizes=SIZES, seed=1):
    return resplit(pool, sizes, model_labels=LABELS, seed=seed)


def test_sizes_are_filled_exactly_and_cells_in_turn():
    pool = list(candidates())
    found = drawn(pool)
    assert Counter(found.values()) == {"train": 60, "test": 30}
    cells = Counter((c.gold, c.prediction) for c in pool if found[c.key] == "test")
    assert set(cells.values()) == {3, 4} and len(cells) == 9


def test_the_draw_depends_on_the_seed_and_not_on_the_order():
    pool = list(candidates())
    found = drawn(pool)
    random.Random(0).shuffle(pool)
    assert drawn(pool) == found != drawn(pool, seed=2)


def test_what_belongs_together_is_never_parted():
    pool = list(candidates(groups=lambda n: (f"review:{n // 4}", f"text:{n % 45}" if n % 10 == 0 else f"text:{n}")))
    found = drawn(pool)
    for group in {group for candidate in pool for group in candidate.groups}:
        assert len({found[c.key] for c in pool if group in c.groups}) == 1
    assert Counter(found.values()) == {"train": 60, "test": 30}


def test_what_may_not_be_judged_on_stands_in_train_and_what_is_left_is_withheld():
    pool = [*candidates(45), *candidates(9, gold=None, key="no gold"), *candidates(9, gold="mixed", key="mixed")]
    pool = [replace(candidate, key=f"{candidate.key}-{n}") for n, candidate in enumerate(pool)]
    found = drawn(pool, Sizes(20, 30))
    assert {c.gold for c in pool if found[c.key] == "test"} == set(LABELS)
    assert Counter(found.values()) == {"train": 20, "test": 30, "withheld": 13}


@pytest.mark.parametrize(
    ("sizes", "said"),
    [(Sizes(80, 20), "asks for 100 examples, and there are 90"), (Sizes(50, 31), "test cannot hold 31 .* 2[78] fit")],
)
def test_sizes_that_cannot_be_filled_are_refused(sizes, said):
    with pytest.raises(BadInput, match=said):
        drawn(candidates(groups=lambda n: (f"review:{n // 7}",)), sizes)


@pytest.mark.parametrize("words", ["2400", "a/b", "10/0", "1/2/3", "-1/5", ""])
def test_words_that_are_no_sizes_are_refused(words):
    assert sizes_of("2400/1200") == Sizes(2400, 1200)
    with pytest.raises(BadInput, match="is no resplit; write TRAIN/TEST"):
        sizes_of(words)


def published(path, count=90, authored=False):
    """Write a published file: two sentences a review, five of thirty workers each, one with outer blanks."""
    lines = []
    for n in range(count):
        gold, said = CELLS[n % 9]
        sentence = f" The {ROWS[n % 9].text}, number {n}." if n else "Outer blanks. "
        review, span = f"v{n // 2}", Span(0, len(sentence))
        workers = [f"w{1 + (n + 6 * place) % 30}" for place in range(5)]
        example = ReleasedExample(
            text_id=f"r1-{n + 1000:07d}",
            round=1,
            sentence=sentence,
            prediction=Prediction(said, {label: 0.8 if label == said else 0.1 for label in LABELS}),
            responses=tuple(ReleasedResponse(w, gold if w != workers[0] else "mixed", {}) for w in workers),
            gold=gold,
            hit_ids=("y1",),
        )
        if authored:
            prompt = PromptData(f"Prompt {n}", review, 1 + n % 5, Span(10 * n, 10 * n + 8)) if n % 3 else None
            example = replace(example, author=f"w{40 + n % 4}", prompt=prompt)
        else:
            example = replace(example, review_id=review, rating=(1, 5)[n % 2], span=span)
        lines.append(SENTIMENT.release_line(example))
    write_lines(path, lines)
    return path


def imported(workspace, file, sizes=SIZES, seed=7, **more):
    usual = {"margin": 0.02, "who": "launcher", "at": MOMENT}
    return import_published(workspace, workspace.engine(), file, sizes, seed=seed, **{**usual, **more})


def told(example):
    """What a published file and its import must both say; the ids of people and pages are the workspace's own."""
    return replace(example, responses=(), hit_ids=()), Counter(response.label for response in example.responses)


def test_an_imported_round_says_what_the_file_says(workspace, tmp_path):
    file = published(tmp_path / "published-dev.jsonl")
    manifest = imported(workspace, file)
    folder = workspace.releases / "round-1"
    found = [e for split in ("train", "test") for e in read_release(folder / f"{split}.jsonl", SENTIMENT)]
    by_id = {example.text_id: told(example) for example in found}
    assert by_id == {example.text_id: told(example) for example in read_release(file, SENTIMENT)}
    assert manifest["examples"] == {"train": 60, "dev": 0, "test": 30, "withheld": 0}
    assert manifest["responses_from"] == "people" and manifest["splits"]["from"]["file"] == file.name
    assert len({r.worker for example in found for r in example.responses}) == 30
    with reading(workspace.engine()) as session:
        assert find_round(session, 1).state == "released"
        assert all(example.imported for example in session.exec(select(Example)))


def test_the_pages_and_the_plan_of_an_imported_round_say_nothing_that_nobody_planned(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    workspace = make_site(tmp_path / "bench")
    manifest = imported(workspace, published(tmp_path / "published-dev.jsonl"))
    assert set(manifest["plan"]) == {"task", "reviews", "reviews_sha256", "size", "margin", "seed"}
    client = client_of(serve(workspace, None), LAUNCHER)
    for address in ("/", "/rounds/1", "/rounds/1/live"):
        page = client.get(address)
        assert page.status_code == 200 and "released" in page.text, address
    workspace.close()


def test_an_authored_round_keeps_prompts_and_who_wrote_what(workspace, tmp_path):
    file = published(tmp_path / "published-dev.jsonl", authored=True)
    imported(workspace, file, Sizes(70, 20))
    folder = workspace.releases / "round-1"
    found = {e.text_id: e for split in ("train", "test") for e in read_release(folder / f"{split}.jsonl", SENTIMENT)}
    before = {example.text_id: example for example in read_release(file, SENTIMENT)}
    assert {text_id: e.prompt for text_id, e in found.items()} == {text_id: e.prompt for text_id, e in before.items()}
    assert len({(before[text_id].author, e.author) for text_id, e in found.items()}) == 4
    # As published: no sentence without a prompt is judged on.
    assert all(e.prompt for e in read_release(folder / "test.jsonl", SENTIMENT))


def test_two_prompts_in_one_place_are_refused(workspace, tmp_path):
    file = published(tmp_path / "published-dev.jsonl", authored=True)
    file.write_text(file.read_text().replace("[50, 58]", "[40, 48]"))
    with pytest.raises(BadInput, match="the prompts 'Prompt 4' and 'Prompt 5' stand in one place of review v2"):
        imported(workspace, file, Sizes(70, 20))


def test_the_same_import_again_changes_nothing_and_another_draw_is_refused(workspace, tmp_path):
    file = published(tmp_path / "published-dev.jsonl")
    first = imported(workspace, file)
    assert imported(workspace, file) == first
    with pytest.raises(BadInput, match="is round 1 already, drawn as 60/30 with seed 7"):
        imported(workspace, file, seed=8)
    assert imported(workspace, published(tmp_path / "other.jsonl", 45), Sizes(30, 15))["round"] == 2


def test_an_import_that_ended_before_its_release_goes_on(workspace, tmp_path):
    file = published(tmp_path / "published-dev.jsonl")
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    (occupied / "note.txt").write_text("mine")
    with pytest.raises(BadInput, match="already exists and is not empty"):
        imported(workspace, file, folder=occupied)
    assert imported(workspace, file)["round"] == 1
    assert (workspace.releases / "round-1" / "test.jsonl").is_file()


def test_only_the_new_test_is_judged_on_and_nothing_of_it_is_trained_on(workspace, tiny_encoder, tmp_path):
    file = published(tmp_path / "published-dev.jsonl")
    imported(workspace, file)
    folder = workspace.releases / "round-1"
    tests = {example.sentence for example in read_release(folder / "test.jsonl", SENTIMENT)}
    with reading(workspace.engine()) as session:
        assert {(text, "round 1, test") for text in tests} == set(barred_in_rounds(session))
        barred = BarredTexts(barred_in_rounds(session))
    with pytest.raises(BadInput, match=r"30 of 90 sentences of dynasent:.* \(the first in round 1, test\)"):
        mix([f"dynasent:{file}"], SENTIMENT, on_reject=refuse, barred=barred)
    trained = mix([f"release:{folder}"], SENTIMENT, on_reject=refuse, barred=barred)
    assert trained.reports[0].rows == 60 and trained.reports[0].leaks == 0
    make_model(workspace.models / "m", tiny_encoder, epochs=1)
    [summary] = evaluate_models(
        workspace,
        ["m"],
        [f"release:{folder}"],
        without=(),
        seed=0,
        who="launcher",
        now=now,
        on_reject=lambda spec, reject: None,
        on_reading=lambda: None,
    )
    assert summary["on"].endswith("round-1/test.jsonl") and summary["sentences"] == 30


def test_solved_judges_the_test_of_an_imported_round_beside_people(workspace, tiny_encoder, tmp_path):
    imported(workspace, published(tmp_path / "published-dev.jsonl"))
    make_model(workspace.models / "m", tiny_encoder, epochs=1)
    check = ask_solved(workspace, workspace.engine(), 1, "m", seed=0, who="launcher", now=now, resamples=200)
    assert [(one["on"], one["items"]) for one in check["splits"]] == [("test", 30)]
    assert check["responses_from"] == "people"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gold_label": None, "label_distribution": {"positive": ["w1"], "negative": [], "neutral": [], "mixed": []}},
         "example r1-0001000 has 1 responses, not 5 of as many workers"),
        ({"text_id": "first"}, "example first has no text id of its own"),
        ({"text_id": "r1-0001001"}, "has no text id of its own"),
        ({"sentence": " "}, "has a sentence that cannot be stored"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_part_of_a_round_is_refused(workspace, tmp_path, change, said):
    file = published(tmp_path / "published-dev.jsonl")
    first, *others = file.read_text().splitlines()
    file.write_text("\n".join([json.dumps(json.loads(first) | change), *others]) + "\n")
    with pytest.raises(BadInput, match=said):
        imported(workspace, file)
    with reading(workspace.engine()) as session:
        assert session.exec(select(Example)).first() is None


def test_a_release_of_ours_and_a_workspace_with_an_open_round_are_refused(workspace, tmp_path):
    file = published(tmp_path / "published-dev.jsonl")
    imported(workspace, file)
    with pytest.raises(BadInput, match="belongs to a release that has splits already"):
        imported(workspace, workspace.releases / "round-1" / "train.jsonl")
    build_open_round(workspace, number=2)
    with pytest.raises(IllegalMove, match="round 2 is still open"):
        imported(workspace, published(tmp_path / "other.jsonl", 45), Sizes(30, 15))


@pytest.mark.long
def test_round_1_dev_is_drawn_anew_as_the_command_says(shared_data, tmp_path):
    file = shared_data / "dynasent" / "dynasent-v1.1-round01-yelp-dev.jsonl"
    assert run("init", ".", cwd=tmp_path).code == 0
    told = run("import", file, "--resplit", "2400/1200", "--seed", 7, cwd=tmp_path)
    assert told.code == 0 and "round 1: 2400 train, 0 dev, 1200 test, 0 withheld; from people" in told.out
    folder = tmp_path / "releases" / "round-1"
    splits = {split: read_release(folder / f"{split}.jsonl", SENTIMENT) for split in ("train", "test")}
    assert not {e.review_id for e in splits["train"]} & {e.review_id for e in splits["test"]}
    cells = Counter((e.gold, e.prediction.label) for e in splits["test"])
    assert len(cells) == 9 and max(cells.values()) - min(cells.values()) <= 4
    assert read_manifest(folder)["plan"]["reviews"] == f"dynasent:{file.name}"
    status = run("round", "status", 1, cwd=tmp_path)
    assert status.code == 0 and "labels of 3600 examples (retained), by people" in status.out
    assert run("report", 1, cwd=tmp_path).code == 0

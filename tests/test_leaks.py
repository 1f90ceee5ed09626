"""What a validator's browser gets: positions, sentences and the form; nothing tells what stands behind a sentence."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flask import Flask
from sqlmodel import col, select

from dynaround.database import reading, writing
from dynaround.settings import create_workspace
from dynaround.tables import CONFIRMED, SILENT, Attempt, CheckItem, CheckPlace, Example, Prompt, Response
from dynaround.text import text_key
from rounds.lifecycle import find_round
from server.access import ENGINE
from tests.author_site import serve
from tests.authored_round import NUMBER, add_authored_round, next_example, prompt_text, say, send
from tests.site import SECRET
from tests.validate_site import (
    CELL,
    PROBABILITY,
    TASK,
    VALIDATE,
    Validator,
    add_examples,
    admit,
    change_validation,
    check_text,
    text_of,
)

FOOLING, NOT_FOOLING = "One that took it in.", "One that it saw through."
FAR = 70_000
"""Added to the ids of examples, so that one in a page would be found."""


class Site(NamedTuple):
    """A round with sentences of every kind, and validators who wrote none of them."""

    app: Flask
    validators: list[Validator]
    kinds: dict[str, str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DYNAROUND_SECRET", SECRET)
        workspace = create_workspace(tmp_path_factory.mktemp("leaks") / "bench")
        engine = workspace.engine()
        author_id, *ids = add_authored_round(engine, authors=9)
        harvested = [text_of(number) for number in range(1, 5)]
        checks = [check_text(place) for place in range(2)]
        with writing(engine) as session:
            round_ = find_round(session, NUMBER)
            add_examples(session, round_, harvested, first_id=FAR)
            assert round_.id is not None
            for text in checks:
                known: dict[str, Any] = {"text": text, "text_key": text_key(text), "label": TASK.labels[0]}
                session.add(CheckItem(round_id=round_.id, task=TASK.name, use=SILENT, **known))
        say(engine, send(engine, author_id, FOOLING, fools=True), CONFIRMED)
        send(engine, author_id, NOT_FOOLING)
        next_example(engine, author_id)
        change_validation(engine, silent_share=1, screening_items=0)
        app = serve(workspace, None)
        for worker_id in ids:
            admit(app, engine, worker_id)
    kinds = {
        **{text: "harvested" for text in harvested},
        **{text: "check item" for text in checks},
        FOOLING: "fooling",
        NOT_FOOLING: "not fooling",
    }
    yield Site(app, [Validator(app, worker_id) for worker_id in ids], kinds)
    workspace.close()


def sentences(page: str) -> list[tuple[str, str]]:
    """Return the sentences of a page in their order, each with its part of the source without position and sentence."""
    found = []
    for part in re.findall(r"<fieldset class=\"judge\".*?</fieldset>", page, re.DOTALL):
        [(position, sentence)] = re.findall(r'id="sentence-(\d+)".*?dir="auto">(.*?)</span>', part, re.DOTALL)
        source = part.replace(sentence, "SENTENCE").replace(f"sentence-{position}", "sentence-N")
        source = source.replace(f'name="{position}.', 'name="N.').replace(" autofocus", "")
        found.append((sentence, re.sub(r'count">\d+ of \d+<', 'count">N<', source)))
    return found


def test_all_kinds_of_sentences_look_alike(site: Site) -> None:
    kinds, sources = set(), set()
    for validator in site.validators:
        validator.page_of()
        for sentence, source in sentences(validator.page.text):
            kinds.add(site.kinds[sentence])
            sources.add(source)
    assert kinds == {"harvested", "fooling", "not fooling", "check item"}
    assert len(sources) == 1
    [source] = sources
    assert re.findall(r'(?:id|name|value|class|data-\w+)="([^"]*)"', source) == expected_attributes()


def expected_attributes() -> list[str]:
    labels = [value for label in TASK.labels for value in ("N.answer", label)]
    reasons = [value for reason in TASK.guide.flag_reasons for value in ("N.answer", f"cannot.{reason}")]
    return ["judge", "sentence-N", "count", "sentence", "options", *labels, "cannot", *reasons]


def test_the_order_of_a_page_mixes_the_kinds_and_stays(site: Site) -> None:
    places: dict[str, set[int]] = {}
    for validator in site.validators:
        validator.page_of()
        first = [sentence for sentence, _ in sentences(validator.page.text)]
        validator.page_of()
        assert [sentence for sentence, _ in sentences(validator.page.text)] == first
        for place, sentence in enumerate(first):
            places.setdefault(site.kinds[sentence], set()).add(place)
    assert all(len(found) >= 4 for found in places.values()), places


def test_no_page_and_no_answer_holds_what_stands_behind_a_sentence(site: Site) -> None:
    one, other, *_ = site.validators
    seen = []
    for validator in (one, other):
        validator.page_of()
        seen.append(validator.page.text)
        validator.give_in({"1.answer": TASK.labels[0]})
        seen.append(validator.page.text)
    one.page_of()
    address, form = one.form("/validate")
    as_json = {"Accept": "application/json"}
    refused = one.client.post(address, data={**form, "1.answer": "nonsense"}, headers=as_json)
    taken = one.client.post(address, data={**form, **one.answers()}, headers=as_json)
    again = one.client.post(address, data={**form, **one.answers()}, headers=as_json)
    foreign = other.client.post(
        address, data={**form, "csrf_token": other.form("/validate")[1]["csrf_token"]}, headers=as_json
    )
    assert taken.json == again.json == {"given_in": True}
    assert [refused.status_code, foreign.status_code] == [400, 403]
    seen += [refused.text, taken.text, foreign.text, one.page_of().text, other.page_of().text]
    seen += [one.look(address).text for address in ("/work", "/validate", f"{VALIDATE}/instructions")]
    for text in seen:
        for secret in secrets(site):
            assert secret not in text, secret
        # Whoever looks sees their own name.
        named = set(re.findall(r"\bw\d+\b", text))
        assert named <= {f"w{one.worker_id}"} or named <= {f"w{other.worker_id}"}
        assert "model" not in text.lower().replace("that a model gets wrong", "")


def secrets(site: Site) -> list[str]:
    """Return what stands in the database behind the sentences, and must stand in no page."""
    with reading(site.app.extensions[ENGINE]) as session:
        prompts = [prompt.text for prompt in session.exec(select(Prompt))]
        ids = [str(id_) for id_ in session.exec(select(Example.id).where(col(Example.id) > FAR))]
        hashes = list(session.exec(select(Example.text_key))) + list(session.exec(select(CheckItem.text_key)))
        tokens = [word for attempt in session.exec(select(Attempt)) for word in (attempt.model_hash, attempt.back_end)]
    assert prompt_text(0) in prompts and len(ids) >= 6
    words = [
        "REVIEW-",
        CELL,
        str(PROBABILITY),
        "0.8",
        "PLATFORM",
        "Prompt",
        "silent",
        "check item",
        "screening",
        "target",
    ]
    return [*prompts, *ids, *hashes, *tokens, *words]


def test_what_others_answered_changes_nothing_on_a_page(site: Site) -> None:
    last, *others = reversed(site.validators)
    last.page_of()
    before = sentences(last.page.text)
    for validator in others[:3]:
        validator.page_of()
        if validator.positions():
            validator.give_in()
    with reading(site.app.extensions[ENGINE]) as session:
        assert len(session.exec(select(Response)).all()) >= 12
        assert session.exec(select(CheckPlace)).first() is not None
    last.page_of()
    assert sentences(last.page.text) == before


def test_pages_are_served_without_loading_torch(tmp_path: Path) -> None:
    program = f"""
import os, sys
from pathlib import Path
os.environ["DYNAROUND_SECRET"] = "{SECRET}"
from dynaround.settings import create_workspace
from tests.author_site import serve
from tests.validate_site import Validator, add_validated_round, admit, responses
workspace = create_workspace(Path(sys.argv[1]))
engine = workspace.engine()
worker_id = add_validated_round(engine, examples=3)[0]
app = serve(workspace, None)
admit(app, engine, worker_id)
validator = Validator(app, worker_id)
validator.page_of()
assert validator.give_in().status_code == 200 and len(responses(engine)) == 3
heavy = sorted({{"torch", "transformers", "matplotlib"}} & set(sys.modules))
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "bench")],
        capture_output=True, text=True, cwd=Path(__file__).parents[1], timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

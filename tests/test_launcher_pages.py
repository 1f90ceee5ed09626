"""The launcher's page: the figures of the command, what may be done, and what people typed, escaped."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine
from sqlmodel import col, select

from dynaround.database import reading, writing
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import LAUNCHER, LEFT_OUT, RELEASED_HOLD, Bar, Event, Hold, Removal, Round
from rounds.lifecycle import VALIDATING, find_round, is_on
from rounds.status import status_figures
from rounds.validation_status import FULL, HELD, IN_BATCH, WAITING
from server.access import CLOCK
from tests.author_site import Page, serve
from tests.authored_round import NUMBER
from tests.builders import SCRIPT, build_released_round
from tests.site import SECRET, all_rows, client_of
from tests.validate_site import LIVE, TASK, VALIDATE, Validator, add_examples, add_validated_round, admit
from workers.accounts import hashed_password, make_account

WORD, OTHER = TASK.labels[:2]


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Workspace]:
    made = create_workspace(tmp_path / "bench")
    yield made
    made.close()


class Site:
    """A served round with validators, and the launcher in a browser without script."""

    def __init__(self, workspace: Workspace, **round_: Any):
        self.engine: Engine = workspace.engine()
        ids = add_validated_round(self.engine, **round_)
        self.app: Flask = serve(workspace, None)
        for worker_id in ids:
            admit(self.app, self.engine, worker_id)
        self.validators = [Validator(self.app, worker_id) for worker_id in ids]
        with writing(self.engine) as session:
            make_account(
                session, LAUNCHER, LAUNCHER, hashed_password("four words of a song"), self.app.extensions[CLOCK]()
            )
        self.launcher: FlaskClient = client_of(self.app, LAUNCHER)

    def answer(self, workers: int, **words: str) -> None:
        """Let so many workers answer one page each; `words` are of workers by their place, else the first label."""
        for place, one in enumerate(self.validators[:workers]):
            one.page_of()
            one.give_in(one.answers(words.get(f"_{place}", WORD)))

    def press(self, ending: str, status: int = 303, **changed: str) -> str:
        """Send the form on the live page whose address ends so; return the page that comes."""
        forms = Page(self.launcher.get(LIVE).text).forms
        [(address, form)] = [(address, form) for address, form in forms.items() if address.endswith(ending)]
        answer = self.launcher.post(address, data={**form, **changed})
        assert answer.status_code == status, answer.text
        return self.launcher.get(LIVE).text if status == 303 else answer.text

    def move(self, key: str, status: int = 303, **changed: str) -> str:
        """Confirm a move; return what the confirmation said."""
        asked = self.launcher.get(f"/rounds/{NUMBER}/moves/{key}")
        assert asked.status_code == 200, asked.text
        [(address, form)] = [(a, f) for a, f in Page(asked.text).forms.items() if "/moves/" in a]
        assert self.launcher.post(address, data={**form, **changed}).status_code == status
        return asked.text


def test_the_page_shows_the_figures_of_the_command(local: Workspace) -> None:
    site = Site(local, examples=12)
    site.answer(5, _1=OTHER)
    with reading(site.engine) as session:
        figures = status_figures(session, find_round(session, NUMBER))["validation"]
    assert json.loads(json.dumps(figures)) == figures
    assert figures["examples"] == {
        WAITING: 0,
        IN_BATCH: 12 - figures["examples"][FULL],
        FULL: figures["examples"][FULL],
        HELD: 0,
        LEFT_OUT: 0,
    }
    assert figures["coverage"] == {"responses": 50, "wanted": 60, "share": 50 / 60}
    assert sum(hour["responses"] for hour in figures["per_hour"]) == 50 and len(figures["per_hour"]) == 24
    assert [(one["responses"], one["kind"], one["removed"]) for one in figures["workers"]] == [
        (10, "person", False)
    ] * 5
    [other] = [one for one in figures["workers"] if one["worker"] == f"w{site.validators[1].worker_id}"]
    assert other["leave_one_out_disagreement"] == 1.0
    page = site.launcher.get(LIVE).text
    for said in ("83%", ">50<", "of 60 wanted", "in an open batch"):
        assert said in page
    for one in figures["workers"]:
        assert f'<th scope="row">{one["worker"]}</th>' in page
    assert "PLATFORM" not in page


def test_a_full_batch_shows_its_agreement_and_where_people_disagree(local: Workspace) -> None:
    site = Site(local, examples=3)
    site.answer(5, _1=OTHER, _2=OTHER)
    with reading(site.engine) as session:
        figures = status_figures(session, find_round(session, NUMBER))["validation"]
    [batch] = figures["batches"]
    assert (batch["examples"], batch["full"], batch["vote_accuracy"]) == (3, 3, 0.6)
    assert batch["fleiss_kappa"] == pytest.approx(-0.25)
    assert batch["screened_at"] is not None
    assert [one["labels"][WORD] for one in figures["disagreement"]] == [3, 3, 3]
    assert "Full examples, those with the smallest winning vote first" in site.launcher.get(LIVE).text


def test_a_held_example_is_read_escaped_released_and_left_out(local: Workspace) -> None:
    site = Site(local, examples=0)
    with writing(site.engine) as session:
        add_examples(session, find_round(session, NUMBER), [f"Rude {SCRIPT} words."])
    for one in site.validators[:2]:
        one.page_of()
        assert SCRIPT not in one.page.text
        one.give_in({"1.answer": "cannot.offensive"})
    page = site.launcher.get(LIVE).text
    assert "2 × it is offensive" in page and SCRIPT not in page and "Rude &lt;script&gt;" in page
    assert "released" in site.press("/held/1", decision=RELEASED_HOLD)
    with reading(site.engine) as session:
        hold = session.exec(select(Hold)).one()
        assert (hold.decision, hold.decided_by) == (RELEASED_HOLD, LAUNCHER)
    assert "left out" in site.press("/held/1", decision=LEFT_OUT)
    site.press("/held/1", decision="burnt", status=400)


def test_the_demo_shows_its_visitors_the_figures_and_neither_sentences_nor_buttons(local: Workspace) -> None:
    site = Site(local, examples=16, places=20, least_examples=10)
    site.answer(5, _0=OTHER)
    site.validators[0].page_of()
    site.validators[0].send("/objection", text="I was right.")
    with writing(site.engine) as session:
        session.add(Hold(example_id=1, held_at=site.app.extensions[CLOCK]()))
    visitor = serve(local, None, demo=True).test_client()
    page = visitor.get(LIVE).text
    assert (
        "This is a demo." in page
        and "<strong>removed</strong>" in page
        and "leave-one-out: 16 of 16 otherwise (100%)" in page
    )
    assert "The soup of day" not in page and "I was right." not in page
    assert [address for address in Page(page).forms if "/rounds/" in address] == [] and "/moves/" not in page
    own = site.launcher.get(LIVE).text
    assert "The soup of day" in own and "I was right." in own and "/moves/" in own and "This is a demo." not in own


def test_a_check_item_that_most_get_wrong_is_shown_to_the_launcher(local: Workspace) -> None:
    site = Site(local, examples=12, screening=4)
    for one in site.validators[:3]:
        one.page_of()
        one.fill("/first-sentences", one.answers(WORD))
    page = site.launcher.get(LIVE).text
    assert "Check items that most get wrong" in page and page.count("A cat sat on mat number 10") == 3
    assert "A cat sat" not in serve(local, None, demo=True).test_client().get(LIVE).text


def test_what_validators_wrote_is_read_by_the_launcher_alone_and_escaped(local: Workspace) -> None:
    site = Site(local, examples=24)
    for place, one in enumerate(site.validators[:2]):
        one.page_of()
        one.give_in(None, {"comment": f"Remark {place}.\r\n{SCRIPT}"})
    page = site.launcher.get(LIVE).text
    assert page.index("Remark 1.") < page.index("Remark 0.") and SCRIPT not in page
    with reading(site.engine) as session:
        assert "Remark" not in json.dumps(status_figures(session, find_round(session, NUMBER)))
    assert "Remark" not in serve(local, None, demo=True).test_client().get(LIVE).text
    assert "Remark" not in site.validators[2].page_of().text


def test_a_crowd_that_is_no_people_is_named_before_all_figures(local: Workspace) -> None:
    build_released_round(local, examples=35, kind="scripted")
    page = serve(local, None, demo=True).test_client().get(LIVE).text
    assert page.index("<strong>a scripted crowd (not people)</strong>") < page.index("Examples by state")
    assert page.count("<td>scripted</td>") == 5


def test_a_removed_worker_is_reinstated(local: Workspace) -> None:
    site = Site(local, examples=16, places=20, least_examples=10)
    site.answer(5, _0=OTHER)
    removed = site.validators[0]
    removed.page_of()
    removed.send("/objection", text=f"I was right. {SCRIPT}")
    page = site.launcher.get(LIVE).text
    assert "I was right." in page and SCRIPT not in page
    assert "leave-one-out: 16 of 16 otherwise (100%)" in page and "<strong>removed</strong>" in page
    assert "Reinstated by launcher" in site.press("/reinstate")
    with reading(site.engine) as session:
        assert session.exec(select(Removal.reinstated_by)).all() == [LAUNCHER]
        assert session.exec(select(Bar.lifted_by)).all() == [LAUNCHER]
    assert removed.page_of().request.path == VALIDATE


def test_a_bar_is_lifted(local: Workspace) -> None:
    site = Site(local, screening=10)
    one = site.validators[0]
    one.page_of()
    one.fill("/first-sentences", one.answers())
    assert "You cannot validate" in one.page.text
    site.press("/lift")
    assert one.page_of().request.path == VALIDATE


def test_work_is_switched_off_and_on(local: Workspace) -> None:
    site = Site(local)
    assert "can be given in" in site.move("validating-off")
    with reading(site.engine) as session:
        assert not is_on(session, find_round(session, NUMBER), VALIDATING)
    assert site.launcher.get(f"/rounds/{NUMBER}/moves/validating-off").status_code == 409
    site.move("validating-on")
    with reading(site.engine) as session:
        assert is_on(session, find_round(session, NUMBER), VALIDATING)
        who = session.exec(select(Event.who).where(col(Event.what).startswith(VALIDATING))).all()
    assert who == [LAUNCHER] * 2
    assert site.launcher.get(f"/rounds/{NUMBER}/moves/writing-off").status_code == 409


def test_a_round_is_closed_as_it_was_confirmed(local: Workspace) -> None:
    site = Site(local, examples=2)
    assert "None of its 2 examples could get a gold label" in site.launcher.get(f"/rounds/{NUMBER}/moves/abandon").text
    site.answer(5)
    assert (
        "2 of 2 examples have 5 responses and are labelled." in site.launcher.get(f"/rounds/{NUMBER}/moves/close").text
    )
    with writing(site.engine) as session:
        add_examples(session, find_round(session, NUMBER), ["One that came later."])
    site.move("close-short", status=409, left_out="0")
    assert "1 with fewer than 5 responses" in site.move("close-short")
    with reading(site.engine) as session:
        assert session.exec(select(Round.state)).all() == ["closed"]
    page = site.launcher.get(LIVE).text
    assert "dynaround round release 1" in page and "/moves/" not in page


def test_looking_changes_nothing(local: Workspace) -> None:
    site = Site(local)
    site.answer(2)
    before = all_rows(site.engine)
    site.launcher.get(LIVE)
    for key in ("abandon", "validating-off"):
        site.launcher.get(f"/rounds/{NUMBER}/moves/{key}")
    assert all_rows(site.engine) == before


def test_a_released_round_lists_no_sentence_and_names_who_answered(local: Workspace) -> None:
    site = Site(local)
    build_released_round(local, number=2)
    page = site.launcher.get("/rounds/2/live").text
    assert "a scripted crowd (not people)" in page and "<td>scripted</td>" in page
    assert "The sentences of a released round are not listed" in page
    assert "The soup came cold" not in page


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_the_figures_are_the_same_on_postgresql(workspace: Workspace) -> None:
    site = Site(workspace, examples=3)
    site.answer(5, _1=OTHER, _2=OTHER)
    with reading(site.engine) as session:
        figures = status_figures(session, find_round(session, NUMBER))["validation"]
    assert figures["batches"][0]["vote_accuracy"] == 0.6 and figures["coverage"]["share"] == 1.0
    assert site.launcher.get(LIVE).status_code == 200

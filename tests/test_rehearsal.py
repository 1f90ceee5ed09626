"""A rehearsal: the scripted crowd at the real pages, what it finds, and what it says when a promise is broken."""

import json
from pathlib import Path

import pytest
from sqlmodel import col, select

from dynaround.database import open_engine, reading, writing
from dynaround.demo_corpus import demo_reviews
from dynaround.errors import BadInput
from dynaround.tables import Response, Seat, Worker
from dynaround.tasks import DEFAULT, get_task
from server.rehearsal import AS_TOLD, UNSCREENED, WELL_BEHAVED, Rehearsal, Told, crowd_mix, parts, rehearse
from server.rehearsal_crowd import Planted, Reader
from server.rehearsal_figures import Rehearsed, figures
from server.rehearsal_report import broken_promises, rehearsal_data, rehearsal_lines
from tests.command import run

SMALL = Told(examples=30, workers=15, spammers=0.2, leavers=0.2, double=0.2)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rehearsal]:
    folder = tmp_path_factory.mktemp("rehearsal") / "scratch"
    return folder, rehearse(folder, SMALL, 1, lambda: None)


def planted() -> dict[str, Planted]:
    return {one.text: Planted(one.label, False) for review in demo_reviews() for one in review.sentences}


def test_a_crowd_that_misbehaves_breaks_no_promise(done: tuple[Path, Rehearsal]):
    assert broken_promises(done[1]) == []
    for (once,) in done[1].runs.values():
        assert once.coverage > 0.5
        assert once.accuracy > 0.5
        assert once.responses - once.uncounted == 5 * SMALL.examples


def test_misbehaviour_took_place_and_only_where_it_was_told(done: tuple[Path, Rehearsal]):
    (told,), (behaved,) = done[1].runs[AS_TOLD], done[1].runs[WELL_BEHAVED]
    assert told.leases_expired > 0
    assert told.sent_twice > 0
    assert "spamming" in told.stopped
    assert (behaved.leases_expired, behaved.sent_twice, "spamming" in behaved.stopped) == (0, 0, False)


def test_without_screening_nobody_is_stopped(done: tuple[Path, Rehearsal]):
    (once,) = done[1].runs[UNSCREENED]
    assert {(one.at_the_door, one.screened_out) for one in once.stopped.values()} == {(0, 0)}


def test_all_who_answer_are_stored_as_scripted(done: tuple[Path, Rehearsal]):
    engine = open_engine(f"sqlite:///{done[0] / 'seed-0-1' / 'dynaround.sqlite'}")
    with reading(engine) as session:
        assert set(session.exec(select(Worker.kind))) == {"scripted"}
    engine.dispose()


def test_what_is_told_says_that_no_people_took_part(done: tuple[Path, Rehearsal]):
    assert next(rehearsal_lines(done[1])).startswith("a scripted crowd (not people)")
    assert json.loads(json.dumps(rehearsal_data(done[1])))["crowd"] == "a scripted crowd (not people)"


def test_a_response_that_vanished_is_found(done: tuple[Path, Rehearsal]):
    engine = open_engine(f"sqlite:///{done[0] / 'seed-0-3' / 'dynaround.sqlite'}")
    with writing(engine) as session:
        seat = session.exec(select(Seat).where(col(Seat.response_id).is_not(None))).first()
        assert seat is not None
        response = session.get_one(Response, seat.response_id)
        session.delete(seat)
        session.flush()
        session.delete(response)
    found = figures(engine, get_task(DEFAULT), planted(), [])
    engine.dispose()
    assert "1 examples without exactly 5 responses that count" in found.broken


def test_a_broken_promise_is_told_with_its_run():
    broken = Rehearsed(1.0, 1.0, {}, 1, 1, 0, 0, 0, 0, ("1 thing that must not be",))
    done = Rehearsal(SMALL, {AS_TOLD: (broken,), WELL_BEHAVED: (broken._replace(broken=()),)})
    assert broken_promises(done) == ["seed 0, as told: 1 thing that must not be"]
    assert "BROKEN: seed 0, as told: 1 thing that must not be" in list(rehearsal_lines(done))


def test_the_shares_of_a_crowd_hold_and_a_seed_gives_the_same_again():
    told = Told(workers=40)
    crowd = parts(told, crowd_mix(told), 3)
    assert crowd == parts(told, crowd_mix(told), 3)
    assert sum(part.kind == "spamming" for part in crowd) == 8
    assert sum(part.leaves_after is not None for part in crowd) == 4
    assert sum(part.twice for part in crowd) == 4
    assert sum(part.careful_first for part in crowd) == 4


def test_a_form_is_read_with_its_sentences():
    (form,) = Reader(
        '<form action="/a"><input type="hidden" name="t" value="1">'
        '<span class="sentence">It&#39;s &lt;b&gt;</span><input type="radio" name="1.answer" value="x"></form>'
    ).forms
    assert form.hidden == {"t": "1"}
    assert form.choices == {"1.answer": ["x"]}
    assert form.sentences == {"1.answer": "It's <b>"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"spammers": 1.5}, "--spammers"), ({"workers": 5}, "--workers"), ({"examples": 0}, "--examples"),
     ({"leavers": 0.6, "double": 0.6}, "--leavers and --double")],
)  # fmt: skip
def test_a_crowd_that_cannot_be_is_refused(options: dict[str, float], sentence: str):
    with pytest.raises(BadInput, match=sentence):
        Told(**options)


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(BadInput, match="holds something"):
        rehearse(tmp_path, SMALL, 1, lambda: None)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_command_leaves_the_database_of_the_settings_alone(tmp_path: Path):
    mine = tmp_path / "mine.sqlite"
    options = ["--examples", 5, "--workers", 12, "--seeds", 1, "--json"]
    done = run("rehearse", *options, env={"DYNAROUND_DATABASE_URL": f"sqlite:///{mine}"})
    assert done.code == 0, done.err
    assert json.loads(done.out)["broken_promises"] == []
    assert not mine.exists()

"""The pages of validators without script: the way to the work, a page given in, and everything that is refused."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine
from sqlmodel import Session, func, select

from dynaround import tasks
from dynaround.database import reading, writing
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import (
    Bar,
    CheckAnswer,
    CheckItem,
    Flag,
    Hold,
    Lease,
    PageComment,
    Removal,
    Response,
    Round,
    Uncounted,
    Worker,
)
from dynaround.tasks.sentiment_guide import GUIDE
from rounds.lifecycle import VALIDATING, close_round, find_round, switch
from server.access import CLOCK
from tests.author_site import serve
from tests.authored_round import MOMENT, NUMBER, add_authored_round
from tests.builders import SCRIPT
from tests.site import SECRET, all_rows
from tests.test_seam import ASKING
from tests.validate_site import TASK, VALIDATE, Validator, add_examples, add_validated_round, admit, responses
from workers.giving_in import GivenIn, give_in_page
from workers.removing import remove_worker
from workers.standing import bar

WORD, OTHER = TASK.labels[:2]
WRONG_ANSWER = "this answer is none of those on the page"


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)


@pytest.fixture
def engine(workspace: Workspace) -> Engine:
    return workspace.engine()


@pytest.fixture
def app(workspace: Workspace) -> Flask:
    return serve(workspace, None)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace on SQLite, for what no database decides."""
    made = create_workspace(tmp_path / "bench")
    yield made
    made.close()


def at_work(workspace: Workspace, **round_: Any) -> tuple[Flask, Engine, list[Validator]]:
    engine = workspace.engine()
    ids = add_validated_round(engine, **round_)
    app = serve(workspace, None)
    for worker_id in ids:
        admit(app, engine, worker_id)
    return app, engine, [Validator(app, worker_id) for worker_id in ids]


def test_the_way_to_the_work_and_a_first_page(local: Workspace) -> None:
    engine = local.engine()
    one = Validator(serve(local, None), add_validated_round(engine, screening=4)[0])
    assert one.look("/work").request.path == VALIDATE
    assert "Before you begin" in one.page.text
    assert one.send("/consent").status_code == 400
    assert one.send("/consent", agreed="yes").request.path == f"{VALIDATE}/instructions"
    for example in GUIDE.validator_examples:
        assert example.why in one.page.text
    assert one.page_of().request.path == f"{VALIDATE}/quiz"
    right = {question.key: question.right for question in GUIDE.validator_quiz}
    one.fill("/quiz", {**right, "irony": "Positive"})
    assert "4 of 5 answers were right" in one.page.text
    assert one.fill("/quiz", right).request.path == f"{VALIDATE}/first-sentences"
    answers = known_answers(engine, one)
    one.fill("/first-sentences", {**answers, "2.answer": ""})
    assert "Sentence 2 has no answer." in one.page.text and one.page.text.count(" checked") == 3
    one.fill("/first-sentences", answers)
    assert one.page.text.count("<fieldset") == 10 and "4 of 4 are right" in one.page.text
    with reading(engine) as session:
        assert session.exec(select(func.count()).select_from(CheckAnswer)).one() == 4
    assert responses(engine) == []


def known_answers(engine: Engine, validator: Validator) -> dict[str, str]:
    with reading(engine) as session:
        known = {item.text: item.label for item in session.exec(select(CheckItem))}
    found = {}
    for position in validator.positions():
        after = validator.page.text.split(f'id="sentence-{position}"')[1]
        found[f"{position}.answer"] = known[after.split('class="sentence" dir="auto">')[1].split("<")[0]]
    return found


def test_wrk_01_too_few_known_answers_bar_and_no_sentence_is_ever_served(local: Workspace) -> None:
    app, engine, [one, other, *_] = at_work(local, screening=10)
    one.page_of()
    right = known_answers(engine, one)
    wrong = {
        f"{place}.answer": next(label for label in TASK.labels if label != right[f"{place}.answer"])
        for place in (1, 2, 3)
    }
    one.fill("/first-sentences", {**right, **wrong})
    assert one.page_of().request.path == f"{VALIDATE}/barred" and "Too few of your answers" in one.page.text
    other.page_of()
    answers = known_answers(engine, other)
    two = {name: wrong_word(word) for name, word in list(answers.items())[:2]}
    other.fill("/first-sentences", {**answers, **two})
    assert "8 of 10 are right" in other.page.text and other.page.text.count("<fieldset") == 10
    # The page of somebody else does not help who was barred.
    token = one.form("/objection")[1]["csrf_token"]
    sent = {"csrf_token": token, "page": other.page_id, **other.answers()}
    assert one.client.post(VALIDATE, data=sent).status_code == 403
    assert responses(engine) == []


def wrong_word(word: str) -> str:
    return next(label for label in TASK.labels if label != word)


def test_a_page_is_given_in_and_the_next_one_comes(app: Flask, engine: Engine) -> None:
    ids = add_validated_round(engine, examples=12)
    admit(app, engine, ids[0])
    one = Validator(app, ids[0])
    one.page_of()
    assert " checked" not in one.page.text
    assert one.page.text.count("<fieldset") == 10 and "0.00 USD" in one.page.text
    answer = one.give_in(None, {"comment": "Fine sentences.", "seconds": "50.0"}, follow=False)
    assert (answer.status_code, answer.location) == (303, VALIDATE)
    assert len(responses(engine)) == 10
    with reading(engine) as session:
        assert set(session.exec(select(Response.seconds))) == {5.0}
        assert session.exec(select(PageComment.text)).all() == ["Fine sentences."]
    one.page_of()
    assert one.page.text.count("<fieldset") == 2 and "0.25 USD" in one.page.text
    one.give_in()
    assert "Nothing to validate now" in one.page.text and "in front of you before" in one.page.text
    assert "0.50 USD" in one.page.text
    assert sorted({number for number, _, _ in responses(engine)}) == list(range(1, 13))


@pytest.mark.parametrize("word", ["postive", WORD.upper(), "nosentiment", "", None])
def test_srv_03_a_wrong_word_is_refused_and_stores_nothing(local: Workspace, word: str | None) -> None:
    _, engine, [one, *_] = at_work(local, examples=1)
    one.page_of()
    sent = {"csrf_token": one.form("/validate")[1]["csrf_token"], "page": one.page_id}
    if word is not None:
        sent["1.answer"] = word
    before = all_rows(engine)
    as_json = one.client.post(VALIDATE, data=sent, headers={"Accept": "application/json"})
    assert as_json.status_code == 400 and list(as_json.json or {}) == ["error"]
    shown = one.client.post(VALIDATE, data=sent)
    assert shown.status_code == 400
    assert ("Sentence 1 has no answer." if not word else WRONG_ANSWER) in shown.text
    assert all_rows(engine) == before and responses(engine) == []


def test_srv_03_a_right_word_is_stored_and_json_tells_nothing_else(local: Workspace) -> None:
    _, engine, [one, *_] = at_work(local, examples=1)
    one.page_of()
    sent = {"csrf_token": one.form("/validate")[1]["csrf_token"], "page": one.page_id, "1.answer": "neutral"}
    answer = one.client.post(VALIDATE, data=sent, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json) == (201, {"given_in": True})
    assert responses(engine) == [(1, one.worker_id, "neutral")]


def test_what_was_chosen_stays_on_a_refused_page_and_the_missing_are_named(local: Workspace) -> None:
    _, engine, [one, *_] = at_work(local, examples=5)
    one.page_of()
    chosen = {"1.answer": OTHER, "2.answer": "cannot.language", "4.answer": WORD, "comment": f"Look: {SCRIPT}"}
    answer = one.give_in(chosen)
    assert answer.status_code == 400
    assert "Sentences 3 and 5 have no answer." in one.page.text
    assert one.page.text.count('aria-invalid="true"') == 2 and one.page.text.count(" checked") == 3
    assert SCRIPT not in one.page.text and one.form("/validate")[1]["comment"] == f"Look: {SCRIPT}"
    one.give_in({"3.answer": WORD, "5.answer": WORD})
    assert len(responses(engine)) == 4


def test_a_page_that_comes_twice_counts_once_and_its_first_answers_stand(app: Flask, engine: Engine) -> None:
    ids = add_validated_round(engine, examples=3)
    admit(app, engine, ids[0])
    one = Validator(app, ids[0])
    one.page_of()
    address, form = one.form("/validate")
    for word, told in ((WORD, False), (OTHER, True)):
        assert one.client.post(address, data={**form, **one.answers(word)}).status_code == 303
        assert ("answers that came first stand" in one.client.get(VALIDATE).text) == told
        app.extensions[CLOCK].advance(seconds=9)
    assert [label for _, _, label in responses(engine)] == [WORD] * 3


def test_a_page_of_somebody_else_is_refused(local: Workspace) -> None:
    _, engine, [one, other, *_] = at_work(local)
    one.page_of()
    theirs, answers = one.page_id, one.answers()
    other.page_of()
    assert other.give_in({**answers, "page": theirs}).status_code == 403
    for nonsense in ("", "0", "x", "9" * 30):
        assert other.page_of().status_code == 200
        assert other.give_in({**answers, "page": nonsense}).status_code == 403
    assert responses(engine) == []


def test_flags_are_no_answers_and_two_of_them_hold_the_sentence(local: Workspace) -> None:
    _, engine, validators = at_work(local, examples=1)
    for one in validators[:2]:
        one.page_of()
        one.give_in({"1.answer": "cannot.offensive"})
    with reading(engine) as session:
        assert [flag.reason for flag in session.exec(select(Flag))] == ["offensive"] * 2
        assert len(session.exec(select(Hold)).all()) == 1
    assert responses(engine) == []
    validators[2].page_of()
    assert "is being looked at by the organisers" in validators[2].page.text


def test_a_reason_that_the_page_does_not_offer_is_refused(local: Workspace) -> None:
    _, engine, [one, *_] = at_work(local, examples=1)
    one.page_of()
    assert one.give_in({"1.answer": "cannot.boring"}).status_code == 400
    assert WRONG_ANSWER in one.page.text


def test_a_late_page_is_kept(local: Workspace) -> None:
    app, engine, [one, *others] = at_work(local, examples=2)
    one.page_of()
    app.extensions[CLOCK].advance(hours=2)
    for other in others:
        other.page_of()
        other.give_in()
    assert one.give_in(one.answers(), follow=False).status_code == 303
    assert len(responses(engine)) == 12


def test_switched_off_nobody_gets_a_page_and_the_one_in_front_is_taken(local: Workspace) -> None:
    _, engine, [one, other, *_] = at_work(local, examples=2)
    one.page_of()
    with writing(engine) as session:
        switch(session, find_round(session, NUMBER), VALIDATING, False, "launcher", MOMENT)
    other.page_of()
    assert "Validating is switched off" in other.page.text
    one.give_in()
    assert "Validating is switched off" in one.page.text and len(responses(engine)) == 2
    assert "No round is validated at the moment" in one.look("/validate").text


def test_a_round_that_is_over_says_so(local: Workspace) -> None:
    app, engine, validators = at_work(local, examples=1)
    validators[5].page_of()
    late, answers = validators[5].form("/validate"), validators[5].answers()
    app.extensions[CLOCK].advance(hours=2)
    for one in validators[:5]:
        one.page_of()
        one.give_in()
    validators[5].page_of()
    assert "Everything in this round is answered" in validators[5].page.text
    with writing(engine) as session:
        close_round(session, find_round(session, NUMBER), "launcher", MOMENT)
    told = validators[5].client.post(late[0], data={**late[1], **answers})
    assert told.status_code == 409 and "this page came too late to be kept" in told.text
    assert validators[0].page_of().status_code == 409
    assert "nobody validates in it any more" in validators[0].page.text
    assert "What you have done in round 1" in validators[0].look("/validate").text


def test_giving_in_puts_the_next_page_there_for_who_goes_on_and_may(local: Workspace) -> None:
    app, engine, (one, barred, *_) = at_work(local, examples=3, places=1)
    now = app.extensions[CLOCK]()
    for validator in (one, barred):
        validator.page_of()
    with writing(engine) as session:
        worker = session.get_one(Worker, barred.worker_id)
        bar(session, worker, VALIDATING, "a reason", {}, now, now + timedelta(days=1))
    for validator in (one, barred):
        validator.give_in(follow=False)
    with reading(engine) as session:
        assert session.exec(select(Lease.worker_id)).all() == [one.worker_id]
        put = session.exec(select(Lease.page_id)).one()
    one.page_of()
    assert one.page_id == str(put)
    address, form = one.form("/validate")
    one.client.post(address, data={**form, **one.answers()}, headers={"Accept": "application/json"})
    with reading(engine) as session:
        assert session.exec(select(Lease)).all() == []


@pytest.mark.parametrize("back_end", ["postgresql"], indirect=True)
def test_who_is_removed_while_a_page_waits_for_its_turn_has_given_it_in(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, engine, (one, *_) = at_work(workspace, examples=20, places=10)
    one.page_of()

    def late(session: Session, round_: Round, *given: Any, **named: Any) -> GivenIn:
        with writing(engine) as other:
            other.add(Removal(round_id=round_.id, worker_id=one.worker_id, rule="a rule", evidence={}, at=MOMENT))
            remove_worker(other, find_round(other, NUMBER), other.get_one(Worker, one.worker_id), MOMENT)
        return give_in_page(session, round_, *given, **named)

    monkeypatch.setattr("server.validate_pages.give_in_page", late)
    assert one.give_in(follow=False).status_code == 303
    with reading(engine) as session:
        assert len(responses(engine)) == len(session.exec(select(Uncounted)).all()) == 10
        assert session.exec(select(Lease)).all() == []


def test_a_full_batch_is_screened_and_who_is_removed_can_object(local: Workspace) -> None:
    _, engine, validators = at_work(local, examples=16, workers=6, least_examples=10, places=20)
    for place, one in enumerate(validators[:5]):
        one.page_of()
        one.give_in(one.answers(OTHER if place == 0 else WORD))
    removed = validators[0]
    with reading(engine) as session:
        assert session.exec(select(Removal.worker_id)).all() == [removed.worker_id]
    assert removed.page_of().request.path == f"{VALIDATE}/barred"
    assert removed.send("/objection", text=" ").status_code == 400
    removed.send("/objection", text=f"No! {SCRIPT}")
    assert "Your objection is with the people" in removed.page.text and SCRIPT not in removed.page.text
    with reading(engine) as session:
        assert session.exec(select(Bar.objection)).all() == [f"No! {SCRIPT}"]
    validators[5].page_of()
    assert len(validators[5].positions()) == 16


def test_val_01_authors_are_offered_both_and_never_get_their_own(local: Workspace) -> None:
    engine = local.engine()
    author_id, other_id = add_authored_round(engine)
    assert Validator(serve(local, None), author_id).look("/work").request.path == f"/rounds/{NUMBER}/write"
    with writing(engine) as session:
        add_examples(session, find_round(session, NUMBER), ["This one I wrote myself."], author_id)
        add_examples(session, find_round(session, NUMBER), ["This one was found."])
    app = serve(local, None)
    for worker_id in (author_id, other_id):
        admit(app, engine, worker_id)
    author, other = Validator(app, author_id), Validator(app, other_id)
    assert author.look("/work").request.path == "/work"
    assert 'href="/write"' in author.page.text and 'href="/validate"' in author.page.text
    author.page_of()
    assert "was found" in author.page.text and "wrote myself" not in author.page.text
    author.give_in()
    assert "is your own" in author.page.text
    other.page_of()
    assert len(other.positions()) == 2
    # Nor can the author answer it on the page of somebody else.
    author.look(f"/rounds/{NUMBER}/write")
    forged = {"csrf_token": author.form("/consent")[1]["csrf_token"], "page": other.page_id, **other.answers()}
    assert author.client.post(VALIDATE, data=forged).status_code == 403


def test_a_kind_of_task_with_a_further_field_is_validated_by_its_own_form(
    local: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tasks.TASKS, ASKING.name, ASKING)
    engine = local.engine()
    [worker_id, *_] = add_validated_round(engine, task=ASKING, examples=1)
    app = serve(local, None)
    admit(app, engine, worker_id)
    one = Validator(app, worker_id)
    one.page_of()
    assert "It asks" in one.page.text and "It tells" in one.page.text
    assert one.give_in({"1.answer": "asks"}).status_code == 400
    assert one.give_in({"1.answer": "asks", "1.form.sure": "perhaps"}).status_code == 400
    assert 'value="asks" required checked' in one.page.text
    one.give_in({"1.answer": "asks", "1.form.sure": "yes"})
    with reading(engine) as session:
        assert [(r.label, r.form) for r in session.exec(select(Response))] == [("asks", {"sure": "yes"})]

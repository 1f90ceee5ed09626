"""The pages of authors without script: the way to the work, the work, what is refused, and what nobody may see."""

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine
from sqlmodel import func, select

from dynaround import tasks
from dynaround.database import reading, writing
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import (
    COMPLETED,
    LEFT,
    NO_PROMPT_ARM,
    PROMPT_ARM,
    Attempt,
    AttemptDecision,
    AuthorSession,
    Bar,
    Consent,
    Example,
    PromptShowing,
    QuizAttempt,
    Submission,
    Worker,
    Writing,
)
from dynaround.task import Prediction
from dynaround.tasks.sentiment_guide import GUIDE
from rounds.lifecycle import AUTHORING, draft_round, find_round, open_round, switch
from rounds.plan import make_plan
from server.access import CLOCK, ENGINE
from server.live_model import MODELS
from tests.author_site import WRITE, Author, FixedModels, change_plan, let_in, serve
from tests.authored_round import (
    MODEL_HASH,
    MOMENT,
    NUMBER,
    FixedAnswer,
    add_authored_round,
    attempts,
    begin_in_arm,
    close,
    examples,
    other_than,
    prompt_text,
    respond,
)
from tests.builders import SCRIPT, build_open_round
from tests.site import SECRET, all_rows
from tests.test_seam import ASKING

on_sqlite = pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
FINE = "It will do, I suppose."
QUIZ, BARRED = f"/rounds/{NUMBER}/quiz", f"/rounds/{NUMBER}/barred"


@pytest.fixture
def models() -> FixedModels:
    return FixedModels()


@pytest.fixture
def app(workspace: Workspace, models: FixedModels, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flask]:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    made = Workspace(workspace.root)
    yield serve(made, models)
    made.close()


@pytest.fixture
def engine(app: Flask) -> Engine:
    found: Engine = app.extensions[ENGINE]
    return found


@pytest.fixture
def newcomer(app: Flask, engine: Engine) -> Author:
    """Return an author who has just joined."""
    return Author(app, add_authored_round(engine)[0])


@pytest.fixture
def author(newcomer: Author, engine: Engine, app: Flask) -> Author:
    """Return an author who is let in and has no prompt."""
    let_in(engine, newcomer.worker_id, app.extensions[CLOCK]())
    begin_in_arm(engine, newcomer.worker_id, NO_PROMPT_ARM, at=app.extensions[CLOCK]())
    newcomer.look()
    return newcomer


def fool(author: Author, models: FixedModels, text: str) -> None:
    """Submit a text that fools the model."""
    models.otherwise = other_than(author.writing.target_label)
    assert "You fooled the model" in author.submit(text).text


def fail(author: Author, models: FixedModels, text: str) -> None:
    """Submit a text that does not fool the model."""
    models.otherwise = author.writing.target_label
    assert author.submit(text).status_code == 200


def count(engine: Engine, table: type) -> int:
    with reading(engine) as session:
        return session.exec(select(func.count()).select_from(table)).one()


def right_answers() -> dict[str, str]:
    return {question.key: question.right for question in GUIDE.author_quiz}


# The way to the work


def test_consent_instructions_and_questions_come_before_the_work(newcomer: Author, engine: Engine) -> None:
    assert "I agree to take part" in newcomer.look().text
    answer = newcomer.send("/consent")
    assert answer.status_code == 400 and 'aria-invalid="true"' in answer.text and count(engine, Consent) == 0
    assert "How to fool the model" in newcomer.send("/consent", agreed="yes").text
    assert newcomer.look().request.path == QUIZ
    wrong = right_answers() | {"agree": "false"}
    told = newcomer.send("/quiz", **wrong).text
    assert "4 of 5 answers were right" in told and "You have 4 of 5 tries left" in told
    assert told.count("Not right.") == 1 and 'aria-describedby="why-1"' in told
    told = newcomer.send("/quiz", **right_answers()).text
    assert "All answers are right." in told and "Target label" in told
    assert newcomer.look(QUIZ).request.path == WRITE


@on_sqlite
def test_whoever_has_not_consented_can_neither_practise_nor_submit(newcomer: Author, engine: Engine) -> None:
    newcomer.look()
    token = newcomer.form("/consent")[1]["csrf_token"]
    before = all_rows(engine)
    for ending, status in (("practice", 403), ("attempts", 303), ("quiz", 303)):
        answer = newcomer.client.post(f"/rounds/{NUMBER}/{ending}", data={"csrf_token": token, "text": FINE})
        assert answer.status_code == status, ending
    assert "Practise" not in newcomer.look(f"/rounds/{NUMBER}/instructions").text
    assert all_rows(engine) == before


def test_a_form_of_questions_is_one_try_however_often_it_comes(newcomer: Author, engine: Engine) -> None:
    newcomer.look()
    newcomer.send("/consent", agreed="yes")
    newcomer.look()
    address, form = newcomer.form("/quiz")
    for _ in range(3):
        newcomer.client.post(address, data={**form, **right_answers(), "agree": "false"})
    assert count(engine, QuizAttempt) == 1
    newcomer.look()
    address, form = newcomer.form("/quiz")
    for _ in range(3):
        answer = newcomer.client.post(address, data={**form, **right_answers()})
        assert (answer.status_code, answer.location) == (303, WRITE)
    assert count(engine, QuizAttempt) == 2


@on_sqlite
def test_a_damaged_or_incomplete_form_of_questions_uses_no_try_up(newcomer: Author, engine: Engine) -> None:
    newcomer.look()
    newcomer.send("/consent", agreed="yes")
    for damage in ({"try": "x"}, {"try": "-1"}, {"try": "9" * 5000}, {"try": "7"}, {"agree": "perhaps"}):
        newcomer.look()
        answer = newcomer.send("/quiz", **right_answers() | damage)
        assert answer.status_code == 400 and "No try was used up" in answer.text, damage
        assert 'value="false" required checked' in answer.text, "the answers are kept"
    assert count(engine, QuizAttempt) == 0


def test_after_the_last_try_a_worker_is_barred_and_can_object_once(newcomer: Author, engine: Engine) -> None:
    newcomer.look()
    newcomer.send("/consent", agreed="yes")
    newcomer.look()
    for _ in range(5):
        answer = newcomer.send("/quiz", **right_answers() | {"agree": "false"})
    assert answer.request.path == BARRED and "You can write again from" in answer.text
    token = newcomer.form("/objection")[1]["csrf_token"]
    quiz = newcomer.client.post(QUIZ, data={"csrf_token": token, "try": "6", **right_answers()})
    assert (quiz.status_code, quiz.location, count(engine, QuizAttempt)) == (303, WRITE, 5)

    assert newcomer.send("/objection", text="  ").status_code == 400
    told = newcomer.send("/objection", text=f"{SCRIPT} {'x' * 2000}")
    assert told.status_code == 400 and ESCAPED in told.text and "shorten it to 2000" in told.text
    told = newcomer.send("/objection", text=f"I can read. {SCRIPT}")
    assert told.status_code == 200 and f"I can read. {ESCAPED}" in told.text
    again = newcomer.client.post(f"/rounds/{NUMBER}/objection", data={"csrf_token": token, "text": "More."})
    assert again.status_code == 303
    with reading(engine) as session:
        assert session.exec(select(Bar.objection)).all() == [f"I can read. {SCRIPT}"]


def test_practice_is_predicted_and_never_stored(newcomer: Author, models: FixedModels, engine: Engine) -> None:
    author = newcomer
    author.look()
    author.send("/consent", agreed="yes")
    before = all_rows(engine)
    author.look(f"/rounds/{NUMBER}/instructions")
    told = author.send("/practice", text=f"I tried {SCRIPT}.")
    assert told.status_code == 200 and f"The model says {models.otherwise}" in told.text and "80%" in told.text
    assert f"I tried {ESCAPED}." in told.text and models.calls == [f"I tried {SCRIPT}."]
    for text, complaint in (("", "no text"), ("1 2", "no letters"), ("a\nb", "line break"), ("a" * 501, "501 char")):
        told = author.send("/practice", text=text)
        assert told.status_code == 400 and complaint in told.text and 'aria-invalid="true"' in told.text
    models.problem = "nobody is there"
    told = author.send("/practice", text="I tried again.")
    assert told.status_code == 503 and ">\nI tried again.</textarea>" in told.text and "nobody is" not in told.text
    assert all_rows(engine) == before


@on_sqlite
def test_practice_ends_with_the_questions(author: Author, models: FixedModels) -> None:
    assert "each text is an attempt" in author.look(f"/rounds/{NUMBER}/instructions").text
    asked = len(models.calls)
    token = dict(next(iter(author.page.forms.values())))["csrf_token"]
    answer = author.client.post(f"/rounds/{NUMBER}/practice", data={"csrf_token": token, "text": FINE})
    assert answer.status_code == 403 and len(models.calls) == asked


# The work


@on_sqlite
def test_a_text_that_fools_is_confirmed_and_becomes_the_example(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    label = author.writing.target_label
    fail(author, models, "This does not fool it.")
    assert "The model was not fooled" in author.page.text and "9 of 10 attempts left" in author.page.text
    fool(author, models, "This takes it in.")
    for shown in (f"The model says <strong>{models.otherwise}</strong>", "Would other people agree", "80%", "10%"):
        assert shown in author.page.text
    assert "/attempts" not in author.page.forms, "the box comes back after the author's word"
    told = author.send("/confirm").text
    assert "Example 1: stored" in told and f"they agree that it is {label}" in told
    [example] = examples(engine)
    assert (example.text, example.author_id, example.prediction) == (
        "This takes it in.",
        author.worker_id,
        models.otherwise,
    )
    assert author.writing.number == 2 and author.writing.draft == ""


@on_sqlite
def test_what_is_taken_back_is_returned_until_the_take_backs_are_used_up(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    change_plan(engine, take_backs=2)
    for number in (1, 2):
        fool(author, models, f"This is text {number}.")
        told = author.send("/take-back").text
        assert "Taken back" in told and f">\nThis is text {number}.</textarea>" in told
        assert "<dd>10 <small>of 10</small></dd>" in told
    fool(author, models, "This is text 3.")
    assert "The take-backs for this example are used up." in author.page.text
    token = author.form("/confirm")[1]["csrf_token"]
    [third] = [attempt for attempt in attempts(engine) if attempt.number == 3]
    refused = author.client.post(f"/rounds/{NUMBER}/attempts/{third.id}/take-back", data={"csrf_token": token})
    assert refused.status_code == 409 and "are used up; confirm the attempt" in refused.text
    author.send("/confirm")
    assert [example.text for example in examples(engine)] == ["This is text 3."]


@on_sqlite
def test_the_last_failure_leads_on_to_the_next_example_and_says_so(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    change_plan(engine, attempts=3)
    for number in (1, 2, 3):
        label = author.writing.target_label
        assert author.writing.number == 1
        fail(author, models, f"This is text {number}.")
    told = author.page.text
    assert "Example 1: stored, all attempts are used up" in told and "This is text 3." in told
    assert f"The model says <strong>{label}</strong> and was not fooled" in told
    assert author.writing.number == 2 and "Attempts for this example" not in told
    assert [example.text for example in examples(engine)] == ["This is text 3."]


@on_sqlite
def test_whoever_gives_up_leaves_the_last_attempt_as_the_example_and_whoever_skips_none(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    first = author.writing.id
    told = author.send("/next").text
    assert "Example 1: skipped" in told and "nothing is paid" in told
    fail(author, models, FINE)
    address, form = author.form("/next")
    assert "Give up, next example" in author.page.text
    told = author.send("/next").text
    assert "Example 2: stored" in told and "Your last attempt is the example" in told
    for _ in range(2):
        assert author.client.post(address, data=form).status_code == 303, "the same press again skips nothing more"
    with reading(engine) as session:
        outcomes = session.exec(select(Writing.number, Writing.outcome).where(Writing.id >= first)).all()
    assert list(outcomes) == [(1, LEFT), (2, COMPLETED), (3, None)]


@on_sqlite
def test_a_sentence_that_somebody_stored_first_is_told_of(
    author: Author, models: FixedModels, engine: Engine, app: Flask
) -> None:
    fool(author, models, FINE)
    other_id = author.worker_id + 1
    let_in(engine, other_id, app.extensions[CLOCK]())
    begin_in_arm(engine, other_id, NO_PROMPT_ARM, at=app.extensions[CLOCK]())
    other = Author(app, other_id)
    other.look()
    fool(other, models, FINE)
    other.send("/confirm")
    told = author.send("/confirm").text
    assert "Example 1: not counted" in told and "is not paid" in told
    assert [example.author_id for example in examples(engine)] == [other_id]


@on_sqlite
def test_in_the_prompt_arm_a_sentence_is_edited_and_another_one_costs_nothing(
    newcomer: Author, models: FixedModels, engine: Engine, app: Flask
) -> None:
    let_in(engine, newcomer.worker_id, app.extensions[CLOCK]())
    begin_in_arm(engine, newcomer.worker_id, PROMPT_ARM, at=app.extensions[CLOCK]())
    newcomer.look()
    first = newcomer.form("/attempts")[1]["text"]
    assert f'<q dir="auto">{first}</q>' in newcomer.page.text
    told = newcomer.submit(first)
    assert told.status_code == 400 and "The text is the prompt, unchanged" in told.text
    address, form = newcomer.form("/prompt")
    answer = newcomer.client.post(address, data=form)
    assert (answer.status_code, answer.location) == (303, f"{WRITE}#text")
    newcomer.client.post(address, data=form)
    newcomer.look()
    second = newcomer.form("/attempts")[1]["text"]
    assert second != first and count(engine, PromptShowing) == 2, "the same press twice shows one more"
    assert "You have seen 2 sentences" in newcomer.page.text
    models.otherwise = newcomer.writing.target_label
    assert "9 of 10 attempts left" in newcomer.submit(f"{second} Or so.").text
    [attempt] = attempts(engine)
    assert attempt.arm == PROMPT_ARM and attempt.prompt_id == newcomer.writing.prompt_id


@on_sqlite
def test_when_no_other_prompt_is_left_the_page_says_so_and_goes_on(
    app: Flask, engine: Engine, models: FixedModels
) -> None:
    author = Author(app, add_authored_round(engine, prompts=1)[0])
    let_in(engine, author.worker_id, app.extensions[CLOCK]())
    begin_in_arm(engine, author.worker_id, PROMPT_ARM, at=app.extensions[CLOCK]())
    author.look()
    told = author.send("/prompt")
    assert told.status_code == 200 and "No other prompt is left for you" in told.text
    assert author.form("/attempts")[1]["text"] == prompt_text(0)


@on_sqlite
def test_without_a_prompt_there_is_no_other_one(author: Author, engine: Engine) -> None:
    _, form = author.form("/next")
    told = author.client.post(f"/rounds/{NUMBER}/prompt", data=form, follow_redirects=True)
    assert "without prompts" in told.text and count(engine, PromptShowing) == 0


# What is refused


def test_a_refused_text_is_kept_beside_the_reason_and_costs_nothing(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    fail(author, models, "This was tried.")
    fool(author, models, "This is in the round.")
    author.send("/confirm")
    fail(author, models, "This was tried.")
    label, stored = author.writing.target_label, count(engine, Attempt)
    for text, complaint in {
        "   ": "There is no text",
        "This was tried.": "You have tried this very text",
        "This  is in the round.": "in the round already",
        f"{SCRIPT} {'x' * 500}": "at most 500 are allowed",
        "12 + 12 = 24!": "no letters",
        "Not\x07 now.": "control or invisible character (U+0007)",
        "Not\x00 now.": "control or invisible character (U+0000)",
        "Two\nlines.": "line break",
    }.items():
        told = author.submit(text)
        assert told.status_code == 400, complaint
        assert complaint in told.text and "Not sent" in told.text
        assert 'aria-describedby="complaint target meaning limits" aria-invalid="true"' in told.text
        assert author.form("/attempts")[1]["text"].replace("\ufffd", "\x00") == text
        assert SCRIPT not in told.text and label in told.text
    assert count(engine, Attempt) == stored and count(engine, Submission) == stored
    assert "8 of 10 attempts left" in author.submit(FINE).text


@on_sqlite
def test_what_a_browser_never_sends_is_refused_or_left_out(author: Author, models: FixedModels, engine: Engine) -> None:
    for token in ("", "short", "\x00" * 20, "x" * 65, "with blanks " * 3):
        told = author.submit(FINE, token=token)
        assert told.status_code == 400 and "no usable token" in told.text
    for writing_id in ("", "0", "x", "99999999999999", "-1"):
        assert author.submit(FINE, writing=writing_id).status_code == 403
        author.look()
    assert models.calls == []
    author.submit(FINE, pasted="-3", keystrokes="1e9", seconds="nan")
    [attempt] = attempts(engine)
    assert (attempt.pasted, attempt.keystrokes, attempt.seconds) == (None, None, None)


@on_sqlite
def test_what_the_browser_counted_is_stored_as_advice(author: Author, engine: Engine) -> None:
    author.submit(FINE, pasted="12", keystrokes="34", seconds="5.6")
    [attempt] = attempts(engine)
    assert (attempt.pasted, attempt.keystrokes, attempt.seconds) == (12, 34, 5.6)


@on_sqlite
def test_an_answer_of_the_browser_never_decides(author: Author, models: FixedModels, engine: Engine) -> None:
    label, other = author.writing.target_label, other_than(author.writing.target_label)
    models.otherwise = label
    author.submit(FINE, prediction=other, target_label=other, fooled="1", worker_id="2", arm="prompt", number="9")
    [attempt] = attempts(engine)
    assert (attempt.prediction, attempt.target_label, attempt.worker_id) == (label, label, author.worker_id)
    assert (attempt.number, attempt.arm) == (1, NO_PROMPT_ARM)


@on_sqlite
def test_no_answer_of_the_model_keeps_text_and_label_and_stores_nothing(
    author: Author, models: FixedModels, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    models.problem = "the model cannot be loaded: /home/launcher/private is empty"
    label = author.writing.target_label
    told = author.submit(f"They fixed it {SCRIPT}.")
    assert told.status_code == 503 and "The model cannot answer now" in told.text
    assert author.form("/attempts")[1]["text"] == f"They fixed it {SCRIPT}." and author.writing.target_label == label
    assert "private" not in told.text and "/home/launcher/private is empty" in caplog.text
    assert "aria-invalid" not in told.text and count(engine, Attempt) == count(engine, Example) == 0
    models.problem, models.otherwise = None, label
    assert "9 of 10 attempts left" in author.submit(f"They fixed it {SCRIPT}.").text, "the same page, sent again"


def test_aut_04_a_missing_model_is_503_and_all_other_pages_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    workspace = create_workspace(tmp_path / "bench")
    app = serve(workspace, None)
    engine = app.extensions[ENGINE]
    author = Author(app, add_authored_round(engine)[0])
    let_in(engine, author.worker_id, app.extensions[CLOCK]())
    begin_in_arm(engine, author.worker_id, NO_PROMPT_ARM, at=app.extensions[CLOCK]())
    author.look()
    label = author.writing.target_label
    with caplog.at_level(logging.WARNING):
        told = author.submit("They fixed it, eventually.")
    assert told.status_code == 503 and "send the text again in a moment" in told.text
    assert author.form("/attempts")[1]["text"] == "They fixed it, eventually." and label in told.text
    assert str(workspace.root) not in told.text
    assert (count(engine, Attempt), count(engine, Example)) == (0, 0)
    for page in (WRITE, f"/rounds/{NUMBER}/instructions", "/account"):
        assert author.look(page).status_code == 200
    app.extensions[MODELS].close()
    workspace.close()


@on_sqlite
def test_writing_that_is_switched_off_keeps_the_text_and_what_waits_can_be_decided(
    author: Author, models: FixedModels, engine: Engine, app: Flask
) -> None:
    def switched(on: bool) -> None:
        with writing(engine) as session:
            switch(session, find_round(session, NUMBER), AUTHORING, on, "launcher", app.extensions[CLOCK]())

    fool(author, models, "This takes it in.")
    author.send("/take-back")
    switched(False)
    told = author.submit(FINE)
    assert told.status_code == 409 and "switched off for now" in told.text
    assert author.form("/attempts")[1]["text"] == FINE
    assert author.look("/write").request.path == WRITE and FINE in author.page.text, "an example is still in the making"
    switched(True)
    fool(author, models, FINE)
    switched(False)
    told = author.send("/confirm")
    assert told.status_code == 409 and "Nothing to write now" in told.text and "Example 1: stored" in told.text
    assert [example.text for example in examples(engine)] == [FINE]
    switched(True)
    author.look()
    assert author.writing.number == 2


@on_sqlite
def test_when_the_attempts_of_a_day_are_used_up_the_page_says_so_until_tomorrow(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    change_plan(engine, attempts_a_day=1)
    fail(author, models, "The only one today.")
    assert "You have made all 1 attempts of today." in author.page.text
    told = author.submit(FINE)
    assert told.status_code == 409 and "which is all for a day" in told.text
    assert author.form("/attempts")[1]["text"] == FINE
    author.app.extensions[CLOCK].advance(hours=11)
    author.look()
    assert "You have made all" in author.page.text
    author.app.extensions[CLOCK].advance(hours=4)
    fresh = Author(author.app, author.worker_id)
    fresh.look()
    assert "You have made all" not in fresh.page.text
    fail(fresh, models, FINE)
    assert count(engine, Attempt) == 2


@on_sqlite
def test_a_round_that_closes_while_somebody_writes_keeps_the_text_in_sight(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    fool(author, models, "This takes it in.")
    author.send("/confirm")
    close(engine)
    before = all_rows(engine)
    told = author.submit(f"Too late {SCRIPT}.")
    assert told.status_code == 409 and "Round 1 is closed; nobody writes in it any more." in told.text
    assert f"Too late {ESCAPED}." in told.text and "readonly" in told.text
    told = author.look()
    assert told.status_code == 409 and "0.30 USD" in told.text
    assert "What you have done in round 1" in author.look("/write").text
    assert all_rows(engine) == before and models.calls == ["This takes it in."]


@on_sqlite
def test_rounds_that_nobody_writes_in_say_so(newcomer: Author, workspace: Workspace) -> None:
    build_open_round(workspace, number=2)
    assert newcomer.look("/rounds/2/write").status_code == 409
    assert "is not written for by people" in newcomer.page.text
    assert newcomer.look("/rounds/3/write").status_code == 404


# Idle, drafts, several windows


def test_a_draft_is_there_again_in_another_window_and_keeps_the_sitting_alive(author: Author, app: Flask) -> None:
    clock = app.extensions[CLOCK]
    sitting = author.writing.session_id
    address = author.page.text.split('data-draft="')[1].split('"')[0]
    _, form = author.form("/next")
    for minutes in (50, 100, 150):
        clock.advance(minutes=50)
        sent = {**form, "text": f"{SCRIPT} \x00 after {minutes} minutes"}
        assert author.client.post(address, data=sent).status_code == 204
    page = author.another_window().get(WRITE).text
    assert f"{ESCAPED} \ufffd after 150 minutes</textarea>" in page
    author.look()
    assert author.writing.session_id == sitting


@on_sqlite
def test_looking_at_the_page_keeps_the_sitting_alive_and_an_hour_without_ends_it(author: Author, app: Flask) -> None:
    clock = app.extensions[CLOCK]
    sitting = author.writing.session_id
    for _ in range(3):
        clock.advance(minutes=40)
        author.look()
        assert author.writing.session_id == sitting
    clock.advance(minutes=61)
    author.look()
    assert author.writing.session_id != sitting


def test_of_two_windows_the_second_is_told_what_waits_in_the_first(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    address, form = author.form("/attempts")
    old = author.writing
    fool(author, models, "This takes it in.")
    told = author.client.post(address, data={**form, "token": "x" * 32, "text": f"Meanwhile {SCRIPT}."})
    assert told.status_code == 409 and "say first whether other people would agree" in told.text
    assert f"Meanwhile {ESCAPED}." in told.text and "Yes, others would agree" in told.text
    author.send("/confirm")
    told = author.client.post(address, data={**form, "token": "y" * 32, "text": FINE})
    assert told.status_code == 409 and "This example is done" in told.text
    assert f">\n{FINE}</textarea>" in told.text and count(engine, Attempt) == 1
    with reading(engine) as session:
        assert session.get_one(Writing, old.id).outcome == COMPLETED


@on_sqlite
def test_the_same_form_with_another_text_is_told_and_loses_nothing(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    address, form = author.form("/attempts")
    fail(author, models, FINE)
    told = author.client.post(address, data={**form, "text": "Sent from the page before."})
    assert told.status_code == 400 and "sent before, with another text" in told.text
    assert ">\nSent from the page before.</textarea>" in told.text and count(engine, Attempt) == 1


def test_aut_03_a_form_that_comes_five_times_at_once_and_again_is_one_attempt(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    class SlowModels(FixedModels):
        def ask(self, text: str) -> FixedAnswer:
            answer = super().ask(text)
            time.sleep(0.2)
            return answer

    slow = author.app.extensions[MODELS] = SlowModels(otherwise=other_than(author.writing.target_label))
    address, form = author.form("/attempts")
    begin, answers = threading.Barrier(5), list[tuple[int, str, bool]]()

    def press(window: FlaskClient) -> None:
        begin.wait()
        answer = window.post(address, data={**form, "text": FINE}, follow_redirects=True)
        answers.append((answer.status_code, answer.request.path, "You fooled the model" in answer.text))

    threads = [threading.Thread(target=press, args=[author.another_window()]) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [(200, WRITE, True)] * 5
    again = author.client.post(address, data={**form, "text": FINE}, follow_redirects=True)
    assert "You fooled the model" in again.text
    assert (slow.calls, count(engine, Attempt), count(engine, Submission)) == ([FINE], 1, 1)
    author.look()
    confirm, fields = author.form("/confirm")
    for _ in range(3):
        assert author.client.post(confirm, data=fields).status_code == 303
    assert (count(engine, Example), count(engine, AttemptDecision)) == (1, 1)
    assert "0.30 USD" in author.look().text


# Whose work it is


def test_another_author_s_work_can_neither_be_seen_nor_touched(
    author: Author, models: FixedModels, engine: Engine, app: Flask
) -> None:
    fool(author, models, "Only mine to see.")
    other_id = author.worker_id + 1
    let_in(engine, other_id, app.extensions[CLOCK]())
    other = Author(app, other_id)
    other.look()
    token = other.form("/next")[1]["csrf_token"]
    [attempt] = attempts(engine)
    with reading(engine) as session:
        making = session.get_one(Attempt, attempt.id).writing_id
    before = all_rows(engine)
    sent = {"csrf_token": token, "writing": str(making), "text": FINE, "token": "x" * 32}
    for ending in (
        f"attempts/{attempt.id}/confirm",
        f"attempts/{attempt.id}/take-back",
        "attempts",
        "next",
        "draft",
        "prompt",
    ):
        answer = other.client.post(f"/rounds/{NUMBER}/{ending}", data=sent)
        assert answer.status_code == 403 and "belongs to another author" in answer.text, ending
    assert all_rows(engine) == before
    for page in (WRITE, f"/rounds/{NUMBER}/instructions", "/account", "/write"):
        assert "Only mine" not in other.look(page).text


@on_sqlite
def test_authors_see_of_responses_nothing_but_what_became_of_their_claims(
    author: Author, models: FixedModels, engine: Engine
) -> None:
    for number in (1, 2):
        fool(author, models, f"This is text {number}.")
        author.send("/confirm")
    fail(author, models, "This is text 3.")
    author.send("/next")
    told = author.look().text
    assert "<dd>0 <small>(2 open)</small></dd>" in told
    assert "<dd>0.90 USD</dd>" in told and "up to</small> 0.60 USD" in told
    first, second, _ = examples(engine)
    with reading(engine) as session:
        target = {a.text: a.target_label for a in session.exec(select(Attempt))}
    respond(engine, first, [target[first.text]] * 5)
    respond(engine, second, [other_than(target[second.text])] * 5)
    told = author.look().text
    assert "<dt>confirmed</dt><dd>1</dd>" in told and "<dd>1.20 USD</dd>" in told
    assert "<dt>bonus open</dt><dd>none</dd>" in told
    for page in (WRITE, "/account", f"/rounds/{NUMBER}/instructions"):
        assert "VALIDATOR" not in author.look(page).text
    assert author.look(f"/rounds/{NUMBER}").status_code == 403


@on_sqlite
def test_whose_claims_are_refuted_again_and_again_is_barred_and_may_object(
    author: Author, models: FixedModels, engine: Engine, app: Flask
) -> None:
    change_plan(engine, refuted_claims=2, of_last_claims=3)
    for number in (1, 2):
        fool(author, models, f"This is text {number}.")
        author.send("/confirm")
    with reading(engine) as session:
        target = {a.text: a.target_label for a in session.exec(select(Attempt))}
    for example in examples(engine):
        respond(engine, example, [other_than(target[example.text])] * 5)
    answer = author.submit(FINE)
    assert answer.request.path == BARRED and "did not agree with many of your last sentences" in answer.text
    assert "0.60 USD" in answer.text, "what was earned stays in sight"
    assert count(engine, Attempt) == 2
    assert "is with the people who run this round" in author.send("/objection", text="They misread me.").text
    app.extensions[CLOCK].advance(days=8)
    fresh = Author(app, author.worker_id)
    assert fresh.look(BARRED).request.path == WRITE


@on_sqlite
def test_ending_the_sitting_leaves_the_example_and_tells_so(author: Author, engine: Engine) -> None:
    sitting = author.writing.session_id
    told = author.send("/end")
    assert told.request.path == "/account" and "The sitting is over" in told.text
    with reading(engine) as session:
        assert session.get_one(AuthorSession, sitting).ended_at is not None
    author.look()
    assert author.writing.session_id != sitting


@pytest.mark.parametrize("demo", [True, False])
def test_every_page_of_the_demo_says_that_it_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: FixedModels, demo: bool
) -> None:
    monkeypatch.setenv("DYNAROUND_SECRET", SECRET)
    workspace = create_workspace(tmp_path / "bench")
    app = serve(workspace, models, demo=demo)
    engine = app.extensions[ENGINE]
    author = Author(app, add_authored_round(engine)[0])
    seen = [author.look().text, author.send("/consent", agreed="yes").text, author.look().text]
    seen += [author.send("/quiz", **right_answers()).text]
    begin_in_arm(engine, author.worker_id, NO_PROMPT_ARM, at=app.extensions[CLOCK]())
    author.look()
    fool(author, models, FINE)
    seen += [author.page.text, author.send("/confirm").text]
    close(engine)
    seen += [author.look().text, author.look("/write").text]
    assert len(set(seen)) == 8
    assert ["This is a demo." in page for page in seen] == [demo] * 8
    assert ["earned (demo)" in page for page in seen[3:]] == [demo] * 5
    workspace.close()


@on_sqlite
def test_headings_are_in_order_on_every_page(author: Author, models: FixedModels) -> None:
    pages = [author.page]
    author.look(f"/rounds/{NUMBER}/instructions")
    pages.append(author.page)
    author.look()
    fail(author, models, FINE)
    pages.append(author.page)
    author.submit("")
    pages.append(author.page)
    fool(author, models, "This takes it in.")
    pages.append(author.page)
    author.send("/confirm")
    pages.append(author.page)
    for page in pages:
        assert page.headings[0] == 1 and page.headings.count(1) == 1
        assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))


@on_sqlite
def test_the_fields_of_another_kind_of_task_stand_in_the_form_and_are_stored(
    app: Flask, engine: Engine, models: FixedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tasks.TASKS, ASKING.name, ASKING)
    plan = make_plan(task=ASKING.name, reviews="jsonl:a", reviews_sha256="ab" * 32, size=0, seed=1, authoring={})
    with writing(engine) as session:
        round_ = draft_round(session, ASKING, plan, "model-0", MODEL_HASH)
        open_round(session, round_, "launcher", MOMENT)
        worker = Worker(platform_id="P1", kind="person")
        session.add(worker)
        session.flush()
        worker_id = worker.id
    assert worker_id is not None
    let_in(engine, worker_id, app.extensions[CLOCK]())
    author = Author(app, worker_id)
    told = author.look().text
    assert "<legend>sure</legend>" in told and any(meaning in told for meaning in ASKING.guide.meanings.values())
    told = author.submit("Is it so?")
    assert told.status_code == 400 and "sure" in told.text and "aria-invalid" not in told.text
    assert author.form("/attempts")[1]["text"] == "Is it so?"
    label, other = author.writing.target_label, "tells" if author.writing.target_label == "asks" else "asks"
    models.fixed = FixedAnswer(Prediction(other, {label: 0.2, other: 0.8}))
    assert "You fooled the model" in author.submit("Is it so?", **{"form.sure": "no"}).text
    [attempt] = attempts(engine)
    assert attempt.form == {"sure": "no"}

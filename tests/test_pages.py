"""The pages: what they show, what they never show, and how they answer whoever asks wrongly."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlmodel import Session

import server
from dynaround.errors import BadInput
from dynaround.settings import Workspace, create_workspace
from dynaround.tables import Round
from dynaround.tasks import DEFAULT, TASKS, get_task
from rounds.shown_names import set_name
from server.access import ENGINE
from server.app import create_app
from server.shown import next_steps
from tests.builders import SCRIPT, SECRET, build_open_round, build_released_round, split_of, unanimous, varied
from tests.test_seam import AnswerableTask

SERVER = Path(server.__file__).parent
TASK = get_task(DEFAULT)
CROWD = "a scripted crowd (not people)"
PAGES = ("/", "/rounds/1", "/rounds/1/examples", "/rounds/1/examples?page=2", "/rounds/1/examples?page=3", "/readings")
VALUES = {"number": 1, "filename": "style.css"}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "bench")


def opened(workspace: Workspace) -> Iterator[Flask]:
    app = create_app(workspace, demo=True)
    yield app
    app.extensions[ENGINE].dispose()


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    workspace = create_workspace(tmp_path_factory.mktemp("pages") / "bench")
    build_released_round(workspace)
    yield from opened(workspace)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def empty_app(workspace: Workspace) -> Iterator[Flask]:
    yield from opened(workspace)


def captions(page: str) -> list[str]:
    return re.findall(r"<caption><span>(.*?)</span></caption>", page)


def listed_ids(client: FlaskClient, query: str = "") -> list[str]:
    found: list[str] = []
    for page in range(1, 10):
        answer = client.get(f"/rounds/1/examples?page={page}{query}")
        if answer.status_code == 404:
            break
        found += re.findall(r"r1-\d{7}", answer.text)
    return found


def text_ids(wanted: list[int]) -> list[str]:
    return [f"r1-{number:07d}" for number in wanted]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/", ["Round 1", "released", "model-0", "350", CROWD, "dynaround train", "release:round-1/dev.jsonl"]),
        (
            "/rounds/1",
            ["14,203", "harvest-1.rejects.jsonl", "100 examples were wanted", "yelp:reviews.jsonl.gz", "0.800"],
        ),
        (
            "/rounds/1",
            ["Krippendorff", "30</td>", "56</td>", "0.536", "also one that the model lacks", "withheld", "test.jsonl"],
        ),
        ("/rounds/1/examples", ["60 examples, page 1 of 3", "The 10 examples of the test split are not listed"]),
        ("/readings", ["model-1", "[0.095, 0.303]", "2026-03-04 09:31", CROWD]),
    ],
)
def test_a_page_shows_its_figures(client: FlaskClient, address: str, expected: list[str]) -> None:
    answer = client.get(address)
    assert answer.status_code == 200
    assert [part for part in expected if part not in answer.text] == []


def test_the_pool_stands_by_rating_and_prediction(client: FlaskClient) -> None:
    row = re.search(r'<tr><th scope="row">5</th>(.*?)</tr>', client.get("/rounds/1").text)
    assert row is not None
    assert re.findall(r">([\d,]+)<", row[1]) == ["1,685", "2,416", "3,147"]


def test_a_page_that_is_only_read_takes_nothing_and_has_all_headers(app: Flask) -> None:
    client = app.test_client()
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint.startswith(("pages.", "static"))]
    assert len(rules) == 5
    for rule in rules:
        with app.test_request_context():
            address = app.url_for(rule.endpoint, **{name: VALUES[name] for name in rule.arguments})
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert client.open(address, method=method).status_code == 405, (method, address)
        with client.head(address) as head:
            assert head.status_code == 200 and not head.data
        answer = client.get(address)
        assert answer.status_code == 200
        assert "'none'" in answer.headers["Content-Security-Policy"]
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        answer.close()


@pytest.mark.parametrize(
    ("address", "status", "sentence"),
    [
        ("/rounds/9", 404, "There is no round 9; there is 1."),
        ("/rounds/99999999999999999999", 404, "no page at this address"),
        ("/nowhere", 404, "no page at this address"),
        ("/rounds/1/examples?gold=angry", 400, "The filter gold is none of"),
        ("/rounds/1/examples?split=test", 400, "The test split is not listed"),
        ("/rounds/1/examples?model=maybe", 400, "The filter model is none of wrong, right"),
        ("/rounds/1/examples?page=two", 400, "The page is no whole number"),
        ("/rounds/1/examples?page=0", 404, "fill 3 pages"),
        ("/rounds/1/examples?page=4", 404, "fill 3 pages"),
    ],
)
def test_a_wrong_address_becomes_a_page_with_one_sentence(
    client: FlaskClient, address: str, status: int, sentence: str
) -> None:
    answer = client.get(address)
    assert answer.status_code == status
    assert sentence in answer.text
    assert "<h1>" in answer.text and "Content-Security-Policy" in answer.headers


def test_the_examples_of_a_round_that_is_not_released_are_refused(workspace: Workspace, empty_app: Flask) -> None:
    build_open_round(workspace, examples=3)
    answer = empty_app.test_client().get("/rounds/1/examples")
    assert answer.status_code == 409
    assert "Round 1 is open; this needs a round that is released." in answer.text
    assert "soup" not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io:80", "", "local host"])
def test_an_unknown_host_is_refused_on_every_address(client: FlaskClient, host: str) -> None:
    for address in (*PAGES, "/static/style.css", "/nowhere"):
        answer = client.get(address, headers={"Host": host})
        assert answer.status_code == 400
        assert "answers only as localhost or 127.0.0.1" in answer.text
        assert "Content-Security-Policy" in answer.headers


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:41234"])
def test_a_known_host_is_answered_on_any_port(client: FlaskClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_an_application_for_no_host_is_refused(workspace: Workspace) -> None:
    with pytest.raises(BadInput, match="no host is named"):
        create_app(workspace, hosts=())


def test_a_bug_is_shown_without_its_traceback(empty_app: Flask) -> None:
    with empty_app.extensions[ENGINE].begin() as connection:
        connection.execute(text("ALTER TABLE evaluation RENAME TO elsewhere"))
    answer = empty_app.test_client().get("/readings")
    assert answer.status_code == 500
    assert "in the log of the server" in answer.text
    assert "Traceback" not in answer.text and "SELECT" not in answer.text and "evaluation" not in answer.text


def test_a_sentence_with_markup_is_shown_as_text(client: FlaskClient) -> None:
    page = client.get("/rounds/1/examples").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; then" in page
    assert SCRIPT not in page and "<script" not in page


@pytest.mark.parametrize("address", PAGES)
def test_no_page_tells_of_workers_reviews_or_the_disk(client: FlaskClient, address: str) -> None:
    page = client.get(address).text
    for secret in (SECRET, "/home/launcher", "private", "review-"):
        assert secret not in page
    assert re.findall(r"\bw\d+\b", page) == []
    assert re.findall(r"\sstyle=|\son\w+=", page) == []


def test_all_released_examples_but_those_of_the_test_split_are_listed_once(client: FlaskClient) -> None:
    wanted = [number for number in range(1, 71) if split_of(number) != "test"]
    assert listed_ids(client) == text_ids(wanted)
    assert not any("test)." in client.get(address).text for address in PAGES)


@pytest.mark.parametrize("split", ["train", "dev", "withheld"])
def test_examples_are_filtered_by_split(client: FlaskClient, split: str) -> None:
    assert listed_ids(client, f"&split={split}") == text_ids([n for n in range(1, 71) if split_of(n) == split])


@pytest.mark.parametrize("model", ["wrong", "right"])
def test_examples_are_filtered_by_gold_label_and_by_whether_the_model_was_wrong(
    client: FlaskClient, model: str
) -> None:
    gold = TASK.model_labels[2]
    wanted = []
    for number in range(1, 71):
        votes, predicted = varied(number, TASK), TASK.model_labels[number % 3]
        found = TASK.gold(votes.labels(TASK.labels)).label
        if split_of(number) != "test" and found == gold and (predicted == gold) == (model == "right"):
            wanted.append(number)
    assert wanted
    assert listed_ids(client, f"&gold={gold}&model={model}") == text_ids(wanted)


def test_examples_without_a_majority_have_a_filter_and_stand_under_neither_right_nor_wrong(client: FlaskClient) -> None:
    without = [n for n in range(1, 71) if n % 5 == 4 and split_of(n) != "test"]
    assert listed_ids(client, "&gold=no+majority") == text_ids(without)
    assert "No released example fits" in client.get("/rounds/1/examples?gold=no+majority&model=right").text


def test_the_form_keeps_the_filters_and_the_links_carry_them(client: FlaskClient) -> None:
    page = client.get("/rounds/1/examples?split=train&gold=&model=").text
    assert '<option value="train" selected>' in page
    assert "/rounds/1/examples?split=train&amp;page=2" in page


def test_agreement_that_is_undefined_shows_its_reason(workspace: Workspace, empty_app: Flask) -> None:
    build_released_round(workspace, examples=14, votes=unanimous)
    page = empty_app.test_client().get("/rounds/1").text
    assert page.count("undefined: expected agreement is 1") == 2


@pytest.mark.parametrize(("kind", "who"), [("scripted", CROWD), ("person", "people"), ("replayed", "a replayed crowd")])
def test_who_answered_stands_in_the_caption_of_every_table_from_responses(
    workspace: Workspace, empty_app: Flask, kind: str, who: str
) -> None:
    build_released_round(workspace, examples=35, kind=kind)
    client = empty_app.test_client()
    of_round, of_examples = captions(client.get("/rounds/1").text), captions(client.get("/rounds/1/examples").text)
    without = [caption for caption in of_round if f"Responses by {who}" not in caption]
    assert len(of_round) == 10
    assert [caption.split(",")[0] for caption in without] == ["The pool", "What was drawn"]
    assert f"Responses by {who}" in of_examples[0]


def test_a_round_shows_the_readings_of_its_own_release_only(workspace: Workspace, empty_app: Flask) -> None:
    build_released_round(workspace, number=1, examples=35)
    build_released_round(workspace, number=2, examples=35)
    client = empty_app.test_client()
    for number, other in ((1, 2), (2, 1)):
        page = client.get(f"/rounds/{number}").text
        assert page.count(f"release:round-{number}/dev.jsonl") == 2
        assert f"release:round-{other}/" not in page


def test_an_empty_workspace_says_where_to_start(empty_app: Flask) -> None:
    page = empty_app.test_client().get("/").text
    assert "dynaround train --corpus" in page and "dynaround round open --target model-0" in page
    assert "No model has been judged yet" in empty_app.test_client().get("/readings").text


@pytest.mark.parametrize(
    ("state", "examples", "still_wanted", "held", "last", "commands"),
    [
        ("open", 0, 0, 0, True, ["dynaround round harvest 2"]),
        ("open", 5, 3, 1, True, ["dynaround workers import 2 FILE", "dynaround workers simulate 2 --truth FILE"]),
        ("open", 5, 0, 1, True, [None]),
        ("open", 5, 0, 0, True, ["dynaround round close 2"]),
        ("closed", 5, 0, 0, True, ["dynaround round release 2"]),
        ("released", 5, 0, 0, False, []),
    ],
)
def test_the_next_command_follows_from_the_state(
    state: str, examples: int, still_wanted: int, held: int, last: bool, commands: list[str | None]
) -> None:
    figures = {"round": 2, "state": state, "target_model": "m"}
    figures |= {"examples": examples, "still_wanted": still_wanted, "held": held}
    assert [step.command for step in next_steps(figures, last)] == commands


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("release:/home/me/out/round-1/dev.jsonl", "release:round-1/dev.jsonl"),
        ("release:round-1", "release:round-1"),
        ("csv:/home/me/seeds.csv", "csv:seeds.csv"),
        ("release:/x.jsonl", "release:x.jsonl"),
        ("round:2/dev", "round:2/dev"),
    ],
)
def test_a_set_is_named_without_its_place_on_the_disk(spec: str, shown: str) -> None:
    assert set_name(spec) == shown


def test_reading_pages_changes_nothing_in_the_database(app: Flask) -> None:
    def dump() -> list[str]:
        connection = app.extensions[ENGINE].raw_connection()
        try:
            return list(connection.driver_connection.iterdump())
        finally:
            connection.close()

    before = dump()
    assert {app.test_client().get(address).status_code for address in PAGES} == {200}
    assert dump() == before


def test_a_change_in_the_database_shows_on_the_next_request(workspace: Workspace, empty_app: Flask) -> None:
    build_open_round(workspace)
    client = empty_app.test_client()
    assert "Against model-0" in client.get("/rounds/1").text
    with Session(empty_app.extensions[ENGINE]) as session:
        round_ = session.get_one(Round, 1)
        round_.target_model = "another-model"
        session.add(round_)
        session.commit()
    assert "Against another-model" in client.get("/rounds/1").text


def test_the_pages_run_without_torch_and_nltk(workspace: Workspace) -> None:
    build_released_round(workspace, examples=35)
    program = (
        "import sys; from pathlib import Path; from dynaround.settings import Workspace;"
        "from server.app import create_app; client = create_app(Workspace(Path(sys.argv[1])), demo=True).test_client();"
        "print([client.get(a).status_code for a in ('/', '/rounds/1', '/rounds/1/examples', '/readings')],"
        " sorted({'nltk', 'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, workspace.root], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[200, 200, 200, 200] []"


def test_a_second_kind_of_task_is_shown_under_its_own_labels(
    workspace: Workspace, empty_app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "asking", AnswerableTask())
    build_released_round(workspace, examples=35, task_name="asking")
    client = empty_app.test_client()
    for address in ("/rounds/1", "/rounds/1/examples"):
        page = client.get(address).text
        assert ">asks</th>" in page and ">tells</th>" in page
        assert TASK.labels[0] not in page
    assert listed_ids(client, "&gold=asks")


def test_the_pages_name_no_kind_of_task_and_no_label() -> None:
    files = [*(SERVER / name for name in ("app.py", "round_pages.py", "shown.py")), *SERVER.glob("templates/*.html")]
    word = re.compile(rf"\b({'|'.join([DEFAULT, *TASK.labels])})\b")
    assert len(files) >= 9
    assert {file.name: word.findall(file.read_text(encoding="utf-8")) for file in files} == {f.name: [] for f in files}


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("front", "back"),
    [
        *[(front, back) for front in ("ink", "soft", "accent") for back in ("paper", "raised")],
        *[("warn", "paper"), ("ink", "warn-paper"), ("paper", "accent")],
    ],
)
def test_text_has_the_contrast_that_wcag_aa_asks_for(place: int, front: str, back: str) -> None:
    sheet = (SERVER / "static" / "style.css").read_text(encoding="utf-8")

    def luminance(name: str) -> float:
        code = re.findall(rf"--{name}: #([0-9a-f]{{6}});", sheet)[place]
        parts = [int(code[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    bright, dim = sorted((luminance(front), luminance(back)), reverse=True)
    assert (bright + 0.05) / (dim + 0.05) >= 4.5

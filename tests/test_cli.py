"""The command line: its help, a whole session, and every mistake as one sentence with exit code 2."""

import json
import re
import resource
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import dynaround
from dynaround.cli import COMMANDS, GROUP, cli
from dynaround.corpus.labelled import read_labelled
from dynaround.folders import data_hash
from dynaround.mixture import plain_row
from dynaround.settings import create_workspace
from dynaround.tasks.sentiment import SENTIMENT
from tests.command import LOADED, Outcome, ended, run, start_interpreter, start_program
from tests.site import SECRET
from tests.small_round import write_reviews
from tests.stages import Stages, play_stages, write_training_rows

HEAVY = ["alembic", "flask", "nltk", "numpy", "pydantic", "scipy", "sqlalchemy", "sqlmodel", "torch", "transformers"]


def leaves(group: click.Group, *before: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from leaves(command, *before, name)
        else:
            yield " ".join([*before, name]), command


def test_help_takes_little_time_and_loads_no_heavy_package():
    code = "import sys; from dynaround.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 0.5
    assert not set(HEAVY) & set(done.stderr.split())
    assert [name for name in COMMANDS if f"\n  {name} " in done.stdout] == list(COMMANDS)


def test_every_command_is_listed_has_an_entry_point_and_says_what_it_does():
    pyproject = tomllib.loads((Path(dynaround.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(pyproject["project"]["entry-points"][GROUP]) == set(COMMANDS)
    context = click.Context(cli)
    assert [name for name in COMMANDS if not getattr(cli.get_command(context, name), "help", None)] == []


@pytest.mark.parametrize(("name", "command"), list(leaves(cli)), ids=lambda v: v if isinstance(v, str) else "")
def test_every_command_has_help_and_an_example_of_itself(name: str, command: click.Command):
    assert command.help and command.help.strip().splitlines()[0].endswith(".")
    assert command.epilog and command.epilog.startswith(f"Example: dynaround {name} ")
    assert all(p.help or p.default is not None for p in command.params if isinstance(p, click.Option) and p.required)


def test_a_whole_session(tiny_encoder: Path, tmp_path: Path):
    rows = write_training_rows(tmp_path / "rows.csv")
    files = write_reviews(tmp_path, 60)
    env = {"DYNAROUND_ENCODER": str(tiny_encoder)}

    def said(*arguments: object) -> Any:
        done = run(*arguments, "--json", cwd=tmp_path / "bench", env=env)
        assert (done.code, done.err) == (0, ""), done
        return json.loads(done.out)

    assert "bench is ready" in run("init", "bench", cwd=tmp_path).out
    recipe = ["--epochs", "6", "--learning-rate", "0.003", "--batch-rows", "4"]
    model = said("train", "--corpus", f"csv:{rows}", "--name", "model-0", *recipe)
    assert model["rows"] == len(rows.read_text().splitlines()) - 1
    readings = said("evaluate", "model-0", "--on", f"csv:{rows}")
    assert [(r["model"], r["sentences"]) for r in readings] == [("model-0", model["rows"])]
    opened = said("round", "open", "--target", "model-0", "--reviews", f"jsonl:{files.reviews}", "--size", "150")
    assert opened["round"] == 1 and opened["plan"]["size"] == 150
    assert sum(said("round", "harvest", "1")["examples"].values()) == 150
    (tmp_path / "results.csv").write_text("text_id,worker,answer\nr1-0000999,anna,positive\nr1-0000001,bob,what\n")
    imported = said("workers", "import", "1", tmp_path / "results.csv")
    assert imported["added"] == 0 and [row["line"] for row in imported["rejected"]] == [2, 3]
    crowd = said("workers", "simulate", "1", "--truth", files.truth)
    assert (crowd["responses_added"], crowd["responses_in_all"]) == (750, 750)
    assert said("round", "status", "1")["still_wanted"] == 0
    assert run("round", "close", "1", cwd=tmp_path / "bench").code == 0
    released = said("round", "release", "1")
    assert released["responses_from"] == "a scripted crowd (not people)"
    checks = said("check", "releases/round-1")
    assert {check["status"] for check in checks} <= {"holds", "note", "could not be checked"}


@pytest.fixture(scope="module")
def stages(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Stages:
    return play_stages(tmp_path_factory.mktemp("cli"), tiny_encoder, reviews=60, size=150)


@pytest.fixture(scope="module")
def bench(stages: Stages) -> Path:
    """A folder with workspaces at several stages, and files that are wrong in one way each."""
    folder = stages.folder
    files = {
        "zero.csv": "",
        "zero.jsonl": "",
        "header.csv": "text,label\n",
        "reviews-header.csv": "review_id,rating,text\n",
        "columns.csv": "a,b\n1,2\n",
        "two-labels.csv": "text,label\ngood,positive\nbad,negative\n",
        "cut.jsonl": '{"review_id": "a", "rating": 5, "text": "Good fo',
        "file": "here",
        "results.csv": "text_id,worker,answer\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes("text,label\nGr\xfc\xdfe,positive\n".encode("latin-1"))
    (folder / "latin.jsonl").write_bytes(b'{"review_id": "\xfc"}\n')
    (folder / "empty").mkdir()
    return folder


def refused(done: Outcome) -> str:
    """Return the one sentence of a refusal; usage lines may stand before it, and rejected lines."""
    *before, last = done.err.splitlines()
    assert done.code == 2, done
    assert done.out == "" and last.startswith("Error: ") and "Traceback" not in done.err, done
    assert all(line.startswith(("Usage: ", "Try ", "rejected: ")) or not line for line in before), done
    return last.removeprefix("Error: ")


TRAIN = "train -w closed --name new --corpus "
OPEN = "round open -w closed --target model-0 --size 9 --reviews "
REVIEWS = "jsonl:opened/corpus/reviews-0.jsonl"
MISTAKES = [
    ("round status 1 -w empty", "is no dynaround workspace .*run: dynaround init"),
    ("evaluate nobody -w opened --on csv:two-labels.csv", "no model 'nobody' in .*there is model-0"),
    (f"round open -w closed --target nobody --size 9 --reviews {REVIEWS}", "no model 'nobody'"),
    (f"round open -w closed --target ../model-0 --size 9 --reviews {REVIEWS}", "no plain folder name"),
    ("round status 7 -w opened", "no round 7; there is 1"),
    ("round harvest 7 -w opened", "no round 7"),
    ("round close 7 -w opened", "no round 7"),
    ("round release 7 -w opened", "no round 7"),
    ("workers simulate 7 -w opened --truth opened/corpus/truth-0.jsonl", "no round 7"),
    ("workers import 7 results.csv -w opened", "no round 7"),
    ("round close 1 -w opened", "round 1 has no example"),
    ("workers simulate 1 -w opened --truth opened/corpus/truth-0.jsonl", "no example yet"),
    ("round close 1 -w harvested", "none of the 150 examples .* has 5 responses"),
    ("round release 1 -w harvested", "is open; this needs a round that is closed"),
    ("round harvest 1 -w closed", "round 1 is closed"),
    (TRAIN + "what:two-labels.csv", "kind 'what', which is none of sst, csv"),
    (TRAIN + "two-labels.csv", "write KIND:PATH"),
    (TRAIN + "csv:nothing.csv", "no file nothing.csv"),
    (TRAIN + "csv:zero.csv", "zero.csv is empty"),
    (TRAIN + "csv:header.csv", "a header and no rows"),
    (TRAIN + "csv:columns.csv", "no column for the text, only 'a', 'b'"),
    (TRAIN + "csv:two-labels.csv", "no row labelled neutral"),
    (TRAIN + "csv:latin.csv", "no row labelled positive"),
    (TRAIN + "jsonl:cut.jsonl", "no row labelled positive"),
    (TRAIN + "csv:empty", "empty is a folder"),
    (TRAIN + "release:empty", "no complete release"),
    (TRAIN + "csv:two-labels.csv --encoder ./nothing", "no encoder folder"),
    (TRAIN + "csv:two-labels.csv --epochs none", "Invalid value for '--epochs'"),
    (OPEN + "opened/corpus/reviews-0.jsonl", "write KIND:PATH"),
    (OPEN + "what:file", "kind 'what', which is none of yelp"),
    (OPEN + "jsonl:nothing.jsonl", "no file nothing.jsonl"),
    (OPEN + "jsonl:empty", "empty is a folder"),
    (OPEN + "jsonl:zero.jsonl", "zero.jsonl is empty"),
    (OPEN + "csv:reviews-header.csv", "a header and no rows"),
    (OPEN + "jsonl:cut.jsonl", "gives no sentence .*line 1: malformed JSON"),
    (OPEN + "csv:columns.csv", "no column for the text"),
    (OPEN + f"{REVIEWS} --field text=nothing", "has the key 'nothing'"),
    (OPEN + f"{REVIEWS} --field text", "'text' is not NAME=VALUE"),
    (OPEN + f"{REVIEWS} --quota cell=few", "no cell 'cell'; the cells of this task are"),
    (OPEN + f"{REVIEWS} --margin 2", "Invalid value for '--margin'"),
    ("evaluate model-0 -w opened --on csv:header.csv", "a header and no rows"),
    ("workers simulate 1 -w harvested --truth nothing.jsonl", "no file nothing.jsonl"),
    ("workers simulate 1 -w harvested --truth cut.jsonl", "cut.jsonl, line 1"),
    ("workers simulate 1 -w harvested --truth latin.jsonl", "line 1 is not UTF-8"),
    ("workers replay 1 -w harvested --from cut.jsonl", "cut.jsonl, line 1: is not JSON"),
    ("workers import 1 nothing.csv -w harvested", "no file nothing.csv"),
    ("workers import 1 columns.csv -w harvested", "no column text_id"),
    ("workers import 1 results.csv -w harvested", "a header and no rows"),
    ("workers import 1 zero.csv -w harvested", "zero.csv is empty"),
    ("check empty", "has no manifest.json"),
    ("check nothing", "no such file"),
    ("check cut.jsonl", "line 1: is not JSON"),
    ("check opened/models/model-0", "no such file"),
    ("init file", "file is a file; name a folder"),
    ("init file/below", "no workspace can be made in file/below"),
    ("demo --no-serve --folder file/below", "no workspace can be made in file/below"),
    ("round release 1 -w closed --out file/below", "cannot be used .Not a directory"),
    ("round release 1 -w closed --out file", "already exists and is not empty"),
    ("round release 1 -w closed --out .", "already exists and is not empty"),
    ("round release 1 -w closed --out /", "no new folder"),
    ("serve -w empty", "is no dynaround workspace"),
    ("serve -w opened", "no secret is set .*`dynaround secret` prints"),
    ("workers invite someone -w opened", "no secret is set .*`dynaround secret` prints"),
    ("workers account ada -w opened", "no role is named"),
    ("nothing", "No such command 'nothing'"),
]


@pytest.mark.parametrize(("line", "told"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_one_sentence_and_code_2(bench: Path, line: str, told: str):
    assert re.search(told, refused(run(*line.split(), cwd=bench)))


def test_what_other_commands_are_forked_from_has_loaded_all():
    told = "import json, sys; print(json.dumps([name for name in sys.argv[1:] if name not in sys.modules]))"
    assert json.loads(ended(start_program(told, *LOADED)).out) == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("round status 7 -w opened", "no round 7"),
        ("workers simulate 7 -w opened --truth none.jsonl", "none.jsonl"),
        ("evaluate nobody -w opened --on csv:rows.csv", "nobody"),
        ("check nowhere", "nowhere"),
    ],
)
def test_a_mistake_in_an_interpreter_of_its_own(bench: Path, line: str, told: str):
    assert told in refused(ended(start_interpreter(*line.split(), cwd=bench)))


def test_rejected_rows_are_listed_before_the_error(bench: Path):
    done = run(*f"{TRAIN}csv:latin.csv --json".split(), cwd=bench)
    assert done.err.startswith("rejected: csv:latin.csv, line 2: byte 3 of line 2 is not UTF-8 (0xfc)\n")
    assert not (bench / "closed" / "models" / "new").exists()


def test_a_mistake_at_opening_opens_nothing(bench: Path):
    run(*f"{OPEN}csv:columns.csv".split(), cwd=bench)
    assert "no round 2; there is 1" in refused(run("round", "status", "2", "-w", "closed", cwd=bench))


@pytest.mark.parametrize("command", ["init", "round status 1 -w", "serve -w"])
@pytest.mark.parametrize(
    ("state", "told"), [("garbage", "damaged"), ("a folder", "cannot be used"), ("not migrated", "run: dynaround init")]
)
def test_a_database_that_cannot_be_used(tmp_path: Path, command: str, state: str, told: str):
    create_workspace(tmp_path / "bench")
    database = tmp_path / "bench" / "dynaround.sqlite"
    database.unlink()
    if state == "garbage":
        database.write_bytes(b"garbage" * 1000)
    elif state == "a folder":
        database.mkdir()
    done = run(*command.split(), "bench", cwd=tmp_path)
    if state == "not migrated" and command == "init":
        assert done.code == 0
    else:
        assert told in refused(done)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "the database cannot be used: .*check database_url"),
        ("mysql://host/name", "take SQLite or PostgreSQL"),
        ("nonsense", "cannot be read"),
        ("sqlite:////nowhere/at/all.sqlite", "cannot be used"),
    ],
)
def test_a_database_url_that_leads_nowhere(bench: Path, url: str, told: str):
    done = run("round", "status", "1", "-w", "opened", cwd=bench, env={"DYNAROUND_DATABASE_URL": url})
    assert re.search(told, refused(done))


def test_a_workspace_may_have_any_name(tmp_path: Path):
    name = "what? 50% #1 & Grüße"
    assert run("init", name, cwd=tmp_path).code == 0
    assert (tmp_path / name / "dynaround.sqlite").is_file() and [p.name for p in tmp_path.iterdir()] == [name]
    assert "there is none yet" in refused(run("round", "status", "1", "-w", name, cwd=tmp_path))


def test_a_port_in_use_is_said(bench: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("serve", "-w", "opened", "--port", port, cwd=bench, env={"DYNAROUND_SECRET": SECRET})
    assert f"port {port} of 127.0.0.1 cannot be used (Address already in use); choose another" in refused(done)


def test_check_ends_with_1_where_a_promise_is_broken(stages: Stages, tmp_path: Path):
    release = stages.copy("released", tmp_path / "bench") / "releases" / "round-1"
    assert run("check", release, cwd=tmp_path).code == 0
    train = release / "train.jsonl"
    train.write_text(train.read_text().replace("The ", "One ", 1))
    done = run("check", release, cwd=tmp_path)
    assert (done.code, done.err) == (1, "")
    assert [line.split()[0] for line in done.out.splitlines() if "train.jsonl has changed" in line] == ["fails"]


def sha256_of_rows(path: Path) -> str:
    found = read_labelled(f"csv:{path}", label_of=SENTIMENT.label_of, on_reject=lambda rejected: None)
    return data_hash([list(plain_row(sentence.text, str(sentence.gold))) for sentence in found])


LOCALES = {
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "latin-1": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"},
}


@pytest.mark.parametrize("locale", LOCALES)
def test_files_are_utf_8_in_any_locale_and_printing_never_crashes(tiny_encoder: Path, tmp_path: Path, locale: str):
    rows = write_training_rows(tmp_path / "rows.csv")
    text = rows.read_text(encoding="utf-8").replace("The food", "Ψωμί 🍞 the food")
    rows.write_text(text + "gut,語\n", encoding="utf-8")
    create_workspace(tmp_path / "bench")
    train = ["train", "--corpus", f"csv:{rows}", "--name", "m", "--encoder", tiny_encoder, "--epochs", "1"]
    done = ended(start_interpreter(*train, cwd=tmp_path / "bench", env=LOCALES[locale]))
    assert done.code == 0 and done.err.count("\n") == 1 and "rejected: " in done.err, done
    assert "1 rejected" in done.out
    # Without this the sentences would be read as other ones, and the model would be another.
    assert f'"rows_sha256": "{sha256_of_rows(rows)}"' in (tmp_path / "bench/models/m/manifest.json").read_text()


def test_ctrl_c_ends_the_server_in_peace(bench: Path):
    process = start_interpreter("serve", "-w", "opened", "--port", "0", cwd=bench, env={"DYNAROUND_SECRET": SECRET})
    assert process.stdout and "serving opened on http://127.0.0.1:" in process.stdout.readline()
    process.send_signal(2)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "stopped\n", "")

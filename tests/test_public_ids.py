"""What leaves the database names nobody: one public id for a person in all rounds and files, and no platform id."""

import hashlib
import json
import logging
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlmodel import select

from dynaround.database import reading, writing
from dynaround.errors import DynaroundError
from dynaround.settings import Workspace
from dynaround.tables import Worker
from dynaround.tasks.sentiment import SENTIMENT
from rounds.lifecycle import close_round, draft_round, find_round, open_round
from rounds.plan import make_plan
from rounds.releasing import release_round
from rounds.reporting import make_report
from rounds.status import status_figures
from tests.small_round import MOMENT
from tests.test_authored_round import LABELS, add_authored_examples
from workers.importing import import_results
from workers.roster import enlist

A1, A2 = "A1EXAMPLE0001", "A2EXAMPLE0002"
FOUND, WRITTEN = "r1-0000001", "r2-0000001"
EXAMPLES = 45


def play(engine: Engine, number: int, author: str, validators: list[str], file: Path) -> list[str]:
    """Play a round of authored examples until it is closed; return what was said of lines that could not be used."""
    options = {"size": 0, "seed": number}
    plan = make_plan(task="sentiment", reviews="yelp:reviews.jsonl.gz", reviews_sha256="ab" * 32, **options)
    with writing(engine) as session:
        open_round(session, draft_round(session, SENTIMENT, plan, "model-0", "ab" * 32), "launcher", MOMENT)
    add_authored_examples(engine, number, author, EXAMPLES)
    answers = [
        f"r{number}-{place:07d},{who},{LABELS[place % 3]}\n" for place in range(1, EXAMPLES + 1) for who in validators
    ]
    # The author's own sentence, and a second answer that is another one: both are refused.
    refused = [f"r{number}-0000001,{author},positive\n", f"r{number}-0000003,{A2},mixed\n"]
    file.write_text("text_id,worker,answer\n" + "".join(answers + refused))
    report = import_results(engine, number, file, MOMENT)
    assert (report.added, len(report.rejected)) == (5 * EXAMPLES, 2)
    with writing(engine) as session:
        close_round(session, find_round(session, number), "launcher", MOMENT)
    return [line.reason for line in report.rejected]


def lines_of(folder: Path) -> dict[str, Any]:
    """Return the lines of a release by text id."""
    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return {line["text_id"]: line for line in lines}


def ids_in(line: dict[str, Any]) -> set[str]:
    """Return the workers that a line names as validators."""
    return {worker for workers in line["label_distribution"].values() for worker in workers}


def test_wrk_03_one_public_id_in_both_rounds_and_no_platform_id_in_what_leaves_the_database(
    workspace: Workspace, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    engine, out = workspace.engine(), tmp_path / "out"
    out.mkdir()
    told = play(engine, 1, "AUTHOR", [A1, A2, "V1", "V2", "V3"], tmp_path / "1.csv")
    release_round(workspace, engine, 1, out / "round-1", "launcher", MOMENT, per_cell=1)
    told += play(engine, 2, A1, [A2, "V1", "V2", "V3", "V4"], tmp_path / "2.csv")
    release_round(workspace, engine, 2, out / "round-2", "launcher", MOMENT + timedelta(days=7), per_cell=1)
    with reading(engine) as session:
        public = {worker.platform_id: worker.public_id for worker in session.exec(select(Worker))}
        status = [status_figures(session, find_round(session, number)) for number in (1, 2)]
    one, two = lines_of(out / "round-1")[FOUND], lines_of(out / "round-2")[WRITTEN]
    assert two["sentence_author"] == public[A1] and public[A1] in ids_in(one)
    assert public[A2] in ids_in(one) & ids_in(two) and len(ids_in(one)) == len(ids_in(two)) == 5
    assert all(re.fullmatch("w[0-9]+", id_) for id_ in [*ids_in(one), *ids_in(two), two["sentence_author"]])
    make_report(["2"], None, workspace.root, page=out / "2.html", tables=out / "2.tex", seed=0)
    with pytest.raises(DynaroundError) as error, writing(engine) as session:
        enlist(session, A1, "scripted")
    written = [file.read_text() for file in out.rglob("*") if file.is_file()]
    everything = "\n".join([*written, *told, str(error.value), caplog.text, json.dumps(status, default=str)])
    assert public[A1] in str(error.value) and len(written) >= 12
    for secret in (A1, A2, *hashes(A1), *hashes(A2)):
        assert secret.lower() not in everything.lower()


def hashes(platform_id: str) -> list[str]:
    """Return the hashes by which somebody could look up who a worker is."""
    return [hashlib.new(name, platform_id.encode()).hexdigest() for name in ("md5", "sha1", "sha256")]

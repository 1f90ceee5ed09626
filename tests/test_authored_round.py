"""A round of authored sentences: what may stand in dev and test, and how its lines look."""

import json
from collections import Counter
from pathlib import Path

from sqlalchemy import Engine
from sqlmodel import select

from dynaround.database import reading, writing
from dynaround.settings import Workspace
from dynaround.tables import Example, Prompt
from dynaround.tasks.sentiment import SENTIMENT
from dynaround.text import text_key
from rounds.lifecycle import find_round
from rounds.releasing import release_round
from tests.small_round import MOMENT
from tests.test_round import closed, opened
from workers.importing import import_results
from workers.roster import enlist

LABELS = SENTIMENT.model_labels


def add_authored(workspace: Workspace, engine: Engine, encoder: Path, folder: Path, count: int) -> None:
    """Open a round and put authored examples into it, as the writing page will: some with a prompt, some without."""
    opened(workspace, engine, encoder, folder)
    add_authored_examples(engine, 1, "AUTHOR", count)
    lines = [
        f"r1-{number:07d},V{person},{LABELS[number % 3]}\n" for number in range(1, count + 1) for person in range(5)
    ]
    # The last twenty have only four responses, so they are left out, but their prompts still count.
    lines = [line for line in lines if not (int(line[3:10]) > count - 20 and ",V4," in line)]
    (folder / "results.csv").write_text("text_id,worker,answer\n" + "".join(lines))
    import_results(engine, 1, folder / "results.csv", MOMENT)


def add_authored_examples(engine: Engine, round_number: int, platform_id: str, count: int) -> None:
    """Put examples of one author into an open round, numbered from 1; four of five have a prompt."""
    with writing(engine) as session:
        round_ = find_round(session, round_number)
        author = enlist(session, platform_id, "person")
        for number in range(1, count + 1):
            prompt = None
            if number % 5:
                # Every tenth prompt is given twice.
                shown = number - 1 if number % 10 == 2 else number
                text = f"Prompt {shown} was good."
                place = {"review_id": f"p{number}", "rating": 4, "span_start": 0, "span_end": len(text)}
                prompt = Prompt(round_id=round_.id, text=text, **place)
                session.add(prompt)
                session.flush()
            said = f"Authored {number} is {LABELS[number % 3]}."
            session.add(
                Example(
                    round_id=round_.id,
                    task="sentiment",
                    number=number,
                    text=said,
                    text_key=text_key(said),
                    cell="authored",
                    prediction=LABELS[number // 3 % 3],
                    probs={label: 0.8 if label == LABELS[number // 3 % 3] else 0.1 for label in LABELS},
                    truncated=False,
                    model_hash=round_.target_model_hash,
                    precision="float32",
                    back_end="torch",
                    author_id=author.id,
                    arm="prompt" if prompt else "no prompt",
                    prompt_id=prompt.id if prompt else None,
                )
            )


def test_an_authored_round_holds_out_only_prompts_that_occur_once(
    workspace: Workspace, tiny_encoder: Path, tmp_path: Path
):
    engine = workspace.engine()
    add_authored(workspace, engine, tiny_encoder, tmp_path, 180)
    closed(workspace, engine, leave_out_short=True)
    folder = tmp_path / "round-1"
    manifest = release_round(workspace, engine, 1, folder, "test", MOMENT)
    assert manifest["responses_from"] == "people" and manifest["left_out_with_fewer_than_five_responses"] == 20
    with reading(engine) as session:
        uses = Counter(session.exec(select(Prompt.text).join(Example, Example.prompt_id == Prompt.id)).all())
    lines = {s: [json.loads(x) for x in (folder / f"{s}.jsonl").read_text().splitlines()] for s in manifest["examples"]}
    held_out = lines["dev"] + lines["test"]
    assert held_out and all(uses[line["prompt_data"]["prompt_sentence"]] == 1 for line in held_out)
    without = [line for line in lines["train"] if not line["has_prompt"]]
    assert without and all(line["prompt_data"] is None and "review_id" not in line for line in without)
    assert "AUTHOR" not in (folder / "train.jsonl").read_text()

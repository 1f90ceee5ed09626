"""Judging models: scores beside those who labelled, what is left out, and every reading stored."""

import json
from datetime import UTC, datetime

import click
import pytest
from sqlmodel import select

from dynaround import commands, training_commands
from dynaround.database import reading
from dynaround.errors import BadInput, NotFound
from dynaround.evaluation import evaluation_specs, judge, read_set, summary_of
from dynaround.folders import data_hash, write_json
from dynaround.model_training import Heard, Order, train_model
from dynaround.models import evaluate_models, load_model, reading_lines
from dynaround.recipe import MixtureRecipe, choices
from dynaround.settings import create_workspace
from dynaround.tables import EvaluatedItem, Evaluation, Event
from dynaround.task import Prediction
from dynaround.tasks.sentiment import SENTIMENT
from tests.tiny_model import ROWS, make_model

NOW = datetime(2021, 5, 1, 12, tzinfo=UTC)
CROWD = "a scripted crowd (not people)"
PEOPLE_ON_ROUND_2_DEV = 0.903607


def unheard(*arguments):
    pass


def refuse(*arguments):
    raise AssertionError(arguments)


class Oracle:
    """A predictor that knows some sentences by heart."""

    def __init__(self, known):
        self.known = known

    def predict(self, sentences):
        return [
            Prediction(self.known[s], {label: float(label == self.known[s]) for label in self.known.values()})
            for s in sentences
        ]


@pytest.fixture(scope="module")
def workspace(tiny_encoder, tmp_path_factory):
    made = create_workspace(tmp_path_factory.mktemp("evaluation") / "w")
    make_model(made.models / "model-0", tiny_encoder, epochs=40)
    make_model(made.models / "model-1", tiny_encoder, settings={"seed": 1})
    yield made
    made.close()


def evaluated(workspace, names, specs, without=(), **options):
    return evaluate_models(
        workspace,
        names,
        [str(spec) for spec in specs],
        without=[str(spec) for spec in without],
        seed=0,
        who="tester",
        now=lambda: NOW,
        on_reject=options.get("on_reject", refuse),
        on_reading=options.get("on_reading", unheard),
        mixed_gold=options.get("mixed_gold", "drop"),
        shuffle_seed=options.get("shuffle_seed"),
    )


def table(tmp_path, *lines, name="set.csv"):
    path = tmp_path / name
    path.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    return f"csv:{path}"


def labelled_rows(tmp_path, name="set.csv"):
    return table(tmp_path, *(f"{row.text},{row.shares[0][0]}" for row in ROWS), name=name)


def release(folder, responses_from=CROWD, splits=("dev", "test")):
    """Write the files of a tiny release by hand: three examples a split, five responses each."""
    folder.mkdir()
    gold = {"good soup": "positive", "bad soup": "negative", "on monday": "neutral"}
    for split in splits:
        lines = []
        for number, (text, label) in enumerate(gold.items()):
            given = {name: [] for name in SENTIMENT.labels} | {label: [f"w{n}" for n in range(5)]}
            line = {"sentence": text, "text_id": f"{split}-{number}", "gold_label": label, "label_distribution": given}
            lines.append(json.dumps(line) + "\n")
        (folder / f"{split}.jsonl").write_text("".join(lines))
    write_json(folder / "manifest.json", {"kind": "release", "responses_from": responses_from})
    return folder


def test_scores_are_those_of_the_predictions(tmp_path):
    spec = table(tmp_path, "a,positive", "b,positive", "c,negative", "d,neutral")
    data = read_set(spec, SENTIMENT, refuse)
    said = Oracle({"a": "positive", "b": "negative", "c": "negative", "d": "neutral"})
    summary = summary_of(judge(said, "oracle", "hash", data, SENTIMENT, seed=0))
    assert summary["accuracy"] == 0.75 and summary["macro_f1"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert summary["confusion"]["gold_by_predicted"] == ((1, 1, 0), (0, 1, 0), (0, 0, 1))
    low, high = summary["macro_f1_interval"]
    assert low <= summary["macro_f1"] <= high and "labelled_by" not in summary


def test_a_model_that_learnt_a_set_scores_one_on_it_and_the_reading_is_stored(workspace, tmp_path):
    spec = labelled_rows(tmp_path)
    (summary,) = evaluated(workspace, ["model-0"], [spec])
    assert summary["macro_f1"] == summary["accuracy"] == 1.0 and summary["sentences"] == 9
    model = load_model(workspace, "model-0")
    expected = model.predict([row.text for row in ROWS])
    with reading(workspace.engine()) as session:
        row = session.exec(select(Evaluation).order_by(Evaluation.id.desc())).first()
        items = session.exec(select(EvaluatedItem).where(EvaluatedItem.evaluation_id == row.id)).all()
        event = session.exec(select(Event).order_by(Event.id.desc())).first()
    assert (row.model, row.model_hash, row.data, row.at) == ("model-0", model.hash, spec, NOW)
    assert row.data_hash == data_hash([[f"set.csv:{n + 2}", r.text, r.shares[0][0]] for n, r in enumerate(ROWS)])
    assert row.scores == json.loads(json.dumps(summary))
    assert [(i.place, i.item, i.gold) for i in items] == [
        (n, f"set.csv:{n + 2}", r.shares[0][0]) for n, r in enumerate(ROWS)
    ]
    assert [(i.prediction, i.probs) for i in items] == [(p.label, p.probs) for p in expected]
    assert (event.who, event.what, event.detail["data_hash"]) == ("tester", "evaluated", row.data_hash)


def test_every_model_is_judged_on_every_set(workspace, tmp_path):
    specs = [labelled_rows(tmp_path), table(tmp_path, "good soup,positive", "monday,neutral", name="other.csv")]
    told = []
    summaries = evaluated(workspace, ["model-0", "model-1"], specs, on_reading=lambda: told.append(1))
    assert [(s["model"], s["on"]) for s in summaries] == [(m, s) for s in specs for m in ("model-0", "model-1")]
    assert len(told) == 4 and len(list(reading_lines(summaries))) == 6


def test_people_on_round_2_dev_stand_beside_the_model(workspace, shared_data):
    spec = f"dynasent:{shared_data}/dynasent/dynasent-v1.1-round02-dynabench-dev.jsonl"
    (summary,) = evaluated(workspace, ["model-0"], [spec])
    people = summary["labelled_by"]
    assert people["who"] == "people" and people["macro_f1"] == pytest.approx(PEOPLE_ON_ROUND_2_DEV, abs=1e-6)
    assert people["macro_f1_interval"][0] < PEOPLE_ON_ROUND_2_DEV < people["macro_f1_interval"][1]
    assert summary["sentences"] == 720 and summary["macro_f1"] < 0.6
    assert [line.split()[0] for line in reading_lines([summary])][1:] == ["model-0", "people"]


@pytest.fixture
def command(workspace, capsys):
    """Call a command as the command line does, and return what it printed and what it told on standard error."""

    def call(called, *arguments):
        called.main([*arguments, "-w", str(workspace.root)], standalone_mode=False)
        return capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("name", "options", "place", "macro_f1", "sentences"),
    [
        ("sst-dev-validated", ["--mixed-gold", "keep"], [], 0.823388, 1037),
        ("dynasent-v1.1-round01-yelp-dev", [], [], 0.879814, 3600),
        ("dynasent-v1.1-round01-yelp-dev", ["--shuffle-seed", "1"], ["shuffled"], 0.879808, 3600),
        ("dynasent-v1.1-round02-dynabench-dev", ["--shuffle-seed", "1"], ["shuffled"], 0.903632, 720),
    ],
)
def test_the_published_scores_of_people_come_from_the_command_line(
    command, shared_data, name, options, place, macro_f1, sentences
):
    spec = f"dynasent:{shared_data}/dynasent/{name}.jsonl"
    (summary,) = json.loads(command(commands.evaluate, "model-0", "--on", spec, *options, "--json").out)
    people = summary["labelled_by"]
    for key in place:
        people = people[key]
    assert (people["macro_f1"], people["sentences"]) == (pytest.approx(macro_f1, abs=1e-6), sentences)
    assert summary["sentences"] == (929 if "sst" in name else sentences)


@pytest.mark.parametrize(("choice", "words", "people"), [("drop", "left out", 3), ("keep", "kept", 4)])
def test_mixed_gold_is_for_people_alone_and_is_told(workspace, tmp_path, choice, words, people):
    folder = release(tmp_path / "round-1", splits=["dev"])
    line = json.loads((folder / "dev.jsonl").read_text().splitlines()[0])
    given = {"positive": ["w1"], "negative": [], "neutral": [], "mixed": ["w2", "w3", "w4", "w5"]}
    mixed = line | {"sentence": "so so", "gold_label": "mixed", "label_distribution": given}
    none = line | {"sentence": "hm", "gold_label": None, "label_distribution": given}
    with (folder / "dev.jsonl").open("a") as lines:
        lines.write(json.dumps(mixed) + "\n" + json.dumps(none) + "\n")
    (summary,) = evaluated(workspace, ["model-0"], [f"release:{folder}#dev"], mixed_gold=choice, shuffle_seed=1)
    found = summary["labelled_by"]
    assert (summary["sentences"], summary["left_out"], found["sentences"]) == (3, 2, people)
    assert found["mixed_gold"] == found["shuffled"]["mixed_gold"] == choice
    lines = list(reading_lines([summary]))
    assert all(f"gold labels that the model lacks are {words})" in line for line in lines[2:]) and len(lines) == 4
    assert "shuffled with seed 1" in lines[3]


@pytest.mark.parametrize("option", ["--seed", "--shuffle-seed"])
def test_a_negative_seed_is_refused(command, option):
    with pytest.raises(click.BadParameter, match="-1 is not in the range") as error:
        command(commands.evaluate, "model-0", "--on", "csv:x.csv", option, "-1")
    assert error.value.exit_code == 2


def test_rejected_rows_are_counted_listed_and_written_to_a_file(command, workspace, tmp_path):
    spec = labelled_rows(tmp_path)
    with (tmp_path / "set.csv").open("a") as lines:
        lines.writelines(f"sentence {number},awful\n" for number in range(30))
    done = command(commands.evaluate, "model-0", "--on", spec)
    file = workspace.work / "evaluate.rejects.jsonl"
    assert f"{spec}: 9 sentences (0 left out, 30 rejected)\n" in done.out
    assert done.out.endswith(f"rejected lines: {file}\n")
    listed = done.err.splitlines()
    assert len(listed) == 21 and listed[0].startswith(f"rejected: {spec}, line 11: answer 'awful' is none of")
    assert listed[-1] == f"rejected: {spec}, and 10 more; all are in {file}"
    written = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["corpus"], row["line"]) for row in written] == [(spec, line) for line in range(11, 41)]
    command(commands.evaluate, "model-0", "--on", labelled_rows(tmp_path, "good.csv"))
    assert not file.exists()


def test_rejected_rows_of_a_training_that_fails_are_kept_as_well(command, workspace, tiny_encoder, tmp_path):
    spec = table(tmp_path, "good soup,positive", "bad soup,awful")
    with pytest.raises(BadInput, match="no row labelled negative"):
        command(training_commands.train, "--corpus", spec, "--name", "model-8", "--encoder", str(tiny_encoder))
    file = workspace.work / "train-model-8.rejects.jsonl"
    assert json.loads(file.read_text())["line"] == 3


def test_a_set_to_leave_out_may_have_no_rejected_row(workspace, tmp_path):
    spec = table(tmp_path, "good soup,neutral", "bad soup,awful", name="w.csv")
    with pytest.raises(BadInput, match=r"w\.csv, line 3: answer 'awful' .*could not be left out"):
        evaluated(workspace, ["model-0"], [labelled_rows(tmp_path)], without=[spec])


def test_a_release_that_withheld_nothing_can_be_left_out(workspace, tmp_path):
    folder = release(tmp_path / "round-1", splits=("train", "dev", "test"))
    (folder / "withheld.jsonl").touch()
    spec = table(tmp_path, "good soup,positive", "cold room,negative", "a place,neutral")
    (summary,) = evaluated(workspace, ["model-0"], [spec], without=[f"release:{folder}"])
    assert (summary["sentences"], summary["left_out"]) == (2, 1)


def test_without_leaves_out_sentences_by_folded_text(workspace, tmp_path):
    spec = table(tmp_path, "good  soup ,positive", "Good soup,positive", "bad soup,negative", "on monday,neutral")
    (summary,) = evaluated(workspace, ["model-0"], [spec], without=[table(tmp_path, "good soup,neutral", name="w.csv")])
    assert (summary["sentences"], summary["left_out"]) == (3, 1)


def test_sentences_without_a_label_of_the_model_are_left_out_and_rejected_rows_are_told(workspace, tmp_path):
    spec = table(tmp_path, "good soup,positive", "so so,mixed", ",positive", "bad soup,awful", "monday,neutral")
    rejected = []
    options = {"on_reject": lambda where, row: rejected.append((where, row.line))}
    (summary,) = evaluated(workspace, ["model-0"], [spec], **options)
    assert (summary["sentences"], summary["left_out"]) == (2, 1) and rejected == [(spec, 4), (spec, 5)]


def test_a_set_with_nothing_left_is_refused(workspace, tmp_path):
    spec = table(tmp_path, "so so,mixed")
    with pytest.raises(BadInput, match=r"holds no sentence to judge a model on \(1 read"):
        evaluated(workspace, ["model-0"], [spec])


def test_a_release_folder_stands_for_its_dev_and_test(workspace, tmp_path):
    folder = release(tmp_path / "round-1")
    assert evaluation_specs(f"release:{folder}") == [f"release:{folder}/dev.jsonl", f"release:{folder}/test.jsonl"]
    summaries = evaluated(workspace, ["model-0"], [f"release:{folder}"])
    assert [s["on"] for s in summaries] == evaluation_specs(f"release:{folder}")
    assert [s["labelled_by"]["who"] for s in summaries] == [CROWD, CROWD]


@pytest.mark.parametrize("spec", ["release:{}#dev", "release:{}/dev.jsonl", "dynasent:{}/dev.jsonl"])
@pytest.mark.parametrize("who", [CROWD, "people"])
def test_a_crowd_is_never_called_people_however_its_release_is_named(tmp_path, spec, who):
    folder = release(tmp_path / "round-1", who)
    data = read_set(spec.format(folder), SENTIMENT, refuse)
    assert data.responses_from == who and len(data.items) == 3


@pytest.mark.parametrize(("spec", "who"), [("dynasent:{}/dev.jsonl", "people"), ("release:{}/dev.jsonl", None)])
def test_a_foreign_manifest_tells_nothing_of_who_answered(tmp_path, spec, who):
    folder = release(tmp_path / "data")
    write_json(folder / "manifest.json", {"kind": "page"})
    assert read_set(spec.format(folder), SENTIMENT, refuse).responses_from == who


def test_a_release_that_does_not_say_who_answered_is_refused(tmp_path):
    folder = release(tmp_path / "round-1")
    write_json(folder / "manifest.json", {"kind": "release"})
    with pytest.raises(BadInput, match="does not say who answered"):
        read_set(f"dynasent:{folder}/dev.jsonl", SENTIMENT, refuse)


def test_sets_below_the_workspace_are_named_relative_to_it(workspace):
    spec = table(workspace.root, "good soup,positive", "monday,neutral", name="inside.csv")
    (summary,) = evaluated(workspace, ["model-0"], [spec])
    assert summary["on"] == "csv:inside.csv"


def test_an_unknown_model_is_named_with_the_known_ones(workspace, tmp_path):
    (workspace.models / ".model-2.part").mkdir()
    (workspace.models / ".model-2.part" / "manifest.json").write_text("{}")
    with pytest.raises(NotFound, match="there is no model 'model-9' in .*; there is model-0, model-1$"):
        evaluated(workspace, ["model-9"], [labelled_rows(tmp_path)])


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "/tmp/model"])
def test_a_model_name_that_is_no_plain_folder_name_is_refused(workspace, name):
    with pytest.raises(BadInput, match="is no plain folder name"):
        load_model(workspace, name)


def test_a_model_is_trained_in_a_workspace_and_its_manifest_tells_of_the_corpora(workspace, tiny_encoder, tmp_path):
    spec = labelled_rows(tmp_path, name="train.csv")
    recipe = MixtureRecipe(corpus=choices([spec]))
    order = Order(recipe, {"epochs": 1, "seed": 3}, encoder=str(tiny_encoder))
    manifest = train_model(workspace, "model-7", order, Heard(refuse, unheard))
    (corpus,) = manifest["origin"]["corpora"]
    assert (corpus["spec"], corpus["rows"], corpus["rejected"]) == (spec, 9, 0)
    assert manifest["origin"]["label_mode"] == "majority" and manifest["settings"]["seed"] == 3
    assert load_model(workspace, "model-7").hash == manifest["hash"]

"""The recipe of a training: a small TOML file, read whole or refused with one sentence, and kept with the model."""

import json
from pathlib import Path

import pytest

from dynaround.errors import BadInput, NotFound
from dynaround.folders import file_hash, read_manifest
from dynaround.recipe import CorpusChoice, choices, read_recipe, recipe_of
from tests.command import run
from tests.test_mixture import table

DOCS = Path(__file__).resolve().parents[1] / "docs" / "training.md"

SMALL = """\
# two corpora
labels = "soft"
draw_seed = 3

[training]
epochs = 1
learning_rate = 1

[[corpus]]
source = "csv:rows.csv"
weight = 2

[[corpus]]
source = "yelp:/data/reviews.jsonl.gz"
most = 90_000
"""


def recipe(tmp_path, text=SMALL):
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_recipe_is_read_with_paths_from_its_folder(tmp_path):
    found, text = read_recipe(recipe(tmp_path))
    assert text == SMALL and (found.labels, found.mixed, found.draw_seed) == ("soft", "both", 3)
    assert found.training == {"epochs": 1, "learning_rate": 1.0}
    assert found.corpus == [
        CorpusChoice(source=f"csv:{tmp_path}/rows.csv", weight=2),
        CorpusChoice(source="yelp:/data/reviews.jsonl.gz", most=90_000),
    ]


def test_the_recipe_of_the_documentation_can_be_read(tmp_path):
    example = DOCS.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    found = read_recipe(recipe(tmp_path, example)).recipe
    assert [choice.kind for choice in found.corpus] == ["sst", "yelp", "csv", "hf", "release"]
    assert found.corpus[3].source == "hf:imdb#train" and found.evaluate_on[0] == f"sst:{tmp_path}/trees/dev.txt"


def test_the_recipe_of_fifteen_minutes_can_be_read(tmp_path):
    example = (
        DOCS.read_text(encoding="utf-8").partition("## Fifteen minutes")[2].split("```toml\n")[1].partition("```")[0]
    )
    found = read_recipe(recipe(tmp_path, example)).recipe
    assert [(choice.kind, choice.unit) for choice in found.corpus] == [("sst", "phrases")]
    assert found.training == {"epochs": 1, "weighting": "sampling", "drawn_rows": 56_000}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "label = 'soft'\n[[corpus]]\nsource='csv:a'",
            "the recipe has the key 'label', which is none of labels, mixed,",
        ),
        (
            "[[corpus]]\nsource='csv:a'\n[[corpus]]\nsource='csv:b'\nwieght=2",
            "corpus 2 has the key 'wieght', which is none",
        ),
        (
            "[training]\nepoch=2\n[[corpus]]\nsource='csv:a'",
            "table training has the key 'epoch', which is none of seed, ",
        ),
        ("[training]\nthreads=2\n[[corpus]]\nsource='csv:a'", "table training has the key 'threads'"),
        ("[training]\nepochs='two'\n[[corpus]]\nsource='csv:a'", "table training: epochs is 'two'; input should be"),
        ("labels='votes'\n[[corpus]]\nsource='csv:a'", "the recipe: labels is 'votes'; input should be 'majority'"),
        ("[[corpus]]\nsource='csv:a'\nweight=0", "corpus 1: weight is 0; input should be greater than 0"),
        ("[[corpus]]\nsource='csv:a'\nmost=0", "corpus 1: most is 0; input should be greater than or equal to 1"),
        ("[[corpus]]\nweight=1", "corpus 1 lacks the key 'source'"),
        ("labels='soft'", "the recipe lacks the key 'corpus'"),
        ("[[corpus]]\nsource='rows.csv'", "'rows.csv' does not say what is read; write KIND:PATH with sst, csv"),
        ("[[corpus]]\nsource='csv:a'\nunit='phrases'", "csv:a has no phrases"),
        ("[[corpus]]\nsource='sst:a'\nby_stars=true", "sst:a has no stars"),
        ("[[corpus]]\nsource='csv:a'\nfields={text='b'}", "the columns of csv:a have fixed names"),
        ("[[corpus]]\nsource='yelp:a'\nwords={a='b'}", "yelp:a has stars for labels"),
        ("[[corpus]]\nsource='csv:a'\nrevision='b'", "csv:a has no config and no revision"),
        ("labels = soft", "is not TOML"),
    ],
)
def test_what_does_not_fit_is_refused_by_one_sentence(tmp_path, text, said):
    with pytest.raises(BadInput) as refused:
        read_recipe(recipe(tmp_path, text))
    assert said in str(refused.value) and str(tmp_path / "recipe.toml") in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_recipe_that_is_not_there_and_one_beside_corpora_are_refused(tmp_path):
    with pytest.raises(NotFound, match=r"there is no recipe .*nowhere\.toml"):
        read_recipe(tmp_path / "nowhere.toml")
    with pytest.raises(BadInput, match="both are given"):
        recipe_of(recipe(tmp_path), ["csv:a"])
    with pytest.raises(BadInput, match="neither is given"):
        recipe_of(None, [])


def test_what_is_given_besides_wins_and_sets_to_judge_on_are_added(tmp_path):
    path = recipe(tmp_path, "evaluate_on = ['sst:dev.txt']\n" + SMALL)
    found = recipe_of(path, [], labels="majority", mixed=None, evaluate_on=["csv:b"]).recipe
    assert (found.labels, found.mixed) == ("majority", "both")
    assert found.evaluate_on == [f"sst:{tmp_path}/dev.txt", "csv:b"]


def test_a_corpus_named_alone_is_one_of_a_recipe_with_its_source():
    assert recipe_of(None, ["csv:a"], labels="soft").recipe.corpus == [CorpusChoice(source="csv:a")]
    with pytest.raises(BadInput, match="'a' does not say what is read; write KIND:PATH"):
        choices(["a"])


def trained(folder, encoder, *arguments):
    return run("train", "--encoder", encoder, *arguments, cwd=folder)


def test_a_recipe_and_the_same_corpora_by_name_make_the_same_weights(tmp_path, tiny_encoder):
    assert run("init", ".", cwd=tmp_path).code == 0
    rows = [f"sentence {n},{('positive', 'negative', 'neutral')[n % 3]}" for n in range(30)]
    table(tmp_path, "text,label", *rows, name="rows.csv")
    text = "# kept\n[training]\nepochs = 1\nseed = 5\n[[corpus]]\nsource = 'csv:rows.csv'\n"
    by_file = trained(tmp_path, tiny_encoder, "--recipe", recipe(tmp_path, text), "--name", "by-file")
    by_name = trained(
        tmp_path, tiny_encoder, "--corpus", "csv:rows.csv", "--name", "by-name", "--epochs", 1, "--seed", 5
    )
    assert (by_file.code, by_name.code) == (0, 0), by_file.err + by_name.err
    folder = tmp_path / "models" / "by-file"
    assert (folder / "recipe.toml").read_text() == text
    manifest, other = read_manifest(folder), read_manifest(folder.with_name("by-name"))
    assert manifest["files"]["recipe.toml"] == file_hash(folder / "recipe.toml")
    assert manifest["files"]["model.safetensors"] == other["files"]["model.safetensors"]
    assert manifest["origin"] == other["origin"] and "recipe.toml" not in other["files"]
    assert [line.split()[:2] for line in by_file.out.splitlines()[:3]] == [
        ["corpus", "rows"],
        ["csv:rows.csv", "read"],
        ["used", "30"],
    ]


def test_leaks_stop_a_training_and_are_listed_and_allowing_them_marks_the_model(tmp_path, tiny_encoder):
    assert run("init", ".", cwd=tmp_path).code == 0
    table(tmp_path, "text,label", "ok,positive", "cold,negative", "open,neutral", "seen,neutral", name="rows.csv")
    table(tmp_path, "text,label", " seen ,neutral", name="judged.csv")
    asked = ("--corpus", "csv:rows.csv", "--name", "m", "--epochs", 1, "--evaluate-on", "csv:judged.csv")
    stopped = trained(tmp_path, tiny_encoder, *asked)
    assert stopped.code == 2 and "1 of 4 sentences of csv:rows.csv are judged on elsewhere" in stopped.err
    listed = [json.loads(line) for line in (tmp_path / "work" / "train-m.leaks.jsonl").read_text().splitlines()]
    leak = {"corpus": "csv:rows.csv", "sentence": "rows.csv:5", "text": "seen", "stands_in": "csv:judged.csv"}
    assert listed == [leak] and not (tmp_path / "models" / "m").exists()
    allowed = trained(tmp_path, tiny_encoder, *asked, "--allow-leaks")
    assert allowed.code == 0 and "marked: " in allowed.out
    manifest = read_manifest(tmp_path / "models" / "m")
    assert manifest["rows"] == 3 and manifest["origin"]["leaks"] == {"sentences": 1, "allowed": True}

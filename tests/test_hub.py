"""Hugging Face datasets as corpora: local folders of the real package, without a network."""

import gc
import sys

import pytest

from dynaround.errors import BadInput, NotInstalled
from dynaround.mixture import mix
from dynaround.recipe import CorpusChoice
from dynaround.tasks.sentiment import SENTIMENT
from tests.test_mixture import refuse, table

WORDS = {"pos": "positive", "neg": "negative", "0": "neutral"}


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(NotInstalled, match=r"hf:imdb needs .* pip install 'dynaround\[hub\]'"):
        mix(["hf:imdb"], SENTIMENT, on_reject=refuse)


@pytest.fixture
def folder(tmp_path):
    """A dataset of one file of CSV, with labels as words and numbers."""
    pytest.importorskip("datasets", reason="the optional package datasets is not installed")
    (tmp_path / "set").mkdir()
    table(tmp_path / "set", "body,mood", "good,pos", "bad,neg", "monday,0", "odd,why", name="train.csv")
    return tmp_path / "set"


def read(folder, **more):
    rejects = []
    choice = CorpusChoice(source=f"hf:{folder}", **more)
    return mix([choice], SENTIMENT, on_reject=lambda spec, reject: rejects.append(reject)), rejects


def test_a_dataset_is_read_by_its_columns_and_words(folder):
    found, rejects = read(folder, fields={"text": "body", "label": "mood"}, words=WORDS)
    assert [row.shares[0][0] for row in found.rows] == ["positive", "negative", "neutral"]
    assert [reject.line for reject in rejects] == [4]
    [report] = found.reports
    assert report.spec == f"hf:{folder}" and len(report.sha256) == 64 and report.sentences == 3
    again, _ = read(folder, fields={"text": "body", "label": "mood"}, words=WORDS)
    assert again.reports == found.reports


def test_class_labels_are_read_by_their_names(tmp_path):
    datasets = pytest.importorskip("datasets", reason="the optional package datasets is not installed")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    made = datasets.Dataset.from_dict({"text": ["bad", "good", "torn"], "label": [0, 1, -1]}, features=features)
    (tmp_path / "set").mkdir()
    made.to_parquet(tmp_path / "set" / "train.parquet")
    monday = f"csv:{table(tmp_path, 'text,label', 'monday,neutral')}"
    rejects = []
    choice = CorpusChoice(source=f"hf:{tmp_path / 'set'}#train", words=WORDS)
    found = mix([choice, monday], SENTIMENT, on_reject=lambda spec, reject: rejects.append(reject))
    assert [(row.text, row.shares[0][0]) for row in found.rows[:2]] == [("bad", "negative"), ("good", "positive")]
    assert [(reject.line, reject.reason) for reject in rejects] == [(3, "the label is missing")]


# The package leaves a file open that is not read to its end.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_missing_column_and_a_missing_split_are_refused(folder):
    with pytest.raises(BadInput, match="has no column 'text', only body, mood"):
        read(folder)
    with pytest.raises(BadInput, match="cannot be loaded"):
        mix([f"hf:{folder}#validation"], SENTIMENT, on_reject=refuse)
    gc.collect()

"""Back ends: which one serves, that it says what float32 says, and that what is kept for it is whole or made again."""

import json
import random
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from dynaround import back_ends, serving
from dynaround.back_ends import EXACT, WAYS, Refused, Way, ways
from dynaround.errors import NotInstalled
from dynaround.exports import SIDE_FOLDER
from dynaround.folders import file_hashes
from dynaround.serving import LEAST_AGREEMENT, SAMPLE_SIZE, compare, load_served_model, sample
from dynaround.target_model import TargetModel
from tests.command import ended, start_program
from tests.tiny_model import LABELS, WORDS, make_model

needs_openvino = pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is an optional package")
OPENVINO, LOW = Way("openvino", "float32"), Way("torch", "bfloat16")


@pytest.fixture(scope="module")
def trained(tiny_encoder, tmp_path_factory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "model-1", tiny_encoder)


@pytest.fixture
def folder(trained, tmp_path, monkeypatch) -> Iterator[Path]:
    """Return a model of which nothing was exported, tried on fewer sentences than usual."""
    monkeypatch.setattr(serving, "SAMPLE_SIZE", 60)
    sample.cache_clear()
    yield shutil.copytree(trained, tmp_path / "models" / "model-1")
    sample.cache_clear()


def load(folder, way=EXACT, *, back_end=None, precision=None):
    back_end, precision = back_end or way.back_end, precision or way.precision
    return load_served_model(folder, LABELS, back_end=back_end, precision=precision, threads=1)


def side_files(folder, pattern):
    return sorted((folder.parent / SIDE_FOLDER).rglob(pattern))


def random_sentences(count):
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 20))) for _ in range(count)]


def on_this_machine(monkeypatch, *, openvino, bfloat16):
    monkeypatch.setattr(back_ends, "openvino_is_installed", lambda: openvino)
    monkeypatch.setattr(back_ends, "has_bfloat16", lambda: bfloat16)


@pytest.mark.parametrize(
    ("openvino", "bfloat16", "expected"),
    [(True, True, list(WAYS)), (True, False, [OPENVINO, EXACT]), (False, True, [LOW, EXACT]), (False, False, [EXACT])],
)
def test_auto_means_the_fastest_first_of_what_the_machine_has(monkeypatch, openvino, bfloat16, expected):
    on_this_machine(monkeypatch, openvino=openvino, bfloat16=bfloat16)
    assert ways("auto", "auto") == expected


def test_what_is_named_is_kept_whatever_the_machine_has(monkeypatch):
    on_this_machine(monkeypatch, openvino=False, bfloat16=False)
    assert ways("torch", "float32") == [EXACT] and ways("torch", "bfloat16") == [LOW]
    assert ways("openvino", "auto") == [OPENVINO] and ways("auto", "bfloat16") == [LOW]


def test_one_label_in_two_hundred_may_differ_and_only_at_a_near_tie():
    sure, near, near_too = [0.8, 0.1, 0.1], [0.45, 0.44, 0.11], [0.44, 0.45, 0.11]
    agreeing = compare([sure] * 199 + [near], [sure] * 199 + [near_too])
    assert agreeing[:3] == (200, 199, 0) and agreeing.apart == pytest.approx(0.01)
    assert 199 / 200 == LEAST_AGREEMENT and agreeing.refusal(LOW) is None
    too_many = compare([sure] * 198 + [near] * 2, [sure] * 198 + [near_too] * 2).refusal(LOW)
    assert "torch in bfloat16 does not say what float32 says (2 of 200 labels" in too_many
    far = compare([sure] * 1000, [sure] * 999 + [[0.1, 0.8, 0.1]])
    assert (far.same, far.beyond) == (999, 1) and "1 of them where its two best labels are no near tie" in far.refusal(
        LOW
    )


def test_a_trial_reads_sentences_from_all_of_the_packaged_corpus():
    texts = serving.sample()
    assert len(set(texts)) == len(texts) == SAMPLE_SIZE and all(text.strip() for text in texts)


@needs_openvino
def test_openvino_says_what_float32_says_and_what_it_stores_names_it(folder):
    served, exact = load(folder, OPENVINO), TargetModel(folder, LABELS, threads=1)
    sentences = ["the soup was cold", "lovely staff " * 80, "", *sample()]
    assert (served.back_end, served.precision, served.hash) == ("openvino", "float32", exact.hash)
    for found, expected in zip(served.predict(sentences), exact.predict(sentences), strict=True):
        if expected is None:
            assert found is None
            continue
        assert found.probs == pytest.approx(expected.probs, abs=1e-5)
        assert (found.label, found.truncated) == (expected.label, expected.truncated)


@needs_openvino
def test_near_ties_are_decided_by_float32_alone_behind_openvino_too(folder):
    served = TargetModel(folder, LABELS, back_end="openvino", threads=1)
    exact = TargetModel(folder, LABELS, threads=1)
    sentences = random_sentences(300)
    alone = [exact.predict([sentence])[0] for sentence in sentences]
    together = served.predict(sentences)
    near = [
        place
        for place, found in enumerate(alone)
        if sorted(found.probs.values())[-2] > found.probs[found.label] - 0.019
    ]
    assert near and all(together[place] == alone[place] for place in near)
    assert any(found != expected for found, expected in zip(together, alone, strict=True))


@needs_openvino
def test_an_export_is_made_once_beside_the_frozen_folder_and_made_again_where_it_is_damaged(folder):
    before = file_hashes(folder)
    load(folder, OPENVINO)
    (graph,) = side_files(folder, "model.xml")
    made = graph.stat().st_mtime_ns
    load(folder, OPENVINO)
    assert graph.stat().st_mtime_ns == made and file_hashes(folder) == before
    graph.write_bytes(graph.read_bytes()[:100])
    assert load(folder, OPENVINO).predict(["the soup was cold"])[0] is not None
    assert len(graph.read_bytes()) > 100 and not side_files(folder, "*.part")


@needs_openvino
def test_exporting_reports_nothing_to_the_makers_of_openvino(folder, monkeypatch):
    told = []
    monkeypatch.setattr("openvino_telemetry.main.Telemetry.init", lambda *given, **named: told.append(given))
    assert load(folder, OPENVINO).back_end == "openvino" and told == []


@needs_openvino
def test_a_processor_without_bfloat16_is_never_said_to_have_served_in_it(folder):
    if back_ends.has_bfloat16():
        assert load(folder, Way("openvino", "bfloat16")).precision == "bfloat16"
        return
    with pytest.raises(Refused, match="openvino does f32 in the place of bfloat16 on this processor"):
        load(folder, Way("openvino", "bfloat16"))


def test_without_the_package_openvino_says_how_to_get_it_and_auto_goes_on(folder, monkeypatch):
    monkeypatch.setattr("dynaround.openvino_back_end.openvino_is_installed", lambda: False)
    on_this_machine(monkeypatch, openvino=False, bfloat16=False)
    with pytest.raises(NotInstalled, match=r"pip install 'dynaround\[openvino\]'"):
        load(folder, OPENVINO)
    assert Way(load(folder, back_end="auto", precision="auto").back_end, "float32") == EXACT


def test_a_back_end_that_disagrees_refuses_itself_once_and_auto_takes_the_next(folder, monkeypatch, caplog):
    on_this_machine(monkeypatch, openvino=False, bfloat16=True)
    load(folder, LOW)
    (path,) = side_files(folder, "torch-bfloat16-*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"same": 58, "beyond": 1}))
    with pytest.raises(Refused, match="torch in bfloat16 does not say what float32 says .2 of 60 labels"):
        load(folder, LOW)
    served = load(folder, back_end="auto", precision="auto")
    assert (served.back_end, served.precision) == EXACT
    assert "until then the next fastest is taken" in caplog.text


def test_a_model_whose_bfloat16_strays_is_refused_by_its_own_trial(folder, monkeypatch):
    real = TargetModel.raw_probabilities

    def strayed(model, sentences, *, exact=False):
        rows = real(model, sentences, exact=exact)
        return rows if exact else [row[1:] + row[:1] for row in rows]

    monkeypatch.setattr(TargetModel, "raw_probabilities", strayed)
    with pytest.raises(Refused, match="torch in bfloat16 does not say what float32 says"):
        load(folder, LOW)


def test_another_model_under_the_name_is_tried_anew(folder, tiny_encoder):
    load(folder, LOW)
    shutil.rmtree(folder)
    make_model(folder, tiny_encoder, settings={"seed": 5})
    load(folder, LOW)
    tried = [json.loads(path.read_text())["model"] for path in side_files(folder, "torch-bfloat16-*.json")]
    assert len(set(tried)) == 2 and TargetModel(folder, LABELS).hash in tried


LOADING = """
import sys
from pathlib import Path
from dynaround.serving import load_served_model
model = load_served_model(Path(sys.argv[1]), sys.argv[3:], back_end=sys.argv[2], precision="auto", threads=1)
print(model.back_end, model.predict(["the soup was cold"])[0].label)
"""


@needs_openvino
def test_processes_that_load_at_once_export_once_and_say_the_same(folder):
    started = [start_program(LOADING, folder, "openvino", *LABELS) for _ in range(2)]
    said = [ended(process) for process in started]
    assert [done.code for done in said] == [0, 0], said
    assert len({done.out for done in said}) == 1 and said[0].out.startswith("openvino ")
    assert len(side_files(folder, "model.xml")) == 1

"""What is held out of training, when training stops, whose weights are kept, and the temperature."""

import math

import pytest
import torch

from dynaround.early_stopping import BestWeights, Check, DevSet, check_steps, held_out, judged
from dynaround.encoders import find_encoder
from dynaround.errors import BadInput
from dynaround.mixture import TrainingRow, plain_row
from dynaround.training import Recipe, train
from dynaround.training_settings import TrainingSettings
from tests.tiny_model import LABELS, ROWS

MANY = [plain_row(f"{row.text} {number}", row.shares[0][0]) for number in range(8) for row in ROWS]


def trained(folder, encoder, rows=MANY, groups=(), dev_sets=(), **settings):
    usual = {"epochs": 4, "learning_rate": 3e-3, "batch_rows": 8, "threads": 1}
    chosen = TrainingSettings(**usual | settings)
    recipe = Recipe(
        "model", "sentiment", LABELS, find_encoder(str(encoder)), chosen, {}, groups=groups, dev_sets=dev_sets
    )
    return train(rows, recipe, folder, lambda done, steps: None)


def test_rows_of_one_review_or_one_text_are_never_parted():
    texts = [f"text {number % 40}" for number in range(60)] + [f"Text, {number}!" for number in range(40)]
    rows = [plain_row(text, "neutral") for text in texts]
    groups = [f"review {number % 33}" if number < 66 else None for number in range(100)]
    parted = held_out(rows, groups, 0.2, seed=3)
    inside, outside = set(parted.held_out), set(parted.trained)
    assert sorted(inside | outside) == list(range(100)) and len(inside) >= 20 and outside
    for same in (lambda a, b: groups[a] == groups[b] is not None, lambda a, b: texts[a % 40] == texts[b % 40]):
        assert not any(same(a, b) for a in inside for b in outside if a < 60 and b < 60)


def test_the_seed_draws_what_is_held_out_and_no_share_holds_out_nothing():
    drawn = [held_out(MANY, (), 0.25, seed).held_out for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2] and {len(places) for places in drawn} == {18}
    assert held_out(MANY, (), 0.0, 0) == (list(range(72)), [])


def test_a_model_is_judged_so_often_an_epoch_and_at_its_end():
    assert check_steps([10, 20], 2) == {5, 10, 15, 20}
    assert check_steps([3, 6], 5) >= {3, 6} and 0 not in check_steps([1, 2], 5)


def test_a_check_scores_the_largest_share_and_the_loss_of_all_shares():
    targets = torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.0, 1.0]])
    logits = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    check = judged(7, [(logits, targets)], LABELS)
    loss = (math.log(3) + math.log(2 + math.e**5) - 5) / 2
    assert check.step == 7 and check.macro_f1 == pytest.approx(2 / 3) and check.loss == pytest.approx(loss)


def test_the_best_weights_are_kept_and_patience_ends_training():
    model, best = torch.nn.Linear(1, 1, bias=False), BestWeights(patience=2)
    stopped = []
    for step, (f1, loss) in enumerate([(0.5, 1.0), (0.6, 0.9), (0.6, 0.8), (0.6, 0.8), (0.5, 0.1)]):
        torch.nn.init.constant_(model.weight, step)
        stopped.append(best.consider(Check(step, f1, loss), model))
    assert stopped == [False, False, False, False, True] and best.best == (2, 0.6, 0.8)
    best.put_back(model)
    assert model.weight.item() == 2


def test_a_training_with_patience_stops_early_and_keeps_the_weights_of_its_best_check(tiny_encoder, tmp_path):
    kept = trained(tmp_path / "stopped", tiny_encoder, epochs=12, patience=1, held_out_share=0.2, learning_rate=1e-2)
    stopping, steps = kept["early_stopping"], kept["steps"]
    assert steps["taken"] < steps["planned"] and stopping["on"] == ["held-out training rows"]
    best = max(stopping["checks"], key=lambda check: (check["macro_f1"], -check["loss"]))
    assert (stopping["best_step"], stopping["macro_f1"]) == (best["step"], best["macro_f1"])
    assert kept["held_out"]["rows"] >= 14 and kept["rows"] == 72


def test_dev_sets_take_the_place_of_held_out_rows(tiny_encoder, tmp_path):
    sets = [DevSet("sst:dev.txt", ROWS), DevSet("other", ROWS[:3])]
    manifest = trained(tmp_path / "model", tiny_encoder, dev_sets=sets, epochs=1)
    assert manifest["early_stopping"]["on"] == ["sst:dev.txt", "other"] and manifest["held_out"]["rows"] == 0
    assert manifest["temperature"] is None and len(manifest["dev_sets"]) == 2


def test_a_temperature_is_fitted_on_held_out_rows_alone(tiny_encoder, tmp_path):
    manifest = trained(tmp_path / "model", tiny_encoder, held_out_share=0.2, epochs=2)
    temperature = manifest["temperature"]
    assert temperature["fitted_on"] == "held-out training rows"
    assert temperature["rows"] == manifest["held_out"]["rows"]
    assert temperature["nll_after"] <= temperature["nll_before"] and temperature["value"] > 0
    assert trained(tmp_path / "none", tiny_encoder, epochs=1)["temperature"] is None


def test_a_share_that_leaves_no_row_to_train_on_is_refused(tiny_encoder, tmp_path):
    rows = [TrainingRow("the same text", ((label, 1.0),)) for label in LABELS]
    with pytest.raises(BadInput, match=r"no row is left to train on \(3 held out\)"):
        trained(tmp_path / "model", tiny_encoder, rows=rows, held_out_share=0.4)

"""What makes training cheaper: the same logits and gradients, dropout of the right share, lazy Adam, batches."""

import copy
from collections import Counter

import numpy as np
import pytest
import torch
from transformers import RobertaConfig, RobertaForSequenceClassification

from dynaround.encoders import find_encoder, start_model
from dynaround.optimisers import Optimisers, warm_up_then_decay
from dynaround.target_model import padded
from dynaround.training_batches import planned_batches
from dynaround.training_layers import Masks, lighten
from dynaround.training_settings import TrainingSettings
from tests.tiny_model import LABELS

LENGTHS = np.random.default_rng(3).integers(1, 99, 1003).tolist()
INPUTS = padded([[2, 7, 8, 9, 3], [2, 5, 3], [2, 6, 6, 8, 9, 10, 3]], 0)


def tiny_roberta(folder):
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=3
    )
    return RobertaForSequenceClassification(config)


def tiny_bert(folder):
    torch.manual_seed(0)
    return start_model(find_encoder(str(folder)), list(LABELS), 64)[0]


@pytest.mark.parametrize("make", [tiny_bert, tiny_roberta])
def test_a_lightened_model_has_the_same_names_logits_and_gradients(tiny_encoder, make):
    plain = make(tiny_encoder).eval()
    light = copy.deepcopy(plain)
    lighten(light, [0])
    found = []
    for model in (plain, light.eval()):
        logits = model(**INPUTS).logits
        torch.autograd.backward(logits.square().sum())
        found.append((logits, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}))
    (logits, gradients), (light_logits, light_gradients) = found
    assert list(plain.state_dict()) == list(light.state_dict()) and gradients.keys() == light_gradients.keys()
    assert torch.allclose(logits, light_logits, atol=1e-5)
    assert all(torch.allclose(gradients[name], light_gradients[name], atol=1e-5) for name in gradients)


def test_the_last_layer_computes_the_first_token_alone(tiny_encoder):
    model = tiny_bert(tiny_encoder)
    lighten(model, [0])
    shapes = [tuple(layer(torch.zeros(2, 5, 32)).shape) for layer in model.bert.encoder.layer]
    assert shapes == [(2, 5, 32), (2, 1, 32)]


def test_dropout_drops_its_share_keeps_the_mean_and_can_be_put_back():
    masks = Masks([1, 2])
    masks.drop(torch.ones(7), 0.1)
    place = masks.place
    first = masks.drop(torch.ones(1000, 1001), 0.1)
    assert (first == 0).float().mean().item() == pytest.approx(0.1, abs=0.001)
    assert first.mean().item() == pytest.approx(1, abs=0.002) and len(first.unique()) == 2
    masks.place = place
    assert masks.drop(torch.ones(1000, 1001), 0.1).equal(first)
    assert not masks.drop(torch.ones(1000, 1001), 0.1).equal(first)
    assert masks.drop(first, 0.0) is first


def test_a_model_that_is_not_training_drops_nothing(tiny_encoder):
    model = tiny_bert(tiny_encoder)
    lighten(model, [0])
    assert not model.train()(**INPUTS).logits.equal(model(**INPUTS).logits)
    assert model.eval()(**INPUTS).logits.equal(model(**INPUTS).logits)


def one_step(encoder, lazy, **settings):
    model = tiny_bert(encoder).eval()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimisers = Optimisers(model, TrainingSettings(clip_norm=1e9, **settings), lazy_table=lazy)
    # Large, so that the epsilons of the two kinds of Adam, which differ, do not tell.
    torch.autograd.backward(1e6 * model(**INPUTS).logits.square().sum())
    norm = optimisers.clip()
    optimisers.step(1.0)
    return before, dict(model.named_parameters()), norm


def test_lazy_adam_moves_the_words_that_occur_as_dense_adam_does_and_no_other(tiny_encoder):
    before, lazy, norm = one_step(tiny_encoder, lazy=True, weight_decay=0.0)
    _, dense, dense_norm = one_step(tiny_encoder, lazy=False, weight_decay=0.0)
    assert norm == pytest.approx(dense_norm, rel=1e-5)
    assert all(torch.allclose(lazy[name], dense[name], atol=1e-6) for name in before)
    table = "bert.embeddings.word_embeddings.weight"
    moved = (lazy[table] != before[table]).any(dim=1).nonzero().flatten().tolist()
    assert moved == sorted({2, 3, 5, 6, 7, 8, 9, 10})


def test_gradients_are_clipped_together(tiny_encoder):
    model = tiny_bert(tiny_encoder)
    optimisers = Optimisers(model, TrainingSettings(clip_norm=0.01), lazy_table=True)
    torch.autograd.backward(model(**INPUTS).logits.square().sum())
    assert optimisers.clip() > 0.01 and optimisers.clip() == pytest.approx(0.01, rel=1e-4)


def test_frozen_embeddings_stay_and_all_else_moves(tiny_encoder):
    before, after, _ = one_step(tiny_encoder, lazy=True, freeze_embeddings=True)
    still = [name for name in before if after[name].equal(before[name])]
    assert still == ["bert.embeddings.word_embeddings.weight"]


def test_the_rate_goes_up_in_a_line_and_down_in_a_line():
    factor = warm_up_then_decay(10, 0.2)
    assert [factor(step) for step in range(10)] == pytest.approx([0.5, 1, *(number / 8 for number in range(8, 0, -1))])


@pytest.mark.parametrize("settings", [{"batch_rows": 1}, {"batch_rows": 4}, {"batch_tokens": 256}])
def test_an_epoch_has_every_row_once_in_an_order_of_its_seed(settings):
    chosen = TrainingSettings(epochs=2, **settings)
    batches, ends = planned_batches(LENGTHS, [1.0] * 1003, chosen)
    for first, last in ((0, ends[0]), (ends[0], ends[1])):
        assert sorted(row for batch in batches[first:last] for row in batch) == list(range(1003))
    assert batches[: ends[0]] != batches[ends[0] :] and ends[1] == len(batches)
    assert planned_batches(LENGTHS, [1.0] * 1003, chosen)[0] == batches
    other = TrainingSettings(epochs=2, seed=1, **settings)
    assert planned_batches(LENGTHS, [1.0] * 1003, other)[0] != batches


def test_batches_stay_within_their_rows_or_tokens_and_hold_little_padding():
    by_rows, _ = planned_batches(LENGTHS, [1.0] * 1003, TrainingSettings(epochs=1, batch_rows=8))
    assert {len(batch) for batch in by_rows} == {8, 3}
    by_tokens, _ = planned_batches(LENGTHS, [1.0] * 1003, TrainingSettings(epochs=1, batch_tokens=256))
    sizes = [max(LENGTHS[row] for row in batch) * len(batch) for batch in by_tokens]
    assert max(sizes) <= 256 and sum(sizes) < 1.2 * sum(LENGTHS)


def test_a_row_longer_than_the_budget_stands_alone():
    batches, _ = planned_batches([90, 3, 3], [1.0] * 3, TrainingSettings(epochs=1, batch_tokens=20))
    assert [0] in batches and sorted(map(len, batches)) == [1, 2]


def test_rows_are_drawn_in_proportion_to_their_weights():
    settings = TrainingSettings(epochs=1, weighting="sampling", drawn_rows=30_000)
    batches, _ = planned_batches([5] * 3, [1.0, 3.0, 6.0], settings)
    counts = Counter(row for batch in batches for row in batch)
    assert counts.total() == 30_000
    assert [counts[row] / 30_000 for row in range(3)] == pytest.approx([0.1, 0.3, 0.6], abs=0.01)

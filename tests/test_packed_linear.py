"""Packed linear layers say what those of PyTorch say: up to rounding."""

import pytest
import torch
from torch import nn

from dynaround.packed_linear import PackedLinear, pack_linear_layers

PRECISIONS = (torch.float32, torch.bfloat16)


def packed_layer(precisions):
    layers = nn.Sequential(nn.Linear(2, 2))
    pack_linear_layers(layers, precisions)
    return layers[0]


pytestmark = pytest.mark.skipif(
    not isinstance(packed_layer([torch.float32]), PackedLinear),
    reason="this processor or this PyTorch lays out no weights for oneDNN",
)


@pytest.fixture
def made():
    generator = torch.Generator().manual_seed(0)

    def numbers(*shape):
        return torch.randn(*shape, generator=generator)

    return numbers


@pytest.mark.parametrize("rows", [(1, 1), (1, 15), (7, 33)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_products_are_those_of_the_plain_layer(made, rows, has_bias):
    plain = nn.Linear(48, 96, bias=has_bias)
    with torch.no_grad():
        plain.weight.copy_(made(96, 48))
    layers, inputs = nn.Sequential(plain), made(*rows, 48)
    pack_linear_layers(layers, PRECISIONS)
    packed = layers[0]
    with torch.inference_mode():
        assert packed(inputs).shape == (*rows, 96)
        assert torch.allclose(packed(inputs), plain(inputs), atol=1e-4, rtol=1e-5)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert packed(inputs).dtype == torch.bfloat16
            assert torch.allclose(packed(inputs).float(), plain(inputs).float(), atol=1e-2, rtol=2**-7)


def test_every_linear_layer_is_packed_and_nothing_else():
    inner = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    model = nn.Sequential(nn.Embedding(3, 4), inner, nn.Linear(4, 2))
    pack_linear_layers(model, [torch.float32])
    kinds = [type(module) for module in model.modules() if not list(module.children())]
    assert kinds == [nn.Embedding, PackedLinear, nn.LayerNorm, PackedLinear]
    # Nothing of the weights is held twice.
    assert sum(parameter.numel() for parameter in model.parameters()) == 3 * 4 + 2 * 4


def test_what_no_weights_are_packed_for_the_plain_layer_does(made):
    plain = nn.Linear(8, 4)
    packed, inputs = PackedLinear(plain, [torch.float32], plain), made(3, 8)
    with torch.inference_mode():
        assert torch.allclose(packed(inputs), plain(inputs), atol=1e-5)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(packed(inputs), plain(inputs)) and packed(inputs).dtype == torch.bfloat16

import inspect

import numpy as np
import pytest

import tformer
from tformer.reference import (
    Encoder,
    EncoderLayer,
    causal_mask,
    from_torch,
    length_mask,
)

B, S, H, Dh, F, N = 2, 5, 3, 4, 7, 3
D = H * Dh

CHOICES = [
    {},
    {"norm_first": True},
    {"activation": "gelu"},
    {"num_kv_heads": 1},
    {"bias": False},
    {"eps": 0.1, "dropout": 0.3},
    {"norm_first": True, "activation": "gelu", "bias": False, "num_kv_heads": 1},
]


@pytest.mark.parametrize("choice", CHOICES)
def test_layer(parity, choice):
    module = parity.module(tformer.EncoderLayer(D, H, F, **choice))
    twin = from_torch(module)
    array, tensor = parity.numbers(B, S, D)
    parity.same(twin(array), module(tensor))
    assert isinstance(twin, EncoderLayer)
    assert twin(array).shape == (B, S, D)


@pytest.mark.parametrize("shape", [None, (S, S), (B, 1, 1, S), (B, H, S, S)])
def test_masks(parity, shape):
    array, tensor = parity.numbers(B, S, D)
    mask, mask_tensor = parity.mask(*shape) if shape else (None, None)
    for module in (
        tformer.EncoderLayer(D, H, F),
        tformer.Encoder(D, H, F, 2, norm_first=True),
    ):
        parity.module(module)
        parity.same(from_torch(module)(array, mask), module(tensor, mask_tensor))


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("final_norm", [None, False, True])
def test_stack(parity, choice, final_norm):
    module = tformer.Encoder(D, H, F, N, final_norm=final_norm, **choice)
    module = parity.module(module)
    twin = from_torch(module)
    array, tensor = parity.numbers(B, S, D)
    parity.same(twin(array), module(tensor))
    assert isinstance(twin, Encoder)
    assert len(twin.layers) == N
    assert twin(array).shape == (B, S, D)


def test_without_positions_order_does_not_matter(new_parity):
    parity = new_parity()
    twin = from_torch(parity.module(tformer.Encoder(D, H, F, N)))
    array, _ = parity.numbers(B, S, D)
    shuffled = parity.random.permutation(S)
    np.testing.assert_allclose(
        twin(array[:, shuffled]), twin(array)[:, shuffled], atol=1e-12
    )


def test_what_is_hidden_changes_nothing(new_parity):
    parity = new_parity()
    twin = from_torch(parity.module(tformer.Encoder(D, H, F, N)))
    array, _ = parity.numbers(B, S, D)
    changed = array.copy()
    changed[:, -1] += 10
    for mask in (causal_mask(S), length_mask(np.array([S - 1, S - 1]), S)):
        hidden = [twin(x, mask)[:, :-1] for x in (array, changed)]
        np.testing.assert_array_equal(*hidden)
    assert np.abs(twin(array) - twin(changed))[:, :-1].min() > 1e-6


@pytest.mark.parametrize("name", ["EncoderLayer", "Encoder"])
def test_arguments_are_those_of_the_original(name):
    twin = {"EncoderLayer": EncoderLayer, "Encoder": Encoder}[name]
    of_twin = inspect.signature(twin.__call__).parameters
    of_original = inspect.signature(getattr(tformer, name).forward).parameters
    assert list(of_twin) == list(of_original) == ["self", "x", "attn_mask"]


def test_layers_are_counted_from_zero(new_parity):
    module = new_parity().module(tformer.Encoder(D, H, F, N))
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    assert len(Encoder(weights, H).layers) == N
    without = {name: w for name, w in weights.items() if ".1." not in name}
    with pytest.raises(ValueError, match=r"of 0, 1; missing: 1; unknown: 2"):
        Encoder(without, H)
    with pytest.raises(ValueError, match=r"missing: layers; unknown: none"):
        Encoder({}, H)


def test_a_mask_of_padding_is_refused_by_its_shape(new_parity, both_refuse):
    parity = new_parity()
    module = parity.module(tformer.Encoder(D, H, F, N))
    twin = from_torch(module)
    (array, tensor), (mask, mask_tensor) = parity.numbers(B, S, D), parity.mask(B, S)
    both_refuse(
        lambda: twin(array, mask),
        lambda: module(tensor, mask_tensor),
        "attn_mask must be (T, S) = (5, 5), or have four axes",
    )

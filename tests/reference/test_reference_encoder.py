import inspect
import itertools

import numpy as np
import pytest

import tformer
from tformer.reference import Encoder, EncoderLayer, from_torch

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


def masks(parity, with_mask, with_key_mask):
    mask = parity.mask(S, S) if with_mask else (None, None)
    key_mask = parity.mask(B, S) if with_key_mask else (None, None)
    return zip(mask, key_mask, strict=True)


@pytest.mark.parametrize("choice", CHOICES)
def test_layer(parity, choice):
    module = parity.module(tformer.EncoderLayer(D, H, F, **choice))
    twin = from_torch(module)
    array, tensor = parity.numbers(B, S, D)
    output, weights = twin(array, return_weights=True)
    parity.same((output, weights), module(tensor, return_weights=True))
    parity.same(twin(array), module(tensor))
    assert isinstance(twin, EncoderLayer)
    assert output.shape == (B, S, D)
    assert weights.shape == (B, H, S, S)


@pytest.mark.parametrize(
    ("with_mask", "with_key_mask", "is_causal"),
    list(itertools.product([False, True], repeat=3)),
)
def test_masks(parity, with_mask, with_key_mask, is_causal):
    array, tensor = parity.numbers(B, S, D)
    for module in (
        tformer.EncoderLayer(D, H, F),
        tformer.Encoder(D, H, F, 2, norm_first=True),
    ):
        parity.module(module)
        (mask, key_mask), (mask_tensor, key_mask_tensor) = masks(
            parity, with_mask, with_key_mask
        )
        options = {"is_causal": is_causal, "return_weights": True}
        parity.same(
            from_torch(module)(array, mask, key_mask=key_mask, **options),
            module(tensor, mask_tensor, key_mask=key_mask_tensor, **options),
        )


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("final_norm", [None, False, True])
def test_stack(parity, choice, final_norm):
    module = tformer.Encoder(D, H, F, N, final_norm=final_norm, **choice)
    module = parity.module(module)
    twin = from_torch(module)
    array, tensor = parity.numbers(B, S, D)
    output, weights = twin(array, return_weights=True)
    parity.same((output, weights), module(tensor, return_weights=True))
    parity.same(twin(array), module(tensor))
    assert isinstance(twin, Encoder)
    assert len(weights) == N
    assert output.shape == (B, S, D)
    assert weights[0].shape == (B, H, S, S)


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
    causal = [twin(x, is_causal=True)[:, :-1] for x in (array, changed)]
    np.testing.assert_array_equal(*causal)
    real = np.arange(S) < np.array([[S - 1], [S - 1]])
    padded = [twin(x, key_mask=real)[:, :-1] for x in (array, changed)]
    np.testing.assert_array_equal(*padded)
    assert np.abs(twin(array) - twin(changed))[:, :-1].min() > 1e-6


@pytest.mark.parametrize("name", ["EncoderLayer", "Encoder"])
def test_arguments_are_those_of_the_original(name):
    twin = {"EncoderLayer": EncoderLayer, "Encoder": Encoder}[name]
    of_twin = inspect.signature(twin.__call__).parameters
    of_original = inspect.signature(getattr(tformer, name).forward).parameters
    for_speed = {"cache", "caches"}
    assert list(of_twin) == [n for n in of_original if n not in for_speed]


def test_layers_are_counted_from_zero(new_parity):
    module = new_parity().module(tformer.Encoder(D, H, F, N))
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    assert len(Encoder(weights, H).layers) == N
    without = {name: w for name, w in weights.items() if ".1." not in name}
    with pytest.raises(ValueError, match=r"of 0, 1; missing: 1; unknown: 2"):
        Encoder(without, H)
    with pytest.raises(ValueError, match=r"missing: layers; unknown: none"):
        Encoder({}, H)

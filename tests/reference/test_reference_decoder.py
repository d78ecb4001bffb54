import inspect

import numpy as np
import pytest

import tformer
from tformer.reference import Decoder, DecoderLayer, from_torch

B, T, S, H, Dh, F, N = 2, 5, 7, 3, 4, 11, 3
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


def draw(parity):
    return zip(parity.numbers(B, T, D), parity.numbers(B, S, D), strict=True)


@pytest.mark.parametrize("choice", CHOICES)
def test_layer(parity, choice):
    module = parity.module(tformer.DecoderLayer(D, H, F, **choice))
    twin = from_torch(module)
    arrays, tensors = draw(parity)
    parity.same(twin(*arrays), module(*tensors))
    assert isinstance(twin, DecoderLayer)
    assert twin(*arrays).shape == (B, T, D)


@pytest.mark.parametrize("attn_mask", [None, (T, T), (B, 1, 1, T), (B, H, T, T)])
@pytest.mark.parametrize("memory_mask", [None, (T, S), (B, 1, 1, S), (B, H, T, S)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_masks(parity, attn_mask, memory_mask, is_causal):
    shapes = {"attn_mask": attn_mask, "memory_mask": memory_mask}
    drawn = {name: parity.mask(*shape) for name, shape in shapes.items() if shape}
    options = {"is_causal": is_causal}
    arrays, tensors = draw(parity)
    for module in (
        tformer.DecoderLayer(D, H, F),
        tformer.Decoder(D, H, F, 2, norm_first=True),
    ):
        parity.module(module)
        parity.same(
            from_torch(module)(
                *arrays, **{n: m for n, (m, _) in drawn.items()}, **options
            ),
            module(*tensors, **{n: m for n, (_, m) in drawn.items()}, **options),
        )


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("final_norm", [None, False, True])
def test_stack(parity, choice, final_norm):
    module = tformer.Decoder(D, H, F, N, final_norm=final_norm, **choice)
    module = parity.module(module)
    twin = from_torch(module)
    arrays, tensors = draw(parity)
    output = twin(*arrays, is_causal=True)
    parity.same(output, module(*tensors, is_causal=True))
    parity.same(twin(*arrays), module(*tensors))
    assert isinstance(twin, Decoder)
    assert len(twin.layers) == N
    assert output.shape == (B, T, D)


@pytest.mark.parametrize("choice", CHOICES)
def test_without_cross_attention(parity, choice):
    """The stack of a GPT."""
    module = tformer.Decoder(D, H, F, N, cross_attention=False, **choice)
    twin = from_torch(parity.module(module))
    array, tensor = parity.numbers(B, T, D)
    mask, mask_tensor = parity.mask(B, 1, 1, T)
    parity.same(twin(array, is_causal=True), module(tensor, is_causal=True))
    parity.same(twin(array, None, mask), module(tensor, None, mask_tensor))


@pytest.mark.parametrize("cross_attention", [True, False])
def test_a_memory_that_is_missing_or_too_much(new_parity, same_error, cross_attention):
    parity = new_parity()
    module = tformer.DecoderLayer(D, H, F, cross_attention=cross_attention)
    twin = from_torch(parity.module(module))
    arrays, tensors = draw(parity)
    count = 1 if cross_attention else 2
    same_error(
        lambda: twin(*arrays[:count]),
        lambda: module(*tensors[:count]),
        ValueError,
        "memory must be given with cross-attention, and only then",
    )


def test_the_future_changes_nothing(new_parity):
    parity = new_parity()
    twin = from_torch(parity.module(tformer.Decoder(D, H, F, N)))
    (x, memory), _ = draw(parity)
    changed = x.copy()
    changed[:, -1] += 10
    past = [twin(y, memory, is_causal=True)[:, :-1] for y in (x, changed)]
    np.testing.assert_array_equal(*past)
    seen = [twin(y, memory)[:, :-1] for y in (x, changed)]
    assert np.abs(seen[0] - seen[1]).min() > 1e-6


@pytest.mark.parametrize("name", ["DecoderLayer", "Decoder"])
def test_arguments_are_those_of_the_original(name):
    twin = {"DecoderLayer": DecoderLayer, "Decoder": Decoder}[name]
    of_twin = inspect.signature(twin.__call__).parameters
    of_original = inspect.signature(getattr(tformer, name).forward).parameters
    assert list(of_twin) == [n for n in of_original if n != "cache"]  # for speed


def test_memory_of_another_batch(new_parity):
    """The original takes it, for beams; here it would broadcast by luck."""
    parity = new_parity()
    twin = from_torch(parity.module(tformer.DecoderLayer(D, H, F)))
    x, memory = parity.numbers(B, T, D)[0], parity.numbers(1, S, D)[0]
    with pytest.raises(ValueError, match="key has batch 1 but query has 2"):
        twin(x, memory)

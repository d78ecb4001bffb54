import inspect
import itertools

import numpy as np
import pytest
import torch

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
    output, to_target, to_source = twin(*arrays, return_weights=True)
    expected = module(*tensors, return_weights=True)
    parity.same((output, to_target, to_source), expected)
    parity.same(twin(*arrays), module(*tensors))
    assert isinstance(twin, DecoderLayer)
    assert output.shape == (B, T, D)
    assert to_target.shape == (B, H, T, T)
    assert to_source.shape == (B, H, T, S)


NAMES = {"attn_mask": (T, T), "key_mask": (B, T), "memory_mask": (H, T, S)}
NAMES["memory_key_mask"] = (B, S)


@pytest.mark.parametrize("chosen", list(itertools.product([False, True], repeat=5)))
def test_masks(parity, chosen):
    *with_masks, is_causal = chosen
    drawn = {
        name: parity.mask(*shape)
        for (name, shape), given in zip(NAMES.items(), with_masks, strict=True)
        if given
    }
    options = {"is_causal": is_causal, "return_weights": True}
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
    result = twin(*arrays, is_causal=True, return_weights=True)
    parity.same(result, module(*tensors, is_causal=True, return_weights=True))
    parity.same(twin(*arrays), module(*tensors))
    assert isinstance(twin, Decoder)
    assert result[0].shape == (B, T, D)
    assert [weights.shape for weights in result[1]] == [(B, H, T, T)] * N
    assert [weights.shape for weights in result[2]] == [(B, H, T, S)] * N


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
    for_speed = {"cache", "caches"}
    assert list(of_twin) == [n for n in of_original if n not in for_speed]


def test_memory_of_another_batch(same_error):
    module = tformer.DecoderLayer(D, H, F)
    twin = from_torch(module)
    x = np.zeros((B, T, D), dtype="float32")
    memory = np.zeros((1, S, D), dtype="float32")
    same_error(
        lambda: twin(x, memory),
        lambda: module(torch.tensor(x), torch.tensor(memory)),
        ValueError,
        "key has batch 1 but query has 2",
    )

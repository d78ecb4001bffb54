"""The twins in NumPy of linear attention and of the gated delta rule."""

import numpy as np
import pytest

import tformer
from tformer import nn, reference

B, H, T, Dk, Dv, D = 2, 3, 7, 5, 11, 6


def draw(parity):
    arrays, tensors = zip(
        parity.numbers(B, H, T, Dk),
        parity.numbers(B, H, T, Dk),
        parity.numbers(B, H, T, Dv),
        parity.numbers(B, H, T),
        parity.numbers(B, H, T),
        parity.numbers(B, H, Dk, Dv),
        strict=True,
    )
    return list(arrays), list(tensors)


def computed(module, arrays, name, options):
    q, k, v, beta, decay, state = arrays
    k = module.unit_length(k)
    beta = [1 / (1 + beta**2)] if name.startswith("delta") else []
    more = {"log_decay": -(decay**2), "state": state}
    chosen = {key: more.get(key, options[key]) for key in options}
    return getattr(module, name)(q, k, v, *beta, **chosen)


@pytest.mark.parametrize("options", [[], ["log_decay"], ["log_decay", "state"]])
@pytest.mark.parametrize("chunk", [None, 1, 3, 64])
@pytest.mark.parametrize("rule", ["linear_attention", "delta_rule"])
def test_functions(parity, rule, chunk, options):
    arrays, tensors = draw(parity)
    chosen = dict.fromkeys(options) | ({} if chunk is None else {"chunk": chunk})
    name = f"{rule}_recurrent" if chunk is None else rule
    before = [x.copy() for x in arrays]
    ours = computed(reference, arrays, name, chosen)
    parity.same(ours, computed(tformer, tensors, name, chosen))
    for x, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, old)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LinearAttention", {}),
        ("LinearAttention", {"bias": True}),
        ("GatedDeltaRule", {}),
    ],
)
def test_modules(parity, name, options):
    module = getattr(tformer, name)(D, H, chunk=3, **options)
    module = parity.module(module)
    array, tensor = parity.numbers(B, T, D)
    twin = reference.from_torch(module)
    assert type(twin) is getattr(reference, name)
    parity.same(twin(array), module(tensor))


def test_feature_map(parity):
    array, tensor = parity.numbers(B, T)
    parity.same(
        reference.feature_map(9 * array), nn.linear_attention.feature_map(9 * tensor)
    )


def test_errors(new_parity, same_error):
    arrays, tensors = draw(new_parity())
    for name in ("linear_attention", "linear_attention_recurrent"):
        same_error(
            lambda name=name: getattr(reference, name)(*arrays[:2], arrays[5]),
            lambda name=name: getattr(tformer, name)(*tensors[:2], tensors[5]),
            ValueError,
            "value must be (2, 3, 7, 11) with query (2, 3, 7, 5), not (2, 3, 5, 11)",
        )
    for name in ("delta_rule", "delta_rule_recurrent"):
        same_error(
            lambda name=name: getattr(reference, name)(*arrays[:3], arrays[3][:1]),
            lambda name=name: getattr(tformer, name)(*tensors[:3], tensors[3][:1]),
            ValueError,
            "beta must be (2, 3, 7) with query (2, 3, 7, 5), not (1, 3, 7)",
        )
    same_error(
        lambda: reference.linear_attention(*arrays[:3], chunk=0),
        lambda: tformer.linear_attention(*tensors[:3], chunk=0),
        ValueError,
        "chunk (0) must be at least 1",
    )


def test_weights_are_checked():
    module = tformer.GatedDeltaRule(D, H)
    weights = {n: w.numpy() for n, w in module.state_dict().items()}
    with pytest.raises(ValueError, match="unknown: gate"):
        reference.GatedDeltaRule({**weights, "gate.weight": np.zeros((D, D))}, H)
    with pytest.raises(ValueError, match="must be divisible by num_heads"):
        reference.GatedDeltaRule(weights, 4)

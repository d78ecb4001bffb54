"""Each function of the twin computes what torch's does, on the same numbers."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

import tformer
from tformer import reference
from tformer.generate import speculative
from tformer.nn.heads import merge_heads, split_heads
from tformer.nn.linear_attention import feature_map
from tformer.nn.norm import layer_norm
from tformer.nn.positions import sinusoidal_positions
from tformer.nn.quantized import dequantize, quantize
from tformer.nn.rms_norm import rms_norm
from tformer.nn.rotary import rotate
from tformer.nn.router import expert_counts as counts_in_torch
from tformer.reference.experts import expert_counts
from tformer.reference.feed_forward import erf
from tformer.reference.relative import distances

B, H, T, Dk, Dv, D = 2, 3, 7, 5, 11, 6
NUMBERS = {  # the twin's name, torch's function, shapes, options
    "relu": (F.relu, [(B, T)], {}),
    "gelu": (F.gelu, [(B, T)], {}),
    "gelu_tanh": (torch.nn.GELU("tanh"), [(B, T)], {}),
    "relu2": (lambda x: F.relu(x) ** 2, [(B, T)], {}),
    "sigmoid": (torch.sigmoid, [(B, T)], {}),
    "silu": (F.silu, [(B, T)], {}),
    "feature_map": (feature_map, [(B, T)], {}),
    "unit_length": (tformer.unit_length, [(B, T)], {}),
    "layer_norm": (layer_norm, [(B, T, D), (D,), (D,)], {"eps": 0.3}),
    "rms_norm": (rms_norm, [(B, T, D), (D,)], {"eps": 0.3}),
    "split_heads": (split_heads, [(B, T, 6)], {"num_heads": 3}),
    "merge_heads": (merge_heads, [(B, H, T, Dk)], {}),
    "pairs_to_halves": (tformer.pairs_to_halves, [(12, 11)], {"num_heads": 3}),
    "halves_to_pairs": (tformer.halves_to_pairs, [(12,)], {"num_heads": 3}),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(parity, name):
    theirs, shapes, options = NUMBERS[name]
    arrays, tensors = zip(*(parity.numbers(*shape) for shape in shapes), strict=True)
    arrays, tensors = (3 * arrays[0], *arrays[1:]), (3 * tensors[0], *tensors[1:])
    before = [x.copy() for x in arrays]
    parity.same(
        getattr(reference, name)(*arrays, **options), theirs(*tensors, **options)
    )
    for x, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, old)


@pytest.mark.parametrize("name", ["relu", "gelu", "sigmoid", "silu"])
def test_far_and_missing_numbers(name):
    numbers = [np.nan, 0.0, -1e4, 1e4]
    with np.errstate(over="raise"):
        ours = getattr(reference, name)(np.array(numbers))
    theirs = getattr(torch, name, None) or getattr(F, name)
    np.testing.assert_array_equal(ours, theirs(torch.tensor(numbers).double()).numpy())


@given(st.floats(-10, 10))
def test_erf(number):
    assert math.isclose(erf(np.array([number]))[0], math.erf(number), rel_tol=1e-15)


STATES = [(B, H, T, Dk), (B, H, T, Dk), (B, H, T, Dv), (B, H, T), (B, H, T)]


@pytest.mark.parametrize("options", [[], ["log_decay"], ["log_decay", "state"]])
@pytest.mark.parametrize("rule", ["linear_attention", "delta_rule"])
def test_recurrences(parity, rule, options):
    def computed(module, q, k, v, beta, decay, state):
        given = {"log_decay": -(decay**2), "state": state}
        given = {name: given[name] for name in options}
        beta = [1 / (1 + beta**2)] if rule == "delta_rule" else []
        attend = getattr(module, f"{rule}_recurrent")
        return attend(q, module.unit_length(k), v, *beta, **given)

    shapes = [*STATES, (B, H, Dk, Dv)]
    arrays, tensors = zip(*(parity.numbers(*shape) for shape in shapes), strict=True)
    before = [x.copy() for x in arrays]
    parity.same(computed(reference, *arrays), computed(tformer, *tensors))
    for x, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, old)


@pytest.mark.parametrize("layout", ["pairs", "halves"])
def test_rotate(parity, layout):
    (x, tensor), (angle, angles) = parity.numbers(B, H, T, 14), parity.numbers(T, 7)
    ours = reference.rotate(x, np.cos(angle), np.sin(angle), layout=layout)
    parity.same(ours, rotate(tensor, angles.cos(), angles.sin(), layout=layout))


L = {"trained_len": 512}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("scale_linear", {}),
        ("scale_ntk", {}),
        ("scale_llama3", L),
        ("scale_llama3", {**L, "low": 2.0, "high": 7.0}),
        ("scale_yarn", L),
        ("scale_yarn", {**L, "low": 2.0, "high": 9.0}),
        ("scale_yarn", {**L, "truncate": False}),
    ],
)
def test_scaled_frequencies(new_parity, name, options):
    ours, theirs = (
        getattr(p, name)(p.rotary_frequencies(64, base=500.0), 8, **options)
        for p in (reference, tformer)
    )
    new_parity().same(ours, theirs, 1e-15)
    assert reference.yarn_factor(8, 0.7) == tformer.yarn_factor(8, 0.7)
    assert reference.yarn_factor(8) == tformer.yarn_factor(8)


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 10_000))
def test_sinusoids(new_parity, length, pairs, start):
    table = reference.sinusoidal_positional_encoding(length, 2 * pairs, start=start)
    expected = sinusoidal_positions(length, 2 * pairs, start=start)
    new_parity().same(table, expected, 1e-11)  # an ulp of position 10,000
    angle = start / 10000 ** (2 * (pairs - 1) / (2 * pairs))
    by_hand = [math.sin(angle), math.cos(angle)]
    np.testing.assert_allclose(table[0, -2:], by_hand, rtol=0, atol=1e-11)


@pytest.mark.parametrize("heads", [*range(1, 34), 100])
def test_slopes(new_parity, heads):
    twin = reference.alibi_slopes(heads)
    new_parity().same(twin, tformer.alibi_slopes(heads), 1e-15)


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (9, 128), (2, 3)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_buckets(num_buckets, max_distance, bidirectional):
    starts = reference.bucket_starts(num_buckets, max_distance)
    theirs = tformer.bucket_starts(num_buckets, max_distance)
    np.testing.assert_array_equal(starts, theirs, strict=True)
    apart = distances(600, 300)
    twin = reference.relative_buckets(apart, starts, bidirectional=bidirectional)
    ours = tformer.relative_buckets(
        torch.tensor(apart), theirs, bidirectional=bidirectional
    )
    np.testing.assert_array_equal(twin, ours, strict=True)


@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
@pytest.mark.parametrize("k", [1, 4])
def test_load_balance_loss(parity, scores, k):
    logits, tensor = parity.numbers(B, T, 6)
    ours = reference.route(logits, k, scores=scores)
    theirs = tformer.route(tensor, k, scores=scores)
    parity.same(
        reference.load_balance_loss(ours.scores, ours.chosen),
        tformer.load_balance_loss(theirs.scores, theirs.chosen),
    )
    counts = counts_in_torch(theirs.chosen, 6).numpy()
    np.testing.assert_array_equal(expert_counts(ours.chosen, 6), counts)


def test_sigmoids_that_are_all_0():
    with np.errstate(all="raise", under="ignore"):
        weights = reference.route(np.full((1, 6), -1e4), 3, scores="sigmoid").weights
    np.testing.assert_array_equal(weights, np.zeros((1, 3)))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("group_size", [None, 3, 6])
def test_quantize(parity, bits, group_size):
    array, tensor = parity.numbers(2, 5, 12)
    array[0, 0], tensor[0, 0] = 0, 0  # a group of zeros
    with np.errstate(all="raise"):
        ours = reference.quantize(array, bits, group_size)
    theirs = quantize(tensor, bits, group_size)
    parity.same(ours, theirs)
    parity.same(reference.dequantize(*ours), dequantize(*theirs))


def test_speculation(parity):
    for _ in range(20):
        p, q = (parity.numbers(7)[1].softmax(-1) for _ in range(2))
        p[parity.random.integers(7)] = 0  # what a filter has cut off
        p = p / p.sum()
        for name in ("acceptance", "after_rejection"):
            twin = getattr(reference, name)(p.numpy(), q.numpy())
            parity.same(twin, getattr(speculative, name)(p, q))
    p, q = np.array([0.5, 0.5, 0.0]), np.array([1.0, 0.0, 0.0])
    assert np.array_equal(reference.after_rejection(p, p), p)
    assert reference.acceptance(p, q).tolist() == [0.5, 1, 1]


length = st.integers(1, 9)


@given(length, st.none() | length, st.integers(1, 12), st.none() | st.integers(9, 11))
def test_masks(new_parity, queries, keys, window, max_len):
    lengths = np.array([queries, 0, window % 9])
    one, two = np.tri(queries, dtype=bool), lengths[:, None, None, None] > 0
    for name, *arguments in (
        ("causal_mask", queries, keys),
        ("sliding_window_mask", queries, window, keys),
        ("length_mask", lengths, max_len),
        ("length_mask", lengths.astype("uint8"), max_len),
        ("combine_masks", one, None, two, one[:1]),
    ):
        tensors = [
            torch.tensor(x) if isinstance(x, np.ndarray) else x for x in arguments
        ]
        theirs = getattr(tformer, name)(*tensors)
        new_parity().same(getattr(reference, name)(*arguments), theirs)
    assert reference.combine_masks(None, None) is reference.combine_masks() is None

"""Functions of the twin for which no spec stands compute what torch's do."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tformer import nn, reference
from tformer.nn.linear_attention import feature_map
from tformer.nn.quantized import dequantize, quantize
from tformer.nn.router import expert_counts as counts_in_torch
from tformer.reference.experts import expert_counts

B, H, T, Dk, Dv = 2, 3, 7, 5, 11
NUMBERS = {  # the twin's name, torch's function, a shape, options
    "relu": (F.relu, (B, T), {}),
    "gelu": (F.gelu, (B, T), {}),
    "gelu_tanh": (torch.nn.GELU("tanh"), (B, T), {}),
    "relu2": (lambda x: F.relu(x) ** 2, (B, T), {}),
    "sigmoid": (torch.sigmoid, (B, T), {}),
    "silu": (F.silu, (B, T), {}),
    "feature_map": (feature_map, (B, T), {}),
    "unit_length": (nn.unit_length, (B, T), {}),
    "pairs_to_halves": (nn.pairs_to_halves, (12, 11), {"num_heads": 3}),
    "halves_to_pairs": (nn.halves_to_pairs, (12,), {"num_heads": 3}),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(parity, name):
    theirs, shape, options = NUMBERS[name]
    parity.same(getattr(reference, name), theirs, 3 * parity.numbers(*shape), **options)


@pytest.mark.parametrize("name", ["relu", "gelu", "sigmoid", "silu"])
def test_far_and_missing_numbers(name):
    numbers = [np.nan, 0.0, -1e4, 1e4]
    with np.errstate(over="raise"):
        ours = getattr(reference, name)(np.array(numbers))
    theirs = getattr(torch, name, None) or getattr(F, name)
    np.testing.assert_array_equal(ours, theirs(torch.tensor(numbers).double()).numpy())


@pytest.mark.parametrize("options", [[], ["log_decay"], ["log_decay", "state"]])
@pytest.mark.parametrize(
    ("rule", "by_channel"),
    [("linear_attention", False), ("delta_rule", False), ("delta_rule", True)],
)
def test_recurrences(parity, rule, by_channel, options):
    key = nn.unit_length(parity.numbers(B, H, T, Dk))
    inputs = [parity.numbers(B, H, T, Dk), key, parity.numbers(B, H, T, Dv)]
    if rule != "linear_attention":
        inputs.append(parity.numbers(B, H, T).sigmoid())
    state, decay = parity.numbers(B, H, Dk, Dv), -parity.numbers(B, H, T).square()
    if by_channel:
        decay = -parity.numbers(B, H, T, Dk).square()
    given = {"log_decay": decay, "state": state}
    ours, theirs = (getattr(p, f"{rule}_recurrent") for p in (reference, nn))
    parity.same(ours, theirs, *inputs, **{name: given[name] for name in options})


@pytest.mark.parametrize("name", ["linear", "ntk", "llama3", "yarn"])
def test_scaled_frequencies(exact, name):
    """One function serves both."""
    options = {"trained_len": 512} if name in ("llama3", "yarn") else {}
    ours, theirs = (
        getattr(p, f"scale_{name}")(p.rotary_frequencies(64, base=500.0), 8, **options)
        for p in (reference, nn)
    )
    exact.equal(ours, theirs, 1e-15)


@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
@pytest.mark.parametrize("k", [1, 4])
def test_load_balance_loss(parity, scores, k):
    logits = parity.numbers(B, T, 6)
    ours = parity.same(reference.route, nn.route, logits, k, scores=scores)
    chosen = torch.from_numpy(ours.chosen)
    parity.same(
        reference.load_balance_loss,
        nn.load_balance_loss,
        torch.from_numpy(ours.scores),
        chosen,
    )
    parity.same(expert_counts, counts_in_torch, chosen, 6)


def test_sigmoids_that_are_all_0():
    with np.errstate(all="raise", under="ignore"):
        weights = reference.route(np.full((1, 6), -1e4), 3, scores="sigmoid").weights
    np.testing.assert_array_equal(weights, np.zeros((1, 3)))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("group_size", [None, 3, 6])
def test_quantize(parity, bits, group_size):
    x = parity.numbers(2, 5, 12)
    x[0, 0] = 0  # a group of zeros
    with np.errstate(all="raise"):
        both = parity.same(reference.quantize, quantize, x, bits, group_size)
    parity.same(reference.dequantize, dequantize, *map(torch.from_numpy, both))


def test_a_token_is_kept_with_a_probability():
    p, q = np.array([0.5, 0.5, 0.0]), np.array([1.0, 0.0, 0.0])
    assert reference.acceptance(p, q).tolist() == [0.5, 1, 1]
    assert np.array_equal(reference.after_rejection(p, p), p)

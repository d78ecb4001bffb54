"""The oracles against torch's own functions, and against all texts that there are."""

from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from tformer.check import SPECS


def right(spec, case):
    return torch.from_numpy(spec.right(case).arrays[0])


def given(spec, case):
    return spec.inputs(case, "torch")


def cases(*names, options=frozenset({"plus_one"})):
    """The cases that torch's own function can be asked."""
    return [
        pytest.param(SPECS[name], case, id=f"{name}: {case.name}")
        for name in names
        for case in SPECS[name].cases
        if set(case.options) <= options
    ]


ATTENTIONS = cases(
    "attention", "grouped_attention", options={"is_causal", "scale", "bias"}
)


@pytest.mark.parametrize(("spec", "case"), ATTENTIONS)
def test_attention(spec, case):
    x = given(spec, case)
    T, S = x["query"].shape[2], x["key"].shape[2]
    mask = x.get("mask", torch.ones(T, S, dtype=torch.bool))
    if "is_causal" in case.options:
        mask = mask & torch.ones(T, S, dtype=torch.bool).tril(S - T)
    if "bias" in x:
        mask = torch.zeros(T, S).double().masked_fill(~mask, -torch.inf) + x["bias"]
    output = F.scaled_dot_product_attention(
        x["query"],
        x["key"],
        x["value"],
        mask,
        scale=x.get("scale"),
        enable_gqa=x["query"].shape[1] != x["key"].shape[1],
    )
    assert_close(right(spec, case), output, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize(("spec", "case"), cases("layer_norm", "rms_norm"))
def test_norms(spec, case):
    x = given(spec, case)
    shape, weight = x["weight"].shape, x["weight"]
    if spec.name == "layer_norm":
        output = F.layer_norm(x["x"], shape, weight, x["bias"], x["eps"])
    else:
        weight = weight + 1 if "plus_one" in x else weight
        output = F.rms_norm(x["x"], shape, weight, x["eps"])
    assert_close(right(spec, case), output, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize(("spec", "case"), cases("smoothed_loss"))
def test_loss(spec, case):
    x = given(spec, case)
    if case.name == "nothing but padding":
        assert right(spec, case) == 0  # torch gives NaN
        return
    logits = x["logits"].reshape(-1, x["logits"].shape[-1])
    padding = -100 if x["pad_id"] is None else x["pad_id"]
    options = {"ignore_index": padding, "label_smoothing": x["smoothing"]}
    loss = F.cross_entropy(logits, x["targets"].reshape(-1), **options)
    assert_close(right(spec, case), loss)


@pytest.mark.parametrize("name", ["module", "module with padding"])
def test_heads_equal_torchs_module(name):
    spec = SPECS["multi_head"]
    case = spec.cases[1 if name == "module" else 2]
    x = given(spec, case)
    D, H = x["x"].shape[2], x["num_heads"]
    module = torch.nn.MultiheadAttention(D, H, bias=False, batch_first=True).double()
    weights = {
        "in_proj_weight": torch.cat((x["w_q"], x["w_k"], x["w_v"])),
        "out_proj.weight": x["w_o"],
    }
    module.load_state_dict(weights)
    padding = ~x["mask"][:, 0, 0] if "mask" in x else None  # torch's True is hidden
    output, _ = module(x["x"], x["x"], x["x"], key_padding_mask=padding)
    assert_close(right(spec, case), output)


@pytest.mark.parametrize("case", SPECS["rotary"].cases[:4], ids=lambda case: case.name)
def test_a_rotation_is_a_complex_product(case):
    x, positions, base = case.args
    half = x.shape[-1] // 2
    frequency = base ** (-np.arange(half) / half)
    numbers = x[..., :half] + 1j * x[..., half:]
    rotated = numbers * np.exp(1j * positions[:, None] * frequency)
    both = np.concatenate((rotated.real, rotated.imag), -1)
    np.testing.assert_allclose(SPECS["rotary"].right(case).arrays[0], both)


def test_a_wide_beam_is_an_exhaustive_search():
    spec = SPECS["beam"]
    wide = [case for case in spec.cases if case.args[3] == 125]
    for case in wide:
        table, bos, eos, _, max_len, alpha = case.args
        best = (-np.inf, ())
        for text in product(range(5), repeat=max_len):
            ids = text[: text.index(eos) + 1] if eos in text else text
            total = sum(table([bos, *ids[:i]])[token] for i, token in enumerate(ids))
            best = max(best, (total / ((5 + len(ids)) / 6) ** alpha, ids))
        assert tuple(spec.right(case).arrays[0]) == best[1]


def test_drafts_and_rejections_make_the_models_own_distribution():
    """Over all drafts and all chances: the first token is drawn from p."""
    speculative = SPECS["speculative"].oracle
    p, q, _, _ = SPECS["speculative"].cases[0].args
    p, q = p[:2], q[:1]
    drawn = np.zeros(5)
    for token in range(5):
        chance = min(1.0, p[0, token] / q[0, token])
        drawn[token] += q[0, token] * chance
        if chance < 1:
            count, rest = speculative(p, q, np.array([token]), np.array([chance]))
            assert count == 0
            drawn += q[0, token] * (1 - chance) * rest
    np.testing.assert_allclose(drawn, p[0])

"""Linear attention by its definition; and with the delta rule, what both must do."""

import itertools
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer.nn import (
    GatedDeltaRule,
    KimiDeltaAttention,
    LinearAttention,
    delta_rule,
    delta_rule_recurrent,
    feature_map,
    kda,
    linear_attention,
    linear_attention_recurrent,
    unit_length,
)

B, H, T, DK, DV, D = 2, 3, 7, 5, 11, 6
# In chunks, the recurrence, and how many inputs each token has.
RULES = {
    "linear": (linear_attention, linear_attention_recurrent, 3),
    "delta": (delta_rule, delta_rule_recurrent, 4),
    "kda": (kda, delta_rule_recurrent, 4),
}
every_rule = pytest.mark.parametrize("rule", RULES)
LAYERS = [LinearAttention, GatedDeltaRule, partial(KimiDeltaAttention, kernel=1)]


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


def inputs(batch=B, heads=H, length=T, width=DK, value_width=DV, *, rule="delta"):
    """Query, key, value, beta, as many as the rule has; log_decay, state."""
    q, k = draw(2, batch, heads, length, width)
    beta, decay = torch.rand(2, batch, heads, length, dtype=torch.float64)
    if rule == "kda":
        decay = torch.rand_like(q)
    v = draw(batch, heads, length, value_width)
    state = draw(batch, heads, width, value_width)
    each = (q, unit_length(k), v, beta)[: RULES[rule][2]]
    return each, {"log_decay": -decay, "state": state}


def slowly(q, k, v, log_decay, state):
    """Each output as a sum over all tokens before it: no state is carried along."""
    output = torch.zeros_like(v)
    for b, h, i in itertools.product(*map(range, q.shape[:3])):
        kept = log_decay[b, h, : i + 1].exp().prod()
        output[b, h, i] = kept * (q[b, h, i] @ state[b, h])
        for j in range(i + 1):
            left = log_decay[b, h, j + 1 : i + 1].exp().prod()
            output[b, h, i] += left * (q[b, h, i] @ k[b, h, j]) * v[b, h, j]
    return output


def test_is_its_definition():
    (q, k, v), options = inputs(rule="linear")
    output, new = linear_attention_recurrent(q, k, v, **options)
    assert output.shape == (B, H, T, DV)
    assert new.shape == (B, H, DK, DV)
    assert_close(output, slowly(q, k, v, **options))
    output, _ = linear_attention_recurrent(q, k, v)
    assert_close(output, slowly(q, k, v, *(0 * x for x in options.values())))


@every_rule
@given(
    sizes=st.tuples(
        *[st.integers(1, 3)] * 2, st.integers(1, 9), *[st.integers(1, 4)] * 2
    ),
    chunk=st.integers(1, 10),
    seed=st.integers(0, 99),
)
def test_chunks_are_the_recurrence(rule, sizes, chunk, seed):
    torch.manual_seed(seed)
    in_chunks, recurrent, _ = RULES[rule]
    each, both = inputs(*sizes, rule=rule)
    for options in ({}, {"log_decay": both["log_decay"]}, both):
        ours = in_chunks(*each, **options, chunk=chunk)
        wanted = recurrent(*each, **options)
        assert_close(ours, wanted, rtol=0, atol=1e-12)


@every_rule
def test_gradients_are_those_of_the_recurrence(rule):
    *forms, _ = RULES[rule]
    each, options = inputs(rule=rule)
    tensors = [x.requires_grad_() for x in (*each, *options.values())]
    weights, gradients = draw(B, H, T, DV), []
    for attend, size in zip(forms, ({"chunk": 3}, {}), strict=True):
        output, new = attend(*each, **options, **size)
        loss = (output * weights).sum() + new.square().sum()
        gradients.append(torch.autograd.grad(loss, tensors))
    assert all(gradient.abs().max() > 0 for gradient in gradients[0])
    assert_close(*gradients, rtol=0, atol=1e-11)


@every_rule
@pytest.mark.parametrize("forgetting", [-1e4, -1e9, float("-inf")])
def test_who_forgets_all_does_not_spoil_what_comes_after(rule, forgetting):
    """A difference of two sums from the chunk's beginning would round that away."""
    in_chunks, recurrent, _ = RULES[rule]
    each, options = inputs(length=9, rule=rule)
    each = [x.float() for x in each]
    decay, state = (x.float() for x in options.values())
    decay[:, :, 2] = forgetting
    options = {"log_decay": decay.requires_grad_(), "state": state}
    wanted = recurrent(*each, **options)
    (slope,) = torch.autograd.grad(wanted[0].sum(), decay)
    for chunk in (2, 9):
        ours = in_chunks(*each, **options, chunk=chunk)
        assert_close(ours, wanted, rtol=0, atol=1e-5)
        (ours,) = torch.autograd.grad(ours[0].sum(), decay)
        assert_close(ours, slope, rtol=0, atol=1e-4)


@every_rule
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32_and_autocast_changes_nothing(rule, dtype):
    *forms, _ = RULES[rule]
    each, options = inputs(rule=rule)
    half = [x.to(dtype) for x in (*each, options["log_decay"])]
    floats = [x.float() for x in half]
    for attend in forms:
        output, state = attend(*half[:-1], log_decay=half[-1])
        assert output.dtype == dtype
        assert state.dtype == torch.float32
        wanted, state = attend(*floats[:-1], log_decay=floats[-1])
        assert torch.equal(output, wanted.to(dtype))
        with torch.autocast("cpu", torch.bfloat16):
            again = attend(*floats[:-1], log_decay=floats[-1])
        assert_close(again, (wanted, state), rtol=0, atol=0)


@every_rule
def test_shapes_are_known_without_numbers(rule):
    """On the meta device, where there is no autocast."""
    *forms, _ = RULES[rule]
    each, options = inputs(rule=rule)
    for attend in forms:
        output, state = attend(*(x.to("meta") for x in each))
        assert output.is_meta
        assert (output.shape, state.shape) == (each[2].shape, options["state"].shape)


def test_feature_map():
    """Where elu(x) is near -1, to add 1 afterwards would leave a digit or none."""
    x = torch.tensor([-1000.0, -80.0, -30.0, -16.0, -1.0, 0.0, 2.0, 200.0])
    wanted = torch.where(x < 0, x.double().exp(), x + 1).float()
    ours = feature_map(x.requires_grad_())
    assert_close(ours, wanted, rtol=1e-5, atol=0)
    (slope,) = torch.autograd.grad(ours.sum(), x)
    assert_close(slope, wanted.clamp(max=1))


class TestLayers:
    def test_is_its_formula(self, float64):
        module = LinearAttention(D, 1, chunk=3)
        x = draw(B, T, D)
        q, k = feature_map(module.q_proj(x)), feature_map(module.k_proj(x))
        weights = (q @ k.mT).tril()
        heads = weights / weights.sum(-1, keepdim=True) @ module.v_proj(x)
        assert_close(module(x), module.out_proj(heads))

    @pytest.mark.parametrize("kind", LAYERS)
    def test_cached_in_every_split(self, kind, float64):
        module, x = kind(D, H, chunk=2), draw(B, 5, D)
        rows = 3 if kind is LinearAttention else 2  # of values; one is the normaliser
        with torch.no_grad():
            whole = module(x)
            for pieces in splits(5):
                cache, size = module.new_cache(5), set()
                assert not cache.nbytes

                def call(start, end, cache=cache, size=size):
                    output = module(x[:, start:end], cache=cache)
                    size.add(cache.nbytes)
                    return output

                assert_close(in_pieces(call, pieces), whole, rtol=0, atol=1e-11)
                assert cache.length == 5
                assert size == {8 * B * H * 2 * rows}

    def test_rows_of_a_beam_go_on_from_others(self, float64):
        module, x = LinearAttention(D, H), draw(B, T, D)
        cache = module.new_cache(T)
        cache.reorder(torch.tensor([1]))  # nothing to reorder yet
        with torch.no_grad():
            module(x[:, :4], cache=cache)
            cache.reorder(torch.tensor([1, 1, 0]))
            new = draw(3, 1, D)
            ours = module(new, cache=cache)
            texts = torch.cat((x[[1, 1, 0], :4], new), dim=1)
            assert_close(ours, module(texts)[:, -1:])

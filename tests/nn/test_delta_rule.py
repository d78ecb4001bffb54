"""The gated delta rule: recurrent, in chunks, and with a cached state."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer.nn import (
    GatedDeltaRule,
    delta_rule,
    delta_rule_recurrent,
    linear_attention,
    unit_length,
)

B, H, T, DK, DV, D = 2, 3, 7, 5, 11, 6
FORMS = [delta_rule_recurrent, delta_rule]


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


def inputs(batch=B, heads=H, length=T, width=DK, value_width=DV):
    q, k = draw(2, batch, heads, length, width)
    beta, decay = torch.rand(2, batch, heads, length, dtype=torch.float64)
    v, state = (
        draw(batch, heads, length, value_width),
        draw(batch, heads, width, value_width),
    )
    return q, unit_length(k), v, beta, -decay, state


def by_the_papers_formula(q, k, v, beta, log_decay, state):
    """S ← α S (I − β k kᵀ) + β v kᵀ with S (Dv, Dk), then o = S q."""
    S, outputs = state.mT, []
    for t in range(q.shape[2]):
        key, value = k[:, :, t, :, None], v[:, :, t, :, None]
        rate = beta[:, :, t, None, None]
        kept = torch.eye(k.shape[-1]).double() - rate * key @ key.mT
        S = log_decay[:, :, t, None, None].exp() * S @ kept + rate * value @ key.mT
        outputs.append((S @ q[:, :, t, :, None]).squeeze(-1))
    return torch.stack(outputs, dim=2), S.mT


def test_is_its_formula():
    q, k, v, beta, decay, state = inputs()
    ours = delta_rule_recurrent(q, k, v, beta, log_decay=decay, state=state)
    assert ours[0].shape == (B, H, T, DV)
    assert ours[1].shape == (B, H, DK, DV)
    wanted = by_the_papers_formula(q, k, v, beta, decay, state)
    for one, other in zip(ours, wanted, strict=True):
        assert_close(one, other, rtol=0, atol=1e-13)


@given(
    sizes=st.tuples(
        *[st.integers(1, 3)] * 2, st.integers(1, 9), *[st.integers(1, 4)] * 2
    ),
    chunk=st.integers(1, 10),
    seed=st.integers(0, 99),
)
def test_chunks_are_the_recurrence(sizes, chunk, seed):
    torch.manual_seed(seed)
    q, k, v, beta, decay, state = inputs(*sizes)
    for options in ({}, {"log_decay": decay}, {"log_decay": decay, "state": state}):
        ours = delta_rule(q, k, v, beta, **options, chunk=chunk)
        wanted = delta_rule_recurrent(q, k, v, beta, **options)
        for one, other in zip(ours, wanted, strict=True):
            assert_close(one, other, rtol=0, atol=1e-12)


def test_gradients_are_those_of_the_recurrence():
    tensors = [x.requires_grad_() for x in inputs()]
    weights = draw(B, H, T, DV)
    gradients = []
    for attend, size in ((delta_rule, {"chunk": 3}), (delta_rule_recurrent, {})):
        q, k, v, beta, decay, state = tensors
        output, new = attend(q, k, v, beta, log_decay=decay, state=state, **size)
        loss = (output * weights).sum() + new.square().sum()
        gradients.append(torch.autograd.grad(loss, tensors))
    for one, other in zip(*gradients, strict=True):
        assert one.abs().max() > 0
        assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("attend", FORMS)
def test_the_last_value_of_a_key_is_what_it_answers(attend):
    """With β = 1 a key that comes again has its value replaced, and not added to."""
    keys = torch.eye(DK, dtype=torch.float64)[[0, 1, 0, 2, 1]]
    values = draw(5, DV)
    beta = torch.ones(1, 1, 5, dtype=torch.float64)
    _, state = attend(keys[None, None], keys[None, None], values[None, None], beta)
    assert_close(state[0, 0, :3], values[[2, 4, 3]])
    assert not state[0, 0, 3:].any()
    _, added = linear_attention(*(x[None, None] for x in (keys, keys, values)))
    assert_close(added[0, 0, 0], values[0] + values[2])


@pytest.mark.parametrize("attend", FORMS)
def test_orthogonal_keys_make_it_linear_attention(attend):
    keys = torch.linalg.qr(draw(9, T))[0].mT[None, None]  # (1, 1, T, 9)
    query, value = draw(1, 1, T, 9), draw(1, 1, T, DV)
    decay = -torch.rand(1, 1, T, dtype=torch.float64)
    ours, _ = attend(query, keys, value, torch.ones_like(decay), log_decay=decay)
    wanted, _ = linear_attention(query, keys, value, log_decay=decay)
    assert_close(ours, wanted)


@pytest.mark.parametrize("forgetting", [-1e4, -1e9, float("-inf")])
def test_who_forgets_all_does_not_spoil_what_comes_after(forgetting):
    q, k, v, beta, decay, state = (x.float() for x in inputs(length=9))
    k, decay[:, :, 2] = unit_length(k), forgetting
    options = {"log_decay": decay, "state": state}
    wanted = delta_rule_recurrent(q, k, v, beta, **options)
    for chunk in (2, 9):
        ours = delta_rule(q, k, v, beta, **options, chunk=chunk)
        for one, other in zip(ours, wanted, strict=True):
            assert_close(one, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(dtype):
    q, k, v, beta, decay, _ = (x.to(dtype) for x in inputs())
    for attend in FORMS:
        output, state = attend(q, k, v, beta, log_decay=decay)
        assert output.dtype == dtype
        assert state.dtype == torch.float32
        floats = (x.float() for x in (q, k, v, beta))
        wanted, _ = attend(*floats, log_decay=decay.float())
        assert torch.equal(output, wanted.to(dtype))


def test_autocast_changes_nothing():
    tensors = [x.float() for x in inputs()[:4]]
    wanted = [attend(*tensors) for attend in FORMS]
    with torch.autocast("cpu", torch.bfloat16):
        ours = [attend(*tensors) for attend in FORMS]
    for one, other in zip(ours, wanted, strict=True):
        assert torch.equal(one[0], other[0])
        assert torch.equal(one[1], other[1])


def test_unit_length():
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=torch.float64)
    assert_close(unit_length(x, eps=1e-12), torch.tensor([[0.6, 0.8], [0, 0]]).double())


class TestModule:
    def test_is_its_formula(self, float64):
        module, x = GatedDeltaRule(D, H, chunk=3), draw(B, T, D)
        heads = [
            proj(x).view(B, T, H, 2).transpose(1, 2)
            for proj in (module.q_proj, module.k_proj, module.v_proj)
        ]
        beta = module.beta_proj(x).sigmoid().mT
        step = F.softplus(module.decay_proj(x) + module.step_bias)
        decay = -(module.log_rate.exp() * step).mT
        q, k, v = unit_length(heads[0]) / math.sqrt(2), unit_length(heads[1]), heads[2]
        output, _ = delta_rule_recurrent(q, k, v, beta, log_decay=decay)
        wanted = module.out_proj(module.norm(output).transpose(1, 2).flatten(2))
        assert_close(module(x), wanted)

    def test_cached_in_every_split(self, float64):
        module, x = GatedDeltaRule(D, H, chunk=2), draw(B, 5, D)
        with torch.no_grad():
            whole = module(x)
            for pieces in splits(5):
                cache, size = module.new_cache(5), set()

                def call(start, end, cache=cache, size=size):
                    output = module(x[:, start:end], cache=cache)
                    size.add(cache.nbytes)
                    return output

                assert_close(in_pieces(call, pieces), whole, rtol=0, atol=1e-11)
                assert cache.length == 5
                assert size == {8 * B * H * 2 * 2}

    def test_a_later_token_changes_nothing_before_it(self, float64):
        module, x = GatedDeltaRule(D, H, chunk=3), draw(B, T, D)
        changed = x.clone()
        changed[:, 4] += 1
        assert torch.equal(module(x)[:, :4], module(changed)[:, :4])
        assert (module(x)[:, 4:] != module(changed)[:, 4:]).any(-1).all()

    def test_every_weight_learns(self):
        module = GatedDeltaRule(D, H)
        module(torch.randn(B, T, D)).square().sum().backward()
        for name, weight in module.named_parameters():
            assert weight.grad.abs().max() > 0, name

    def test_begins_with_little_forgetting(self):
        module = GatedDeltaRule(64, 32)
        step = F.softplus(module.step_bias)
        assert 0.001 <= step.min() < step.max() <= 0.1
        assert 1 <= module.log_rate.exp().min() < module.log_rate.exp().max() <= 16


def test_errors(raises):
    q, k, v, beta, decay, state = inputs()
    given_query = f"with query {(B, H, T, DK)}"
    for attend in FORMS:
        message = f"beta must be {(B, H, T)} {given_query}, not {(B, T, H)}"
        with raises(ValueError, message):
            attend(q, k, v, beta.mT)
        message = f"state must be {(B, H, DK, DV)} {given_query}, not {(B, H, DV, DK)}"
        with raises(ValueError, message):
            attend(q, k, v, beta, state=state.mT)
        message = f"log_decay must be {(B, H, T)} {given_query}, not {(B, H, 3)}"
        with raises(ValueError, message):
            attend(q, k, v, beta, log_decay=decay[..., :3])
    with raises(ValueError, "chunk (0) must be at least 1"):
        delta_rule(q, k, v, beta, chunk=0)
    with raises(ValueError, "d_model (6) must be divisible by num_heads (4)"):
        GatedDeltaRule(6, 4)

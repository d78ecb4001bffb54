"""Linear attention: recurrent, in chunks, in parallel, and with a cached state."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer.nn import (
    LinearAttention,
    feature_map,
    linear_attention,
    linear_attention_recurrent,
)

B, H, T, DK, DV, D = 2, 3, 7, 5, 11, 6


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


def inputs(batch=B, heads=H, length=T, width=DK, value_width=DV):
    q, k = draw(2, batch, heads, length, width)
    decay = -torch.rand(batch, heads, length, dtype=torch.float64)
    state = draw(batch, heads, width, value_width)
    return q, k, draw(batch, heads, length, value_width), decay, state


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
    q, k, v, decay, state = inputs()
    output, new = linear_attention_recurrent(q, k, v, log_decay=decay, state=state)
    assert output.shape == (B, H, T, DV)
    assert new.shape == (B, H, DK, DV)
    assert_close(output, slowly(q, k, v, decay, state))
    output, _ = linear_attention_recurrent(q, k, v)
    assert_close(output, slowly(q, k, v, 0 * decay, 0 * state))


@given(
    sizes=st.tuples(
        *[st.integers(1, 3)] * 2, st.integers(1, 9), *[st.integers(1, 4)] * 2
    ),
    chunk=st.integers(1, 10),
    seed=st.integers(0, 99),
)
def test_chunks_are_the_recurrence(sizes, chunk, seed):
    torch.manual_seed(seed)
    q, k, v, decay, state = inputs(*sizes)
    for options in ({}, {"log_decay": decay}, {"log_decay": decay, "state": state}):
        ours = linear_attention(q, k, v, **options, chunk=chunk)
        wanted = linear_attention_recurrent(q, k, v, **options)
        for one, other in zip(ours, wanted, strict=True):
            assert_close(one, other, rtol=0, atol=1e-12)


def test_gradients_are_those_of_the_recurrence():
    tensors = [x.requires_grad_() for x in inputs()]
    weights = draw(B, H, T, DV)
    gradients = []
    for attend, options in (
        (linear_attention, {"chunk": 3}),
        (linear_attention_recurrent, {}),
    ):
        q, k, v, decay, state = tensors
        output, new = attend(q, k, v, log_decay=decay, state=state, **options)
        loss = (output * weights).sum() + new.square().sum()
        gradients.append(torch.autograd.grad(loss, tensors))
    for one, other in zip(*gradients, strict=True):
        assert one.abs().max() > 0
        assert_close(one, other, rtol=0, atol=1e-11)


def test_strong_decay_does_not_overflow():
    """exp(+800) stands where the future is masked."""
    q, k, v, _, _ = inputs()
    decay = torch.full((B, H, T), -400.0, dtype=torch.float64).requires_grad_()
    output, _ = linear_attention(q, k, v, log_decay=decay, chunk=T)
    assert_close(output, (q * k).sum(-1, keepdim=True) * v)
    (gradient,) = torch.autograd.grad(output.sum(), decay)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("forgetting", [-1e4, -1e9, float("-inf")])
def test_who_forgets_all_does_not_spoil_what_comes_after(forgetting):
    """A difference of two sums from the chunk's beginning would round that away."""
    q, k, v, decay, state = (x.float() for x in inputs(length=9))
    decay[:, :, 2] = forgetting
    decay.requires_grad_()
    wanted = linear_attention_recurrent(q, k, v, log_decay=decay, state=state)
    for chunk in (2, 9):
        ours = linear_attention(q, k, v, log_decay=decay, state=state, chunk=chunk)
        for one, other in zip(ours, wanted, strict=True):
            assert_close(one, other, rtol=0, atol=1e-5)
        gradients = [
            torch.autograd.grad(y[0].sum(), decay, retain_graph=True)[0]
            for y in (ours, wanted)
        ]
        assert_close(*gradients, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(dtype):
    q, k, v, decay, _ = (x.to(dtype) for x in inputs())
    for attend in (linear_attention, linear_attention_recurrent):
        output, state = attend(q, k, v, log_decay=decay)
        assert output.dtype == dtype
        assert state.dtype == torch.float32
        wanted, _ = attend(q.float(), k.float(), v.float(), log_decay=decay.float())
        assert torch.equal(output, wanted.to(dtype))


def test_autocast_changes_nothing():
    tensors = [x.float() for x in inputs()[:3]]
    wanted = linear_attention(*tensors, chunk=3), linear_attention_recurrent(*tensors)
    with torch.autocast("cpu", torch.bfloat16):
        ours = linear_attention(*tensors, chunk=3), linear_attention_recurrent(*tensors)
    for one, other in zip(ours, wanted, strict=True):
        assert torch.equal(one[0], other[0])
        assert torch.equal(one[1], other[1])


def test_feature_map():
    x = torch.tensor([-1000.0, -1.0, 0.0, 2.0])
    assert feature_map(x).tolist() == pytest.approx([0, 0.36787944, 1, 3])


def test_a_small_feature_is_not_rounded_away():
    """elu(x) is near -1 there: to add 1 afterwards would leave a digit or none."""
    x = torch.tensor([-10.0, -16.0, -30.0, -80.0])
    assert_close(feature_map(x), x.double().exp().float(), rtol=1e-5, atol=0)


def test_the_slope_of_a_feature():
    x = torch.tensor([-1.0, 0.0, 2.0, 200.0], requires_grad=True)
    (slope,) = torch.autograd.grad(feature_map(x).sum(), x)
    assert slope.tolist() == pytest.approx([0.36787944, 1, 1, 1])


class TestModule:
    def test_weights_sum_to_one(self, float64):
        """Values that are all the same come out as they are: a weighted mean."""
        module = LinearAttention(D, H, bias=True)
        with torch.no_grad():
            module.v_proj.weight.zero_()
            module.out_proj.weight.copy_(torch.eye(D))
            module.out_proj.bias.zero_()
            module.v_proj.bias.copy_(torch.arange(D))
        assert_close(module(draw(B, T, D)), torch.arange(D).expand(B, T, D).double())

    def test_is_its_formula(self, float64):
        module = LinearAttention(D, 1, chunk=3)
        x = draw(B, T, D)
        q, k = feature_map(module.q_proj(x)), feature_map(module.k_proj(x))
        weights = (q @ k.mT).tril()
        heads = weights / weights.sum(-1, keepdim=True) @ module.v_proj(x)
        assert_close(module(x), module.out_proj(heads))

    def test_cached_in_every_split(self, float64):
        module, x = LinearAttention(D, H, chunk=2), draw(B, 5, D)
        with torch.no_grad():
            whole = module(x)
            for pieces in splits(5):
                cache, size = module.new_cache(5), set()

                def call(start, end, cache=cache, size=size):
                    output = module(x[:, start:end], cache=cache)
                    size.add(cache.nbytes)
                    return output

                assert_close(in_pieces(call, pieces), whole, rtol=0, atol=1e-12)
                assert cache.length == 5
                assert size == {8 * B * H * 2 * 3}

    def test_a_later_token_changes_nothing_before_it(self, float64):
        module, x = LinearAttention(D, H, chunk=3), draw(B, T, D)
        changed = x.clone()
        changed[:, 4] += 1
        assert torch.equal(module(x)[:, :4], module(changed)[:, :4])
        assert (module(x)[:, 4:] != module(changed)[:, 4:]).any(-1).all()

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


def test_errors(raises):
    q, k, v, decay, state = inputs()
    given_query = f"with query {(B, H, T, DK)}"
    for attend in (linear_attention, linear_attention_recurrent):
        message = f"key must be {(B, H, T, DK)} {given_query}, not {(B, H, 3, DK)}"
        with raises(ValueError, message):
            attend(q, k[:, :, :3], v)
        message = f"value must be {(B, H, T, DV)} {given_query}, not {(B, H, 3, DV)}"
        with raises(ValueError, message):
            attend(q, k, v[:, :, :3])
        message = f"log_decay must be {(B, H, T)} {given_query}, not {(B, T, H)}"
        with raises(ValueError, message):
            attend(q, k, v, log_decay=decay.mT)
        message = f"state must be {(B, H, DK, DV)} {given_query}, not {(B, H, DV, DK)}"
        with raises(ValueError, message):
            attend(q, k, v, state=state.mT)
        message = "query must be (B, H, T, Dk), and not empty, not (2, 3, 5)"
        with raises(ValueError, message):
            attend(q[:, :, 0], k, v)
    with raises(ValueError, "chunk (0) must be at least 1"):
        linear_attention(q, k, v, chunk=0)
    with raises(ValueError, "d_model (6) must be divisible by num_heads (4)"):
        LinearAttention(6, 4)
    with raises(ValueError, "max_len (0) must be at least 1"):
        LinearAttention(6, 3).new_cache(0)

"""Mamba-2: the state space by its definition, in chunks, its layer, its cache."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from pieces import check_cached
from tformer.nn import (
    Mamba2,
    linear_attention_recurrent,
    short_convolution,
    state_space,
    state_space_recurrent,
)

B, H, T, N, P, D = 2, 4, 7, 5, 11, 6


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


def inputs(batch=B, heads=H, length=T, size=N, width=P):
    """Draw x, step, rate, into, out_of; and a state."""
    into, out_of = draw(2, batch, heads, length, size)
    step = torch.rand(batch, heads, length, dtype=torch.float64)
    rate = 2 * torch.rand(heads, dtype=torch.float64)
    x = draw(batch, heads, length, width)
    return (x, step, rate, into, out_of), draw(batch, heads, size, width)


def by_matrix(x, step, rate, into, out_of, state):
    """Multiply by the matrix of the paper's section 3, of one head and one text.

    M[i, j] = Cᵢ · Bⱼ exp(−a (Δ of j + 1 to i)) Δⱼ: semiseparable, below the diagonal.
    """
    T = len(x)
    matrix = torch.zeros(T, T, dtype=x.dtype)
    y = torch.zeros_like(x)
    for i in range(T):
        for j in range(i + 1):
            left = torch.exp(-rate * step[j + 1 : i + 1].sum())
            matrix[i, j] = (out_of[i] @ into[j]) * left * step[j]
        y[i] = torch.exp(-rate * step[: i + 1].sum()) * (out_of[i] @ state)
    return matrix @ x + y


@pytest.mark.parametrize("advance", [state_space_recurrent, state_space])
def test_is_the_papers_matrix(advance):
    each, state = inputs()
    y, new = advance(*each, state=state)
    assert (y.shape, new.shape) == ((B, H, T, P), (B, H, N, P))
    for b in range(B):
        for h in range(H):
            x, step, rate, into, out_of = each
            one = x[b, h], step[b, h], rate[h], into[b, h], out_of[b, h]
            assert_close(y[b, h], by_matrix(*one, state[b, h]), rtol=0, atol=1e-12)


@given(
    sizes=st.tuples(
        *[st.integers(1, 3)] * 2, st.integers(1, 9), *[st.integers(1, 4)] * 2
    ),
    chunk=st.integers(1, 10),
    seed=st.integers(0, 99),
)
def test_chunks_are_the_recurrence(sizes, chunk, seed):
    torch.manual_seed(seed)
    each, state = inputs(*sizes)
    for first in (None, state):
        ours = state_space(*each, state=first, chunk=chunk)
        wanted = state_space_recurrent(*each, state=first)
        assert_close(ours, wanted, rtol=0, atol=1e-12)


def test_gradients_are_those_of_the_recurrence():
    each, state = inputs()
    tensors = [x.requires_grad_() for x in (*each, state)]
    weights, gradients = draw(B, H, T, P), []
    for advance in (state_space_recurrent, state_space):
        y, new = advance(*each, state=state)
        loss = (y * weights).sum() + new.square().sum()
        gradients.append(torch.autograd.grad(loss, tensors))
    assert all(gradient.abs().max() > 0 for gradient in gradients[0])
    assert_close(*gradients, rtol=0, atol=1e-10)


@pytest.mark.parametrize("advance", [state_space_recurrent, state_space])
def test_half_precision_is_summed_in_float32_and_meta_knows_the_shapes(advance):
    each, _ = inputs()
    half = [x.bfloat16() for x in each]
    y, state = advance(*half)
    assert (y.dtype, state.dtype) == (torch.bfloat16, torch.float32)
    assert_close(y.double(), advance(*(x.double() for x in half))[0], rtol=0, atol=0.1)
    y, state = advance(*(x.to("meta") for x in each))
    assert (y.shape, state.shape) == ((B, H, T, P), (B, H, N, P))


def without_step(x, step, rate, into, out_of):
    return x, -step * rate[:, None], into, out_of


def decay_twice(x, step, rate, into, out_of):
    return step[..., None] * x, -step * step * rate[:, None], into, out_of


def exchanged(x, step, rate, into, out_of):
    return step[..., None] * x, -step * rate[:, None], out_of, into


@pytest.mark.parametrize("mistake", [without_step, decay_twice, exchanged])
def test_a_mistake_differs(mistake):
    """What is written lacks Δ; Δ is in the decay twice; B and C are exchanged."""
    each, _ = inputs()
    right, _ = state_space(*each)
    value, decay, key, query = mistake(*each)
    wrong, _ = linear_attention_recurrent(query, key, value, log_decay=decay)
    assert (wrong - right).abs().max() > 0.01


def layer(**options):
    sizes = {"head_dim": 3, "state_dim": 5, "groups": 2, "kernel": 3, "eps": 0.1}
    module = Mamba2(D, H, **{**sizes, **options})
    for name in ("skip", "gain"):
        torch.nn.init.normal_(getattr(module, name))
    torch.nn.init.normal_(module.convolution.bias)
    return module


@pytest.mark.usefixtures("float64")
def test_the_layer_is_its_formula_and_every_weight_learns():
    module, x = layer(bias=True, chunk=2), draw(B, T, D)
    each = module.x_proj(x), module.b_proj(x), module.c_proj(x)
    assert [y.shape[-1] for y in each] == [12, 10, 10]
    mixed, _ = short_convolution(torch.cat(each, -1), module.convolution.weight)
    mixed = F.silu(mixed + module.convolution.bias)
    values, into, out_of = mixed.split([12, 10, 10], dim=-1)
    outputs = []
    for head in range(H):  # two of them share B and C
        own, shared = slice(3 * head, 3 * head + 3), slice(5 * (head // 2), None)
        one = values[:, None, :, own]
        y, _ = state_space_recurrent(
            one,
            F.softplus(module.step_proj(x)[..., head] + module.step_bias[head])[
                :, None
            ],
            module.log_rate[head].exp()[None],
            into[:, None, :, shared][..., :5],
            out_of[:, None, :, shared][..., :5],
        )
        outputs.append((y + module.skip[head] * one)[:, 0])
    y = torch.cat(outputs, dim=-1) * F.silu(module.gate_proj(x))
    parts = []
    for group in y.chunk(2, dim=-1):
        length = (group.square().mean(-1, keepdim=True) + 0.1).sqrt()
        parts.append(group / length)
    wanted = module.out_proj(torch.cat(parts, dim=-1) * module.gain)
    assert_close(module(x), wanted)
    module(x).square().sum().backward()
    for name, weight in module.named_parameters():
        assert weight.grad.abs().max() > 0, name


@pytest.mark.usefixtures("float64")
def test_cached_in_every_split_and_rows_change_places():
    nbytes = 8 * B * (4 * 5 * 3 + 2 * (12 + 10 + 10))
    check_cached(layer(chunk=2), draw(B, 5, D), nbytes)


def test_what_is_refused(raises):
    (x, step, rate, into, out_of), _ = inputs()
    beside = "with query (2, 4, 7, 5), not"
    with raises(ValueError, f"key must be (2, 4, 7, 5) {beside} (2, 2, 7, 5)"):
        state_space(x, step, rate, into[:, :2], out_of)
    with raises(ValueError, "chunk (0) must be at least 1"):
        state_space(x, step, rate, into, out_of, chunk=0)
    with raises(ValueError, "num_heads (4) must be divisible by groups (3)"):
        Mamba2(D, 4, head_dim=2, groups=3)
    with raises(ValueError, "d_model (6) must be divisible by num_heads (4)"):
        Mamba2(D, 4)
    with raises(ValueError, "state_dim (0) must be at least 1"):
        Mamba2(D, 3, state_dim=0)

"""Multi-head attention beyond its spec (`tformer.check`), and its bad input."""

from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import KeyValueCache, MultiHeadAttention, causal_mask, record_weights
from tformer.nn import ALiBi, RelativeBias, attend_to_segments

B, T, S, H, DH = 2, 5, 7, 3, 11
D = H * DH


@pytest.fixture
def attention(float64, randomised):
    return randomised(MultiHeadAttention(D, H))


def test_key_and_value_default(attention):
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    assert torch.equal(attention(x), attention(x, x, x))
    assert torch.equal(attention(x, memory), attention(x, memory, memory))
    mask = torch.rand(B, 1, T, T) < 0.8
    both = attention(x, attn_mask=mask, is_causal=True)
    assert_close(both, attention(x, attn_mask=mask & causal_mask(T)))


def test_keys_and_values_may_be_made_before(attention):
    """As a decoder does of what it reads: they are projected once."""
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    made = attention.project(memory, memory)
    wanted = attention(x, memory)
    for projection in (attention.k_proj, attention.v_proj):
        nn.init.zeros_(projection.weight)
    assert_close(attention(x, memory, keys_values=made), wanted)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}], ids=str)
@pytest.mark.parametrize("parts", [{}, {"relative": ALiBi}, {"relative": RelativeBias}])
@pytest.mark.usefixtures("float64")
def test_sequences_side_by_side_are_as_each_alone(randomised, parts, options):
    attention = randomised(
        MultiHeadAttention(D, H, **{n: p(H) for n, p in parts.items()})
    )
    first, second = torch.randn(1, T, D), torch.randn(1, S, D)
    row = torch.cat((first, second), dim=1)
    around = partial(attend_to_segments, segments=[T, 0, S])
    alone = [attention(x, **options) for x in (first, second)]
    assert_close(attention(row, around=around, **options), torch.cat(alone, dim=1))


@pytest.mark.parametrize("recording", [nullcontext, record_weights])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_query_without_keys_gets_the_output_bias(randomised, dtype, recording):
    attention = randomised(MultiHeadAttention(D, H)).to(dtype)
    x = torch.randn(B, T, D).to(dtype).requires_grad_()
    real = torch.tensor([[False] * T, [True] * T])
    with recording(attention):
        output = attention(x, attn_mask=real[:, None, None])
    assert torch.equal(output[0], attention.out_proj.bias.expand(T, D))
    output.float().square().sum().backward()
    assert (x.grad[0] == 0).all()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in attention.parameters())


def test_first_weights_are_glorots():
    attention = MultiHeadAttention(64, 4, num_kv_heads=2)
    for name, rows in (("q", 64), ("k", 32), ("v", 32), ("out", 64)):
        part = getattr(attention, f"{name}_proj")
        assert part.weight.shape == (rows, 64)
        bound = (6 / (rows + 64)) ** 0.5
        assert 0.97 * bound < part.weight.abs().max() <= bound
        assert part.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
        assert (part.bias == 0).all()
    before = attention.q_proj.weight.clone()
    nn.init.ones_(attention.k_proj.bias)
    attention.reset_parameters()
    assert not torch.equal(before, attention.q_proj.weight)
    assert (attention.k_proj.bias == 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"d_model": 30, "num_heads": 4},
            "d_model (30) must be divisible by num_heads (4)",
        ),
        ({"num_kv_heads": 2}, "num_heads (3) must be divisible by num_kv_heads (2)"),
        ({"num_kv_heads": 6}, "num_heads (3) must be divisible by num_kv_heads (6)"),
        ({"d_model": 0}, "d_model (0) must be at least 1"),
        ({"num_heads": 0}, "num_heads (0) must be at least 1"),
        ({"num_kv_heads": 0}, "num_kv_heads (0) must be at least 1"),
        ({"head_dim": 0}, "head_dim (0) must be at least 1"),
        ({"dropout": 1.0}, "dropout (1.0) must be in [0, 1)"),
    ],
)
def test_sizes(raises, options, message):
    with raises(ValueError, message):
        MultiHeadAttention(**{"d_model": 12, "num_heads": 3, **options})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(T, D)], f"query must be (batch, length, d_model = {D}), not (5, 33)"),
        ([(B, T, 30)], f"query must be (batch, length, d_model = {D}), not (2, 5, 30)"),
        (
            [(B, T, D), (B, S, 30)],
            f"key must be (batch, length, d_model = {D}), not (2, 7, 30)",
        ),
        (
            [(B, T, D), (B, S, D), (B, S, 1, D)],
            f"value must be (batch, length, d_model = {D}), not (2, 7, 1, 33)",
        ),
    ],
)
def test_shapes(raises, shapes, message):
    with raises(ValueError, message):
        MultiHeadAttention(D, H)(*map(torch.randn, shapes))


def test_what_does_not_go_together(raises):
    attention, x = MultiHeadAttention(D, H), torch.randn(B, T, D)
    rule = "value needs key, and a cache is for self-attention alone"
    with raises(ValueError, rule):
        attention(x, value=x)
    with raises(ValueError, rule):
        attention(x, x, cache=KeyValueCache(T))
    around = partial(attend_to_segments, segments=[4])
    message = "segments (4 tokens in all) must cover query and key, of 5 and 5"
    with raises(ValueError, message):
        attention(x, around=around)
    message = "around makes no weights that can be recorded"
    with raises(ValueError, message), record_weights(attention):
        attention(x, around=around)
    with raises(
        TypeError, "attn_mask is torch.float32: attn_mask is bool, bias floating"
    ):
        attention(x, attn_mask=torch.zeros(T, T))

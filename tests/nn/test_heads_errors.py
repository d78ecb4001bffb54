"""Bad input of multi-head attention, with the message that says what is wrong."""

from contextlib import nullcontext

import pytest
import torch

from tformer import MultiHeadAttention, record_weights

B, T, S, H, D = 2, 5, 7, 3, 33


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((30, 4), {}, "d_model (30) must be divisible by num_heads (4)"),
        (
            (12, 6),
            {"num_kv_heads": 4},
            "num_heads (6) must be divisible by num_kv_heads (4)",
        ),
        (
            (12, 3),
            {"num_kv_heads": 6},
            "num_heads (3) must be divisible by num_kv_heads (6)",
        ),
        ((0, 3), {}, "d_model (0) must be at least 1"),
        ((12, 0), {}, "num_heads (0) must be at least 1"),
        ((12, 3), {"num_kv_heads": 0}, "num_kv_heads (0) must be at least 1"),
        ((12, 3), {"dropout": 1.0}, "dropout (1.0) must be in [0, 1)"),
        ((12, 3), {"dropout": -0.1}, "dropout (-0.1) must be in [0, 1)"),
    ],
)
def test_sizes(raises, arguments, options, message):
    with raises(ValueError, message):
        MultiHeadAttention(*arguments, **options)


@pytest.mark.parametrize("recording", [nullcontext, record_weights])
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
        ([(B, 0, D)], "query is empty: its shape is (2, 3, 0, 11)"),
        ([(B, T, D), (B, 0, D)], "key is empty: its shape is (2, 3, 0, 11)"),
        (
            [(B, T, D), (1, S, D)],
            "key has batch 1 but query has 2: query is (2, 3, 5, 11), "
            "key is (1, 3, 7, 11)",
        ),
        (
            [(B, T, D), (B, S, D), (B, T, D)],
            "value and key must agree in batch, heads and length: "
            "value is (2, 3, 5, 11), key is (2, 3, 7, 11)",
        ),
    ],
)
def test_shapes(raises, shapes, message, recording):
    attention = MultiHeadAttention(D, H)
    with raises(ValueError, message), recording(attention):
        attention(*map(torch.randn, shapes))


def test_value_needs_key(raises):
    x = torch.randn(B, T, D)
    with raises(ValueError, "value is given without key"):
        MultiHeadAttention(D, H)(x, value=x)


def test_masks_are_boolean(raises):
    attention, x = MultiHeadAttention(D, H), torch.randn(B, T, D)
    message = (
        "attn_mask must be torch.bool (True = may attend), not torch.float32; "
        "what is added to the scores is `bias`"
    )
    with raises(TypeError, message):
        attention(x, attn_mask=torch.zeros(T, T))


@pytest.mark.parametrize("shape", [(B, S), (T,), (1, S), (B, T, S), (B, T, 1, S)])
def test_masks_do_not_broadcast_by_luck(raises, shape):
    """(B, S), a whole model's `key_mask`, would pass where B is T or 1."""
    attention = MultiHeadAttention(D, H)
    message = (
        "attn_mask must be (T, S) = (5, 7), or have four axes and broadcast to "
        f"(B, H, T, S) = (2, 3, 5, 7), not {shape}"
    )
    with raises(ValueError, message):
        attention(
            torch.randn(B, T, D),
            torch.randn(B, S, D),
            attn_mask=torch.ones(shape, dtype=torch.bool),
        )

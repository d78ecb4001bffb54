"""Bad input of multi-head attention, with the message that says what is wrong."""

import pytest
import torch

from tformer import MultiHeadAttention

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


@pytest.mark.parametrize("return_weights", [False, True])
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
def test_shapes(raises, shapes, message, return_weights):
    attention = MultiHeadAttention(D, H)
    with raises(ValueError, message):
        attention(*map(torch.randn, shapes), return_weights=return_weights)


def test_value_needs_key(raises):
    x = torch.randn(B, T, D)
    with raises(ValueError, "value is given without key"):
        MultiHeadAttention(D, H)(x, value=x)


@pytest.mark.parametrize("shape", [(T,), (1, S), (B, 1), (S, B)])
def test_key_mask_is_of_the_keys(raises, shape):
    attention = MultiHeadAttention(D, H)
    with raises(ValueError, f"key_mask must be (B, S) = (2, 7), not {shape}"):
        attention(
            torch.randn(B, T, D),
            torch.randn(B, S, D),
            key_mask=torch.ones(shape, dtype=torch.bool),
        )


def test_masks_are_boolean(raises):
    attention, x = MultiHeadAttention(D, H), torch.randn(B, T, D)
    rule = "must be torch.bool (True = a real token), not torch.float32"
    with raises(TypeError, f"key_mask {rule}"):
        attention(x, key_mask=torch.ones(B, T))
    message = (
        "attn_mask must be torch.bool (True = may attend), not torch.float32; "
        "what is added to the scores is `bias`"
    )
    with raises(TypeError, message):
        attention(x, attn_mask=torch.zeros(T, T))
    rule = "must be torch.bool (True = may attend), not torch.float32"
    with raises(TypeError, f"a mask {rule}"):
        attention(
            x,
            attn_mask=torch.zeros(T, T),
            key_mask=torch.ones(B, T, dtype=torch.bool),
        )


def test_masks_broadcast(raises):
    attention, x = MultiHeadAttention(D, H), torch.randn(B, T, D)
    message = "attn_mask must broadcast to (B, H, T, S) = (2, 3, 5, 5), not (2, 5, 5)"
    with raises(ValueError, message):
        attention(x, attn_mask=torch.ones(B, T, T, dtype=torch.bool))
    with raises(ValueError, "masks of shapes (5, 4) and (2, 1, 1, 5) do not broadcast"):
        attention(
            x,
            attn_mask=torch.ones(T, 4, dtype=torch.bool),
            key_mask=torch.ones(B, T, dtype=torch.bool),
        )

"""Bad input of attention, with the message that says what is wrong."""

import math

import pytest
import torch

from tformer import attention_weights, scaled_dot_product_attention

QUERY, KEY, VALUE = (2, 6, 5, 11), (2, 3, 7, 11), (2, 3, 7, 13)


def inputs():
    return [torch.randn(shape) for shape in (QUERY, KEY, VALUE)]


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 5, 11), KEY, VALUE),  # three axes
        (QUERY, (3, 7, 11), VALUE),
        (QUERY, KEY, (1, 2, 3, 7, 13)),
        ((2, 6, 0, 11), KEY, VALUE),  # nothing
        ((0, 6, 5, 11), (0, 3, 7, 11), (0, 3, 7, 13)),
        (QUERY, (2, 3, 0, 11), (2, 3, 0, 13)),
        (QUERY, KEY, (2, 3, 7, 0)),
        (QUERY, (2, 3, 7, 10), VALUE),  # another width
        (QUERY, (1, 3, 7, 11), (1, 3, 7, 13)),  # another batch
        (QUERY, KEY, (1, 3, 7, 13)),  # the value is of other keys
        (QUERY, KEY, (2, 1, 7, 13)),
        (QUERY, KEY, (2, 3, 6, 13)),
        (QUERY, (2, 4, 7, 11), (2, 4, 7, 13)),  # heads in no groups
        (QUERY, (2, 12, 7, 11), (2, 12, 7, 13)),
    ],
)
def test_shapes_fit(raises, shapes):
    rule = (
        "query (B, H, T, Dh), key (B, G, S, Dh) and value (B, G, S, Dv) must fit, "
        "G divide H, and none be empty: "
    )
    with raises(ValueError, rule + ", ".join(map(str, shapes))):
        scaled_dot_product_attention(*map(torch.randn, shapes))


@pytest.mark.parametrize("name", ["attn_mask", "bias"])
@pytest.mark.parametrize(
    "shape",
    [
        (),
        (7,),
        (4, 7),
        (5, 6),
        (5, 1),
        (1, 7),
        (2, 7),  # (B, S), a whole model's key_mask
        (0, 7),
        (6, 5, 7),
        (1, 2, 1, 1),
        (2, 6, 5, 0),
        (1, 1, 6, 5, 7),
    ],
)
def test_masks_and_biases_do_not_broadcast_by_luck(raises, name, shape):
    added = torch.ones(shape)
    options = {name: added.bool() if name == "attn_mask" else added}
    rule = "must be (T, S), or broadcast with four axes to (2, 6, 5, 7)"
    with raises(ValueError, f"{name} {shape} {rule}"):
        scaled_dot_product_attention(*inputs(), **options)


@pytest.mark.parametrize("name", ["attn_mask", "bias"])
def test_a_mask_is_boolean_and_a_bias_floating(raises, name):
    other = torch.float32 if name == "attn_mask" else torch.bool
    for dtype in (other, torch.uint8):
        given = {name: torch.ones(5, 7, dtype=dtype)}
        with raises(TypeError, f"{name} is {dtype}: attn_mask is bool, bias floating"):
            scaled_dot_product_attention(*inputs(), **given)


@pytest.mark.parametrize(
    ("changed", "dtype"),
    [
        ([0], torch.float64),
        ([1], torch.bfloat16),
        ([2], torch.int64),
        ([0, 1, 2], torch.int64),
    ],
)
def test_inputs_have_one_floating_dtype(raises, changed, dtype):
    given = [x.to(dtype) if i in changed else x for i, x in enumerate(inputs())]
    names = ", ".join(str(x.dtype) for x in given)
    rule = "query, key, value must have one floating dtype"
    with raises(TypeError, f"{rule}: {names}"):
        scaled_dot_product_attention(*given)


def test_weights_ask_the_same(raises):
    query, key, _ = inputs()
    with pytest.raises(
        ValueError, match=r"must fit, .*: \(2, 6, 5, 11\), \(2, 4, 7, 11\)"
    ):
        attention_weights(query, torch.randn(2, 4, 7, 11))
    with raises(ValueError, "softcap (0) must be above 0 and finite"):
        attention_weights(query, key, softcap=0)


@pytest.mark.parametrize("number", [0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("name", ["window", "scale", "softcap"])
def test_numbers_are_above_zero_and_finite(raises, name, number):
    with raises(ValueError, f"{name} ({number}) must be above 0 and finite"):
        scaled_dot_product_attention(*inputs(), is_causal=True, **{name: number})


def test_a_window_is_of_the_past(raises):
    with raises(ValueError, "window (3) is of the past: it needs is_causal"):
        scaled_dot_product_attention(*inputs(), window=3)


@pytest.mark.parametrize("dropout_p", [-0.1, 1.0, math.nan])
def test_dropout_is_a_probability(raises, dropout_p):
    with raises(ValueError, f"dropout_p ({dropout_p}) must be in [0, 1)"):
        scaled_dot_product_attention(*inputs(), dropout_p=dropout_p)


@pytest.mark.parametrize("shape", [(1,), (6, 1), (2, 6)])
def test_sinks_are_one_for_each_head(shape):
    with pytest.raises(ValueError, match=r"sinks .* must be \(H,\) = \(6,\)"):
        scaled_dot_product_attention(*inputs(), sinks=torch.zeros(shape))

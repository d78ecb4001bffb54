"""Bad input of attention, with the message that says what is wrong."""

import math

import pytest
import torch

from attention_inputs import CODE_PATHS

QUERY, KEY, VALUE = (2, 6, 5, 11), (2, 3, 7, 11), (2, 3, 7, 13)
BOTH = "query is (2, 6, 5, 11), key is "
RULE = (
    "must be (T, S) = (5, 7), or have four axes and broadcast to "
    "(B, H, T, S) = (2, 6, 5, 7)"
)

pytestmark = CODE_PATHS


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            ((2, 5, 11), KEY, VALUE),
            "query must be (batch, heads, length, width), not (2, 5, 11)",
        ),
        (
            (QUERY, (3, 7, 11), VALUE),
            "key must be (batch, heads, length, width), not (3, 7, 11)",
        ),
        (
            (QUERY, KEY, (1, 2, 3, 7, 13)),
            "value must be (batch, heads, length, width), not (1, 2, 3, 7, 13)",
        ),
        (((2, 6, 0, 11), KEY, VALUE), "query is empty: its shape is (2, 6, 0, 11)"),
        ((QUERY, (2, 3, 0, 11), VALUE), "key is empty: its shape is (2, 3, 0, 11)"),
        ((QUERY, KEY, (2, 3, 7, 0)), "value is empty: its shape is (2, 3, 7, 0)"),
        (
            (QUERY, (2, 3, 7, 10), VALUE),
            f"key has head_dim 10 but query has 11: {BOTH}(2, 3, 7, 10)",
        ),
        (
            (QUERY, (1, 3, 7, 11), VALUE),
            f"key has batch 1 but query has 2: {BOTH}(1, 3, 7, 11)",
        ),
        *(
            (
                (QUERY, KEY, shape),
                "value and key must agree in batch, heads and length: "
                f"value is {shape}, key is (2, 3, 7, 11)",
            )
            for shape in [(1, 3, 7, 13), (2, 1, 7, 13), (2, 3, 6, 13)]
        ),
        (
            (QUERY, (2, 4, 7, 11), (2, 4, 7, 13)),
            f"query has 6 heads, which is not a multiple of key's 4: {BOTH}"
            "(2, 4, 7, 11)",
        ),
        (
            (QUERY, (2, 12, 7, 11), (2, 12, 7, 13)),
            f"query has 6 heads, which is not a multiple of key's 12: {BOTH}"
            "(2, 12, 7, 11)",
        ),
    ],
)
def test_shapes_match(raises, shapes, message, attend):
    with raises(ValueError, message):
        attend(*map(torch.randn, shapes))


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
        (2, 5, 7),
        (6, 5, 7),
        (2, 6, 5),
        (1, 1, 1),
        (1, 2, 1, 1),
        (2, 6, 5, 0),
        (1, 1, 6, 5, 7),
    ],
)
def test_masks_and_biases_do_not_broadcast_by_luck(raises, name, shape, attend):
    added = torch.ones(shape)
    options = {name: added.bool() if name == "attn_mask" else added}
    with raises(ValueError, f"{name} {RULE}, not {shape}"):
        attend(*map(torch.randn, (QUERY, KEY, VALUE)), **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_is_boolean(raises, dtype, attend):
    message = (
        f"attn_mask must be torch.bool (True = may attend), not {dtype}; "
        "what is added to the scores is `bias`"
    )
    with raises(TypeError, message):
        attend(*map(torch.randn, (QUERY, KEY, VALUE)), torch.ones(5, 7, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_a_bias_is_floating(raises, dtype, attend):
    message = f"bias must be floating, not {dtype}; a mask is `attn_mask`"
    with raises(TypeError, message):
        attend(
            *map(torch.randn, (QUERY, KEY, VALUE)), bias=torch.ones(5, 7, dtype=dtype)
        )


@pytest.mark.parametrize("at", [0, 1, 2])
def test_inputs_are_floating(raises, at, attend):
    inputs = list(map(torch.randn, (QUERY, KEY, VALUE)))
    inputs[at] = inputs[at].long()
    name = ("query", "key", "value")[at]
    with raises(TypeError, f"{name} must be floating, not torch.int64"):
        attend(*inputs)


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        (torch.float32, torch.float64),
        (torch.float16, torch.float32),
        (torch.float32, torch.bfloat16),
        (torch.float16, torch.bfloat16),
    ],
)
def test_inputs_have_one_dtype(raises, at, dtype, other, attend):
    inputs = [torch.randn(shape).to(dtype) for shape in (QUERY, KEY, VALUE)]
    inputs[at] = inputs[at].to(other)
    names = ("query", "key", "value")
    message = f"{names[at]} is {other} but {names[at - 1]} is {dtype}"
    with raises(TypeError, message):
        attend(*inputs)


@pytest.mark.parametrize("softcap", [0, -1.0, math.inf, math.nan])
def test_softcap_is_above_zero(raises, softcap, attend):
    with raises(ValueError, f"softcap ({softcap}) must be above 0 and finite"):
        attend(*map(torch.randn, (QUERY, KEY, VALUE)), softcap=softcap)


@pytest.mark.parametrize("scale", [math.inf, -math.inf, math.nan])
def test_scale_is_finite(raises, scale, attend):
    with raises(ValueError, f"scale ({scale}) must be finite"):
        attend(*map(torch.randn, (QUERY, KEY, VALUE)), scale=scale)


@pytest.mark.parametrize("dropout_p", [-0.1, 1.0, math.nan])
def test_dropout_is_a_probability(raises, dropout_p, attend):
    with raises(ValueError, f"dropout_p ({dropout_p}) must be in [0, 1)"):
        attend(*map(torch.randn, (QUERY, KEY, VALUE)), dropout_p=dropout_p)

"""Attention at its limits: nothing to attend to, large scores, half precision."""

import math

import pytest
import torch
from torch.testing import assert_close

from attention_inputs import CODE_PATHS, DTYPES, B, H, T, draw
from tformer import attention_weights, scaled_dot_product_attention


@CODE_PATHS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dropout_p", [0.0, 0.3])
@pytest.mark.parametrize("groups", [1, H])
@pytest.mark.parametrize("why", ["a row", "a batch", "causal", "bias"])
def test_a_query_without_keys_gets_zeros(why, groups, dropout_p, dtype, attend):
    query = draw(dtype=dtype).requires_grad_()
    key = draw(groups, 3, dtype=dtype).requires_grad_()
    value = draw(groups, 3, dtype=dtype).requires_grad_()
    allowed = torch.ones(B, 1, T, 3, dtype=torch.bool)
    options = {}
    if why == "causal":  # of five queries the first two are before the first of 3 keys
        options["is_causal"] = True
        allowed[:, :, :2] = False
    elif why == "a row":
        allowed[1, :, 2] = False
        options["attn_mask"] = allowed
    elif why == "a batch":
        allowed[1] = False
        options["attn_mask"] = allowed[:, :, :1]
    else:
        allowed[0, :, 4] = False
        options["bias"] = torch.zeros(B, 1, T, 3).masked_fill(~allowed, -math.inf)
    output = attend(query, key, value, dropout_p=dropout_p, **options)
    weights = attention_weights(query, key, **options)
    dead = ~allowed.any(dim=-1).expand(B, H, T)
    assert dead.any()
    assert (output[dead] == 0).all()
    if dropout_p == 0:
        assert (output[~dead] != 0).all()
    assert (weights[dead] == 0).all()
    sums = weights[~dead].sum(dim=-1).float()
    assert_close(sums, torch.ones_like(sums), atol=1e-2, rtol=0)
    (output.float().square().sum() + weights.float().square().sum()).backward()
    for x in (query, key, value):
        assert x.grad.isfinite().all()
    assert (query.grad[dead] == 0).all()


@pytest.mark.parametrize("rows", [None, 1, 70])
def test_bfloat16_without_gradients_is_as_with_them(rows):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 3, 2, 70, 8).bfloat16()
    mask = None if rows is None else torch.rand(3, 1, rows, 70) < 0.6
    if mask is not None:
        mask[1] = False
    with torch.no_grad():
        without = scaled_dot_product_attention(query, key, value, mask)
    leaf = query.requires_grad_()
    with_gradients = scaled_dot_product_attention(leaf, key, value, mask)
    torch.testing.assert_close(without, with_gradients, atol=0.02, rtol=0.02)
    assert mask is None or not without[1].any()

"""Attention under `torch.func`: mapped over a further axis, and its slopes."""

import pytest
import torch
from torch.func import grad, vmap
from torch.testing import assert_close

from tformer.nn import attention, scaled_dot_product_attention


@pytest.mark.parametrize("at_a_time", [256, 4], ids=["all queries", "in blocks"])
@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"softcap": 2.0}], ids=str
)
@pytest.mark.parametrize("masked", ["no mask", "one mask", "a mask for each"])
def test_vmap_over_attention(masked, options, at_a_time, monkeypatch):
    monkeypatch.setattr(attention, "QUERIES_AT_A_TIME", at_a_time)
    query, key, value = torch.randn(3, 5, 2, 4, 6, 4)
    key, value = key[:, :, ::2], value[:, :, ::2]  # in groups
    masks = torch.rand(5, 6, 6) < 0.7
    mask = {"no mask": None, "one mask": masks[0], "a mask for each": masks}[masked]
    over = (0, 0, 0, 0 if masked == "a mask for each" else None)

    def attend(query, key, value, mask):
        return scaled_dot_product_attention(query, key, value, mask, **options)

    each = [
        (query[i], key[i], value[i], mask if over[3] is None else mask[i])
        for i in range(5)
    ]
    expected = torch.stack([attend(*one) for one in each])
    assert_close(vmap(attend, over)(query, key, value, mask), expected)
    slope = grad(lambda *one: attend(*one).square().sum())
    expected = torch.stack([slope(*one) for one in each])
    assert_close(vmap(slope, over)(query, key, value, mask), expected)


@pytest.mark.parametrize("of", range(5), ids=["query", "key", "value", "bias", "sinks"])
def test_grad_of_one_input_of_a_long_sequence(of):
    T, names = 300, ["query", "key", "value", "bias", "sinks"]
    given = [*torch.randn(3, 1, 2, T, 4), torch.randn(T, T), torch.randn(2)]

    def total(*inputs):
        options = dict(zip(names, inputs, strict=True), is_causal=True)
        return scaled_dot_product_attention(**options).square().sum()

    leaf = given[of].clone().requires_grad_()
    total(*given[:of], leaf, *given[of + 1 :]).backward()
    assert_close(grad(total, argnums=of)(*given), leaf.grad)

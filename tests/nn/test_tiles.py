"""Attention in tiles is attention: outputs, gradients, dead rows, memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer import scaled_dot_product_attention
from tformer.nn import tiled_attention

B, H, G, T, S, DH, DV = 2, 6, 3, 5, 7, 11, 13


def draw(heads=H, length=T, width=DH, batch=B):
    return torch.randn(batch, heads, length, width, dtype=torch.float64)


def differentiated(attend, tensors, *mask, **options):
    """The output, and the gradients for a loss that weighs every number of it."""
    inputs = [x.detach().requires_grad_() for x in tensors]
    bias = options.get("bias")
    if bias is not None:
        options["bias"] = bias.detach().requires_grad_()
        inputs.append(options["bias"])
    output = attend(*inputs[:3], *mask, **options)
    weights = torch.cos(torch.arange(output.numel(), dtype=torch.float64))
    loss = (output * weights.view(output.shape)).sum()
    return output, *torch.autograd.grad(loss, inputs)


def compare(tensors, *mask, query_tile=64, key_tile=64, atol=1e-12, **options):
    size = {"query_tile": query_tile, "key_tile": key_tile}
    ours = differentiated(tiled_attention, tensors, *mask, **options, **size)
    wanted = differentiated(scaled_dot_product_attention, tensors, *mask, **options)
    for one, other in zip(ours, wanted, strict=True):
        assert_close(one, other, rtol=0, atol=atol)
    return ours


@settings(max_examples=150)
@given(
    sizes=st.tuples(*[st.integers(1, 9)] * 2, *[st.integers(1, 3)] * 4),
    groups=st.integers(1, 3),
    tile=st.tuples(st.integers(1, 10), st.integers(1, 10)),
    share=st.sampled_from([None, 0.0, 0.3, 0.9]),
    whole_axes=st.none() | st.tuples(*[st.booleans()] * 4),
    with_bias=st.booleans(),
    is_causal=st.booleans(),
    softcap=st.sampled_from([None, 0.7]),
    scale=st.sampled_from([None, 1.3, 0.4]),
    seed=st.integers(0, 999),
)
def test_is_attention(
    sizes, groups, tile, share, whole_axes, with_bias, is_causal, softcap, scale, seed
):
    torch.manual_seed(seed)
    queries, keys, batch, kv_heads, width, value_width = sizes
    heads = kv_heads * groups
    tensors = (
        draw(heads, queries, width, batch=batch),
        draw(kv_heads, keys, width, batch=batch),
        draw(kv_heads, keys, value_width, batch=batch),
    )
    shape = queries, keys
    if whole_axes:
        full = batch, heads, queries, keys
        shape = [n if whole else 1 for n, whole in zip(full, whole_axes, strict=True)]
    mask = None if share is None else torch.rand(shape) < share
    options = {"is_causal": is_causal, "softcap": softcap, "scale": scale}
    if with_bias:
        options["bias"] = torch.randn(shape, dtype=torch.float64)
    compare(tensors, mask, query_tile=tile[0], key_tile=tile[1], **options)


@pytest.mark.parametrize("offset", [0.0, -50.0, -5000.0, 5000.0])
def test_a_first_tile_that_is_hidden_leaves_no_maximum(offset):
    """Far below 0 a maximum of 0 that was left behind would round all to 0."""
    tensors = draw(), draw(G, S), draw(G, S, DV)
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[:, :3] = False
    bias = torch.full((T, S), offset, dtype=torch.float64)
    size = {"query_tile": 2, "key_tile": 3}
    output, *_ = compare(tensors, mask, bias=bias, atol=1e-10, **size)
    assert output.abs().amax(-1).min() > 1e-3


def kept_for_backward(attend, *inputs, **options):
    """How many numbers autograd keeps, beside those of the inputs."""
    kept = {}
    owners = {x.untyped_storage().data_ptr() for x in inputs}

    def note(x):
        if x.untyped_storage().data_ptr() not in owners:
            kept[x.untyped_storage().data_ptr()] = x.numel()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        attend(*inputs, **options)
    return sum(kept.values())


@pytest.mark.parametrize("length", [1, 2, 3])
def test_masks_and_biases_of_few_rows_and_columns_are_cut(length):
    tensors = [draw(2, length) for _ in range(3)]
    mask = torch.ones(length, length, dtype=torch.bool).triu()
    bias = torch.randn(length, length, dtype=torch.float64)
    compare(tensors, mask, bias=bias, query_tile=1, key_tile=1)


def test_no_weights_are_kept():
    inputs = [draw(2, 50, 4, batch=1).requires_grad_() for _ in range(3)]
    tiled = kept_for_backward(tiled_attention, *inputs)
    assert tiled == 2 * 50 * (4 + 1)  # the output, and a number for each query
    by_formula = kept_for_backward(scaled_dot_product_attention, *inputs, softcap=9.0)
    assert by_formula > 2 * 50 * 50


def test_autocast_changes_nothing():
    tensors = [x.float() for x in (draw(), draw(G, S), draw(G, S, DV))]
    wanted = differentiated(tiled_attention, tensors, key_tile=3)
    with torch.autocast("cpu", torch.bfloat16):
        ours = differentiated(tiled_attention, tensors, key_tile=3)
    for one, other in zip(ours, wanted, strict=True):
        assert torch.equal(one, other)

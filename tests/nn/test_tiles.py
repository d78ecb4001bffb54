"""Attention in tiles is attention: outputs, gradients, dead rows, memory."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from attention_inputs import DV, B, G, H, S, T, draw
from tformer import scaled_dot_product_attention
from tformer.nn import (
    Tiling,
    tiled_attention,
    tiled_backward,
    tiled_forward,
    tiles,
)

BIAS_AND_MASK = [(1, 1, 1, 1), (1, 1, T, S), (1, H, 1, S), (B, 1, 1, S), (B, H, T, S)]


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
    with_bias=st.booleans(),
    is_causal=st.booleans(),
    softcap=st.sampled_from([None, 0.7]),
    scale=st.sampled_from([None, 1.3, 0.4]),
    seed=st.integers(0, 999),
)
def test_is_attention(
    sizes, groups, tile, share, with_bias, is_causal, softcap, scale, seed
):
    torch.manual_seed(seed)
    queries, keys, batch, kv_heads, width, value_width = sizes
    tensors = (
        draw(kv_heads * groups, queries, width, batch=batch),
        draw(kv_heads, keys, width, batch=batch),
        draw(kv_heads, keys, value_width, batch=batch),
    )
    mask = None if share is None else torch.rand(batch, 1, queries, keys) < share
    options = {"is_causal": is_causal, "softcap": softcap, "scale": scale}
    if with_bias:
        options["bias"] = torch.randn(queries, keys, dtype=torch.float64)
    compare(tensors, mask, query_tile=tile[0], key_tile=tile[1], **options)


@pytest.mark.parametrize("shape", [(T, S), *BIAS_AND_MASK], ids=str)
@pytest.mark.parametrize("tile", [(1, 1), (2, 3), (3, 2), (5, 7)])
def test_every_shape_of_mask_and_bias(shape, tile):
    tensors = draw(), draw(G, S), draw(G, S, DV)
    bias = torch.randn(shape, dtype=torch.float64)
    for mask in (None, torch.rand(shape) < 0.6):
        compare(tensors, mask, bias=bias, query_tile=tile[0], key_tile=tile[1])


class TestDeadRows:
    """Queries that may attend to nothing, in all tiles or only in the first."""

    @pytest.mark.parametrize("key_tile", [1, 2, 3, 7, 64])
    @pytest.mark.parametrize("softcap", [None, 0.5])
    def test_give_zeros(self, key_tile, softcap):
        tensors = draw(), draw(G, S), draw(G, S, DV)
        mask = torch.rand(B, H, T, S) < 0.5
        mask[:, :, 2] = False
        with torch.autograd.detect_anomaly():
            output, d_query, *others = compare(
                tensors, mask, softcap=softcap, query_tile=2, key_tile=key_tile
            )
        assert torch.equal(output[:, :, 2], torch.zeros(B, H, DV).double())
        assert torch.equal(d_query[:, :, 2], torch.zeros_like(d_query[:, :, 2]))
        assert all(x.isfinite().all() for x in (d_query, *others))

    @pytest.mark.parametrize("offset", [0.0, -50.0, -5000.0, 5000.0])
    def test_a_first_tile_that_is_hidden_leaves_no_maximum(self, offset):
        """Far below 0 a maximum of 0 that was left behind would round all to 0."""
        tensors = draw(), draw(G, S), draw(G, S, DV)
        mask = torch.ones(T, S, dtype=torch.bool)
        mask[:, :3] = False
        bias = torch.full((T, S), offset, dtype=torch.float64)
        size = {"query_tile": 2, "key_tile": 3}
        output, *_ = compare(tensors, mask, bias=bias, atol=1e-10, **size)
        assert output.abs().amax(-1).min() > 1e-3

    def test_logsumexp_says_so(self):
        mask = torch.ones(1, 1, 1, T, S, dtype=torch.bool)
        mask[..., 1, :] = False
        query, key, value = draw(2), draw(2, S), draw(2, S, DV)
        how = Tiling(mask, None, False, 0.3, None, 2, 3)
        inputs = query[:, :, None], key[:, :, None], value[:, :, None]
        _, logsumexp = tiled_forward(*inputs, how)
        scores = (0.3 * query @ key.mT).masked_fill(~mask[0, 0], -math.inf)
        assert_close(logsumexp[:, :, 0, :, 0], scores.logsumexp(-1))
        assert (logsumexp[..., 1, 0] == -math.inf).all()


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


def test_errors(raises):
    inputs = draw(), draw(G, S), draw(G, S, DV)
    for name in ("query_tile", "key_tile"):
        with raises(ValueError, f"{name} (0) must be at least 1"):
            tiled_attention(*inputs, **{name: 0})
    with raises(ValueError, "softcap (0.0) must be above 0 and finite"):
        tiled_attention(*inputs, softcap=0.0)
    with raises(TypeError, "bias is torch.bool: attn_mask is bool, bias floating"):
        tiled_attention(*inputs, bias=torch.ones(T, S, dtype=torch.bool))


class Slow(torch.Tensor):
    """A tensor in slow memory: counts the numbers read and written by slices."""

    moved = 0

    def __getitem__(self, place):
        part = self.as_subclass(torch.Tensor)[place]
        Slow.moved += part.numel()
        return part

    def __setitem__(self, place, part):
        memory = self.as_subclass(torch.Tensor)
        Slow.moved += memory[place].numel()
        memory[place] = part


def moved(run):
    Slow.moved = 0
    result = run()
    return Slow.moved, result


@given(st.tuples(*[st.integers(1, 20)] * 2, *[st.integers(1, 9)] * 4), st.booleans())
def test_memory_traffic(sizes, is_causal):
    """Keys are read once for each tile of queries, and not once for each head."""
    queries, keys, width, value_width, query_tile, key_tile = sizes
    both = width + value_width
    q, k, v = (
        torch.randn(2, 3, repeat, length, size).as_subclass(Slow)
        for repeat, length, size in (
            (2, queries, width),
            (1, keys, width),
            (1, keys, value_width),
        )
    )
    how = Tiling(None, None, is_causal, 1.0, None, query_tile, key_tile)
    pairs = [
        (len(range(queries)[rows]), len(range(keys)[columns]))
        for rows in tiles(queries, query_tile)
        for columns in tiles(keys, key_tile)
        if not (is_causal and columns.start > rows.stop - 1 + keys - queries)
    ]
    seen_keys = sum(columns for _, columns in pairs)
    seen_queries = 2 * sum(rows for rows, _ in pairs)
    forward, (output, logsumexp) = moved(lambda: tiled_forward(q, k, v, how))
    assert forward == 6 * (2 * queries * (both + 1) + seen_keys * both)

    grad = torch.randn(output.shape).as_subclass(Slow)
    backward, _ = moved(lambda: tiled_backward(grad, q, k, v, output, logsumexp, how))
    once = 2 * queries * (2 * value_width + 1) + 2 * keys * both
    inner = width + value_width + 1 + 1 + 2 * width  # q, g, logsumexp, D, d_query twice
    assert backward == 6 * (once + seen_queries * inner)

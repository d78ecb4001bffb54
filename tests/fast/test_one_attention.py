"""One attention in every form: naive, fused, in tiles, in NumPy, cached, packed."""

from functools import partial
from itertools import pairwise
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer import KeyValueCache, MultiHeadAttention, reference, tiled_attention
from tformer.fast import attention as fused
from tformer.fast.packing import Packing
from tformer.nn.attention import (
    attention_weights,
    mix_values,
    scaled_dot_product_attention,
)

TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 0.03}


def naive(query, key, value, attn_mask=None, *, dropout_p=0.0, **options):
    weights = attention_weights(query, key, attn_mask, **options)
    return mix_values(weights, value, dropout_p).to(query.dtype)


def in_tiles(size, *inputs, dropout_p=0.0, **options):
    return tiled_attention(*inputs, query_tile=size, key_tile=size + 1, **options)


def in_numpy(block, query, key, value, attn_mask=None, *, dropout_p=0.0, **options):
    wide = torch.promote_types(query.dtype, torch.float32)
    arrays = [x.detach().to(wide).numpy() for x in (query, key, value)]
    mask = None if attn_mask is None else attn_mask.numpy()
    options["queries_at_a_time"] = block
    output = reference.attention_in_blocks(*arrays, mask, **options)
    return torch.from_numpy(output).to(query.dtype)


def cached(attention, x, mask, cuts):
    """Attend with a cache, to the pieces of x one after the other."""
    cache, outputs = KeyValueCache(x.shape[1]), []
    with torch.no_grad():
        for begin, end in pairwise(cuts):
            rows = None if mask is None else mask[..., begin:end, :end]
            part = x[:, begin:end]
            outputs.append(attention(part, attn_mask=rows, is_causal=True, cache=cache))
    return torch.cat(outputs, dim=1)


def packed(attention, x, real):
    packing = Packing(real)
    return packing.unpack(packing.attend(attention, packing.pack(x)))


@st.composite
def attentions(draw):
    """A module, its input, and how it is cut: shapes, seeds, dtypes, blocks."""
    G, times, B = (draw(st.integers(1, 3)) for _ in range(3))
    T, D = draw(st.integers(1, 12)), 4 * G * times
    dtype = draw(st.sampled_from(list(TOLERANCE)))
    torch.manual_seed(draw(st.integers(0, 2**31)))
    attention = MultiHeadAttention(D, G * times, num_kv_heads=G).to(dtype)
    x, block = torch.randn(B, T, D).to(dtype), draw(st.integers(1, 5))
    cuts = [0, *sorted(draw(st.sets(st.integers(1, T), max_size=T)) | {T})]
    return attention, x, block, cuts


def forms(attention, block, x, *mask, **options):
    """Compute by each function of attention, in blocks so small that there are many."""
    functions = {
        "kernel": scaled_dot_product_attention,
        "fused": fused.fused_attention,
        "in tiles": partial(in_tiles, block),
        "in NumPy": partial(in_numpy, block),
        "naive": naive,
    }
    outputs = {}
    for name, attend in functions.items():
        attention.attend = attend
        with patch.object(fused, "QUERIES_AT_A_TIME", block):
            outputs[name] = attention(x, None, None, *mask, **options)
    del attention.attend
    return outputs


def check(outputs, where, dtype):
    expected = outputs.pop("naive")[where]
    assert expected.abs().max() > 0
    for name, output in outputs.items():
        tolerance = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
        assert_close(output[where], expected, **tolerance, msg=lambda m, n=name: n + m)


@settings(max_examples=60)
@given(attentions(), st.sampled_from(["none", "rows", "heads"]))
def test_causal_attention_in_every_form(inputs, masked):
    attention, x, block, cuts = inputs
    (B, T), H = x.shape[:2], attention.num_heads
    shape = {"rows": (B, 1, T, T), "heads": (1, H, T, T), "none": None}[masked]
    mask = None if shape is None else torch.rand(shape) < 0.7
    if mask is not None:
        mask[..., -1, 0] = True  # of the others some may attend to nothing
    outputs = forms(attention, block, x, mask, is_causal=True)
    outputs["cached"] = cached(attention, x, mask, cuts)
    check(outputs, slice(None), x.dtype)


@settings(max_examples=60)
@given(attentions(), st.data())
def test_attention_with_padding_in_every_form(inputs, data):
    attention, x, block, _ = inputs
    B, T = x.shape[:2]
    row = st.lists(st.booleans(), min_size=T, max_size=T)
    real = torch.tensor(data.draw(st.lists(row, min_size=B, max_size=B)))
    real[0, 0] = True
    outputs = forms(attention, block, x, real[:, None, None])
    outputs["packed"] = packed(attention, x, real)
    check(outputs, real, x.dtype)


@pytest.mark.parametrize("masked", [False, True])
def test_compiled_attention_is_the_naive_one(masked):
    """By the compiler itself, which takes long: in one shape, then in any."""
    torch.compiler.reset()
    attention = MultiHeadAttention(24, 6, num_kv_heads=2)
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    for B, T in ((2, 5), (3, 7)):
        x = torch.randn(B, T, 24)
        mask = torch.rand(B, 1, T, T) < 0.7 if masked else None
        attention.attend = naive
        expected = attention(x, None, None, mask, is_causal=True)
        del attention.attend
        assert_close(compiled(x, None, None, mask, is_causal=True), expected)

"""Each fast code path equals its formula, and is no less exact than torch's kernel."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer.fast.attention import fused_attention
from tformer.fast.linear import linear
from tformer.nn.attention import (
    attention_weights,
    mix_values,
    scaled_dot_product_attention,
)

TOLERANCE = {
    torch.float64: {"atol": 1e-10, "rtol": 1e-10},
    torch.float32: {"atol": 2e-5, "rtol": 2e-5},
    torch.bfloat16: {"atol": 0.03, "rtol": 0.03},
    torch.float16: {"atol": 4e-3, "rtol": 4e-3},
}


def formula(query, key, value, attn_mask=None, dropout_p=0.0, **options):
    weights = attention_weights(query, key, attn_mask, **options)
    return mix_values(weights, value, dropout_p).to(query.dtype)


@st.composite
def attentions(draw):
    """Inputs of attention: shapes, masks, biases, flags, scales and dtypes."""
    G, times = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    B, H, T, S = draw(st.integers(1, 3)), G * times, *draw(lengths)
    Dh, Dv = draw(st.sampled_from([(8, 8), (5, 11), (11, 5)]))
    dtype = draw(st.sampled_from(list(TOLERANCE)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def normal(*shape):
        x = torch.randn(shape, dtype=torch.float64, generator=generator)
        return x.to(dtype)

    def mask(shape):
        return torch.rand(shape, generator=generator) < 0.6

    four = st.tuples(*(st.sampled_from([1, size]) for size in (B, H, T, S)))
    shapes = st.one_of(st.none(), st.just((T, S)), four)
    options = {
        "is_causal": draw(st.booleans()),
        "scale": draw(st.sampled_from([None, 0.0, -0.7, 1.3])),
    }
    if (shape := draw(shapes)) is not None:
        options["attn_mask"] = mask(shape)
    if (shape := draw(shapes)) is not None:
        options["bias"] = normal(*shape).masked_fill(mask(shape), -math.inf)
    if draw(st.booleans()) and "bias" in options:
        options["bias"] = options["bias"].nan_to_num(neginf=-1.0)
    if draw(st.booleans()) and "bias" in options:  # of another dtype than the query
        options["bias"] = options["bias"].to(draw(st.sampled_from(list(TOLERANCE))))
    query, key, value = normal(B, H, T, Dh), normal(B, G, S, Dh), normal(B, G, S, Dv)
    poison = draw(st.sampled_from([None, None, "query", "key", "value"]))
    if poison is not None:
        x = {"query": query, "key": key, "value": value}[poison]
        x[0, 0, draw(st.integers(0, x.shape[2] - 1)), 0] = math.nan
    return query, key, value, options


lengths = st.sampled_from([(1, 1), (1, 7), (5, 7), (7, 5), (70, 70), (66, 90), (3, 1)])


@settings(max_examples=200)
@given(attentions())
def test_the_kernel_equals_the_formula(inputs):
    query, key, value, options = inputs
    wanted = formula(query, key, value, **options)
    for attend in (scaled_dot_product_attention, fused_attention):
        output = attend(query, key, value, **options)
        # No NaN is lost. The kernel adds -inf where the formula puts it in place of a
        # score: there a NaN behind a mask stays one.
        poisoned = any(x.isnan().any() for x in (query, key, value))
        assert output[wanted.isnan()].isnan().all()
        assert poisoned or not output.isnan().any()
        finite = ~output.isnan()
        assert_close(output[finite], wanted[finite], **TOLERANCE[query.dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("hides", ["nothing", "mask", "bias"])
@pytest.mark.parametrize("length", [5, 64, 300])
def test_an_infinite_score_is_not_lost(length, hides, is_causal, dtype):
    """In half precision the kernel of the CPU makes zeros of such a row."""
    generator = torch.Generator().manual_seed(length)
    query, key, value = torch.rand(3, 2, 3, length, 8, generator=generator).to(dtype)
    key[1, 2, 1, 3] = math.inf
    mask = torch.rand(length, length, generator=generator) < 0.7
    mask[0] = False  # which is zero, and rightly so
    options = {"is_causal": is_causal}
    if hides == "mask":
        options["attn_mask"] = mask
    elif hides == "bias":
        options["bias"] = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    expected = formula(query, key, value, **options)
    assert expected.isnan().any()
    output = scaled_dot_product_attention(query, key, value, **options)
    # As above: what is behind a mask and not finite may stay so.
    assert output[expected.isnan()].isnan().all()
    finite = ~output.isnan()
    assert_close(output[finite], expected[finite], **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("T", "S"), [(1, 1), (1, 7), (7, 7), (5, 7)])
def test_a_compiled_kernel_loses_no_nan(T, S, is_causal, dtype):
    """A graph cannot ask whether the kernel lost one: it looks at rows of zeros."""
    query, key, value = (torch.randn(2, 3, n, 8).to(dtype) for n in (T, S, S))
    query[0, 1, 0, 3] = key[1, 2, :, 0] = math.nan
    options = {"is_causal": is_causal}
    torch.compiler.reset()
    compiled = torch.compile(
        scaled_dot_product_attention, backend="aot_eager", fullgraph=True
    )
    output = compiled(query, key, value, **options)
    expected = formula(query, key, value, **options)
    assert expected.isnan().any()
    assert_close(output, expected, equal_nan=True, **TOLERANCE[dtype])


@pytest.mark.parametrize("poison", ["query", "first key", "infinite query and key"])
def test_a_compiled_causal_kernel_needs_no_mask(poison):
    """With a mask it took 1.5 times as long at T = 1024."""
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph

    query, key, value = torch.randn(2, 4, 6, 8), *torch.randn(2, 2, 2, 6, 8)
    if poison == "query":
        query[1, 3, 4, 0] = math.nan
    elif poison == "first key":
        key[0, 1, 0, 3] = math.nan
    else:  # inf · 0 is NaN
        query[0, 0], key[0, 0] = 0, math.inf
    torch.compiler.reset()
    compiled = torch.compile(scaled_dot_product_attention, backend=keep, fullgraph=True)
    output = compiled(query, key, value, is_causal=True)
    kernel = [
        node
        for graph in graphs
        for node in graph.graph.nodes
        if node.target is F.scaled_dot_product_attention
    ]
    assert len(kernel) == 1
    assert kernel[0].args[3] is None  # the mask
    assert kernel[0].args[5] is True  # the flag
    expected = formula(query, key, value, is_causal=True)
    assert 0 < expected.isnan().sum() < expected.numel()
    assert_close(output, expected, equal_nan=True, **TOLERANCE[torch.float32])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [5, 64])
def test_a_compiled_kernel_loses_no_infinite_score(length, masked, dtype):
    query, key, value = torch.rand(3, 2, 3, length, 8).to(dtype)
    key[1, 2, 1, 3] = math.inf
    mask = torch.ones(length, length, dtype=torch.bool) if masked else None
    torch.compiler.reset()
    compiled = torch.compile(scaled_dot_product_attention, fullgraph=True)
    output = compiled(query, key, value, mask)
    expected = formula(query, key, value, attn_mask=mask)
    assert expected.isnan().any()
    assert_close(output, expected, equal_nan=True, **TOLERANCE[dtype])


def error(output, exact):
    return (output.double() - exact).square().mean().sqrt().item()


@pytest.mark.parametrize("deviation", [1, 8])
@pytest.mark.parametrize("mask", ["none", "causal", "keys", "rows"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("length", [1, 64, 300])
def test_no_code_path_is_less_exact_than_torchs_kernel(length, dtype, mask, deviation):
    S = 300
    query, key, value = (
        torch.randn(4, 8, size, 32, dtype=torch.float64) for size in (length, S, S)
    )
    query, key, value = (x.to(dtype) for x in (query * deviation, key, value))
    allowed = {
        "none": None,
        "causal": torch.ones(length, S, dtype=torch.bool).tril(S - length),
        "keys": torch.rand(4, 1, 1, S) < 0.7,
        "rows": torch.rand(4, 1, length, S) < 0.7,
    }[mask]
    exact = F.scaled_dot_product_attention(
        query.double(), key.double(), value.double(), allowed
    )
    bound = 1.5 * error(
        F.scaled_dot_product_attention(query, key, value, allowed), exact
    )
    options = {"is_causal": True} if mask == "causal" else {"attn_mask": allowed}
    with torch.no_grad():
        assert error(formula(query, key, value, **options), exact) <= bound
        output = scaled_dot_product_attention(query, key, value, **options)
        assert error(output, exact) <= bound


@given(
    st.sampled_from([1, 130, 700]),
    st.sampled_from([(256, 300), (17, 5)]),
    st.booleans(),
    st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_linear_equals_torchs(positions, widths, has_bias, dtype):
    I, O = widths
    x = torch.randn(positions, I).to(dtype).requires_grad_()
    weight = torch.randn(O, I).to(dtype).requires_grad_()
    bias = torch.randn(O).to(dtype) if has_bias else None
    outputs = [linear(x, weight, bias), F.linear(x, weight, bias)]
    tolerance = (
        TOLERANCE[dtype] if dtype != torch.float32 else {"atol": 2e-4, "rtol": 1e-4}
    )
    assert_close(*outputs, **tolerance)
    factor = torch.randn_like(outputs[0])
    gradients = [torch.autograd.grad(y, (x, weight), factor) for y in outputs]
    if dtype != torch.bfloat16:
        assert_close(*gradients, atol=2e-3, rtol=1e-3)

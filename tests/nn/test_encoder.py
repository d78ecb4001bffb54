from contextlib import nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from tformer import (
    Encoder,
    EncoderLayer,
    causal_mask,
    combine_masks,
    length_mask,
    record_weights,
)
from tformer.interop import from_torch

B, S, H, D, F = 2, 5, 3, 21, 13
ORDERS = pytest.mark.parametrize("norm_first", [False, True])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@ORDERS
@pytest.mark.usefixtures("float64")
class TestAgainstTorch:
    @pytest.mark.parametrize("mask", ["none", "causal", "padding", "both", "heads"])
    def test_layer(self, randomised, norm_first, activation, bias, mask):
        theirs = nn.TransformerEncoderLayer(
            D, H, F, 0.0, activation, 0.1, True, norm_first, bias
        )
        ours = from_torch(randomised(theirs))
        attn_mask = real = None
        if mask in ("causal", "both"):
            attn_mask = causal_mask(S)
        if mask == "heads":
            attn_mask = (torch.rand(B, H, S, S) < 0.7) | torch.eye(S, dtype=torch.bool)
        if mask in ("padding", "both"):
            real = length_mask(torch.tensor([S, 2]))
        x = torch.randn(B, S, D, requires_grad=True)
        wanted = theirs(
            x,
            None
            if attn_mask is None
            else ~attn_mask.reshape(-1, *attn_mask.shape[-2:])
            if attn_mask.ndim == 4
            else ~attn_mask,
            None if real is None else ~real[:, 0, 0],
        )
        together = combine_masks(attn_mask, real)
        output = ours(x, together)
        assert output.shape == (B, S, D)
        assert_close(output, wanted)
        with record_weights(ours):
            assert_close(ours(x, together), wanted)
        gradients = [torch.autograd.grad(y.square().sum(), x) for y in (output, wanted)]
        assert_close(*gradients)

    @pytest.mark.parametrize("final_norm", [False, True])
    def test_stack(self, randomised, norm_first, activation, bias, final_norm):
        layer = nn.TransformerEncoderLayer(
            D, H, F, 0.0, activation, 1e-5, True, norm_first, bias
        )
        norm = nn.LayerNorm(D, bias=bias) if final_norm else None
        theirs = nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False)
        ours = from_torch(randomised(theirs))
        x, real = torch.randn(B, S, D), length_mask(torch.tensor([S, 2]))
        wanted = theirs(x, ~causal_mask(S), ~real[:, 0, 0])
        assert_close(ours(x, causal_mask(S) & real), wanted)


@given(
    order=st.permutations(range(S)), norm_first=st.booleans(), layers=st.integers(1, 2)
)
def test_without_positions_order_means_nothing(order, norm_first, layers):
    encoder = Encoder(D, H, F, layers, norm_first=norm_first).double()
    x = torch.randn(B, S, D, dtype=torch.float64)
    assert_close(encoder(x[:, order]), encoder(x)[:, order])


@given(at=st.integers(0, S - 1), norm_first=st.booleans())
def test_the_future_leaves_the_past_alone(at, norm_first):
    encoder = Encoder(D, H, F, 2, norm_first=norm_first)
    x = torch.randn(B, S, D)
    later = x.clone()
    later[:, at] += torch.randn(D)
    before, after = (encoder(y, causal_mask(S)) for y in (x, later))
    assert torch.equal(before[:, :at], after[:, :at])
    for t in range(at, S):
        assert not torch.allclose(before[:, t], after[:, t])


@given(real=st.integers(1, S - 1), norm_first=st.booleans())
def test_padding_reaches_nothing(real, norm_first):
    encoder = Encoder(D, H, F, 2, norm_first=norm_first)
    x = torch.randn(B, S, D, requires_grad=True)
    attn_mask = length_mask(torch.tensor([S, real]))
    key_mask = attn_mask[:, 0, 0]
    output = encoder(x, attn_mask)
    output[key_mask].square().sum().backward()
    assert (x.grad[~key_mask] == 0).all()
    assert (x.grad[key_mask] != 0).any(dim=-1).all()
    assert_close(output[1:, :real], encoder(x[1:, :real]), atol=1e-5, rtol=1e-5)


@ORDERS
@pytest.mark.parametrize("kind", ["layer", "stack"])
def test_every_argument_changes_the_output(kind, norm_first):
    options = {"norm_first": norm_first}
    module = (
        EncoderLayer(D, H, F, **options)
        if kind == "layer"
        else Encoder(D, H, F, 2, **options)
    )
    x = torch.randn(B, S, D)
    plain = module(x)
    for options in (
        {"attn_mask": torch.rand(S, S) < 0.5},
        {"attn_mask": length_mask(torch.tensor([S, 2]))},
        {"attn_mask": causal_mask(S)},
    ):
        assert (module(x, **options) - plain).abs().max() > 1e-3, options


def test_every_option_reaches_its_place():
    options = {
        "dropout": 0.25,
        "num_kv_heads": 1,
        "activation": "gelu",
        "norm_first": True,
        "eps": 0.5,
        "bias": False,
    }
    encoder = Encoder(D, H, F, 2, **options)
    for layer in (EncoderLayer(D, H, F, **options), *encoder.layers):
        assert layer.self_attn.dropout == 0.25
        assert layer.self_attn.num_kv_heads == 1
        assert layer.feed_forward.dropout.p == 0.25
        assert layer.feed_forward.activation == "gelu"
        assert layer.feed_forward.linear1.out_features == F
        for residual in (layer.self_attn_residual, layer.feed_forward_residual):
            assert residual.norm_first
            assert residual.dropout.p == 0.25
            assert residual.norm.eps == 0.5
        assert not any(name.endswith("bias") for name, _ in layer.named_parameters())
    layer = EncoderLayer(D, H, F, dropout=0.25, ff_dropout=0.0)
    assert layer.feed_forward.dropout.p == 0.0
    assert layer.self_attn.dropout == layer.feed_forward_residual.dropout.p == 0.25
    assert encoder.norm.eps == 0.5
    assert encoder.norm.bias is None


def test_final_norm_is_for_pre_norm():
    assert Encoder(D, H, F, 1).norm is None
    assert Encoder(D, H, F, 1, norm_first=True).norm is not None
    assert Encoder(D, H, F, 1, final_norm=True).norm is not None
    assert Encoder(D, H, F, 1, norm_first=True, final_norm=False).norm is None
    x = torch.randn(B, S, D) * 9
    output = Encoder(D, H, F, 2, norm_first=True)(x)
    assert_close(output.var(dim=-1, correction=0), torch.ones(B, S), atol=1e-3, rtol=0)


@ORDERS
def test_weights_of_every_layer(norm_first):
    encoder = Encoder(D, H, F, 3, norm_first=norm_first, dropout=0.1).eval()
    x, attn_mask = torch.randn(B, S, D), length_mask(torch.tensor([S, 2]))
    with record_weights(encoder) as recorded:
        output = encoder(x, attn_mask)
    assert_close(output, encoder(x, attn_mask))
    assert len(recorded) == 3
    for layer in encoder.layers:
        with record_weights(layer) as of_layer:
            x = layer(x, attn_mask)
        weights = recorded[layer.self_attn]
        assert weights.shape == (B, H, S, S)
        assert torch.equal(weights, of_layer[layer.self_attn])
        assert_close(weights.sum(dim=-1), torch.ones(B, H, S))
        assert (weights[1, ..., 2:] == 0).all()


@ORDERS
@pytest.mark.parametrize("recording", [nullcontext, record_weights])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_row_of_padding_only(dtype, recording, norm_first):
    encoder = Encoder(D, H, F, 2, norm_first=norm_first).to(dtype)
    x = torch.randn(B, S, D).to(dtype).requires_grad_()
    real = torch.tensor([[True] * S, [False] * S])
    with recording(encoder) as recorded:
        output = encoder(x, real[:, None, None])
    if recording is record_weights:
        assert all((weights[1] == 0).all() for weights in recorded.values())
    output.float().square().sum().backward()
    assert output.isfinite().all()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in encoder.parameters())


def test_number_of_parameters():
    attention, network, norm = 4 * (D * D + D), 2 * D * F + D + F, 2 * D
    layer = attention + network + 2 * norm
    encoder = Encoder(D, H, F, 3, norm_first=True)
    assert sum(p.numel() for p in encoder.parameters()) == 3 * layer + norm


class TestBadInput:
    @pytest.mark.parametrize("value", [0, -1])
    def test_number_of_layers(self, raises, value):
        with raises(ValueError, f"num_layers ({value}) must be at least 1"):
            Encoder(D, H, F, value)

    def test_options(self, raises):
        message = "EncoderLayer.__init__() got an unexpected keyword argument 'wings'"
        with raises(TypeError, message):
            Encoder(D, H, F, 1, wings=3)
        with raises(ValueError, "d_model (21) must be divisible by num_heads (4)"):
            EncoderLayer(D, 4, F)

    @ORDERS
    def test_shapes(self, raises, norm_first):
        encoder = Encoder(D, H, F, 1, norm_first=norm_first)
        with raises(ValueError, "query is empty: its shape is (2, 3, 0, 7)"):
            encoder(torch.randn(B, 0, D))
        message = (
            "attn_mask must be (T, S) = (5, 5), or have four axes and broadcast to "
            "(B, H, T, S) = (2, 3, 5, 5), not (2, 5)"
        )
        with raises(ValueError, message):
            encoder(torch.randn(B, S, D), torch.ones(B, S, dtype=torch.bool))
        message = (
            "x has width 20 but d_model is 21: x is (2, 5, 20)"
            if norm_first
            else "query must be (batch, length, d_model = 21), not (2, 5, 20)"
        )
        with raises(ValueError, message):
            encoder(torch.randn(B, S, 20))

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from tformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    causal_mask,
    combine_masks,
    length_mask,
    record_weights,
)
from tformer.interop import from_torch

B, T, S, H, D, F = 2, 5, 7, 3, 21, 13
ORDERS = pytest.mark.parametrize("norm_first", [False, True])


@pytest.mark.parametrize("bias", [True, False])
@ORDERS
@pytest.mark.usefixtures("float64")
class TestAgainstTorch:
    @pytest.mark.parametrize("activation", ["relu", "gelu"])
    @pytest.mark.parametrize("masks", ["none", "causal", "padding", "all"])
    def test_layer(self, randomised, norm_first, bias, activation, masks):
        theirs = nn.TransformerDecoderLayer(
            D, H, F, 0.0, activation, 0.1, True, norm_first, bias
        )
        ours = from_torch(randomised(theirs))
        x = torch.randn(B, T, D, requires_grad=True)
        memory = torch.randn(B, S, D, requires_grad=True)
        attn_mask = memory_mask = real = memory_real = None
        if masks in ("causal", "all"):
            attn_mask = causal_mask(T)
        if masks == "all":
            memory_mask = torch.rand(T, S) < 0.7
            memory_mask[:, 0] = True
        if masks in ("padding", "all"):
            real = length_mask(torch.tensor([T, 2]))
            memory_real = length_mask(torch.tensor([3, S]))
        wanted = theirs(
            x,
            memory,
            None if attn_mask is None else ~attn_mask,
            None if memory_mask is None else ~memory_mask,
            None if real is None else ~real[:, 0, 0],
            None if memory_real is None else ~memory_real[:, 0, 0],
        )
        ours_masks = (
            combine_masks(attn_mask, real),
            combine_masks(memory_mask, memory_real),
        )
        output = ours(x, memory, *ours_masks)
        assert output.shape == (B, T, D)
        assert_close(output, wanted)
        with record_weights(ours):
            assert_close(ours(x, memory, *ours_masks), wanted)
        gradients = [
            torch.autograd.grad(y.square().sum(), [x, memory]) for y in (output, wanted)
        ]
        assert_close(*gradients)

    @pytest.mark.parametrize("final_norm", [False, True])
    def test_stack(self, randomised, norm_first, bias, final_norm):
        layer = nn.TransformerDecoderLayer(
            D, H, F, 0.0, "relu", 1e-5, True, norm_first, bias
        )
        norm = nn.LayerNorm(D, bias=bias) if final_norm else None
        theirs = nn.TransformerDecoder(layer, 3, norm)
        ours = from_torch(randomised(theirs))
        x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
        wanted = theirs(x, memory, ~causal_mask(T))
        assert_close(ours(x, memory, is_causal=True), wanted)


@given(at=st.integers(0, T - 1), norm_first=st.booleans())
def test_the_future_leaves_the_past_alone(at, norm_first):
    decoder = Decoder(D, H, F, 2, norm_first=norm_first)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    later = x.clone()
    later[:, at] += torch.randn(D)
    before, after = (decoder(y, memory, is_causal=True) for y in (x, later))
    assert torch.equal(before[:, :at], after[:, :at])
    for t in range(at, T):
        assert not torch.allclose(before[:, t], after[:, t])


def test_the_future_is_hidden_only_if_asked():
    decoder = Decoder(D, H, F, 1)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    later = x.clone()
    later[:, -1] += 1
    assert not torch.allclose(decoder(x, memory)[:, 0], decoder(later, memory)[:, 0])


@given(real=st.integers(1, S - 1), norm_first=st.booleans())
def test_padding_of_the_source_reaches_nothing(real, norm_first):
    decoder = Decoder(D, H, F, 2, norm_first=norm_first)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D, requires_grad=True)
    memory_mask = length_mask(torch.tensor([S, real]))
    key_mask = memory_mask[:, 0, 0]
    output = decoder(x, memory, memory_mask=memory_mask)
    output.square().sum().backward()
    assert (memory.grad[~key_mask] == 0).all()
    assert (memory.grad[key_mask] != 0).any(dim=-1).all()
    cut = decoder(x[1:], memory[1:, :real])
    assert_close(output[1:], cut, atol=1e-5, rtol=1e-5)


@given(order=st.permutations(range(S)))
def test_the_order_of_the_memory_means_nothing(order):
    decoder = Decoder(D, H, F, 2).double()
    x = torch.randn(B, T, D, dtype=torch.float64)
    memory = torch.randn(B, S, D, dtype=torch.float64)
    assert_close(decoder(x, memory[:, order]), decoder(x, memory))


@ORDERS
@pytest.mark.parametrize("kind", ["layer", "stack"])
def test_every_argument_changes_the_output(kind, norm_first):
    options = {"norm_first": norm_first}
    module = (
        DecoderLayer(D, H, F, **options)
        if kind == "layer"
        else Decoder(D, H, F, 2, **options)
    )
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    plain = module(x, memory)
    assert (module(x, memory + 1) - plain).abs().max() > 1e-3
    for options in (
        {"attn_mask": torch.rand(T, T) < 0.5},
        {"attn_mask": length_mask(torch.tensor([T, 2]))},
        {"memory_mask": torch.rand(T, S) < 0.5},
        {"memory_mask": length_mask(torch.tensor([S, 2]))},
        {"is_causal": True},
    ):
        assert (module(x, memory, **options) - plain).abs().max() > 1e-3, options


def test_every_option_reaches_its_place():
    options = {
        "dropout": 0.25,
        "num_kv_heads": 1,
        "activation": "gelu",
        "norm_first": True,
        "eps": 0.5,
        "bias": False,
    }
    decoder = Decoder(D, H, F, 2, **options)
    for layer in (DecoderLayer(D, H, F, **options), *decoder.layers):
        for attention in (layer.self_attn, layer.cross_attn):
            assert attention.dropout == 0.25
            assert attention.num_kv_heads == 1
        assert layer.feed_forward.dropout.p == 0.25
        assert layer.feed_forward.activation == "gelu"
        for residual in (
            layer.self_attn_residual,
            layer.cross_attn_residual,
            layer.feed_forward_residual,
        ):
            assert residual.norm_first
            assert residual.dropout.p == 0.25
            assert residual.norm.eps == 0.5
        assert not any(name.endswith("bias") for name, _ in layer.named_parameters())
    assert decoder.norm.eps == 0.5
    assert decoder.norm.bias is None
    assert Decoder(D, H, F, 1).norm is None
    assert Decoder(D, H, F, 1, final_norm=True).norm is not None
    assert Decoder(D, H, F, 1, norm_first=True, final_norm=False).norm is None


def test_weights_of_every_layer():
    decoder = Decoder(D, H, F, 3, dropout=0.1).eval()
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    options = {"is_causal": True, "memory_mask": length_mask(torch.tensor([S, 2]))}
    with record_weights(decoder) as recorded:
        output = decoder(x, memory, **options)
    assert_close(output, decoder(x, memory, **options))
    assert len(recorded) == 6
    for layer in decoder.layers:
        with record_weights(layer) as of_layer:
            x = layer(x, memory, **options)
        own, across = recorded[layer.self_attn], recorded[layer.cross_attn]
        assert torch.equal(own, of_layer[layer.self_attn])
        assert torch.equal(across, of_layer[layer.cross_attn])
        assert own.shape == (B, H, T, T)
        assert across.shape == (B, H, T, S)
        assert (own.triu(1) == 0).all()
        assert (across[1, ..., 2:] == 0).all()
        assert_close(own.sum(dim=-1), torch.ones(B, H, T))
        assert_close(across.sum(dim=-1), torch.ones(B, H, T))


@ORDERS
@pytest.mark.parametrize("recording", [nullcontext, record_weights])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_source_of_padding_only(dtype, recording, norm_first):
    decoder = Decoder(D, H, F, 2, norm_first=norm_first).to(dtype)
    x = torch.randn(B, T, D).to(dtype).requires_grad_()
    memory = torch.randn(B, S, D).to(dtype).requires_grad_()
    real = torch.tensor([[False] + [True] * 4, [True] * 5])
    memory_real = torch.tensor([[True] * S, [False] * S])
    with recording(decoder):
        output = decoder(
            x,
            memory,
            real[:, None, None],
            memory_real[:, None, None],
            is_causal=True,
        )
    output.float().square().sum().backward()
    assert output.isfinite().all()
    assert x.grad.isfinite().all()
    assert (memory.grad[1] == 0).all()
    assert memory.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in decoder.parameters())


@ORDERS
def test_without_cross_attention_it_is_an_encoder_with_a_past(norm_first, randomised):
    """As GPT uses it: the layers of an encoder, with the future hidden."""
    options = {"norm_first": norm_first, "num_kv_heads": 1, "activation": "gelu"}
    decoder = randomised(Decoder(D, H, F, 2, cross_attention=False, **options))
    encoder = Encoder(D, H, F, 2, **options)
    assert list(decoder.state_dict()) == list(encoder.state_dict())
    encoder.load_state_dict(decoder.state_dict())
    x = torch.randn(B, T, D)
    assert_close(decoder(x, is_causal=True), encoder(x, causal_mask(T)))
    assert_close(decoder(x, attn_mask=causal_mask(T)), encoder(x, causal_mask(T)))


def test_a_memory_is_for_cross_attention_and_needed_by_it(raises):
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    alone, across = (Decoder(D, H, F, 1, cross_attention=c) for c in (False, True))
    with raises(ValueError, "memory must be given with cross-attention, and only then"):
        alone(x, memory)
    with raises(ValueError, "memory must be given with cross-attention, and only then"):
        across(x)


def test_number_of_parameters():
    attention, network, norm = 4 * (D * D + D), 2 * D * F + D + F, 2 * D
    layer = 2 * attention + network + 3 * norm
    decoder = Decoder(D, H, F, 3, norm_first=True)
    assert sum(p.numel() for p in decoder.parameters()) == 3 * layer + norm


def test_bad_input(raises):
    with raises(ValueError, "num_layers (0) must be at least 1"):
        Decoder(D, H, F, 0)
    message = "DecoderLayer.__init__() got an unexpected keyword argument 'wings'"
    with raises(TypeError, message):
        Decoder(D, H, F, 1, wings=3)
    decoder, x = Decoder(D, H, F, 1), torch.randn(B, T, D)
    with raises(ValueError, "key is empty: its shape is (2, 3, 0, 7)"):
        decoder(x, torch.randn(B, 0, D))
    with raises(
        ValueError, "key must be (batch, length, d_model = 21), not (2, 7, 20)"
    ):
        decoder(x, torch.randn(B, S, 20))
    message = "x has 2 rows, which is not a multiple of memory's "
    for rows in (0, 3, 4):
        with raises(ValueError, f"{message}{rows}"):
            decoder(x, torch.randn(rows, S, D))
    memory = torch.randn(B, S, D)
    rule = (
        "attn_mask must be (T, S) = {}, or have four axes and broadcast to {}, not {}"
    )
    message = rule.format((5, 5), "(B, H, T, S) = (2, 3, 5, 5)", (2, 5))
    with raises(ValueError, message):
        decoder(x, memory, torch.ones(B, T, dtype=torch.bool))
    message = rule.format((5, 7), "(B, H, T, S) = (2, 3, 5, 7)", (2, 7))
    with raises(ValueError, message):
        decoder(x, memory, memory_mask=torch.ones(B, S, dtype=torch.bool))

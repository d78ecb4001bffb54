"""The decoder against torch's: what the future, padding and the memory's order do."""

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from tformer.interop import from_torch
from tformer.nn import (
    Decoder,
    causal_mask,
    length_mask,
    record_weights,
    transformer_decoder,
    transformer_encoder,
)

B, T, S, H, D, F = 2, 5, 7, 3, 21, 13
ORDERS = pytest.mark.parametrize("norm_first", [False, True])


@pytest.mark.parametrize("final_norm", [False, True])
@ORDERS
@pytest.mark.usefixtures("float64")
def test_equals_torchs(randomised, norm_first, final_norm):
    layer = nn.TransformerDecoderLayer(D, H, F, 0.0, "relu", 1e-5, True, norm_first)
    theirs = nn.TransformerDecoder(layer, 3, nn.LayerNorm(D) if final_norm else None)
    ours = from_torch(randomised(theirs))
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    wanted = theirs(x, memory, ~causal_mask(T))
    assert_close(ours(x, memory, is_causal=True), wanted)


@given(at=st.integers(0, T - 1), norm_first=st.booleans())
def test_the_future_leaves_the_past_alone(at, norm_first):
    decoder = transformer_decoder(D, H, F, 2, norm_first=norm_first)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    later = x.clone()
    later[:, at] += torch.randn(D)
    before, after = (decoder(y, memory, is_causal=True) for y in (x, later))
    assert torch.equal(before[:, :at], after[:, :at])
    for t in range(at, T):
        assert not torch.allclose(before[:, t], after[:, t])
    if at:  # hidden only if asked
        assert not torch.allclose(
            decoder(x, memory)[:, 0], decoder(later, memory)[:, 0]
        )


@given(real=st.integers(1, S - 1), norm_first=st.booleans())
def test_padding_of_the_source_reaches_nothing(real, norm_first):
    decoder = transformer_decoder(D, H, F, 2, norm_first=norm_first)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D, requires_grad=True)
    memory_mask = length_mask(torch.tensor([S, real]))
    key_mask = memory_mask[:, 0, 0]
    output = decoder(x, memory, memory_mask=memory_mask)
    output.square().sum().backward()
    assert (memory.grad[~key_mask] == 0).all()
    assert (memory.grad[key_mask] != 0).any(dim=-1).all()
    cut = decoder(x[1:], memory[1:, :real])
    assert_close(output[1:], cut, atol=1e-5, rtol=1e-5)


@ORDERS
@pytest.mark.parametrize("recording", [nullcontext, record_weights])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_source_of_padding_only(dtype, recording, norm_first):
    decoder = transformer_decoder(D, H, F, 2, norm_first=norm_first).to(dtype)
    x, memory = (torch.randn(B, n, D).to(dtype).requires_grad_() for n in (T, S))
    real = torch.tensor([[False] + [True] * 4, [True] * 5])
    memory_real = torch.tensor([[True] * S, [False] * S])
    masks = real[:, None, None], memory_real[:, None, None]
    with recording(decoder):
        output = decoder(x, memory, *masks, is_causal=True)
    output.float().square().sum().backward()
    assert output.isfinite().all()
    assert (memory.grad[1] == 0).all()
    for given_or_learned in (x, memory, *decoder.parameters()):
        assert given_or_learned.grad.isfinite().all()


@ORDERS
def test_without_cross_attention_it_is_an_encoder_with_a_past(norm_first, randomised):
    """As GPT uses it: the blocks of an encoder, with the future hidden."""
    options = {"norm_first": norm_first, "num_kv_heads": 1, "activation": "gelu"}
    decoder = transformer_decoder(D, H, F, 2, cross_attention=False, **options)
    randomised(decoder)
    encoder = transformer_encoder(D, H, F, 2, **options)
    assert list(decoder.state_dict()) == list(encoder.state_dict())
    encoder.load_state_dict(decoder.state_dict())
    x = torch.randn(B, T, D)
    assert_close(decoder(x, is_causal=True), encoder(x, causal_mask(T)))
    assert_close(decoder(x, attn_mask=causal_mask(T)), encoder(x, causal_mask(T)))


def test_final_norm_is_for_pre_norm():
    assert transformer_decoder(D, H, F, 1).norm is None
    assert transformer_decoder(D, H, F, 1, final_norm=True).norm is not None
    assert transformer_decoder(D, H, F, 1, norm_first=True, eps=0.5).norm.eps == 0.5


def test_bad_input(raises):
    with raises(ValueError, "num_layers (0) must be at least 1"):
        transformer_decoder(D, H, F, 0)
    with raises(ValueError, "blocks (none) must be at least 1"):
        Decoder([])
    decoder, x = transformer_decoder(D, H, F, 1), torch.randn(B, T, D)
    message = "key must be (batch, length, d_model = 21), not (2, 7, 20)"
    with raises(ValueError, message):
        decoder(x, torch.randn(B, S, 20))
    rule = "must be (T, S), or broadcast with four axes to (2, 3, 5, 7)"
    with raises(ValueError, f"attn_mask (2, 7) {rule}"):
        decoder(x, torch.randn(B, S, D), None, torch.ones(B, S, dtype=torch.bool))

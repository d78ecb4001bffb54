"""The encoder against torch's, with padding masked and with padding left out."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from tformer.interop import from_torch
from tformer.nn import (
    Encoder,
    causal_mask,
    length_mask,
    record_weights,
    transformer_encoder,
)

B, S, H, D, F = 2, 5, 3, 21, 13
ORDERS = pytest.mark.parametrize("norm_first", [False, True])


@pytest.mark.parametrize("final_norm", [False, True])
@ORDERS
@pytest.mark.usefixtures("float64")
def test_equals_torchs(randomised, norm_first, final_norm):
    layer = nn.TransformerEncoderLayer(D, H, F, 0.0, "relu", 1e-5, True, norm_first)
    norm = nn.LayerNorm(D) if final_norm else None
    theirs = nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False)
    ours = from_torch(randomised(theirs))
    x, real = torch.randn(B, S, D), length_mask(torch.tensor([S, 2]))
    wanted = theirs(x, ~causal_mask(S), ~real[:, 0, 0])
    assert_close(ours(x, causal_mask(S) & real), wanted)


@given(real=st.integers(1, S - 1), norm_first=st.booleans(), left_out=st.booleans())
def test_padding_reaches_nothing(real, norm_first, left_out):
    encoder = transformer_encoder(D, H, F, 2, norm_first=norm_first)
    x = torch.randn(B, S, D, requires_grad=True)
    attn_mask = length_mask(torch.tensor([S, real]))
    key_mask = attn_mask[:, 0, 0]
    output = encoder(x, key_mask=key_mask) if left_out else encoder(x, attn_mask)
    output[key_mask].square().sum().backward()
    assert (x.grad[~key_mask] == 0).all()
    assert (x.grad[key_mask] != 0).any(dim=-1).all()
    assert_close(output[1:, :real], encoder(x[1:, :real]), atol=1e-5, rtol=1e-5)
    if left_out:
        assert (output[~key_mask] == 0).all()


@pytest.mark.usefixtures("float64")
def test_padding_may_stand_anywhere_and_be_a_whole_row():
    encoder, x = transformer_encoder(D, H, F, 2), torch.randn(3, S, D)
    key_mask = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1]]).bool()
    masked, left_out = (
        encoder(x, key_mask[:, None, None]),
        encoder(x, key_mask=key_mask),
    )
    assert_close(left_out[key_mask], masked[key_mask])
    assert (left_out[~key_mask] == 0).all()


def test_recorded_weights_have_a_place_for_padding():
    encoder, x = transformer_encoder(D, H, F, 2), torch.randn(B, S, D)
    key_mask = torch.arange(S) < torch.tensor([[S], [2]])
    with record_weights(encoder) as recorded:
        output = encoder(x, key_mask=key_mask)
    assert_close(output, encoder(x, key_mask=key_mask))
    for weights in recorded.values():
        assert weights.shape == (B, H, S, S)
        assert (weights[1, ..., 2:] == 0).all()


def test_final_norm_is_for_pre_norm():
    assert transformer_encoder(D, H, F, 1).norm is None
    assert transformer_encoder(D, H, F, 1, final_norm=True).norm is not None
    assert (
        transformer_encoder(D, H, F, 1, norm_first=True, final_norm=False).norm is None
    )
    encoder = transformer_encoder(D, H, F, 2, norm_first=True, eps=1e-3, bias=False)
    assert encoder.norm.bias is None
    assert encoder.norm.eps == 1e-3
    output = encoder(torch.randn(B, S, D) * 9)
    assert_close(output.var(dim=-1, correction=0), torch.ones(B, S), atol=1e-2, rtol=0)


def test_bad_input(raises):
    with raises(ValueError, "num_layers (-1) must be at least 1"):
        transformer_encoder(D, H, F, -1)
    with raises(ValueError, "blocks (none) must be at least 1"):
        Encoder([])
    message = "transformer_block() got an unexpected keyword argument 'wings'"
    with raises(TypeError, message):
        transformer_encoder(D, H, F, 1, wings=3)
    encoder, x = transformer_encoder(D, H, F, 1), torch.randn(B, S, D)
    real = torch.ones(B, S, dtype=torch.bool)
    rule = "must be (T, S), or broadcast with four axes to (2, 3, 5, 5)"
    with raises(ValueError, f"attn_mask (2, 5) {rule}"):
        encoder(x, real)
    message = "key_mask needs a real token, and no attn_mask beside"
    with raises(ValueError, message):
        encoder(x, key_mask=~real)
    with raises(ValueError, message):
        encoder(x, causal_mask(S), key_mask=real)

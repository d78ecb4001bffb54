"""BERT: equal to torch's own layers between torch's parts, first weights, options."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from small_models import SIZES, V, small_bert
from tformer.interop import from_torch

B, S = 2, 7
D, H, N = (SIZES[name] for name in ("d_model", "num_heads", "num_layers"))


def loud(model):
    """Numbers larger than the first ones, so that no part is too small to be seen."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape) / 4 + (p.ndim == 1))
    return model


def test_first_weights():
    model = small_bert(d_model=150, vocab_size=501, max_len=211, num_segments=50)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert (parameter == (0 if name.endswith("bias") else 1)).all(), name
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.07), name
            assert abs(parameter.mean().item()) < 0.002, name


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.usefixtures("float64")
def test_equals_torchs_encoder_between_torchs_parts(bias, given):
    layer = nn.TransformerEncoderLayer(D, H, 23, 0.0, "gelu", 1e-3, True, bias=bias)
    theirs = loud(nn.TransformerEncoder(layer, N, enable_nested_tensor=False))
    model = loud(small_bert(bias=bias, tie_embeddings=given, eps=1e-3)).double()
    model.encoder.load_state_dict(from_torch(theirs).state_dict())

    ids = torch.randint(1, V, (B, S))
    ids[1, 4:] = 0
    real = ids != 0
    segments = torch.zeros_like(ids)
    if given:
        segments = torch.tensor([[0, 0, 1, 1, 1, 0, 1], [1, 0, 0, 1, 0, 1, 1]])
        real = torch.tensor([[True] * 5 + [False] * 2, [True] * 7])
    x = F.embedding(ids, model.embedding.weight) + model.positions.weight[:S]
    x = x + F.embedding(segments, model.segments.weight)
    x = F.layer_norm(x, (D,), model.norm.weight, model.norm.bias, 1e-3)
    x = theirs(x, src_key_padding_mask=~real)
    x = F.gelu(F.linear(x, model.head.weight, model.head.bias))
    x = F.layer_norm(x, (D,), model.head_norm.weight, model.head_norm.bias, 1e-3)
    matrix = model.embedding if given else model.output
    wanted = F.linear(x, matrix.weight, model.output_bias)
    assert wanted.shape == (B, S, V)
    options = {"key_mask": real, "segments": segments} if given else {}
    logits = model(ids, **options)
    assert_close(logits, wanted)
    parameters = (model.embedding.weight, model.positions.weight, model.head.weight)
    both = [torch.autograd.grad(y.square().sum(), parameters) for y in (logits, wanted)]
    assert_close(*both)


def test_every_option_reaches_its_place():
    model = small_bert(
        dropout=0.25, num_kv_heads=1, eps=0.5, bias=False, d_ff=None, activation="relu"
    )
    assert (model.max_len, model.pad_id, model.vocab_size) == (11, 0, V)
    assert model.dropout.p == 0.25
    assert model.norm.eps == model.head_norm.eps == 0.5
    assert model.encoder.norm is None
    assert len(model.encoder.blocks) == N
    for block in model.encoder.blocks:
        assert block.attention.num_kv_heads == 1
        assert block.attention.dropout == block.dropout.p == 0.25
        assert block.feed_forward.activation == "relu"
        assert not isinstance(block.feed_forward.dropout, nn.Dropout)
        assert block.feed_forward.linear1.out_features == 4 * D
        assert block.placement == "post"
        assert block.attention_norm.eps == block.feed_forward_norm.eps == 0.5
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())


def test_bad_input(raises):
    ids = torch.ones(B, S, dtype=torch.long)
    message = "segments must have the shape of ids, (2, 7), not (1, 7)"
    with raises(ValueError, message):
        small_bert()(ids, segments=ids[:1])
    message = "key_mask must be bool (True = a real token), not torch.int64"
    with raises(TypeError, message):
        small_bert()(ids, key_mask=ids)

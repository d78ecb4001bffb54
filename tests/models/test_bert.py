"""BERT: known sizes, equal to torch's own layers, both sides seen, every option."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from small_models import SIZES, V, small_bert
from tformer import BERT, BERTConfig, record_weights
from tformer.interop import from_torch
from tformer.models.folder import NothingDrawn

B, S = 2, 7
D, H, N = (SIZES[name] for name in ("d_model", "num_heads", "num_layers"))


def loud(model):
    """Numbers larger than the first ones, so that no part is too small to be seen."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape) / 4 + (p.ndim == 1))
    return model


@pytest.fixture
def ids():
    return torch.randint(1, V, (B, S))


class TestKnownNumbers:
    @pytest.mark.parametrize(
        ("preset", "parameters"), [("tiny", 125_248), ("base", 109_514_298)]
    )
    def test_parameters(self, preset, parameters):
        with torch.device("meta"), NothingDrawn():
            model = BERT(getattr(BERTConfig, preset)())
        assert sum(p.numel() for p in model.parameters()) == parameters

    def test_choices(self):
        base = BERTConfig.base()
        assert base == BERTConfig()
        assert (base.vocab_size, base.max_len, base.num_segments) == (30_522, 512, 2)
        assert (base.dropout, base.eps, base.activation) == (0.1, 1e-12, "gelu")
        assert BERTConfig.tiny().dropout == 0.0

    @pytest.mark.parametrize("tie_embeddings", [False, True])
    def test_the_first_loss_is_that_of_guessing(self, tie_embeddings):
        config = BERTConfig.tiny(
            vocab_size=30_522, d_model=384, tie_embeddings=tie_embeddings
        )
        ids, targets = torch.randint(1, 30_522, (2, 2, 64))
        loss = F.cross_entropy(BERT(config)(ids).flatten(0, 1), targets.flatten())
        wanted = math.log(30_522) + 384 * 0.02**2 / 2  # half the logits' variance
        assert loss.item() == pytest.approx(wanted, abs=0.15)


def test_first_weights():
    model = small_bert(d_model=150, vocab_size=501, max_len=211, num_segments=50)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert (parameter == (0 if name.endswith("bias") else 1)).all(), name
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.07), name
            assert abs(parameter.mean().item()) < 0.002, name


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("tie_embeddings", [False, True])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.usefixtures("float64")
def test_equals_torchs_encoder_between_torchs_parts(ids, bias, tie_embeddings, given):
    layer = nn.TransformerEncoderLayer(D, H, 23, 0.0, "gelu", 1e-3, True, bias=bias)
    theirs = nn.TransformerEncoder(layer, N, enable_nested_tensor=False)
    model = loud(
        small_bert(bias=bias, tie_embeddings=tie_embeddings, eps=1e-3)
    ).double()
    loud(theirs)
    model.encoder.load_state_dict(from_torch(theirs).state_dict())

    ids[1, 4:] = 0
    real = ids != 0
    segments = None
    if given:
        segments = torch.tensor([[0, 0, 1, 1, 1, 0, 1], [1, 0, 0, 1, 0, 1, 1]])
        real = torch.tensor([[True] * 5 + [False] * 2, [True] * 7])
    x = F.embedding(ids, model.embedding.weight) + model.positions.weight[:S]
    x = x + F.embedding(torch.zeros_like(ids) if segments is None else segments,
                        model.segments.weight)  # fmt: skip
    x = F.layer_norm(x, (D,), model.norm.weight, model.norm.bias, 1e-3)
    x = theirs(x, src_key_padding_mask=~real)
    x = F.gelu(F.linear(x, model.head.weight, model.head.bias))
    x = F.layer_norm(x, (D,), model.head_norm.weight, model.head_norm.bias, 1e-3)
    matrix = model.embedding if tie_embeddings else model.output
    wanted = F.linear(x, matrix.weight, model.output_bias)
    assert wanted.shape == (B, S, V)
    options = {"key_mask": real, "segments": segments} if given else {}
    assert_close(model(ids, **options), wanted)
    parameters = (model.embedding.weight, model.positions.weight, model.head.weight)
    gradients = [
        torch.autograd.grad(y.square().sum(), parameters)
        for y in (model(ids, **options), wanted)
    ]
    assert_close(*gradients)


@pytest.mark.parametrize("at", range(S))
def test_every_token_is_seen_from_both_sides(ids, at):
    model = loud(small_bert())
    changed = ids.clone()
    changed[:, at] = changed[:, at] % (V - 1) + 1
    difference = (model(ids) - model(changed)).abs().amax(dim=-1)
    assert (difference > 1e-3).all()


def test_padding_is_not_seen(ids):
    model = loud(small_bert())
    padded = F.pad(ids, (0, 3))
    assert_close(model(padded)[:, :S], model(ids))
    read = model(padded, key_mask=torch.ones_like(padded, dtype=torch.bool))
    assert (read[:, :S] - model(ids)).abs().max() > 1e-3
    other = loud(small_bert(pad_id=5))
    assert_close(other(F.pad(ids * 0 + 7, (0, 3), value=5))[:, :S], other(ids * 0 + 7))


def test_segments(ids):
    model = loud(small_bert(num_segments=3))
    plain = model(ids)
    assert_close(model(ids, segments=torch.zeros_like(ids)), plain)
    for number in (1, 2):
        segments = torch.full_like(ids, number)
        assert (model(ids, segments=segments) - plain).abs().max() > 1e-3


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


def test_weights_of_every_layer(ids):
    model = loud(small_bert())
    ids[1, 5:] = 0
    with record_weights(model) as recorded:
        logits = model(ids)
    assert_close(logits, model(ids))
    names = [f"encoder.blocks.{i}.attention" for i in range(N)]
    assert list(recorded.by_name()) == names
    for layer in recorded.values():
        assert layer.shape == (B, H, S, S)
        assert (layer[1, ..., 5:] == 0).all()
        assert (layer[0] > 0).all()
        assert_close(layer.sum(dim=-1), torch.ones(B, H, S))


def test_logits_of_some_positions_only(ids):
    """Training asks for 15 % of the positions: the rest need no logits."""
    model = loud(small_bert())
    asked = torch.rand(B, S) < 0.5
    x = model.encoder(model.embed(ids), (ids != 0)[:, None, None])
    assert_close(model.logits(x[asked]), model(ids)[asked])


class TestBadInput:
    def test_config(self, raises):
        with raises(ValueError, "num_segments (0) must be at least 1"):
            BERTConfig.tiny(num_segments=0)
        message = "pad_id (None) must be an id: it marks what is not asked"
        with raises(ValueError, message):
            BERTConfig.tiny(pad_id=None)

    def test_segments(self, raises, ids):
        message = "segments must have the shape of ids, (2, 7), not (1, 7)"
        with raises(ValueError, message):
            small_bert()(ids, segments=ids[:1])
        message = "ids must be in [0, vocab_size = 2), but they reach from 2 to 2"
        with raises(ValueError, message):
            small_bert()(ids, segments=torch.full_like(ids, 2))

    def test_ids_and_masks(self, raises, ids):
        with raises(TypeError, "ids must be int64 or int32, not torch.float32"):
            small_bert()(ids.float())
        with pytest.raises(ValueError, match="positions up to 12 but max_len is 11"):
            small_bert()(torch.ones(B, 12, dtype=torch.long))
        message = "key_mask must be torch.bool (True = a real token), not torch.int64"
        with raises(TypeError, message):
            small_bert()(ids, key_mask=ids)

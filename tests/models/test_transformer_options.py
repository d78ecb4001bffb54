"""The whole Transformer: shared matrices, options, copies, bad input."""

import copy
import pickle

import pytest
import torch
from torch import nn

from tformer import Transformer, TransformerConfig

B, T, S, V = 2, 5, 7, 61
SIZES = {
    "vocab_size": V,
    "d_model": 18,
    "num_heads": 3,
    "d_ff": 23,
    "dropout": 0.0,
    "max_len": 11,
}


def make(**changes):
    return Transformer(TransformerConfig.tiny(**{**SIZES, **changes}))


@pytest.fixture
def ids():
    return torch.randint(1, V, (B, S)), torch.randint(1, V, (B, T))


def test_one_matrix_serves_all(ids):
    model = make()
    assert model.tgt_embedding.weight is model.src_embedding.weight
    assert model.output is None
    src, tgt = ids
    model(src, tgt).sum().backward()
    assert (model.src_embedding.weight.grad.abs().sum(dim=1) > 0).all()
    names = [name for name in model.state_dict() if "embedding" in name]
    assert names == ["src_embedding.weight"]


@pytest.mark.parametrize("tie_embeddings", [False, True])
def test_a_functional_call_leaves_the_model_as_it_was(ids, tie_embeddings):
    """One module under two names would come out with a tensor for its parameter."""
    model = make(tie_embeddings=tie_embeddings)
    before, wanted = model.src_embedding.weight.clone(), model(*ids)
    twice = {name: 2 * p.detach() for name, p in model.named_parameters()}
    output = torch.func.functional_call(model, twice, ids)
    assert not torch.allclose(output, wanted)
    for embedding in (model.src_embedding, model.tgt_embedding):
        assert isinstance(embedding.weight, nn.Parameter)
    assert model.tgt_embedding.weight is model.src_embedding.weight
    assert torch.equal(model.src_embedding.weight, before)
    assert torch.equal(model(*ids), wanted)
    other = make(tie_embeddings=tie_embeddings)
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(2)
    assert torch.equal(output, other(*ids))


@pytest.mark.parametrize("tgt_vocab_size", [None, 29])
def test_logits_from_a_matrix_of_their_own(ids, tgt_vocab_size):
    model = make(tie_embeddings=False, tgt_vocab_size=tgt_vocab_size)
    src, tgt = ids[0], ids[1] % 29
    assert isinstance(model.output, nn.Linear)
    assert model.output.bias is None
    before = model(src, tgt)
    assert before.shape == (B, T, tgt_vocab_size or V)
    nn.init.zeros_(model.output.weight)
    assert (model(src, tgt) == 0).all()


def test_learned_positions_are_each_sides_own():
    model = make(positions="learned")
    assert model.src_positions.weight is not model.tgt_positions.weight
    assert model.src_positions.weight.shape == (11, 18)
    assert "src_positions.weight" not in make().state_dict()


def test_every_option_reaches_its_place():
    model = make(
        dropout=0.25,
        num_kv_heads=1,
        activation="gelu",
        norm_first=True,
        eps=0.5,
        bias=False,
        num_encoder_layers=1,
        num_decoder_layers=3,
    )
    encoder, decoder = model.encoder, model.decoder
    assert (len(encoder.blocks), len(decoder.blocks)) == (1, 3)
    assert (model.max_len, model.pad_id, model.vocab_size) == (11, 0, V)
    assert model.dropout.p == 0.25
    assert encoder.norm.eps == decoder.norm.eps == 0.5
    for block in (*encoder.blocks, *decoder.blocks):
        assert block.attention.num_kv_heads == 1
        assert block.attention.num_heads == 3
        assert block.attention.dropout == block.dropout.p == 0.25
        assert block.feed_forward.activation == "gelu"
        assert block.feed_forward.dropout.p == 0.25
        assert block.feed_forward.linear1.out_features == 23
        assert block.placement == "pre"
        assert block.attention_norm.eps == 0.5
    for block in decoder.blocks:
        assert block.cross_attention.num_kv_heads == 1
        assert block.cross_attention.dropout == 0.25
        assert block.cross_attention_norm.eps == 0.5
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())


def test_first_weights():
    model = make(d_model=66)
    stacks = nn.ModuleList([model.encoder, model.decoder])
    for name, parameter in stacks.named_parameters():
        if parameter.ndim == 2:
            bound = (6 / sum(parameter.shape)) ** 0.5
            assert 0.9 * bound < parameter.abs().max() <= bound, name
        else:
            wanted = 0.0 if name.endswith("bias") else 1.0
            assert (parameter == wanted).all(), name
    assert model.src_embedding.weight.std().item() == pytest.approx(66**-0.5, rel=0.05)


@pytest.mark.parametrize("tie_embeddings", [False, True])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_copies_compute_the_same(ids, tie_embeddings, positions):
    options = {"tie_embeddings": tie_embeddings, "positions": positions}
    model, other = make(**options), make(**options)
    assert not torch.allclose(other(*ids), model(*ids))
    other.load_state_dict(model.state_dict())
    for twin in (other, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(*ids), model(*ids))
        assert twin.tgt_embedding.weight is twin.src_embedding.weight
        assert twin.src_embedding.weight is not model.src_embedding.weight
        assert twin.config == model.config


def test_from_the_meta_device(ids):
    model = make()
    with torch.device("meta"):
        twin = make()
    twin = twin.to_empty(device="cpu")
    twin.load_state_dict(model.state_dict())
    assert torch.equal(twin(*ids), model(*ids))


def test_dropout_is_for_training(ids):
    model = make(dropout=0.3)
    vectors = model.embed_source(ids[0])
    assert 0.1 < (vectors == 0).float().mean() < 0.5
    assert (model.embed_target(ids[1]) == 0).any()
    assert not torch.equal(model(*ids), model(*ids))
    model.eval()
    assert torch.equal(model(*ids), model(*ids))
    plain = make()
    plain.load_state_dict(model.state_dict())
    assert torch.equal(plain(*ids), model(*ids))


class TestBadInput:
    def test_ids(self, raises, ids):
        src, tgt = ids
        message = "ids must be in [0, vocab_size = 61), but they reach from 61 to 61"
        with raises(ValueError, message):
            make()(torch.full((B, S), V), tgt)
        message = "ids must be in [0, vocab_size = 29), but they reach from 29 to 29"
        with raises(ValueError, message):
            make(tgt_vocab_size=29)(src, torch.full((B, T), 29))
        with raises(TypeError, "ids must be int64 or int32, not torch.float32"):
            make()(src, tgt.float())

    def test_shapes(self, raises, ids):
        src, tgt = ids
        message = "src and tgt must have one batch size: src is (2, 7), tgt is (1, 5)"
        with raises(ValueError, message):
            make()(src, tgt[:1])
        message = "ids must be (batch, length) and not empty, not "
        with raises(ValueError, f"{message}(2, 0)"):
            make()(src[:, :0], tgt)
        with raises(ValueError, f"{message}(2, 0)"):
            make()(src, tgt[:, :0])
        with raises(ValueError, f"{message}(2,)"):
            make()(src, tgt[:, 0])
        with raises(ValueError, f"{message}(2,)"):
            make().encode(src[:, 0])
        real = torch.ones(B, T, dtype=torch.bool)
        with raises(ValueError, f"{message}(2,)"):
            make().decode(tgt[:, 0], torch.zeros(B, S, 18), tgt_key_mask=real)

    def test_masks(self, raises, ids):
        with raises(ValueError, "src_key_mask must be (B, S) = (2, 7), not (2, 5)"):
            make()(*ids, src_key_mask=torch.ones(B, T, dtype=torch.bool))
        with raises(ValueError, "tgt_key_mask must be (B, S) = (2, 5), not (2, 7)"):
            make()(*ids, tgt_key_mask=torch.ones(B, S, dtype=torch.bool))
        rule = "must be torch.bool (True = a real token), not torch.int64"
        with raises(TypeError, f"src_key_mask {rule}"):
            make()(*ids, src_key_mask=ids[0])
        message = "memory_key_mask must be (B, S) = (2, 7), not (2, 5)"
        with raises(ValueError, message):
            real = torch.ones(B, T, dtype=torch.bool)
            make().decode(ids[1], torch.zeros(B, S, 18), memory_key_mask=real)

    def test_a_sequence_longer_than_learned_positions(self, raises, ids):
        model = make(positions="learned")
        message = (
            "x needs positions up to 12 but max_len is 11: x is (2, 12, 18), start is 0"
        )
        with raises(ValueError, message):
            model(torch.ones(B, 12, dtype=torch.int64), ids[1])
        assert make()(torch.ones(B, 12, dtype=torch.int64), ids[1]).shape == (B, T, V)


def test_a_new_shared_embedding_serves_both_sides():
    model = Transformer(TransformerConfig(**SIZES))
    model.src_embedding = type(model.src_embedding)(V + 1, SIZES["d_model"])
    assert model.tgt_embedding is model.src_embedding
    assert model.logits(torch.zeros(1, 1, SIZES["d_model"])).shape[-1] == V + 1

"""The whole Transformer: its parts, padding, shared matrices, options, bad input."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import (
    Transformer,
    TransformerConfig,
    causal_mask,
    length_mask,
    record_weights,
)
from tformer.interop import from_torch
from tformer.nn import combine_masks

B, T, S, V, H, D = 2, 5, 7, 61, 3, 18
SIZES = {"vocab_size": V, "d_model": D, "num_heads": H, "d_ff": 23, "max_len": 11}


def make(**changes):
    config = {**SIZES, "dropout": 0.0, **changes}
    return Transformer(TransformerConfig.tiny(**config))


@pytest.fixture
def ids():
    return torch.randint(1, V, (B, S)), torch.randint(1, V, (B, T))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_stacks_equal_torch(float64, randomised, norm_first, padded):
    options = {"batch_first": True, "norm_first": norm_first, "bias": padded}
    theirs = randomised(nn.Transformer(D, H, 2, 3, 23, 0.0, **options))
    ours = from_torch(theirs)
    src, tgt = torch.randn(B, S, D), torch.randn(B, T, D)
    src_real = length_mask(torch.tensor([3, S])) if padded else None
    tgt_real = length_mask(torch.tensor([T, 2])) if padded else None
    src_padding, tgt_padding = (
        None if real is None else ~real[:, 0, 0] for real in (src_real, tgt_real)
    )
    src_mask = (torch.rand(S, S) < 0.6) | torch.eye(S, dtype=torch.bool)
    src_mask[:, 0] = True
    memory_mask = torch.rand(T, S) < 0.6
    memory_mask[:, 0] = True
    own = ~src_mask, ~causal_mask(T), ~memory_mask
    wanted = theirs(src, tgt, *own, src_padding, tgt_padding, src_padding)
    masks = {
        "src_mask": combine_masks(src_mask, src_real),
        "memory_mask": combine_masks(memory_mask, src_real),
    }
    output = ours(src, tgt, tgt_real, is_causal=True, **masks)
    assert output.shape == (B, T, D)
    assert_close(output, wanted)
    with record_weights(ours) as recorded:
        output = ours(src, tgt, combine_masks(causal_mask(T), tgt_real), **masks)
    assert_close(output, wanted)
    assert len(recorded) == 2 + 2 * 3


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@torch.no_grad()
def test_is_its_parts(ids, positions):
    """Figure 1 of the paper, in one line each."""
    model, (src, tgt) = make(positions=positions), ids
    src[0, -2:] = 0
    E = model.src_embedding.weight
    real = (src != 0)[:, None, None]  # (B, 1, 1, S)
    memory = model.encoder(model.src_positions(E[src] * D**0.5), real)
    tgt_vectors = model.tgt_positions(E[tgt] * D**0.5)
    output = model.decoder(tgt_vectors, memory, causal_mask(T), real)
    assert model(src, tgt).shape == (B, T, V)
    assert_close(model(src, tgt), output @ E.T)


def test_encode_and_decode_are_forward(ids):
    model, (src, tgt) = make(), ids
    src[1, 3:] = 0
    logits = model.decode(
        tgt, model.encode(src), memory_key_mask=model.source_mask(src)
    )
    assert_close(logits, model(src, tgt))
    mask = torch.arange(S) < torch.tensor([[2], [S]])
    memory = model.encode(src, src_key_mask=mask)
    logits = model.decode(tgt, memory, memory_key_mask=mask)
    assert_close(logits, model(src, tgt, src_key_mask=mask))


def test_a_prefix_is_scored_as_in_the_whole(ids):
    model, (src, tgt) = make(), ids
    whole = model(src, tgt)
    for length in range(1, T):
        assert_close(model(src, tgt[:, :length]), whole[:, :length])
    later = tgt.clone()
    later[:, 3] = (later[:, 3] + 1) % V
    after = model(src, later)
    assert_close(after[:, :3], whole[:, :3], rtol=0, atol=0)
    assert not torch.allclose(after[:, 3], whole[:, 3])


def test_padding_of_the_source_changes_nothing(ids):
    model, (src, tgt) = make(), ids
    padded = torch.cat([src, torch.zeros(B, 2, dtype=src.dtype)], dim=1)
    assert_close(model(padded, tgt), model(src, tgt), atol=1e-5, rtol=1e-5)
    everything = torch.ones_like(padded, dtype=torch.bool)
    seen = model(padded, tgt, src_key_mask=everything)
    assert not torch.allclose(seen, model(src, tgt), atol=1e-3)
    without = make(pad_id=None)
    without.load_state_dict(model.state_dict())
    assert without.source_mask(padded) is None
    assert_close(without(padded, tgt), seen)


def test_one_matrix_serves_all(ids):
    model = make()
    assert model.output is None
    model(*ids).sum().backward()
    assert (model.src_embedding.weight.grad.abs().sum(dim=1) > 0).all()
    names = [name for name in model.state_dict() if "embedding" in name]
    assert names == ["src_embedding.weight"]
    model.src_embedding = type(model.src_embedding)(V + 1, D)
    assert model.tgt_embedding is model.src_embedding
    assert model.logits(torch.zeros(1, 1, D)).shape[-1] == V + 1


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
    other.load_state_dict(twice)
    assert torch.equal(output, other(*ids))


@pytest.mark.parametrize("tgt_vocab_size", [None, 29])
def test_logits_from_a_matrix_of_their_own(ids, tgt_vocab_size):
    model = make(tie_embeddings=False, tgt_vocab_size=tgt_vocab_size)
    src, tgt = ids[0], ids[1] % 29
    assert model.output.bias is None
    assert model(src, tgt).shape == (B, T, tgt_vocab_size or V)
    nn.init.zeros_(model.output.weight)
    assert (model(src, tgt) == 0).all()


def test_every_option_reaches_its_place():
    model = make(
        dropout=0.25,
        num_kv_heads=1,
        activation="gelu",
        norm_first=True,
        eps=0.5,
        bias=False,
        positions="learned",
        num_encoder_layers=1,
        num_decoder_layers=3,
    )
    encoder, decoder = model.encoder, model.decoder
    assert (len(encoder.blocks), len(decoder.blocks)) == (1, 3)
    assert (model.max_len, model.pad_id, model.vocab_size) == (11, 0, V)
    assert model.dropout.p == 0.25
    assert encoder.norm.eps == decoder.norm.eps == 0.5
    assert model.src_positions.weight is not model.tgt_positions.weight
    assert model.src_positions.weight.shape == (11, D)
    for block in (*encoder.blocks, *decoder.blocks):
        assert block.feed_forward.activation == "gelu"
        assert block.feed_forward.linear1.out_features == 23
        assert block.feed_forward.dropout.p == block.dropout.p == 0.25
        assert block.placement == "pre"
        assert block.attention_norm.eps == block.feed_forward_norm.eps == 0.5
    attentions = [block.attention for block in (*encoder.blocks, *decoder.blocks)]
    for each in (*attentions, *(block.cross_attention for block in decoder.blocks)):
        assert (each.num_heads, each.num_kv_heads, each.dropout) == (H, 1, 0.25)
    assert decoder.blocks[0].cross_attention_norm.eps == 0.5
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())


def test_embedded_tokens_are_dropped_in_training(ids):
    model = make(dropout=0.3)
    for embed, tokens in ((model.embed_source, ids[0]), (model.embed_target, ids[1])):
        assert 0.1 < (embed(tokens) == 0).float().mean() < 0.5
    assert (model.eval().embed_source(ids[0]) != 0).all()


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


MASK, MEMORY = torch.ones(B, 3, dtype=torch.bool), torch.zeros(B, S, D)


@pytest.mark.parametrize(
    ("message", "call"),
    [
        (
            "src and tgt must have one batch size: src is (2, 7), tgt is (1, 5)",
            lambda model, src, tgt: model(src, tgt[:1]),
        ),
        (
            "vocab_size = 29), but",
            lambda model, src, tgt: model(src, tgt * 0 + 29),
        ),
        ("not empty, not (2, 0)", lambda model, src, tgt: model(src, tgt[:, :0])),
        ("not empty, not (2,)", lambda model, src, _: model.encode(src[:, 0])),
        (
            "not empty, not (2,)",
            lambda model, _, tgt: model.decode(tgt[:, 0], MEMORY, tgt_key_mask=MASK),
        ),
        (
            "src_key_mask must be (B, S) = (2, 7), not (2, 3)",
            lambda model, *ids: model(*ids, src_key_mask=MASK),
        ),
        (
            "tgt_key_mask must be (B, S) = (2, 5), not (2, 3)",
            lambda model, *ids: model(*ids, tgt_key_mask=MASK),
        ),
        (
            "memory_key_mask must be (B, S) = (2, 7), not (2, 3)",
            lambda model, _, tgt: model.decode(tgt, MEMORY, memory_key_mask=MASK),
        ),
    ],
)
def test_bad_input(ids, message, call):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call(make(tgt_vocab_size=29), ids[0], ids[1] % 29)
    assert message in str(error.value)

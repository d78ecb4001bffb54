import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tformer import (
    Transformer,
    TransformerConfig,
    causal_mask,
    length_mask,
    record_weights,
    transformer_decoder,
    transformer_encoder,
)
from tformer.interop import from_torch
from tformer.models.encoder_decoder import EncoderDecoder
from tformer.models.folder import NothingDrawn
from tformer.nn import combine_masks

B, T, S, V, H, D = 2, 5, 7, 61, 3, 18


@pytest.fixture
def config():
    return TransformerConfig.tiny(
        vocab_size=V, d_model=D, num_heads=H, d_ff=23, dropout=0.0, max_len=11
    )


@pytest.fixture
def ids():
    return torch.randint(1, V, (B, S)), torch.randint(1, V, (B, T))


@pytest.fixture
def change(config):
    def change(**changes):
        values = {k: getattr(config, k) for k in config.__dataclass_fields__}
        return Transformer(TransformerConfig(**{**values, **changes}))

    return change


def number_of_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


class TestKnownNumbers:
    """EXAMPLES of the field: sizes of the paper's models, the first loss."""

    @pytest.mark.parametrize(
        ("preset", "changes", "body", "whole"),
        [
            ("base", {}, 44_138_496, 63_082_496),
            ("base", {"norm_first": True}, 44_140_544, 63_084_544),
            ("big", {}, 176_357_376, 214_245_376),
        ],
    )
    def test_sizes(self, preset, changes, body, whole):
        with torch.device("meta"), NothingDrawn():
            model = Transformer(getattr(TransformerConfig, preset)(**changes))
        stacks = (model.encoder, model.decoder)
        assert sum(map(number_of_parameters, stacks)) == body
        assert number_of_parameters(model) == whole

    @pytest.mark.filterwarnings("ignore:enable_nested_tensor")
    def test_size_of_torchs(self):
        with torch.device("meta"), NothingDrawn():
            theirs = nn.Transformer(512, 8, 6, 6, 2048)
        assert number_of_parameters(theirs) == 44_140_544
        assert number_of_parameters(from_torch(theirs)) == 44_140_544

    @pytest.mark.parametrize("norm_first", [False, True])
    @pytest.mark.parametrize("tie_embeddings", [False, True])
    def test_the_first_loss_is_that_of_guessing(self, norm_first, tie_embeddings):
        config = TransformerConfig.tiny(
            vocab_size=4001, norm_first=norm_first, tie_embeddings=tie_embeddings
        )
        src, tgt, wanted = torch.randint(1, 4001, (3, 8, 16))
        with torch.no_grad():
            logits = Transformer(config)(src, tgt)
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten()).item()
        assert loss == pytest.approx(math.log(4001), rel=0.1)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_stacks_equal_torch(float64, randomised, norm_first, bias, padded):
    theirs = nn.Transformer(
        D, H, 2, 3, 23, 0.0, batch_first=True, norm_first=norm_first, bias=bias
    )
    ours = from_torch(randomised(theirs))
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
    wanted = theirs(
        src,
        tgt,
        ~src_mask,
        ~causal_mask(T),
        ~memory_mask,
        src_padding,
        tgt_padding,
        src_padding,
    )
    options = {
        "src_mask": combine_masks(src_mask, src_real),
        "memory_mask": combine_masks(memory_mask, src_real),
    }
    output = ours(src, tgt, tgt_real, is_causal=True, **options)
    assert output.shape == (B, T, D)
    assert_close(output, wanted)
    with record_weights(ours) as recorded:
        output = ours(src, tgt, combine_masks(causal_mask(T), tgt_real), **options)
    assert_close(output, wanted)
    assert len(recorded) == 2 + 2 * 3


def test_every_argument_of_the_stacks_changes_the_output():
    stacks = EncoderDecoder(
        transformer_encoder(D, H, 23, 2), transformer_decoder(D, H, 23, 2)
    )
    src, tgt = torch.randn(B, S, D), torch.randn(B, T, D)
    plain = stacks(src, tgt)
    for options in (
        {"attn_mask": torch.rand(T, T) < 0.5},
        {"attn_mask": length_mask(torch.tensor([T, 2]))},
        {"src_mask": torch.rand(S, S) < 0.5},
        {"src_mask": length_mask(torch.tensor([S, 2]))},
        {"memory_mask": torch.rand(T, S) < 0.5},
        {"memory_mask": length_mask(torch.tensor([S, 2]))},
        {"is_causal": True},
    ):
        assert (stacks(src, tgt, **options) - plain).abs().max() > 1e-3, options


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_is_its_parts(change, ids, positions):
    """Figure 1 of the paper, in one line each."""
    model, (src, tgt) = change(positions=positions), ids
    src[0, -2:] = 0
    with torch.no_grad():
        E = model.src_embedding.weight
        table = model.src_positions
        real = (src != 0)[:, None, None]  # (B, 1, 1, S)
        memory = model.encoder(table(E[src] * D**0.5), real)
        tgt_vectors = model.tgt_positions(E[tgt] * D**0.5)
        output = model.decoder(tgt_vectors, memory, causal_mask(T), real)
        assert model(src, tgt).shape == (B, T, V)
        assert_close(model(src, tgt), output @ E.T)


def test_encode_and_decode_are_forward(change, ids):
    model, (src, tgt) = change(), ids
    src[1, 3:] = 0
    wanted = model(src, tgt)
    memory = model.encode(src)
    assert memory.shape == (B, S, D)
    logits = model.decode(tgt, memory, memory_key_mask=model.source_mask(src))
    assert_close(logits, wanted)
    mask = torch.arange(S) < torch.tensor([[2], [S]])
    memory = model.encode(src, src_key_mask=mask)
    assert_close(
        model.decode(tgt, memory, memory_key_mask=mask),
        model(src, tgt, src_key_mask=mask),
    )


def test_a_prefix_is_scored_as_in_the_whole(change, ids):
    model, (src, tgt) = change(), ids
    whole = model(src, tgt)
    for length in range(1, T):
        assert_close(model(src, tgt[:, :length]), whole[:, :length])
    later = tgt.clone()
    later[:, 3] = (later[:, 3] + 1) % V
    after = model(src, later)
    assert_close(after[:, :3], whole[:, :3], rtol=0, atol=0)
    assert not torch.allclose(after[:, 3], whole[:, 3])


def test_padding_of_the_source_changes_nothing(change, ids):
    model, (src, tgt) = change(), ids
    padded = torch.cat([src, torch.zeros(B, 2, dtype=src.dtype)], dim=1)
    assert_close(model(padded, tgt), model(src, tgt), atol=1e-5, rtol=1e-5)
    everything = torch.ones_like(padded, dtype=torch.bool)
    seen = model(padded, tgt, src_key_mask=everything)
    assert not torch.allclose(seen, model(src, tgt), atol=1e-3)
    without = change(pad_id=None)
    without.load_state_dict(model.state_dict())
    assert without.source_mask(padded) is None
    assert_close(without(padded, tgt), seen)
    other = change(pad_id=int(src[0, 0]))
    other.load_state_dict(model.state_dict())
    assert not torch.allclose(other(src, tgt), model(src, tgt), atol=1e-3)


def test_padding_before_the_target_needs_a_mask(change, ids):
    model, (src, tgt) = change(), ids
    mask = torch.tensor([[True] * T, [False] + [True] * 4])
    masked, plain = model(src, tgt, tgt_key_mask=mask), model(src, tgt)
    assert_close(masked[0], plain[0])
    assert not torch.allclose(masked[1, 1:], plain[1, 1:])


def test_weights_of_every_layer(change, ids):
    model, (src, tgt) = change(num_encoder_layers=1, num_decoder_layers=3), ids
    src[1, 3:] = 0
    with record_weights(model) as recorded:
        logits = model(src, tgt)
    assert_close(logits, model(src, tgt))
    weights = recorded.by_name()
    blocks = [f"decoder.blocks.{i}." for i in range(3)]
    parts = ("attention", "cross_attention")
    names = [f"{block}{part}" for block in blocks for part in parts]
    assert list(weights) == ["encoder.blocks.0.attention", *names]
    for name, w in weights.items():
        if name.startswith("encoder"):
            assert w.shape == (B, H, S, S)
        elif name.endswith(".attention"):
            assert w.shape == (B, H, T, T)
            assert (w.triu(1) == 0).all()
        else:
            assert w.shape == (B, H, T, S)
        if w.shape[-1] == S:
            assert (w[1, ..., 3:] == 0).all()
        assert_close(w.sum(dim=-1), torch.ones(w.shape[:-1]))


def test_order_matters(change, ids):
    model, (src, tgt) = change(), ids
    turned = model(src.flip(1), tgt)
    assert not torch.allclose(turned, model(src, tgt), atol=1e-3)

"""Recorded weights: by name, as in torch."""

import numpy as np
import pytest

import tformer
from tformer import nn
from tformer.reference import (
    from_torch,
    record_weights,
    scaled_dot_product_attention,
)

B, S, T, V, H = 2, 7, 5, 17, 3
NAMES = [
    *(f"encoder.blocks.{i}.attention" for i in range(2)),
    *(
        f"decoder.blocks.{i}.{kind}"
        for i in range(2)
        for kind in ("attention", "cross_attention")
    ),
]


@pytest.fixture
def model(exact):
    sizes = {"vocab_size": V, "d_model": 12, "num_heads": H, "d_ff": 11, "max_len": 13}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2, "positions": "learned"}
    config = tformer.TransformerConfig(**sizes, **layers)
    twin, module = exact.twin_of(tformer.Transformer(config))
    src, tgt = exact.ids(V, B, S), exact.ids(V, B, T)
    src[0, -2:] = 0  # padding
    return twin, module, src, tgt


def test_every_attention_by_name(exact, model):
    twin, module, *ids = model
    with record_weights(twin) as weights, tformer.record_weights(module) as expected:
        output = exact.same(twin, module, *ids)
    np.testing.assert_allclose(
        output, twin(*(x.numpy() for x in ids)), rtol=0, atol=1e-12
    )
    assert list(weights) == list(expected.by_name())
    assert sorted(weights) == sorted(NAMES)
    for name in NAMES:
        exact.equal(weights[name], expected[name])
    assert weights["decoder.blocks.0.cross_attention"].shape == (B, H, T, S)
    assert not weights["decoder.blocks.1.cross_attention"][0, ..., -2:].any()


ATTENTIONS = {
    "grouped": lambda: nn.MultiHeadAttention(12, H, num_kv_heads=1),
    "window": lambda: nn.MultiHeadAttention(
        12, H, window=2, softcap=0.7, relative=nn.ALiBi(H)
    ),
    "latent": lambda: nn.LatentAttention(
        12,
        H,
        kv_rank=7,
        head_dim=5,
        rotary=nn.RotaryEmbedding(nn.rotary_frequencies(4)),
    ),
}


@pytest.mark.parametrize("make", ATTENTIONS.values(), ids=ATTENTIONS)
def test_of_one_attention_the_last_call(exact, make):
    twin, module = exact.twin_of(make())
    x = exact.numbers(B, T, 12)
    with record_weights(twin) as weights, tformer.record_weights(module) as expected:
        assert len(weights) == 0
        twin(exact.numbers(B, S, 12).numpy(), is_causal=True)
        exact.same(twin, module, x, is_causal=True)
    twin(exact.numbers(B, S, 12).numpy(), is_causal=True)  # after the block
    exact.equal(weights[""], expected[module])  # named as in `named_modules`


def test_an_error_and_an_inner_block_leave_the_model_as_it_was(model):
    twin, _, src, tgt = model
    src, tgt = src.numpy(), tgt.numpy()
    attention = twin.encoder.blocks[0].attention
    before = vars(attention).copy()
    with pytest.raises(ValueError, match="ids must be in"), record_weights(twin):
        twin(src, tgt + V)
    assert vars(attention) == before
    with record_weights(twin) as outer:
        with record_weights(twin.encoder) as inner:
            twin.encode(src)
        assert list(inner) == ["blocks.0.attention", "blocks.1.attention"]
        assert list(outer) == NAMES[:2]
        twin(src, tgt)
    assert len(outer) == len(NAMES)
    assert attention.attend is scaled_dot_product_attention
    assert vars(attention) == before


def test_a_model_of_ones_own(exact):
    """Any object with attributes and lists, such as a page may write."""

    class Own:
        def __init__(self, *attentions):
            self.name, self.table = "own", np.ones(3)
            self.first, *self.others = attentions

    module = exact.module(tformer.MultiHeadAttention(12, H))
    own = Own(*(from_torch(module) for _ in range(3)))
    with record_weights(own) as weights:
        for attention in (own.first, *own.others):
            attention(exact.numbers(B, T, 12).numpy())
    assert list(weights) == ["first", "others.0", "others.1"]

"""Recorded weights: by object and by name, as in torch."""

import numpy as np
import pytest

import tformer
from tformer import nn
from tformer.reference import (
    MultiHeadAttention,
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
def model(new_parity):
    parity = new_parity()
    sizes = {"vocab_size": V, "d_model": 12, "num_heads": H, "d_ff": 11, "max_len": 13}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2, "positions": "learned"}
    config = tformer.TransformerConfig(**sizes, **layers)
    module = parity.module(tformer.Transformer(config))
    arrays, tensors = zip(parity.ids(V, B, S), parity.ids(V, B, T), strict=True)
    arrays[0][0, -2:] = tensors[0][0, -2:] = 0  # padding
    return module, from_torch(module), arrays, tensors


def test_every_attention_by_object_and_by_name(new_parity, model):
    module, twin, arrays, tensors = model
    with record_weights(twin) as weights:
        output = twin(*arrays)
    np.testing.assert_allclose(output, twin(*arrays), rtol=0, atol=1e-12)
    with tformer.record_weights(module) as expected:
        module(*tensors)
    assert list(weights.by_name()) == list(expected.by_name())
    assert sorted(weights.by_name()) == sorted(NAMES)
    for name in NAMES:
        new_parity().same(weights[name], expected[name])
    assert weights[twin.encoder.blocks[1].attention] is weights[NAMES[1]]
    assert weights[twin.decoder.blocks[0].cross_attention].shape == (B, H, T, S)
    assert not weights["decoder.blocks.1.cross_attention"][0, ..., -2:].any()


ATTENTIONS = {
    "grouped": lambda: nn.MultiHeadAttention(12, H, num_kv_heads=1),
    "window": lambda: nn.MultiHeadAttention(
        12, H, window=2, softcap=0.7, relative=nn.ALiBi(H)
    ),
    "latent": lambda: nn.LatentAttention(
        12,
        H,
        rotary=nn.RotaryEmbedding(nn.rotary_frequencies(4)),
        kv_rank=7,
        head_dim=5,
        value_dim=3,
    ),
}


@pytest.mark.parametrize("make", ATTENTIONS.values(), ids=ATTENTIONS)
def test_of_one_attention(new_parity, make):
    parity = new_parity()
    module = parity.module(make())
    twin = from_torch(module)
    array, tensor = parity.numbers(B, T, 12)
    with record_weights(twin) as weights, tformer.record_weights(module) as expected:
        twin(array, is_causal=True), module(tensor, is_causal=True)
    parity.same(weights[twin], expected[module])
    assert weights[""] is weights[twin]  # as in `named_modules`


def test_the_last_call_counts(new_parity):
    parity = new_parity()
    twin = from_torch(parity.module(tformer.MultiHeadAttention(12, H)))
    first, last = parity.numbers(B, T, 12)[0], parity.numbers(B, S, 12)[0]
    with record_weights(twin) as weights:
        assert len(weights) == 0
        twin(first)
        twin(last)
    assert weights[twin].shape == (B, H, S, S)
    twin(first)  # after the block
    assert weights[twin].shape == (B, H, S, S)


def test_what_did_not_run_and_what_is_unknown(model):
    _, twin, (src, _), _ = model
    with record_weights(twin) as weights:
        twin.encode(src)
    assert list(weights.by_name()) == NAMES[:2]
    for absent in (NAMES[2], twin.decoder.blocks[0].attention, "encoder.blocks.2"):
        with pytest.raises(KeyError):
            weights[absent]


def test_an_error_and_an_inner_block_leave_the_model_as_it_was(model):
    _, twin, (src, tgt), _ = model
    attention = twin.encoder.blocks[0].attention
    before = vars(attention).copy()
    with pytest.raises(ValueError, match="ids must be in"), record_weights(twin):
        twin(src, tgt + V)
    assert vars(attention) == before
    with record_weights(twin) as outer:
        with record_weights(twin.encoder) as inner:
            twin.encode(src)
        assert list(inner.by_name()) == ["blocks.0.attention", "blocks.1.attention"]
        assert len(outer) == 0
        twin(src, tgt)
    assert len(outer) == len(NAMES)
    assert attention.attend is scaled_dot_product_attention
    assert vars(attention) == before


def test_a_model_of_ones_own(new_parity):
    """Any object with attributes and lists, such as a page may write."""

    class Own:
        def __init__(self, *attentions):
            self.name, self.table = "own", np.ones(3)
            self.first, *self.others = attentions

    parity = new_parity()
    module = parity.module(tformer.MultiHeadAttention(12, H))
    own = Own(*(from_torch(module) for _ in range(3)))
    x, _ = parity.numbers(B, T, 12)
    with record_weights(own) as weights:
        for attention in (own.first, *own.others):
            attention(x)
    assert list(weights.by_name()) == ["first", "others.0", "others.1"]
    assert all(isinstance(each, MultiHeadAttention) for each in weights)

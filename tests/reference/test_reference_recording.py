"""Recorded weights: by object and by name, as in torch."""

import numpy as np
import pytest

import tformer
from tformer.reference import (
    MultiHeadAttention,
    attention_weights,
    from_torch,
    record_weights,
    scaled_dot_product_attention,
    split_heads,
)

B, S, T, V, H = 2, 7, 5, 17, 3
NAMES = [
    *(f"encoder.layers.{i}.self_attn" for i in range(2)),
    *(
        f"decoder.layers.{i}.{kind}_attn"
        for i in range(2)
        for kind in ("self", "cross")
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
    assert weights[twin.encoder.layers[1].self_attn] is weights[NAMES[1]]
    assert weights[twin.decoder.layers[0].cross_attn].shape == (B, H, T, S)
    assert not weights["decoder.layers.1.cross_attn"][0, ..., -2:].any()


@pytest.mark.parametrize("kv_heads", [1, 3])
def test_they_are_what_attention_weights_returns(new_parity, kv_heads):
    parity = new_parity()
    module = parity.module(tformer.MultiHeadAttention(12, H, num_kv_heads=kv_heads))
    twin = from_torch(module)
    x, memory = parity.numbers(B, T, 12)[0], parity.numbers(B, S, 12)[0]
    mask, bias = parity.mask(B, 1, T, S)[0], parity.numbers(T, S)[0]
    with record_weights(twin) as weights:
        twin(x, memory, attn_mask=mask, bias=bias, is_causal=True)
    q = split_heads(twin.q_proj(x), H)
    k = split_heads(twin.k_proj(memory), kv_heads)
    expected = attention_weights(q, k, mask, bias=bias, is_causal=True)
    np.testing.assert_array_equal(weights[twin], expected)
    assert weights[""] is weights[twin]  # as in `named_modules`


def test_of_a_language_model(new_parity):
    """Windows and a latent: each attention has weights."""
    parity = new_parity()
    for module in (
        tformer.SelfAttention(12, H, window=2, softcap=0.7),
        tformer.LatentAttention(
            12,
            H,
            rotary=tformer.RotaryEmbedding(tformer.rotary_frequencies(4)),
            kv_rank=7,
            head_dim=5,
            value_dim=3,
        ),
    ):
        parity.module(module)
        twin = from_torch(module)
        array, tensor = parity.numbers(B, T, 12)
        with (
            record_weights(twin) as weights,
            tformer.record_weights(module) as expected,
        ):
            twin(array), module(tensor)
        parity.same(weights[twin], expected[module])


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
    for absent in (NAMES[2], twin.decoder.layers[0].self_attn, "encoder.layers.2"):
        with pytest.raises(KeyError):
            weights[absent]


def test_an_error_and_an_inner_block_leave_the_model_as_it_was(model):
    _, twin, (src, tgt), _ = model
    attention = twin.encoder.layers[0].self_attn
    before = vars(attention).copy()
    with pytest.raises(ValueError, match="ids must be in"), record_weights(twin):
        twin(src, tgt + V)
    assert vars(attention) == before
    with record_weights(twin) as outer:
        with record_weights(twin.encoder) as inner:
            twin.encode(src)
        assert list(inner.by_name()) == ["layers.0.self_attn", "layers.1.self_attn"]
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

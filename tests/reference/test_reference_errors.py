"""What the torch code refuses, the twin refuses too: NumPy would compute something."""

import math

import numpy as np
import pytest
import torch

import tformer
from tformer import nn, reference
from tformer.nn.masks import check_key_mask
from tformer.reference import masks

B, T, S, D, H, V = 2, 5, 7, 12, 3, 17
Q, K = (B, H, T, 11), (B, H, S, 11)


def x(*shape, dtype=float):
    return np.ones(shape, dtype)


def to_torch(x):
    return torch.tensor(x) if isinstance(x, np.ndarray) else x


def refused(twin, original, message, *args, **options):
    """Both raise the same kind of error; the twin says this message."""
    with pytest.raises((TypeError, ValueError)) as of_twin:
        twin(*args, **options)
    assert message in str(of_twin.value)
    options = {name: to_torch(value) for name, value in options.items()}
    with pytest.raises(type(of_twin.value)):
        original(*map(to_torch, args), **options)


@pytest.mark.parametrize(
    "attend", ["scaled_dot_product_attention", "attention_in_blocks"]
)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": x(1, H, S, 11), "value": x(1, H, S, 11)}, "key has batch 1 but query"),
        ({"value": x(1, H, S, 11)}, "value is (1, 3, 7, 11), key is (2, 3, 7"),
        ({"value": x(B, H, T, 11)}, "value and key must agree in batch, heads"),
        ({"key": x(B, 2, S, 11), "value": x(B, 2, S, 11)}, "is not a multiple of key"),
        ({"softcap": 0.0}, "softcap (0.0) must be above 0 and finite"),
        ({"softcap": math.inf}, "softcap (inf) must be above 0"),
        ({"query": x(*Q, dtype=int)}, "query must be floating, not int"),
        ({"value": x(*K, dtype=int)}, "value must be floating, not int"),
        ({"bias": x(T, S, dtype=bool)}, "bias must be floating, not bool"),
        ({"attn_mask": x(T, S)}, "attn_mask must be bool (True = may attend)"),
        ({"attn_mask": x(B, S, dtype=bool)}, "attn_mask must be (T, S) = (5, 7)"),
        ({"attn_mask": x(H, T, S, dtype=bool)}, "not (3, 5, 7)"),
        ({"attn_mask": x(1, 2, T, S, dtype=bool)}, "not (1, 2, 5, 7)"),
        ({"bias": x(1, 1, T, 2)}, "not (1, 1, 5, 2)"),
    ],
)
def test_attention(attend, changes, message):
    given = {"query": x(*Q), "key": x(*K), "value": x(*K), **changes}
    theirs = tformer.scaled_dot_product_attention
    refused(getattr(reference, attend), theirs, message, **given)


def test_a_window_looks_back():
    query = x(1, 1, T, 3)
    with pytest.raises(ValueError, match=r"window \(2\) needs is_causal"):
        reference.attention_weights(query, query, window=2)
    with pytest.raises(ValueError, match=r"window \(0\) must be at least 1"):
        reference.attention_weights(query, query, is_causal=True, window=0)


HEADS = tformer.MultiHeadAttention(D, H).double()
DECODER = tformer.transformer_block(D, H, 11, cross_attention=True).double()
WITHOUT = tformer.transformer_block(D, H, 11).double()
EMBEDDING = nn.TokenEmbedding(V, D)
TABLE = tformer.LearnedPositionalEmbedding(7, D).double()
WAVES = tformer.SinusoidalPositionalEncoding(D).double()


@pytest.mark.parametrize(
    ("module", "inputs", "message"),
    [
        (HEADS, [x(B, T, D), x(1, S, D)], "key has batch 1 but query has 2"),
        (HEADS, [x(B, T, D), x(B, S, D), x(B, 6, D)], "value and key must agree"),
        (HEADS, [x(B, T, 11)], ""),
        (HEADS, [x(B, 0, D)], ""),
        (tformer.LayerNorm(D), [x(B, T, 7)], "x has width 7 but d_model is 12: x is"),
        (tformer.RMSNorm(D), [x(B, 1)], "x has width 1 but d_model is 12: x is (2, 1)"),
        (EMBEDDING, [np.array([[0, V]])], "[0, vocab_size = 17), but they reach from"),
        (EMBEDDING, [np.array([[-1, 2]])], "but they reach from -1 to 2"),
        (EMBEDDING, [x(B, T)], "ids must be integers, not float64"),
        (EMBEDDING, [x(B, T, dtype=bool)], "ids must be integers, not bool"),
        (WAVES, [x(B, T, 1)], "x must be (batch, length, d_model = 12), not (2"),
        (WAVES, [x(T, D)], "x must be (batch, length, d_model = 12), not (5, 12)"),
        (TABLE, [x(B, T, 13)], "x must be (batch, length, d_model = 12), not (2"),
        (TABLE, [x(B, 8, D)], "x needs positions up to 8 but max_len is 7: x is"),
        (DECODER, [x(B, T, D)], "memory must be given with cross-attention, and o"),
        (WITHOUT, [x(B, T, D)] * 2, "memory must be given with cross-attention"),
    ],
)
def test_modules(module, inputs, message):
    refused(reference.from_torch(module), module, message, *inputs)


def test_a_value_needs_a_key_and_a_memory_each_sequence():
    twin = reference.from_torch(DECODER)
    with pytest.raises(ValueError, match="value is given without key"):
        twin.attention(x(B, T, D), value=x(B, S, D))
    # The original takes it, for beams; here it would broadcast by luck.
    with pytest.raises(ValueError, match="key has batch 1 but query has 2"):
        twin(x(B, T, D), x(1, S, D))


@pytest.mark.parametrize(
    ("lengths", "max_len", "message"),
    [
        (np.array([1.0, 2.0]), None, "lengths must hold integers, not float64"),
        (np.array([True, False]), None, "lengths must hold integers, not bool"),
        (np.array([2, 9]), 7, "lengths (2 to 9) must be in [0, max_len = 7]"),
        (np.array([-1, 3]), None, "lengths (-1 to 3) must be in [0, max_len = 3]"),
        (np.array([[1, 2]]), None, "lengths must be (B,), not (1, 2)"),
    ],
)
def test_lengths(lengths, max_len, message):
    refused(reference.length_mask, tformer.length_mask, message, lengths, max_len)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (x(2, 7), "key_mask must be bool (True = "),
        (x(1, 7, dtype=bool), "(B, S) = (2, 7), not (1, 7)"),
        (x(2, 1, 1, 7, dtype=bool), "(B, S) = (2, 7), not (2, 1, 1, 7)"),
    ],
)
def test_masks(mask, message):
    refused(masks.check_key_mask, check_key_mask, message, mask, 2, 7)
    with pytest.raises(TypeError, match="a mask must be bool"):
        reference.combine_masks(mask.astype(int))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tgt": x(3, T, dtype=int)}, "key has batch 2 but query has 3"),
        ({"src": x(1, S, dtype=int)}, "key has batch 1 but query has 2"),
        ({"tgt": x(T, dtype=int)}, ""),
        ({"src": x(B, 0, dtype=int)}, ""),
        ({"src_key_mask": x(1, S, dtype=bool)}, "src_key_mask must be (B, S) = (2, 7)"),
    ],
)
def test_transformer(given, message):
    sizes = {"vocab_size": V, "d_model": D, "num_heads": H, "d_ff": 11}
    module = tformer.Transformer(tformer.TransformerConfig.tiny(**sizes))
    given = {"src": x(B, S, dtype=int), "tgt": x(B, T, dtype=int), **given}
    refused(reference.from_torch(module), module, message, **given)


def linear(rows):
    return reference.Linear(x(rows, D))


@pytest.mark.parametrize(
    ("message", "make"),
    [  # of classes that are made otherwise than the modules
        (
            "this attention is causal, and takes no",
            lambda: reference.LinearAttention(*[linear(D)] * 4, H)(
                x(B, T, D), is_causal=False
            ),
        ),
        (r"bias must be \(2,\), n", lambda: reference.Linear(x(2, 3), x(1))),
        (
            r"placement \('both'\) is unknown",
            lambda: reference.Block(*[np.tanh] * 4, placement="both")(x(1, 2, 3)),
        ),
        (
            r"activation \('silu'\) must be one of relu, gelu, gelu_tanh, relu2",
            lambda: reference.FeedForward(None, None, activation="silu"),
        ),
        (
            r"gate \('silu'\) must be one of glu, reglu, geglu, geglu_tanh, swiglu",
            lambda: reference.GatedFeedForward(None, None, None, gate="silu"),
        ),
        (r"eps \(0\) must be above 0", lambda: reference.LayerNorm(x(D), eps=0)),
        (r"eps \(0\) must be above 0", lambda: reference.RMSNorm(x(D), 0)),
        (
            r"d_model \(5\) must be even",
            lambda: reference.sinusoidal_positional_encoding(3, 5),
        ),
        (
            r"d_model \(12\) must be divisible by num_heads \(5\)",
            lambda: reference.MultiHeadAttention(*[linear(D)] * 4, 5),
        ),
        (
            r"num_heads \(4\) must be divisible by num_kv_heads \(3\)",
            lambda: reference.MultiHeadAttention(*[linear(D)] * 4, 4, 3),
        ),
        (
            r"num_buckets \(7\) must be even: half are for",
            lambda: reference.RelativeBias(x(7, 3), bidirectional=True),
        ),
    ],
)
def test_what_the_twin_cannot_be_made_of(message, make):
    with pytest.raises(ValueError, match=message):
        make()

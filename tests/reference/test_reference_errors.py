"""What the torch code refuses, the twin refuses too: NumPy would compute something."""

import math

import numpy as np
import pytest
import torch

import tformer
from tformer import reference
from tformer.nn.masks import check_key_mask
from tformer.nn.positions import sinusoidal_positions
from tformer.reference import masks

B, T, S, D, H, V = 2, 5, 7, 12, 3, 17
HEADS = {"query": (B, H, T, 11), "key": (B, H, S, 11), "value": (B, H, S, 13)}
SAME = object()  # the torch code says the same words


def numbers(*shape, dtype=float):
    return np.ones(shape, dtype)


def as_tensors(given):
    return {
        name: torch.tensor(x) if isinstance(x, np.ndarray) else x
        for name, x in given.items()
    }


def refused(ours, theirs, message, kind=(TypeError, ValueError)):
    """Both raise the same kind of error; the twin says this message."""
    with pytest.raises(kind) as of_twin:
        ours()
    assert message in str(of_twin.value)
    with pytest.raises(type(of_twin.value)):
        theirs()


@pytest.mark.parametrize(
    "attend", ["scaled_dot_product_attention", "attention_in_blocks"]
)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"key": numbers(1, H, S, 11), "value": numbers(1, H, S, 13)},
            "key has batch 1 but query has 2",
        ),
        ({"value": numbers(1, H, S, 13)}, "value is (1, 3, 7, 13), key is (2, 3, 7"),
        ({"value": numbers(B, 1, S, 13)}, "value and key must agree in batch, heads"),
        ({"value": numbers(B, H, T, 13)}, "value and key must agree in batch, heads"),
        (
            {"key": numbers(B, 2, S, 11), "value": numbers(B, 2, S, 13)},
            "query has 3 heads, which is not a multiple of key's 2",
        ),
        ({"softcap": 0.0}, "softcap (0.0) must be above 0 and finite"),
        ({"softcap": -1.0}, "softcap (-1.0) must be above 0"),
        ({"softcap": math.inf}, "softcap (inf) must be above 0"),
        ({"query": numbers(B, H, T, 11, dtype=int)}, "query must be floating, not int"),
        ({"key": numbers(B, H, S, 11, dtype=int)}, "key must be floating, not int64"),
        ({"value": numbers(B, H, S, 13, dtype=int)}, "value must be floating, not int"),
        ({"bias": numbers(T, S, dtype=bool)}, "bias must be floating, not bool"),
        ({"attn_mask": numbers(T, S)}, "attn_mask must be bool (True = may attend)"),
        ({"attn_mask": numbers(B, S, dtype=bool)}, "attn_mask must be (T, S) = (5, 7)"),
        ({"attn_mask": numbers(S, T, dtype=bool)}, "attn_mask must be (T, S) = (5, 7)"),
        ({"attn_mask": numbers(S, dtype=bool)}, "attn_mask must be (T, S) = (5, 7)"),
        ({"attn_mask": numbers(H, T, S, dtype=bool)}, "not (3, 5, 7)"),
        ({"attn_mask": numbers(1, 2, T, S, dtype=bool)}, "not (1, 2, 5, 7)"),
        ({"bias": numbers(H, 1, T, S)}, "bias must be (T, S) = (5, 7), or have four"),
        ({"bias": numbers(1, 1, T, 2)}, "not (1, 1, 5, 2)"),
    ],
)
def test_attention(attend, changes, message):
    given = {name: numbers(*shape) for name, shape in HEADS.items()} | changes
    refused(
        lambda: getattr(reference, attend)(**given),
        lambda: tformer.scaled_dot_product_attention(**as_tensors(given)),
        message,
    )


def test_a_window_looks_back():
    query, key = numbers(1, 1, T, 3), numbers(1, 1, T, 3)
    with pytest.raises(ValueError, match=r"window \(2\) needs is_causal"):
        reference.attention_weights(query, key, window=2)
    with pytest.raises(ValueError, match=r"window \(0\) must be at least 1"):
        reference.attention_weights(query, key, is_causal=True, window=0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"value": numbers(B, S, D)}, "value is given without key"),
        ({"query": numbers(B, T, 11)}, ""),
        ({"key": numbers(B, D)}, ""),
        ({"query": numbers(B, 0, D)}, ""),
        ({"key": numbers(1, S, D)}, "key has batch 1 but query has 2"),
        ({"key": numbers(B, S, D), "value": numbers(B, 6, D)}, "value and key must ag"),
        ({"attn_mask": numbers(B, T, dtype=bool)}, "not (2, 5)"),
        ({"attn_mask": numbers(T, T)}, "attn_mask must be bool (True = "),
    ],
)
def test_heads(given, message):
    module = tformer.MultiHeadAttention(D, H).double()
    given = {"query": numbers(B, T, D), **given}
    refused(
        lambda: reference.from_torch(module)(**given),
        lambda: module(**as_tensors(given)),
        message,
    )


NORM, RMS = tformer.LayerNorm(D).double(), tformer.RMSNorm(D).double()
EMBEDDING = tformer.TokenEmbedding(V, D)
TABLE = tformer.LearnedPositionalEmbedding(7, D).double()
WAVES = tformer.SinusoidalPositionalEncoding(D).double()
LAYER = tformer.DecoderLayer(D, H, 11).double()
WITHOUT = tformer.DecoderLayer(D, H, 11, cross_attention=False).double()


@pytest.mark.parametrize(
    ("module", "inputs", "message"),
    [
        (NORM, [numbers(B, T, 7)], "x has width 7 but d_model is 12: x is (2, 5, 7)"),
        (RMS, [numbers(B, 1)], "x has width 1 but d_model is 12: x is (2, 1)"),
        (EMBEDDING, [np.array([[0, V]])], "[0, vocab_size = 17), but they reach from"),
        (EMBEDDING, [np.array([[-1, 2]])], "but they reach from -1 to 2"),
        (EMBEDDING, [numbers(B, T)], "ids must be integers, not float64"),
        (EMBEDDING, [numbers(B, T, dtype=bool)], "ids must be integers, not bool"),
        (WAVES, [numbers(B, T, 1)], "x must be (batch, length, d_model = 12), not (2"),
        (
            WAVES,
            [numbers(T, D)],
            "x must be (batch, length, d_model = 12), not (5, 12)",
        ),
        (TABLE, [numbers(B, T, 13)], "x must be (batch, length, d_model = 12), not (2"),
        (TABLE, [numbers(B, 8, D)], "x needs positions up to 8 but max_len is 7: x is"),
        (LAYER, [numbers(B, T, D)], "memory must be given with cross-attention, and o"),
        (WITHOUT, [numbers(B, T, D)] * 2, "memory must be given with cross-attention"),
    ],
)
def test_modules(module, inputs, message):
    twin = reference.from_torch(module)
    theirs = [torch.tensor(x) for x in inputs]
    refused(lambda: twin(*inputs), lambda: module(*theirs), message)


def test_a_memory_of_another_batch():
    """The original takes it, for beams; here it would broadcast by luck."""
    with pytest.raises(ValueError, match="key has batch 1 but query has 2"):
        reference.from_torch(LAYER)(numbers(B, T, D), numbers(1, S, D))


FUNCTIONS = {
    "d_model (5) must be even": (
        lambda p, _: p.sinusoids(3, 5),
        lambda p, _: p.waves(5)(numbers(1, 2, 5)),
    ),
    "start (-1) must be at least 0": (
        lambda p, _: p.sinusoids(3, 4, start=-1),
        lambda p, x: p.RotaryEmbedding(x(7))(x(2, 3, 5, 14), start=-1),
    ),
    "window (0) must be at least 1": (lambda p, _: p.sliding_window_mask(3, 0),),
    "head_dim (7) must be even": (lambda p, _: p.rotary_frequencies(7),),
    "base (1.0) must be above 1": (lambda p, _: p.rotary_frequencies(4, base=1.0),),
    "frequencies must be (head_dim / 2,)": (
        lambda p, x: p.RotaryEmbedding(x(2, 7)),
        lambda p, x: p.RotaryEmbedding(x(0)),
    ),
    "factor (0) must be above 0": (lambda p, x: p.RotaryEmbedding(x(7), factor=0),),
    "layout ('half') must be one of": (
        lambda p, x: p.RotaryEmbedding(x(7), layout="half"),
    ),
    "x must be (batch, heads, length, head_dim = 14)": (
        lambda p, x: p.RotaryEmbedding(x(7))(x(2, 3, 5, 12)),
        lambda p, x: p.RotaryEmbedding(x(7))(x(3, 5, 14)),
    ),
    "frequencies (7) must be at most half of head_dim (13)": (
        lambda p, x: p.RotaryEmbedding(x(7), head_dim=13),
    ),
    "positions must be (5,) or (2, 5), and start 0, not (3,) and 0": (
        lambda p, x: p.RotaryEmbedding(x(7))(x(2, 3, 5, 14), positions=x(3)),
    ),
    "positions must be (5,) or (2, 5), and start 0, not (5,) and 2": (
        lambda p, x: p.RotaryEmbedding(x(7))(x(2, 3, 5, 14), 2, positions=x(5)),
    ),
    "rows (12) must be divisible by": (
        lambda p, x: p.pairs_to_halves(x(12), 4),
        lambda p, x: p.halves_to_pairs(x(12), 4),
    ),
    "scale (0.5) must be at least 1": (
        lambda p, x: p.scale_linear(x(7), 0.5),
        lambda p, x: p.scale_ntk(x(7), 0.5),
        lambda p, x: p.scale_llama3(x(7), 0.5, trained_len=8),
        lambda p, x: p.scale_yarn(x(7), 0.5, trained_len=8),
        lambda p, _: p.yarn_factor(0.5),
    ),
    "frequencies must be at least 2": (
        lambda p, x: p.scale_ntk(x(1), 2),
        lambda p, x: p.scale_yarn(x(1), 2, trained_len=8),
    ),
    "trained_len (0) must be at least 1": (
        lambda p, x: p.scale_yarn(x(7), 2, trained_len=0),
    ),
    "high (4.0) must be above low (4.0)": (
        lambda p, x: p.scale_llama3(x(7), 2, trained_len=8, low=4.0),
    ),
    "num_heads (0) must be at least 1": (lambda p, _: p.alibi_slopes(0),),
    "num_buckets (1) must be at least 2": (
        lambda p, _: p.bucket_starts(1, 9),
        lambda p, _: p.biases(2, True),
    ),
    "max_distance (16) must be above 16": (lambda p, _: p.bucket_starts(32, 16),),
    "num_buckets (7) must be even: half are for": (lambda p, _: p.biases(7, True),),
    "must be in [1, num_experts = 6]": (
        lambda p, x: p.route(x(2, 6), 7),
        lambda p, x: p.route(x(2, 6), 0),
    ),
    "scores ('relu') must be one of softmax, sigmoid": (
        lambda p, x: p.route(x(2, 6), 2, scores="relu"),
    ),
    "value must be (2, 3, 7, 11) with query (2, 3, 7, 5)": (
        lambda p, x: p.linear_attention_recurrent(*[x(2, 3, 7, 5)] * 2, x(2, 3, 5, 11)),
    ),
    "beta must be (2, 3, 7) with query (2, 3, 7, 5), not (1, 3, 7)": (
        lambda p, x: p.delta_rule_recurrent(*[x(2, 3, 7, 5)] * 3, x(1, 3, 7)),
    ),
    "query must be (B, H, T, Dk), and not empty": (
        lambda p, x: p.linear_attention_recurrent(*[x(2, 0, 7, 5)] * 3),
    ),
    "activation ('silu') must be one of relu, gelu, gelu_tanh, relu2": (
        lambda p, _: p.feed_forward(activation="silu"),
    ),
    "gate ('silu') must be one of glu, reglu, geglu, geglu_tanh, swiglu": (
        lambda p, _: p.gated(gate="silu"),
    ),
    "eps (0) must be above 0 and finite": (
        lambda p, _: p.layer(0),
        lambda p, _: p.rms(0),
    ),
    "num_heads (5)": (lambda p, _: p.heads(5),),
    "num_heads (4) must be divisible by num_kv_heads (3)": (
        lambda p, _: p.heads(4, 3),
    ),
}


class Ours:
    """The twin's names, and what is called otherwise in it."""

    def __getattr__(self, name):
        return getattr(reference, name)

    sinusoids = staticmethod(reference.sinusoidal_positional_encoding)
    waves = reference.SinusoidalPositionalEncoding

    def biases(self, buckets, both):
        return reference.RelativeBias(numbers(buckets, 3), bidirectional=both)

    def layer(self, eps):
        return reference.LayerNorm(numbers(D), eps=eps)

    def rms(self, eps):
        return reference.RMSNorm(numbers(D), eps)

    def feed_forward(self, **options):
        return reference.FeedForward(None, None, **options)

    def gated(self, **options):
        return reference.GatedFeedForward(None, None, None, **options)

    def heads(self, *heads):
        return reference.MultiHeadAttention(
            *[reference.Linear(numbers(D, D))] * 4, *heads
        )


class Theirs:
    def __getattr__(self, name):
        return getattr(tformer, name)

    sinusoids = staticmethod(sinusoidal_positions)
    waves = tformer.SinusoidalPositionalEncoding

    def biases(self, buckets, both):
        return tformer.RelativeBias(3, num_buckets=buckets, bidirectional=both)

    def layer(self, eps):
        return tformer.LayerNorm(D, eps)

    def rms(self, eps):
        return tformer.RMSNorm(D, eps)

    def feed_forward(self, **options):
        return tformer.FeedForward(D, 11, **options)

    def gated(self, **options):
        return tformer.GatedFeedForward(D, 11, **options)

    def heads(self, heads, kv_heads=None):
        return tformer.MultiHeadAttention(D, heads, num_kv_heads=kv_heads)


@pytest.mark.parametrize(
    ("call", "message"),
    [(call, message) for message, calls in FUNCTIONS.items() for call in calls],
)
def test_functions_and_options(call, message):
    """Here the words are the same, too."""
    words = []
    for names, ones in ((Ours(), numbers), (Theirs(), lambda *s: torch.ones(s))):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            call(names, ones)
        assert message in str(error.value)
        words.append(str(error.value).replace("torch.Size(", "("))
    assert words[0] == words[1]


@pytest.mark.parametrize(
    ("lengths", "max_len", "message"),
    [
        (np.array([1.0, 2.0]), None, "lengths must hold integers, not float64"),
        (np.array([True, False]), None, "lengths must hold integers, not bool"),
        (np.array([2, 9]), 7, "lengths (2 to 9) must be in [0, max_len = 7]"),
        (np.array([-1, 3]), None, "lengths (-1 to 3) must be in [0, max_len = 3]"),
        (np.array([[1, 2]]), None, "lengths must be (B,), not (1, 2)"),
        (np.zeros(0, int), None, ""),
    ],
)
def test_lengths(lengths, max_len, message):
    refused(
        lambda: reference.length_mask(lengths, max_len),
        lambda: tformer.length_mask(torch.tensor(lengths), max_len),
        message,
    )


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (numbers(2, 7), "key_mask must be bool (True = "),
        (numbers(7, 2, dtype=bool), "(B, S) = (2, 7), not (7, 2)"),
        (numbers(1, 7, dtype=bool), "(B, S) = (2, 7), not (1, 7)"),
        (numbers(2, 1, 1, 7, dtype=bool), "(B, S) = (2, 7), not (2, 1, 1, 7)"),
    ],
)
def test_key_mask(mask, message):
    refused(
        lambda: masks.check_key_mask(mask, 2, 7),
        lambda: check_key_mask(torch.tensor(mask), 2, 7),
        message,
    )


@pytest.mark.parametrize("mask", [numbers(5, 7), numbers(5, 7, dtype=int)])
def test_masks_that_are_numbers(mask):
    message = "a mask must be bool (True = may attend), not"
    refused(
        lambda: reference.combine_masks(numbers(5, 7, dtype=bool), mask),
        lambda: tformer.combine_masks(torch.tensor(mask)),
        message,
    )
    with pytest.raises(TypeError, match="a mask must be bool"):
        reference.combine_masks(torch.ones(5, 7, dtype=torch.bool))


@pytest.mark.parametrize(
    ("changes", "given", "message"),
    [
        ({}, {"tgt": numbers(3, T, dtype=int)}, "key has batch 2 but query has 3"),
        ({}, {"src": numbers(1, S, dtype=int)}, "key has batch 1 but query has 2"),
        ({}, {"tgt": numbers(T, dtype=int)}, ""),
        ({}, {"src": numbers(B, 0, dtype=int)}, ""),
        (
            {},
            {"src_key_mask": numbers(1, S, dtype=bool)},
            "src_key_mask must be (B, S) = (2, 7), not (1, 7)",
        ),
        (
            {"positions": "learned", "max_len": 6},
            {},
            "x needs positions up to 7 but max_len is 6",
        ),
    ],
)
def test_transformer(changes, given, message):
    sizes = {"vocab_size": V, "d_model": D, "num_heads": H, "d_ff": 11}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    config = tformer.TransformerConfig(**{**sizes, **layers, **changes})
    module = tformer.Transformer(config)
    given = {"src": numbers(B, S, dtype=int), "tgt": numbers(B, T, dtype=int), **given}
    refused(
        lambda: reference.from_torch(module)(**given),
        lambda: module(**as_tensors(given)),
        message,
    )


def test_what_is_always_causal_takes_no_mask():
    module = reference.from_torch(tformer.LinearAttention(D, H))
    for options in ({"is_causal": False}, {"attn_mask": numbers(T, T, dtype=bool)}):
        with pytest.raises(ValueError, match="this attention is causal, and takes no"):
            module(numbers(B, T, D), **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: reference.Linear(numbers(2, 3), numbers(1)),
            r"bias must be \(2,\), n",
        ),
        (
            lambda: reference.Block(*[np.tanh] * 4, placement="both")(numbers(1, 2, 3)),
            r"placement \('both'\) is unknown",
        ),
        (
            lambda: reference.Block(*[np.tanh] * 4)(*[numbers(1, 2, 3)] * 2),
            "memory must be given with cross-attention",
        ),
    ],
)
def test_weights_and_blocks(make, message):
    with pytest.raises(ValueError, match=message):
        make()

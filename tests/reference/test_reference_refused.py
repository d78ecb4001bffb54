"""What the torch code refuses, the twin refuses too: NumPy would compute something."""

import re

import numpy as np
import pytest
import torch

from tformer import nn, reference
from tformer.checks import check_key_mask
from tformer.models import Transformer, TransformerConfig
from tformer.reference import Block, FeedForward, GatedFeedForward, Linear

B, T, S, D, H, V = 2, 5, 7, 12, 3, 17
Q, K = (B, H, T, 11), (B, H, S, 11)
INT, BOOL = {"dtype": "int64"}, {"dtype": "bool"}
SIZES = {"vocab_size": V, "d_model": D, "num_heads": H, "d_ff": 11}
HEADS = nn.MultiHeadAttention(D, H).double()
CROSSES = nn.transformer_block(D, H, 11, cross_attention=True).double()
ALONE = nn.transformer_block(D, H, 11).double()
WHOLE = Transformer(TransformerConfig.tiny(**SIZES)).double()


def to_numpy(*shape, dtype="float64"):
    return np.ones(shape, dtype)


def to_torch(*shape, dtype="float64"):
    return torch.ones(shape, dtype=getattr(torch, dtype))


def of(p, module):
    return module.double() if p is nn else reference.from_torch(module)


def attend(p, x, batch=B, heads=H, **changes):
    key = value = x(batch, heads, S, 11)
    given = {"query": x(*Q), "key": key, "value": value, **changes}
    if p is reference:
        with pytest.raises((TypeError, ValueError)):
            p.attention_in_blocks(**given)
    return p.scaled_dot_product_attention(**given)


def with_mask(p, x, *shape):
    return attend(p, x, attn_mask=x(*shape, **BOOL))


def key_mask(_, x, *shape, dtype="bool"):
    return check_key_mask(x(*shape, dtype=dtype), 2, 7, name="key_mask")


def embed(p, x, token, dtype="int64"):
    return of(p, nn.TokenEmbedding(V, D))(token * x(1, 2, dtype=dtype))


def translate(p, x, src=(B, S), tgt=(B, T), **mask):
    ids = (x(*shape, **INT) for shape in (src, tgt))
    return of(p, WHOLE)(*ids, **mask)


REFUSED = [  # a message, what raises it in both; and the twin's, if it has its own
    ("head_dim (7) must be even", lambda p, _: p.rotary_frequencies(7)),
    ("head_dim (0) must be", lambda p, _: p.rotary_frequencies(0)),
    ("base (1.0) must be above 1", lambda p, _: p.rotary_frequencies(4, base=1.0)),
    ("frequencies must be (head_dim / 2,)", lambda p, x: p.RotaryEmbedding(x(2, 7))),
    ("frequencies must be (head_dim / 2,)", lambda p, x: p.RotaryEmbedding(x(0))),
    ("factor (0) must be", lambda p, x: p.RotaryEmbedding(x(7), factor=0)),
    ("layout ('half') must be", lambda p, x: p.RotaryEmbedding(x(7), layout="half")),
    ("layout ('half') must be", lambda p, x: p.rotate(*[x(2, 2)] * 3, layout="half")),
    ("start (-1) must", lambda p, x: p.RotaryEmbedding(x(6))(x(*Q[:3], 12), start=-1)),
    ("head_dim = 14), not (2", lambda p, x: p.RotaryEmbedding(x(7))(x(2, 3, 5, 12))),
    ("head_dim = 14), not (3", lambda p, x: p.RotaryEmbedding(x(7))(x(3, 5, 14))),
    (
        "frequencies (7) must be at most half of head_dim (13)",
        lambda p, x: p.RotaryEmbedding(x(7), head_dim=13),
    ),
    (
        "positions must be (5,) or (2, 5), and start 0, not (5,) and 2",
        lambda p, x: p.RotaryEmbedding(x(7))(x(2, 3, 5, 14), 2, positions=x(5)),
    ),
    ("rows (12) must be divisible by", lambda p, x: p.pairs_to_halves(x(12), 4)),
    ("rows (12) must be divisible by", lambda p, x: p.halves_to_pairs(x(12), 4)),
    ("scale (0.5) must be", lambda p, x: p.scale_linear(x(7), 0.5)),
    ("scale (inf) must be", lambda p, x: p.scale_ntk(x(7), np.inf)),
    ("scale (0.5) must be", lambda p, x: p.scale_llama3(x(7), 0.5, trained_len=8)),
    ("scale (0.5) must be", lambda p, x: p.scale_yarn(x(7), 0.5, trained_len=8)),
    ("scale (0.5) must be", lambda p, _: p.yarn_factor(0.5)),
    ("frequencies must be at", lambda p, x: p.scale_ntk(x(1), 2)),
    ("frequencies must be at", lambda p, x: p.scale_yarn(x(1), 2, trained_len=8)),
    ("trained_len (0) must be", lambda p, x: p.scale_yarn(x(7), 2, trained_len=0)),
    (
        "high (4.0) must be above low (4.0)",
        lambda p, x: p.scale_llama3(x(7), 2, trained_len=8, low=4.0),
    ),
    ("low above 0", lambda p, x: p.scale_yarn(x(7), 2, trained_len=8, low=0)),
    ("num_heads (0) must be at least 1", lambda p, _: p.alibi_slopes(0)),
    ("num_buckets (1) must be at least 2", lambda p, _: p.bucket_starts(1, 9)),
    ("max_distance (16) must be above 16", lambda p, _: p.bucket_starts(32, 16)),
    ("must be in [1, num_experts = 6]", lambda p, x: p.route(x(2, 6), 7)),
    ("must be in [1, num_experts = 6]", lambda p, x: p.route(x(2, 6), 0)),
    ("must be one of soft", lambda p, x: p.route(x(2, 6), 2, scores="relu")),
    (
        "value must be (2, 3, 7, 11) with query (2, 3, 7, 5)",
        lambda p, x: p.linear_attention_recurrent(*[x(2, 3, 7, 5)] * 2, x(2, 3, 5, 11)),
    ),
    (
        "beta must be (2, 3, 7) with query (2, 3, 7, 5), not (1, 3, 7)",
        lambda p, x: p.delta_rule_recurrent(*[x(2, 3, 7, 5)] * 3, x(1, 3, 7)),
    ),
    (
        "log_decay must be (2, 3, 7, 5) with query (2, 3, 7, 5), not (2, 3, 7, 1)",
        lambda p, x: p.delta_rule_recurrent(
            *[x(2, 3, 7, 5)] * 3, x(2, 3, 7), log_decay=x(2, 3, 7, 1)
        ),
    ),
    (
        "key must be (2, 3, 7, 4) with query (2, 3, 7, 4), not (2, 1, 7, 4)",
        lambda p, x: p.state_space_recurrent(
            x(2, 3, 7, 5), x(2, 3, 7), x(3), x(2, 1, 7, 4), x(2, 3, 7, 4)
        ),
    ),
    (
        "state must be (2, 3, 7, 7) with query",
        lambda p, x: p.linear_attention_recurrent(*[x(2, 3, 7, 7)] * 3, state=x(2, 3)),
    ),
    (
        "query must be (B, H, T, Dk), and not empty",
        lambda p, x: p.linear_attention_recurrent(*[x(2, 0, 7, 5)] * 3),
    ),
    ("must fit", lambda p, x: attend(p, x, 1, H)),
    ("must fit", lambda p, x: attend(p, x, B, 2)),
    ("must fit", lambda p, x: attend(p, x, value=x(*Q))),
    ("softcap (0.0) must be above 0", lambda p, x: attend(p, x, softcap=0.0)),
    ("softcap (inf) must be above 0", lambda p, x: attend(p, x, softcap=np.inf)),
    ("one floating", lambda p, x: attend(p, x, query=x(*Q, **INT))),
    ("one floating", lambda p, x: attend(p, x, value=x(*K, **INT))),
    ("bias is bool", lambda p, x: attend(p, x, bias=x(T, S, **BOOL))),
    ("attn_mask is", lambda p, x: attend(p, x, attn_mask=x(T, S))),
    ("attn_mask (2, 7) must be (T, S)", lambda p, x: with_mask(p, x, B, S)),
    ("mask (3, 5, 7) must", lambda p, x: with_mask(p, x, H, T, S)),
    ("(1, 2, 5, 7) must", lambda p, x: with_mask(p, x, 1, 2, T, S)),
    ("(1, 1, 5, 2) must", lambda p, x: attend(p, x, bias=x(1, 1, T, 2))),
    ("it needs is_causal", lambda p, x: attend(p, x, window=2)),
    ("window (0)", lambda p, x: attend(p, x, window=0, is_causal=True)),
    ("must fit", lambda p, x: of(p, HEADS)(x(B, T, D), x(1, S, D))),
    ("needs key", lambda p, x: of(p, HEADS)(x(B, T, D), value=x(B, S, D)), "given"),
    ("x has width 7 but d_model is 12", lambda p, x: of(p, nn.LayerNorm(D))(x(B, 7))),
    ("x has width 1 but d_model is 12", lambda p, x: of(p, nn.RMSNorm(D))(x(B, 1))),
    ("[0, vocab_size = 17), but they reach from", lambda p, x: embed(p, x, V)),
    ("but they reach from -1 to -1", lambda p, x: embed(p, x, -1)),
    ("ids must be int64", lambda p, x: embed(p, x, 1, "float64"), "integers, not fl"),
    ("ids must be int64", lambda p, x: embed(p, x, True, "bool"), "integers, not bo"),
    (
        "x must be (batch, length, d_model = 12), not (2, 5, 1)",
        lambda p, x: of(p, nn.SinusoidalPositionalEncoding(D))(x(B, T, 1)),
    ),
    (
        "x must be (batch, length, d_model = 12), not (5, 12)",
        lambda p, x: of(p, nn.LearnedPositionalEmbedding(7, D))(x(T, D)),
    ),
    (
        "x needs positions up to 8 but max_len is 7: x is (2, 5, 12), start is 3",
        lambda p, x: of(p, nn.LearnedPositionalEmbedding(7, D))(x(B, T, D), start=3),
    ),
    ("memory must be given", lambda p, x: of(p, CROSSES)(x(B, T, D))),
    ("memory must be given", lambda p, x: of(p, ALONE)(x(B, T, D), x(B, T, D))),
    ("lengths must hold integers, not float64", lambda p, x: p.length_mask(x(2))),
    ("not bool", lambda p, x: p.length_mask(x(2, **BOOL))),
    ("in [0, max_len = 7]", lambda p, x: p.length_mask(9 * x(2, **INT), 7)),
    ("(-1 to -1) must", lambda p, x: p.length_mask(-x(2, **INT), 3)),
    ("must be (B,)", lambda p, x: p.length_mask(x(1, 2, **INT)), "(1, 2)"),
    ("key_mask must be", lambda p, x: key_mask(p, x, 2, 7, **INT)),
    ("(B, S) = (2, 7), not (1, 7)", lambda p, x: key_mask(p, x, 1, 7)),
    ("= (2, 7), not (2, 1, 1, 7)", lambda p, x: key_mask(p, x, 2, 1, 1, 7)),
    ("a mask must be", lambda p, x: p.combine_masks(x(2, 2))),
    ("one batch size", lambda p, x: translate(p, x, tgt=(3, T)), "must fit"),
    (
        "src_key_mask must be (B, S) = (2, 7), not (1, 7)",
        lambda p, x: translate(p, x, src_key_mask=x(1, S, **BOOL)),
    ),
]


@pytest.mark.parametrize(
    ("message", "call", "of_twin"), [(*row, "")[:3] for row in REFUSED]
)
def test_what_is_refused_in_the_same_words(message, call, of_twin):
    words, kinds = [], []
    for names, ones in ((nn, to_torch), (reference, to_numpy)):
        with pytest.raises((TypeError, ValueError)) as error:
            call(names, ones)
        words.append(str(error.value).replace("torch.Size(", "(").replace("torch.", ""))
        kinds.append(error.type)
    assert message in words[0]
    assert of_twin in words[1] if of_twin else words[0] == words[1]
    assert kinds[0] is kinds[1]


def linear(rows):
    return Linear(to_numpy(rows, D))


@pytest.mark.parametrize(
    ("message", "make"),
    [  # of classes that are made otherwise than the modules
        (
            "this attention is causal, and takes no",
            lambda x: reference.LinearAttention(*[linear(D)] * 4, H)(
                x(B, T, D), is_causal=False
            ),
        ),
        ("bias must be (2,), n", lambda x: Linear(x(2, 3), x(1))),
        (
            "placement ('both') is unknown",
            lambda x: Block(*[np.tanh] * 4, placement="both")(x(1, 2, 3)),
        ),
        (
            "activation ('swish') must be one of relu, gelu, gelu_tanh, relu2, silu",
            lambda _: FeedForward(None, None, activation="swish"),
        ),
        (
            "gate ('silu') must be one of glu, reglu, geglu, geglu_tanh, swiglu",
            lambda _: GatedFeedForward(None, None, None, gate="silu"),
        ),
        ("eps (0) must be above 0", lambda x: reference.LayerNorm(x(D), eps=0)),
        ("eps (0) must be above 0", lambda x: reference.RMSNorm(x(D), 0)),
        ("(5) must be even", lambda _: reference.sinusoidal_positional_encoding(3, 5)),
        (
            "width (12) must be divisible by num_heads (5)",
            lambda x: reference.MultiHeadAttention(*[linear(D)] * 4, 5)(x(B, T, D)),
        ),
        (
            "num_buckets (7) must be even: half are for",
            lambda x: reference.RelativeBias(x(7, 3), bidirectional=True),
        ),
        (  # the original takes it, for beams; here it would broadcast by luck
            "must fit",
            lambda x: of(reference, CROSSES)(x(B, T, D), x(1, S, D)),
        ),
    ],
)
def test_what_the_twin_alone_refuses(message, make):
    with pytest.raises(ValueError, match=re.escape(message)):
        make(to_numpy)

"""Bad input, with the message that says what is wrong.

What the twin refuses in the same words is in tests/reference/test_reference_refused.py.
"""

import math
from functools import partial

import pytest
import torch
from torch import nn

from tformer import nn as parts
from tformer.nn import (
    Block,
    Experts,
    FeedForward,
    GatedDeltaRule,
    GatedFeedForward,
    KeyValueCache,
    LatentAttention,
    LearnedPositionalEmbedding,
    LinearAttention,
    MultiHeadAttention,
    QuantizedCache,
    QuantizedLinear,
    RelativeBias,
    SinusoidalPositionalEncoding,
    TokenEmbedding,
    attend_to_segments,
    causal_mask,
    combine_masks,
    length_mask,
    record_weights,
    scaled_dot_product_attention,
    transformer_block,
    transformer_decoder,
    transformer_encoder,
)

B, T, S, D, H = 2, 5, 7, 12, 3
QUERY, KEY, VALUE = (2, 6, 5, 11), (2, 3, 7, 11), (2, 3, 7, 13)
x = torch.ones
INT = {"dtype": torch.int64}
HEADS = MultiHeadAttention(D, H)
CROSSES = transformer_block(D, H, 8, cross_attention=True)
ENCODER = transformer_encoder(D, H, 8, 1)
ROTARY = parts.RotaryEmbedding(parts.rotary_frequencies(4))
GRADED = x(1, requires_grad=True)
REAL = x(B, T, dtype=torch.bool)
V = 11
EMBED = TokenEmbedding(V, D)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 5, 11), KEY, VALUE),  # three axes
        ((2, 6, 0, 11), KEY, VALUE),  # nothing
        (QUERY, KEY, (2, 3, 7, 0)),
        (QUERY, (2, 3, 7, 10), VALUE),  # another width
        (QUERY, (1, 3, 7, 11), (1, 3, 7, 13)),  # another batch
        (QUERY, KEY, (2, 3, 6, 13)),  # the value is of other keys
        (QUERY, (2, 4, 7, 11), (2, 4, 7, 13)),  # heads in no groups
    ],
)
def test_shapes_fit(raises, shapes):
    rule = (
        "query (B, H, T, Dh), key (B, G, S, Dh) and value (B, G, S, Dv) must fit, "
        "G divide H, and none be empty: "
    )
    with raises(ValueError, rule + ", ".join(map(str, shapes))):
        scaled_dot_product_attention(*map(torch.randn, shapes))


@pytest.mark.parametrize("name", ["attn_mask", "bias"])
@pytest.mark.parametrize(
    "shape",
    [
        (7,),
        (5, 1),
        (1, 7),
        (2, 7),  # (B, S), a whole model's key_mask
        (6, 5, 7),
        (1, 2, 1, 1),
        (2, 6, 5, 0),
        (1, 1, 6, 5, 7),
    ],
)
def test_masks_and_biases_do_not_broadcast_by_luck(raises, name, shape):
    added = {name: x(shape).bool() if name == "attn_mask" else x(shape)}
    rule = "must be (T, S), or broadcast with four axes to (2, 6, 5, 7)"
    with raises(ValueError, f"{name} {shape} {rule}"):
        scaled_dot_product_attention(x(QUERY), x(KEY), x(VALUE), **added)


def attend(**options):
    return scaled_dot_product_attention(x(QUERY), x(KEY), x(VALUE), **options)


def latent(**options):
    options = {"kv_rank": 7, "head_dim": 5, **options}
    return LatentAttention(D, H, rotary=ROTARY, **options)


def experts(**options):
    return Experts(D, 6, lambda: nn.Linear(D, D), **options)


def block(**options):
    return Block(HEADS, FeedForward(D, 8), partial(parts.LayerNorm, D), **options)


@torch.no_grad()
def of_two_memories():
    cache = CROSSES.new_cache(T)
    for _ in range(2):
        CROSSES(x(B, 1, D), x(B, S, D), cache=cache)


def recorded_in_segments():
    with record_weights(HEADS):
        HEADS(x(B, T, D), around=partial(attend_to_segments, segments=[T]))


REFUSED = [
    ("scale (0) must be above 0 and finite", lambda: attend(scale=0)),
    ("softcap (inf) must be above 0 and finite", lambda: attend(softcap=math.inf)),
    ("window (nan) must be", lambda: attend(window=math.nan, is_causal=True)),
    ("dropout_p (-0.1) must be in [0, 1)", lambda: attend(dropout_p=-0.1)),
    ("sinks (6, 1) must be (H,) = (6,)", lambda: attend(sinks=x(6, 1))),
    ("query_len (0) must be at least 1", lambda: causal_mask(0)),
    ("key_len (0) must be at least 1", lambda: causal_mask(3, 0)),
    ("window (0) must be at least 1", lambda: causal_mask(3, window=0)),
    ("max_len (0) must be at least 1", lambda: length_mask(0 * x(2, **INT))),
    ("(B,) with B >= 1, not (0,)", lambda: length_mask(x(0, **INT))),
    ("integers, not torch.complex64", lambda: length_mask(x(2).cfloat())),
    ("do not broadcast", lambda: combine_masks(causal_mask(3), causal_mask(2))),
    ("placement ('first') must be one of ('post',", lambda: block(placement="first")),
    ("('post', 'pre')", lambda: block(placement="output", cross_attention=HEADS)),
    ("dropout (-0.1) must be in [0, 1)", lambda: block(dropout=-0.1)),
    ("x has 2 rows, not a multiple of", lambda: CROSSES(x(B, T, D), x(3, S, D))),
    ("memory's 0", lambda: CROSSES(x(B, T, D), x(0, S, D))),
    ("keys and values of another memory", of_two_memories),
    ("num_layers (0) must be at least 1", lambda: transformer_decoder(D, H, 8, 0)),
    ("num_layers (-1) must be at least 1", lambda: transformer_encoder(D, H, 8, -1)),
    ("blocks (none) must be at least 1", lambda: parts.Decoder([])),
    ("blocks (none) must be at least 1", lambda: parts.Encoder([])),
    ("key_mask needs a real", lambda: ENCODER(x(B, T, D), key_mask=~REAL)),
    ("no attn_mask", lambda: ENCODER(x(B, T, D), causal_mask(T), key_mask=REAL)),
    ("vocab_size (0) must be at least 1", lambda: TokenEmbedding(0, D)),
    ("d_model (0) must be at least 1", lambda: TokenEmbedding(V, 0)),
    ("int64 or int32, not torch.uint8", lambda: EMBED(x(B, T, dtype=torch.uint8))),
    ("(batch, length) and not empty, not (5,)", lambda: EMBED(x(T, **INT))),
    ("(batch, length) and not empty, not (2, 0)", lambda: EMBED(x(B, 0, **INT))),
    *(
        row
        for kind in (FeedForward, GatedFeedForward)
        for row in (
            ("d_model (0) must be at least 1", partial(kind, 0, 8)),
            ("d_ff (0) must be at least 1", partial(kind, D, 0)),
            ("dropout (1.0) must be in [0, 1)", partial(kind, D, 8, dropout=1.0)),
            ("x has width 1 but d_model is 12", partial(kind(D, 8), x(2, 5, 1))),
        )
    ),
    ("activation ('swish') must be", lambda: FeedForward(D, 8, activation="swish")),
    ("one of glu, reglu, geglu", lambda: GatedFeedForward(D, 8, gate="silu")),
    *(
        row
        for norm in (parts.LayerNorm, parts.RMSNorm)
        for row in (
            ("d_model (0) must be at least 1", partial(norm, 0)),
            ("eps (0) must be above 0 and finite", partial(norm, D, 0)),
            ("eps (inf) must be above 0 and finite", partial(norm, D, math.inf)),
        )
    ),
    ("d_model (12) must be divisible by num_h", lambda: MultiHeadAttention(D, 5)),
    ("divisible by num_kv_heads (2)", lambda: MultiHeadAttention(D, 3, num_kv_heads=2)),
    ("d_model (0) must be at least 1", lambda: MultiHeadAttention(0, 3)),
    ("num_heads (0) must be at least 1", lambda: MultiHeadAttention(D, 0)),
    ("num_kv_heads (0) must", lambda: MultiHeadAttention(D, 3, num_kv_heads=0)),
    ("head_dim (0) must be at least 1", lambda: MultiHeadAttention(D, 3, head_dim=0)),
    ("dropout (1.0) must be in", lambda: MultiHeadAttention(D, 3, dropout=1.0)),
    ("query must be (batch, length, d_model = 12), not", lambda: HEADS(x(T, D))),
    ("key must be (batch, ", lambda: HEADS(x(B, T, D), x(B, T, 11))),
    ("value must be (batch, ", lambda: HEADS(*[x(B, T, D)] * 2, x(B, T, 1, D))),
    ("a cache is for", lambda: HEADS(*[x(B, T, D)] * 2, cache=KeyValueCache(T))),
    (
        "segments (4 tokens in all) must cover query and key, of 5 and 5",
        lambda: HEADS(x(B, T, D), around=partial(attend_to_segments, segments=[4])),
    ),
    ("around makes no weights that can be recorded", recorded_in_segments),
    ("is an empty sequence", lambda: SinusoidalPositionalEncoding(D)(x(B, 0, D))),
    ("start (-3) must", lambda: SinusoidalPositionalEncoding(D)(x(B, T, D), start=-3)),
    ("d_model (5) must be even", lambda: SinusoidalPositionalEncoding(5)),
    ("d_model (5) must be even", lambda: parts.sinusoidal_positions(3, 5)),
    ("length (0) must be at least 1", lambda: parts.sinusoidal_positions(0, 4)),
    ("d_model (0) must be at least 1", lambda: SinusoidalPositionalEncoding(0)),
    ("max_len (0) must", lambda: SinusoidalPositionalEncoding(4, max_len=0)),
    ("max_len (0) must be at least 1", lambda: LearnedPositionalEmbedding(0, 4)),
    ("d_model (-2) must be at least 1", lambda: LearnedPositionalEmbedding(4, -2)),
    ("factor (-1) must be above 0", lambda: setattr(ROTARY, "factor", -1)),
    ("num_heads (0) must be at least 1", lambda: RelativeBias(0)),
    ("num_buckets (0) must be at least 1", lambda: RelativeBias(2, num_buckets=0)),
    ("must be even: half", lambda: RelativeBias(2, num_buckets=7, bidirectional=True)),
    ("(1) must be at", lambda: RelativeBias(2, num_buckets=2, bidirectional=True)),
    ("top_k (7) must be in [1, num_experts = 6]", lambda: experts(top_k=7)),
    ("top_k (0) must be at least 1", lambda: experts(top_k=0)),
    ("scores ('tanh') must be one of softmax, sigm", lambda: experts(scores="tanh")),
    ("balance_rate (-0.1) must be at", lambda: experts(balance_rate=-0.1)),
    ("num_experts (0) must be at least 1", lambda: parts.Router(D, 0)),
    ("x must have width 12, as weight is (6, 12), not", lambda: experts()(x(2, 3, 4))),
    *(
        (f"{name} (0) must be at least 1", partial(latent, **{name: 0}))
        for name in ("kv_rank", "head_dim", "value_dim", "q_rank")
    ),
    ("dropout (1.0) must be in [0, 1)", lambda: latent(dropout=1.0)),
    ("x must be (batch, length, d_model = 12), not", lambda: latent()(x(B, T, 14))),
    *(
        row
        for kind in (LinearAttention, GatedDeltaRule)
        for row in (
            ("d_model (12) must be divisible by num_heads (5)", partial(kind, D, 5)),
            ("chunk (0) must be at least 1", partial(kind, D, H, chunk=0)),
            ("max_len (0) must be at least 1", partial(kind(D, H).new_cache, 0)),
        )
    ),
    ("chunk (0) must be", lambda: parts.linear_attention(*[x(KEY)] * 3, chunk=0)),
    ("chunk (0)", lambda: parts.delta_rule(*[x(KEY)] * 3, x(2, 3, 7), chunk=0)),
    ("bits (9) must be in [2, 8]", lambda: parts.quantize(x(2, 6), 9)),
    ("bits (1) must be in [2, 8]", lambda: parts.quantize(x(2, 6), 1)),
    ("width (6) must be divisible by", lambda: parts.quantize(x(2, 6), 8, 4)),
    ("group_size (0) must be", lambda: parts.quantize(x(2, 6), 8, 0)),
    ("bits (3) must be 4 or 8", lambda: QuantizedLinear(nn.Linear(6, 2), bits=3)),
    ("in_features (5) must be", lambda: QuantizedLinear(nn.Linear(5, 2), bits=4)),
    ("query_tile (0)", lambda: parts.tiled_attention(*[x(KEY)] * 3, query_tile=0)),
    ("key_tile (0)", lambda: parts.tiled_attention(*[x(KEY)] * 3, key_tile=0)),
    ("softcap (0.0)", lambda: parts.tiled_attention(*[x(KEY)] * 3, softcap=0.0)),
    ("holds no gradients", lambda: QuantizedCache(3).append(*[x(KEY) * GRADED] * 2)),
    ("max_len (0) must be at least 1", lambda: KeyValueCache(0)),
    ("window (0) must be at least 1", lambda: KeyValueCache(2, window=0)),
    ("max_len must be an int, not float", lambda: KeyValueCache(2.0)),
]


@pytest.mark.parametrize(("message", "call"), REFUSED)
def test_what_is_refused(message, call):
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    assert message in str(error.value)

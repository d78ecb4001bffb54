"""The forms of each concept in the NumPy twin."""

from functools import partial

import numpy as np

from spec_forms import (
    Form,
    even_width,
    one_after_another,
    rotary,
    rotary_from,
    rotate,
    speculative,
    t5_buckets,
)
from tformer import reference as twin


def rms_norm(x, weight, eps, *, plus_one=False):
    return twin.RMSNorm(weight, eps, plus_one)(x)


def multi_head(
    x, w_q, w_k, w_v, w_o, num_heads, mask=None, *, memory=None, num_kv_heads=None,
    is_causal=False, q_gain=None, k_gain=None, rotary_base=None, w_gate=None,
):  # fmt: skip
    parts = {"num_kv_heads": num_kv_heads}
    if q_gain is not None:
        parts |= {"q_norm": twin.RMSNorm(q_gain), "k_norm": twin.RMSNorm(k_gain)}
    if rotary_base is not None:
        frequencies = twin.rotary_frequencies(len(w_q) // num_heads, base=rotary_base)
        parts["rotary"] = twin.RotaryEmbedding(frequencies, layout="halves")
    if w_gate is not None:
        parts["gate"] = twin.Linear(w_gate)
    maps = map(twin.Linear, (w_q, w_k, w_v, w_o))
    module = twin.MultiHeadAttention(*maps, num_heads, **parts)
    return module(x, memory, None, mask, is_causal=is_causal)


def sinusoids(length, d_model, *, start=0):
    module = twin.SinusoidalPositionalEncoding(d_model)
    return module(np.zeros((1, length, d_model)), start=start)[0]


in_blocks = partial(twin.attention_in_blocks, queries_at_a_time=2)
SINUSOIDS = twin.sinusoidal_positional_encoding
FORMS = [
    Form(spec, name, function, "numpy", only)
    for spec, name, function, only in (
        ("attention", "function", twin.scaled_dot_product_attention, None),
        ("attention", "function in blocks", in_blocks, None),
        ("grouped_attention", "function", twin.scaled_dot_product_attention, None),
        ("grouped_attention", "function in blocks", in_blocks, None),
        ("causal_mask", "function", twin.causal_mask, None),
        ("length_mask", "function", twin.length_mask, None),
        ("combine_masks", "function", twin.combine_masks, None),
        ("multi_head", "class", multi_head, None),
        ("split_heads", "function", twin.split_heads, None),
        ("merge_heads", "function", twin.merge_heads, None),
        ("layer_norm", "function", twin.layer_norm, None),
        ("layer_norm", "class", lambda x, *given: twin.LayerNorm(*given)(x), None),
        ("rms_norm", "function", twin.rms_norm, None),
        ("rms_norm", "class", rms_norm, None),
        ("sinusoids", "function", SINUSOIDS, even_width),
        ("sinusoids", "class", sinusoids, even_width),
        (
            "learned",
            "class",
            lambda x, table, start: twin.LearnedPositionalEmbedding(table)(
                x, start=start
            ),
            None,
        ),
        ("rotary", "function", rotate(twin, np), None),
        ("rotary", "class", rotary(twin), None),
        ("rotary", "class from", rotary_from(twin), one_after_another),
        ("alibi", "class", lambda H, T, S: twin.ALiBi(H)(T, S)[0], None),
        ("t5_buckets", "function", t5_buckets(twin), None),
        ("speculative", "functions", speculative(twin), None),
    )
]

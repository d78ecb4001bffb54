"""The forms of each concept in torch: functions, and modules with weights put in."""

from functools import partial
from unittest.mock import patch

import torch
from torch import nn
from torch.func import functional_call

from pieces import in_pieces, splits
from spec_forms import (
    Form,
    even_width,
    is_causal,
    one_after_another,
    rotary,
    rotary_from,
    rotate,
    speculative,
    t5_buckets,
)
from tformer.generate import sampling
from tformer.generate import speculative as speculation
from tformer.nn import attention, masks, norm, positions, relative
from tformer.nn import rotary as of_rotary
from tformer.nn.attention import scaled_dot_product_attention
from tformer.nn.cache import KeyValueCache
from tformer.nn.heads import MultiHeadAttention, merge_heads, split_heads
from tformer.nn.packed import attend_to_segments
from tformer.nn.tiles import tiled_attention
from tformer.training.loss import label_smoothed_cross_entropy


def in_blocks(
    query, key, value, mask=None, *, bias=None, is_causal=False, window=None,
    sinks=None, scale=None, softcap=None,
):  # fmt: skip
    options = {"bias": bias, "is_causal": is_causal, "window": window, "sinks": sinks}
    with patch.object(attention, "QUERIES_AT_A_TIME", 2):
        return scaled_dot_product_attention(
            query, key, value, mask, scale=scale, softcap=softcap, **options
        )


def by_weights(query, key, value, mask=None, **options):
    """Attend by the formula, which holds the weights whole."""
    weights = attention.attention_weights(query, key, mask, **options)
    value = value.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    return (weights @ value.to(weights.dtype)).to(query.dtype)


def in_segments(query, key, value, *, segments, is_causal=False):
    around = partial(attend_to_segments, segments=segments, is_causal=is_causal)
    return around(scaled_dot_product_attention, query, key, value)


def in_tiles(query, key, value, mask=None, **options):
    return tiled_attention(query, key, value, mask, query_tile=2, key_tile=3, **options)


def layer_norm(x, weight, bias, eps):
    module = norm.LayerNorm(len(weight), eps, bias=bias is not None)
    weights = {"weight": weight, **({} if bias is None else {"bias": bias})}
    return functional_call(module, weights, x)


def rms_norm(x, weight, eps, *, plus_one=False):
    module = norm.RMSNorm(len(weight), eps, plus_one=plus_one)
    return functional_call(module, {"weight": weight}, x)


def multi_head(
    x, w_q, w_k, w_v, w_o, num_heads, mask=None, *, memory=None, num_kv_heads=None,
    is_causal=False, q_gain=None, k_gain=None, rotary_base=None, w_gate=None,
    call=functional_call,
):  # fmt: skip
    D, Dh = x.shape[-1], len(w_q) // num_heads
    parts = {"num_kv_heads": num_kv_heads, "head_dim": Dh, "bias": False}
    weights = {"q_proj": w_q, "k_proj": w_k, "v_proj": w_v, "out_proj": w_o}
    if q_gain is not None:
        parts |= {"q_norm": norm.RMSNorm(Dh), "k_norm": norm.RMSNorm(Dh)}
        weights |= {"q_norm": q_gain, "k_norm": k_gain}
    if rotary_base is not None:
        frequencies = of_rotary.rotary_frequencies(Dh, base=rotary_base)
        parts["rotary"] = of_rotary.RotaryEmbedding(frequencies, layout="halves")
    if w_gate is not None:
        parts["gate"] = nn.Linear(D, num_heads * Dh, bias=False)
        weights["gate"] = w_gate
    module = MultiHeadAttention(D, num_heads, **parts)
    weights = {f"{name}.weight": weight for name, weight in weights.items()}
    return call(module, weights, (x, memory, None, mask), {"is_causal": is_causal})


@torch.no_grad()
def in_every_split(module, weights, args, options):
    """Read a text through a cache, in pieces of every size; all must give the same."""
    x, outputs = args[0], []
    for sizes in splits(x.shape[1]):
        given = {"cache": KeyValueCache(x.shape[1]), **options}

        def piece(begin, end, given=given):
            return functional_call(module, weights, x[:, begin:end], given)

        outputs.append(in_pieces(piece, sizes))
    for each in outputs:
        torch.testing.assert_close(each, outputs[0], atol=1e-12, rtol=1e-9)
    return outputs[-1]


def sinusoids(length, d_model, *, start=0):
    module = positions.SinusoidalPositionalEncoding(d_model, max_len=2)
    return module(torch.zeros(1, length, d_model, dtype=torch.float64), start=start)[0]


def learned(x, table, start):
    module = positions.LearnedPositionalEmbedding(*table.shape)
    return functional_call(module, {"weight": table}, x, {"start": start})


def cached_step(q, k, v, cache):
    held = cache.setdefault("held", KeyValueCache(9))
    keys, values = held.append(k, v)
    return scaled_dot_product_attention(q, keys, values, is_causal=True)


def loss(logits, targets, pad_id, smoothing):
    return label_smoothed_cross_entropy(
        logits, targets, pad_id=pad_id, smoothing=smoothing
    )


def temperature(logits, temperature):
    return sampling.next_logits(logits, temperature=temperature).softmax(-1)


FORMS = [
    Form("attention", "function", scaled_dot_product_attention),
    Form("attention", "function in blocks", in_blocks),
    Form(
        "attention",
        "weights",
        by_weights,
        only=lambda case: "segments" not in case.options,
    ),
    Form(
        "attention",
        "function of segments",
        in_segments,
        only=lambda case: "segments" in case.options,
    ),
    Form(
        "attention",
        "function in tiles",
        in_tiles,
        only=lambda case: not case.options.keys() & {"window", "sinks", "segments"},
    ),
    Form("grouped_attention", "function", scaled_dot_product_attention),
    Form("grouped_attention", "weights", by_weights),
    Form("grouped_attention", "function in blocks", in_blocks),
    Form("causal_mask", "function", masks.causal_mask),
    Form("length_mask", "function", masks.length_mask),
    Form("combine_masks", "function", masks.combine_masks),
    Form("multi_head", "module", multi_head),
    Form(
        "multi_head",
        "module in pieces",
        partial(multi_head, call=in_every_split),
        only=is_causal,
        gradient=False,
    ),
    Form("split_heads", "function", split_heads),
    Form("merge_heads", "function", merge_heads),
    Form("layer_norm", "function", norm.layer_norm),
    Form("layer_norm", "module", layer_norm),
    Form("rms_norm", "function", norm.rms_norm),
    Form("rms_norm", "module", rms_norm),
    Form("sinusoids", "function", positions.sinusoidal_positions, only=even_width),
    Form("sinusoids", "module", sinusoids, only=even_width, rtol=1e-6),
    Form("learned", "module", learned),
    Form("rotary", "function", rotate(of_rotary, torch)),
    Form("rotary", "module", rotary(of_rotary)),
    Form("rotary", "module from", rotary_from(of_rotary), only=one_after_another),
    Form("alibi", "module", lambda H, T, S: relative.ALiBi(H).double()(T, S)[0]),
    Form("t5_buckets", "function", t5_buckets(relative)),
    Form("cached_step", "KeyValueCache", cached_step),
    Form("cached_pieces", "KeyValueCache", cached_step),
    Form("cache", "KeyValueCache", KeyValueCache),
    Form("rolling_cache", "KeyValueCache", lambda W: KeyValueCache(11, window=W)),
    Form("top_k", "function", sampling.top_k_filter),
    Form("top_p", "function", sampling.top_p_filter),
    Form("temperature", "function", temperature),
    Form("speculative", "functions", speculative(speculation)),
    Form("smoothed_loss", "function", loss),
]

"""The forms of each concept in torch: functions, and modules with weights put in."""

import torch
from torch.func import functional_call

from pieces import in_pieces, splits
from spec_forms import (
    Form,
    causal_mask,
    causal_only,
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
from tformer.nn import masks, norm, positions, relative, rms_norm
from tformer.nn import rotary as of_rotary
from tformer.nn.attention import scaled_dot_product_attention
from tformer.nn.cache import KeyValueCache
from tformer.nn.heads import MultiHeadAttention, merge_heads, split_heads
from tformer.nn.rolling import RollingCache
from tformer.nn.self_attention import SelfAttention
from tformer.training.loss import label_smoothed_cross_entropy


def layer_norm(x, weight, bias, eps):
    module = norm.LayerNorm(len(weight), eps, bias=bias is not None)
    weights = {"weight": weight, **({} if bias is None else {"bias": bias})}
    return functional_call(module, weights, x)


def rms_norm_module(x, weight, eps, *, plus_one=False):
    module = rms_norm.RMSNorm(len(weight), eps, plus_one=plus_one)
    return functional_call(module, {"weight": weight}, x)


def projections(*weights):
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    return {f"{n}.weight": w for n, w in zip(names, weights, strict=True)}


def multi_head(
    x, w_q, w_k, w_v, w_o, num_heads, mask=None, *, memory=None, num_kv_heads=None,
    is_causal=False,
):  # fmt: skip
    options = {"num_kv_heads": num_kv_heads, "bias": False}
    module = MultiHeadAttention(x.shape[-1], num_heads, **options)
    inputs, weights = (x, memory, None, mask), projections(w_q, w_k, w_v, w_o)
    return functional_call(module, weights, inputs, {"is_causal": is_causal})


def self_attention(
    x, w_q, w_k, w_v, w_o, num_heads, *, is_causal, num_kv_heads=None, q_gain=None,
    k_gain=None, rotary_base=None, in_pieces=False,
):  # fmt: skip
    Dh = len(w_q) // num_heads
    parts = {"head_dim": Dh, "num_kv_heads": num_kv_heads}
    weights = projections(w_q, w_k, w_v, w_o)
    if q_gain is not None:
        parts["qk_norm"] = rms_norm.RMSNorm
        weights |= {"q_norm.weight": q_gain, "k_norm.weight": k_gain}
    if rotary_base is not None:
        frequencies = of_rotary.rotary_frequencies(Dh, base=rotary_base)
        parts["rotary"] = of_rotary.RotaryEmbedding(frequencies, layout="halves")
    module = SelfAttention(x.shape[-1], num_heads, **parts)
    if in_pieces:
        return in_every_split(module, weights, x)
    return functional_call(module, weights, x)


def multi_head_in_pieces(x, w_q, w_k, w_v, w_o, num_heads, *, is_causal):
    module = MultiHeadAttention(x.shape[-1], num_heads, bias=False)
    weights = projections(w_q, w_k, w_v, w_o)
    return in_every_split(module, weights, x, is_causal=True)


def self_attention_in_pieces(*given, is_causal, **options):
    return self_attention(*given, is_causal=is_causal, in_pieces=True, **options)


@torch.no_grad()
def in_every_split(module, weights, x, **options):
    """Read a text through a cache, in pieces of every size; all must give the same."""
    outputs = []
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


def alibi(num_heads, T, S):
    return relative.ALiBi(num_heads).double()(T, S)[0]


FORMS = [
    Form("attention", "function", scaled_dot_product_attention),
    Form("grouped_attention", "function", scaled_dot_product_attention),
    Form("causal_mask", "function", causal_mask(masks)),
    Form("length_mask", "function", masks.length_mask),
    Form("combine_masks", "function", masks.combine_masks),
    Form("multi_head", "module", multi_head),
    Form("multi_head", "causal module", self_attention, only=is_causal),
    Form(
        "multi_head",
        "module in pieces",
        multi_head_in_pieces,
        only=causal_only,
        gradient=False,
    ),
    Form(
        "multi_head",
        "causal module in pieces",
        self_attention_in_pieces,
        only=is_causal,
        gradient=False,
    ),
    Form("split_heads", "function", split_heads),
    Form("merge_heads", "function", merge_heads),
    Form("layer_norm", "function", norm.layer_norm),
    Form("layer_norm", "module", layer_norm),
    Form("rms_norm", "function", rms_norm.rms_norm),
    Form("rms_norm", "module", rms_norm_module),
    Form("sinusoids", "function", positions.sinusoidal_positions, only=even_width),
    Form("sinusoids", "module", sinusoids, only=even_width, rtol=1e-6),
    Form("learned", "module", learned),
    Form("rotary", "function", rotate(of_rotary, torch)),
    Form("rotary", "module", rotary(of_rotary)),
    Form("rotary", "module from", rotary_from(of_rotary), only=one_after_another),
    Form("alibi", "module", alibi),
    Form("t5_buckets", "function", t5_buckets(relative)),
    Form("cached_step", "KeyValueCache", cached_step),
    Form("cached_pieces", "KeyValueCache", cached_step),
    Form("cache", "KeyValueCache", KeyValueCache),
    Form("rolling_cache", "RollingCache", RollingCache),
    Form("top_k", "function", sampling.top_k_filter),
    Form("top_p", "function", sampling.top_p_filter),
    Form("temperature", "function", temperature),
    Form("speculative", "functions", speculative(speculation)),
    Form("smoothed_loss", "function", loss),
]

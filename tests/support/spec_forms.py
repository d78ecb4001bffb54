"""The forms of each concept that the package has, by the signature of its spec."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

import tformer
from pieces import in_pieces, splits
from tformer import reference
from tformer.check import SPECS, Case, Spec
from tformer.generate import sampling
from tformer.nn import attention, norm, positions
from tformer.nn.attention import scaled_dot_product_attention
from tformer.nn.cache import KeyValueCache
from tformer.nn.packed import attend_to_segments
from tformer.nn.tiles import tiled_attention
from tformer.training.loss import label_smoothed_cross_entropy


@dataclass(frozen=True)
class Form:
    """One form of a concept, of which a spec is asked."""

    spec: str
    name: str
    function: Callable[..., object]  # takes the arguments of the spec
    framework: str = "torch"
    only: Callable[[Case], object] | None = None  # the cases that it is made for
    rtol: float = 1e-9
    gradient: bool = True  # whether gradients and narrower dtypes are asked
    cases: tuple[Case, ...] = ()  # in place of those of the spec

    def __str__(self) -> str:
        return f"{self.spec}-{self.name}-{self.framework}"

    @property
    def asked(self) -> Spec:
        """The spec with the cases and properties of this form."""
        spec = copy(SPECS[self.spec])
        spec.cases = tuple(filter(self.only, self.cases or spec.cases))
        if not self.gradient:
            spec.properties = ("state", "inputs", "layout")
        return spec


def is_causal(case):
    return case.options.get("is_causal")


def even_width(case):
    return case.name != "odd width"  # the package wants a cosine for each sine


def in_segments(case):
    return "segments" in case.options


def whole_text(case):
    return not in_segments(case)


def for_tiles(case):
    return not case.options.keys() & {"window", "sinks", "segments"}


def one_after_another(case):
    first, length = case.args[1][0], case.args[0].shape[2]
    return list(case.args[1]) == list(range(first, first + length))


def in_numpy(module, weights, args, options=None):
    """Call the twin of a module with these weights, as `functional_call` calls it."""
    weights = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    module.load_state_dict(weights, assign=True)
    return reference.from_torch(module)(*args, **(options or {}))


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


def layer_norm(call, x, weight, bias, eps):
    module = norm.LayerNorm(len(weight), eps, bias=bias is not None)
    weights = {"weight": weight, **({} if bias is None else {"bias": bias})}
    return call(module, weights, (x,))


def rms_norm(call, x, weight, eps, *, plus_one=False):
    module = norm.RMSNorm(len(weight), eps, plus_one=plus_one)
    return call(module, {"weight": weight}, (x,))


def multi_head(
    call, x, w_q, w_k, w_v, w_o, num_heads, mask=None, *, memory=None,
    num_kv_heads=None, is_causal=False, q_gain=None, k_gain=None, rotary_base=None,
    q_bias=None, k_bias=None, v_bias=None, w_gate=None,
):  # fmt: skip
    D, Dh = x.shape[-1], len(w_q) // num_heads
    parts = {"num_kv_heads": num_kv_heads, "head_dim": Dh, "out_bias": False}
    parts["bias"] = q_bias is not None
    weights = {"q_proj": w_q, "k_proj": w_k, "v_proj": w_v, "out_proj": w_o}
    if q_gain is not None:
        parts |= {"q_norm": norm.RMSNorm(Dh), "k_norm": norm.RMSNorm(Dh)}
        weights |= {"q_norm": q_gain, "k_norm": k_gain}
    if rotary_base is not None:
        frequencies = tformer.nn.rotary_frequencies(Dh, base=rotary_base)
        parts["rotary"] = tformer.nn.RotaryEmbedding(frequencies, layout="halves")
    if w_gate is not None:
        parts["gate"] = nn.Linear(D, num_heads * Dh, bias=False)
        weights["gate"] = w_gate
    module = tformer.MultiHeadAttention(D, num_heads, **parts)
    weights = {f"{name}.weight": weight for name, weight in weights.items()}
    if q_bias is not None:
        biases = {"q_proj": q_bias, "k_proj": k_bias, "v_proj": v_bias}
        weights |= {f"{name}.bias": bias for name, bias in biases.items()}
    return call(module, weights, (x, memory, None, mask), {"is_causal": is_causal})


def sinusoids(call, length, d_model, *, start=0):
    module = positions.SinusoidalPositionalEncoding(d_model, max_len=2)
    zeros = np.zeros((1, length, d_model))
    x = torch.from_numpy(zeros) if call is functional_call else zeros
    return call(module, {}, (x,), {"start": start})[0]


def learned(call, x, table, start):
    module = positions.LearnedPositionalEmbedding(*table.shape)
    return call(module, {"weight": table}, (x,), {"start": start})


def rotate(of, library, x, positions, base, *, layout="halves"):
    angle = positions[:, None] * of.rotary_frequencies(x.shape[-1], base=base)
    return of.rotate(x, library.cos(angle), library.sin(angle), layout=layout)


def rotary(of, x, positions, base, *, layout="halves", part=None, from_first=False):
    frequencies = of.rotary_frequencies(part or x.shape[-1], base=base)
    module = of.RotaryEmbedding(frequencies, layout=layout, head_dim=x.shape[-1])
    if from_first:
        return module(x, start=int(positions[0]))
    return module(x, positions=positions)


def t5_buckets(of, distance, buckets, furthest, both):
    starts = of.bucket_starts(buckets // 2 if both else buckets, furthest)
    return of.relative_buckets(distance, starts, bidirectional=both)


def speculative(of, p, q, draft, u):
    for n, token in enumerate(draft):
        if not u[n] < of.acceptance(p[n], q[n])[token]:
            return n, of.after_rejection(p[n], q[n])
    return len(draft), p[len(draft)]


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


def in_tiles(query, key, value, mask=None, **options):
    return tiled_attention(query, key, value, mask, query_tile=2, key_tile=3, **options)


def by_segments(query, key, value, *, segments, is_causal=False):
    around = partial(attend_to_segments, segments=segments, is_causal=is_causal)
    return around(scaled_dot_product_attention, query, key, value)


def cached_step(q, k, v, cache):
    held = cache.setdefault("held", KeyValueCache(11))
    keys, values = held.append(k, v)
    return scaled_dot_product_attention(q, keys, values, is_causal=True)


def loss(logits, targets, pad_id, smoothing):
    return label_smoothed_cross_entropy(
        logits, targets, pad_id=pad_id, smoothing=smoothing
    )


def temperature(logits, temperature):
    return sampling.next_logits(logits, temperature=temperature).softmax(-1)

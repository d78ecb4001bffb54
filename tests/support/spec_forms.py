"""The forms of each concept that the package has, by the signature of its spec."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.func import functional_call

import tformer
from brute_force import tiny_gpt
from pieces import in_pieces, splits
from tformer import reference
from tformer.check import Case
from tformer.generate.beam import beam_search
from tformer.generate.greedy import greedy
from tformer.generate.sampling import next_logits, top_k_filter, top_p_filter
from tformer.generate.speculative import acceptance, after_rejection
from tformer.nn import masks, norm, positions, relative, rms_norm, rotary
from tformer.nn.cache import KeyValueCache
from tformer.nn.heads import MultiHeadAttention, merge_heads, split_heads
from tformer.nn.rolling import RollingCache
from tformer.nn.self_attention import SelfAttention
from tformer.training.loss import label_smoothed_cross_entropy


@dataclass(frozen=True)
class Form:
    """One form of a concept, of which a spec is asked.

    `without` are cases that it refuses by design, with an error; `only` says of a case
    whether the form is made for it.
    """

    spec: str
    name: str
    function: Callable[..., Any]
    framework: str = "torch"
    rtol: float = 1e-9
    without: tuple[str, ...] = ()
    only: Callable[[Case], bool] = lambda case: True
    gradient: bool = True

    def __str__(self) -> str:
        return f"{self.spec}-{self.name}"


def causal_mask(of: Any) -> Callable[..., Any]:
    def make(T, S, *, window=None):
        if window is None:
            return of.causal_mask(T, S)
        return of.sliding_window_mask(T, window, S)

    return make


def layer_norm_module(fused):
    def call(x, weight, bias, eps):
        module = norm.LayerNorm(len(weight), eps, bias=bias is not None, fused=fused)
        weights = {"weight": weight, **({} if bias is None else {"bias": bias})}
        return functional_call(module, weights, x)

    return call


def twin_layer_norm(x, weight, bias, eps):
    weights = {"weight": weight, **({} if bias is None else {"bias": bias})}
    return reference.LayerNorm(weights, eps)(x)


def rms_norm_module(x, weight, eps, *, plus_one=False):
    module = rms_norm.RMSNorm(len(weight), eps, plus_one=plus_one)
    return functional_call(module, {"weight": weight}, x)


def twin_rms_norm(x, weight, eps, *, plus_one=False):
    return reference.RMSNorm({"weight": weight}, eps, plus_one=plus_one)(x)


def projections(w_q, w_k, w_v, w_o):
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    return {f"{n}.weight": w for n, w in zip(names, (w_q, w_k, w_v, w_o), strict=True)}


def multi_head(*given, num_kv_heads=None, is_causal=False, memory=None, pieces=None):
    x, *weights, num_heads = given[:6]
    mask = given[6] if len(given) > 6 else None
    options = {"num_kv_heads": num_kv_heads, "bias": False}
    module = MultiHeadAttention(x.shape[-1], num_heads, **options)
    weights = projections(*weights)
    if pieces is None:
        inputs = (x, memory, None, mask)
        return functional_call(module, weights, inputs, {"is_causal": is_causal})
    return read_in_pieces(module, weights, x, KeyValueCache(9), {"is_causal": True})


def twin_multi_head(*given, num_kv_heads=None, is_causal=False, memory=None):
    x, *weights, num_heads = given[:6]
    mask = given[6] if len(given) > 6 else None
    weights = projections(*weights)
    module = reference.MultiHeadAttention(weights, num_heads, num_kv_heads=num_kv_heads)
    return module(x, memory, None, mask, is_causal=is_causal)


def read_in_pieces(module, weights, x, cache, options):
    """Read a text in pieces of every size; all splits must give the same."""
    outputs = []
    for sizes in splits(x.shape[1]):
        cache.truncate(0)

        def piece(begin, end):
            given = {"cache": cache, **options}
            return functional_call(module, weights, x[:, begin:end], given)

        outputs.append(in_pieces(piece, sizes))
    for each in outputs:
        torch.testing.assert_close(each, outputs[0], atol=1e-12, rtol=1e-9)
    return outputs[-1]


def self_attention(
    x, w_q, w_k, w_v, w_o, num_heads, *, is_causal, q_gain=None, k_gain=None,
    rotary_base=None, pieces=None,
):  # fmt: skip
    Dh = len(w_q) // num_heads
    turning = None
    if rotary_base is not None:
        frequencies = rotary.rotary_frequencies(Dh, base=rotary_base)
        turning = rotary.RotaryPositions(frequencies, layout="halves")
    normed = None if q_gain is None else rms_norm.RMSNorm
    parts = {"head_dim": Dh, "rotary": turning, "qk_norm": normed}
    module = SelfAttention(x.shape[-1], num_heads, **parts)
    weights = projections(w_q, w_k, w_v, w_o)
    if q_gain is not None:
        weights |= {"q_norm.weight": q_gain, "k_norm.weight": k_gain}
    if pieces is None:
        return functional_call(module, weights, x)
    return read_in_pieces(module, weights, x, module.new_cache(9), {})


def twin_self_attention(
    x, w_q, w_k, w_v, w_o, num_heads, *, is_causal, q_gain=None, k_gain=None,
    rotary_base=None,
):  # fmt: skip
    turning = normed = None
    if rotary_base is not None:
        frequencies = reference.rotary_frequencies(
            len(w_q) // num_heads, base=rotary_base
        )
        turning = reference.RotaryPositions(frequencies, layout="halves")
    if q_gain is not None:
        normed = tuple(reference.RMSNorm({"weight": g}) for g in (q_gain, k_gain))
    weights = projections(w_q, w_k, w_v, w_o)
    return reference.SelfAttention(weights, num_heads, rotary=turning, qk_norm=normed)(
        x
    )


def in_small_pieces(function):
    """The same attention, reading through a cache, in every split of the text."""

    def call(*given, is_causal, q_gain=None, k_gain=None, rotary_base=None):
        norms = {"q_gain": q_gain, "k_gain": k_gain, "rotary_base": rotary_base}
        norms = {name: x for name, x in norms.items() if x is not None}
        with torch.no_grad():
            return function(*given, is_causal=is_causal, pieces=True, **norms)

    return call


def is_causal(case):
    return bool(case.options.get("is_causal")) and "w_gate" not in case.options


def causal_only(case):
    return set(case.options) == {"is_causal"}


def sinusoids_module(length, d_model, *, start=0):
    module = positions.SinusoidalPositionalEncoding(d_model, max_len=2)
    return module(torch.zeros(1, length, d_model, dtype=torch.float64), start=start)[0]


def twin_sinusoids_module(length, d_model, *, start=0):
    module = reference.SinusoidalPositionalEncoding(d_model)
    return module(np.zeros((1, length, d_model)), start=start)[0]


def learned(x, table, start):
    module = positions.LearnedPositionalEmbedding(*table.shape)
    return functional_call(module, {"weight": table}, x, {"start": start})


def twin_learned(x, table, start):
    return reference.LearnedPositionalEmbedding({"weight": table})(x, start=start)


def rotate(of, library):
    def call(x, positions, base, *, layout="halves"):
        angle = positions[:, None] * of.rotary_frequencies(x.shape[-1], base=base)
        return of.rotate(x, library.cos(angle), library.sin(angle), layout=layout)

    return call


def rotary_module(of):
    def call(x, positions, base, *, layout="halves"):
        frequencies = of.rotary_frequencies(x.shape[-1], base=base)
        return of.RotaryPositions(frequencies, layout=layout)(
            x, start=int(positions[0])
        )

    return call


def one_after_another(case):
    return bool((np.diff(case.args[1]) == 1).all())


def t5_buckets(of):
    def call(distance, buckets, furthest, both):
        starts = of.bucket_starts(buckets // 2 if both else buckets, furthest)
        return of.relative_buckets(distance, starts, bidirectional=both)

    return call


def cached_step(q, k, v, cache):
    held = cache.setdefault("held", KeyValueCache(9))
    keys, values = held.append(k, v)
    return tformer.scaled_dot_product_attention(q, keys, values, is_causal=True)


def loss(of):
    def call(logits, targets, pad_id, smoothing):
        return of(logits, targets, pad_id=pad_id, smoothing=smoothing)

    return call


def speculative(acceptance, after_rejection):
    def call(p, q, draft, u):
        for n, token in enumerate(draft):
            if not u[n] < acceptance(p[n], q[n])[token]:
                return n, after_rejection(p[n], q[n])
        return len(draft), p[len(draft)]

    return call


class Scores:
    """The log-probabilities of a model's next token."""

    def __init__(self, seed):
        self.model = tiny_gpt(seed)

    def __call__(self, ids):
        with torch.no_grad():
            return self.model(torch.tensor([ids]))[0, -1].log_softmax(-1)


def text_of(ids, eos):
    ids = ids.tolist()
    return ids[: ids.index(eos) + 1] if eos in ids else ids


def greedy_of_gpt(scores, bos, eos, max_len):
    begin = torch.tensor([[bos]])
    return text_of(greedy(scores.model, begin, max_len=max_len, eos_id=eos)[0], eos)


def beam_of_gpt(scores, bos, eos, num_beams, max_len, length_penalty):
    sizes = {"num_beams": num_beams, "max_len": max_len, "eos_id": eos}
    begin, sizes["length_penalty"] = torch.tensor([[bos]]), length_penalty
    return text_of(beam_search(scores.model, begin, **sizes).ids[0, 0], eos)


# What a model scores, in place of the tables that a reader's function is asked.
OF_MODELS = {
    "greedy": tuple(
        Case(f"GPT {seed}, {n} tokens", (Scores(seed), 1, 2, n))
        for seed in range(6)
        for n in (1, 4, 7)
    ),
    "beam": tuple(
        Case(f"GPT {seed}, {K} beams, α = {alpha}", (Scores(seed), 1, 2, K, 4, alpha))
        for seed in range(5)
        for K in (1, 2, 3, 300)
        for alpha in (0.0, 0.6, -0.7)
    ),
}
SDPA = tformer.scaled_dot_product_attention
TWIN_SDPA = reference.scaled_dot_product_attention
FORMS = [
    Form("attention", "torch", SDPA),
    Form("attention", "twin", TWIN_SDPA, "numpy"),
    Form("grouped_attention", "torch", SDPA),
    Form("grouped_attention", "twin", TWIN_SDPA, "numpy"),
    Form("causal_mask", "torch", causal_mask(masks)),
    Form("causal_mask", "twin", causal_mask(reference), "numpy"),
    Form("length_mask", "torch", masks.length_mask),
    Form("length_mask", "twin", reference.length_mask, "numpy"),
    Form("combine_masks", "torch", masks.combine_masks),
    Form("combine_masks", "twin", reference.combine_masks, "numpy"),
    Form("multi_head", "module", multi_head),
    Form("multi_head", "twin", twin_multi_head, "numpy"),
    Form("multi_head", "causal", self_attention, only=is_causal),
    Form("multi_head", "causal twin", twin_self_attention, "numpy", only=is_causal),
    Form(
        "multi_head",
        "module in pieces",
        in_small_pieces(multi_head),
        only=causal_only,
        gradient=False,
    ),
    Form(
        "multi_head",
        "causal in pieces",
        in_small_pieces(self_attention),
        only=is_causal,
        gradient=False,
    ),
    Form("split_heads", "torch", split_heads, gradient=True),
    Form("split_heads", "twin", reference.split_heads, "numpy"),
    Form("merge_heads", "torch", merge_heads),
    Form("merge_heads", "twin", reference.merge_heads, "numpy"),
    Form("layer_norm", "torch", norm.layer_norm),
    Form("layer_norm", "module", layer_norm_module(fused=False)),
    Form("layer_norm", "fused module", layer_norm_module(fused=True)),
    Form("layer_norm", "twin", reference.layer_norm, "numpy"),
    Form("layer_norm", "twin module", twin_layer_norm, "numpy"),
    Form("rms_norm", "torch", rms_norm.rms_norm),
    Form("rms_norm", "module", rms_norm_module),
    Form("rms_norm", "twin", reference.rms_norm, "numpy"),
    Form("rms_norm", "twin module", twin_rms_norm, "numpy"),
    Form("sinusoids", "torch", positions.sinusoidal_positions, without=("odd width",)),
    Form("sinusoids", "module", sinusoids_module, rtol=1e-6, without=("odd width",)),
    Form(
        "sinusoids",
        "twin",
        reference.sinusoidal_positional_encoding,
        "numpy",
        without=("odd width",),
    ),
    Form(
        "sinusoids",
        "twin module",
        twin_sinusoids_module,
        "numpy",
        without=("odd width",),
    ),
    Form("learned", "module", learned),
    Form("learned", "twin", twin_learned, "numpy"),
    Form("rotary", "torch", rotate(rotary, torch)),
    Form("rotary", "twin", rotate(reference, np), "numpy"),
    Form("rotary", "module", rotary_module(rotary), only=one_after_another),
    Form(
        "rotary",
        "twin module",
        rotary_module(reference),
        "numpy",
        only=one_after_another,
    ),
    Form("alibi", "module", lambda H, T, S: relative.ALiBi(H).double()(T, S)[0]),
    Form("alibi", "twin", lambda H, T, S: reference.ALiBi(H)(T, S)[0], "numpy"),
    Form("t5_buckets", "torch", t5_buckets(relative)),
    Form("t5_buckets", "twin", t5_buckets(reference), "numpy"),
    Form("cached_step", "torch", cached_step),
    Form("cached_pieces", "torch", cached_step),
    Form("cache", "KeyValueCache", KeyValueCache),
    Form("rolling_cache", "RollingCache", RollingCache),
    Form("greedy", "GPT", greedy_of_gpt),
    Form("beam", "GPT", beam_of_gpt),
    Form("top_k", "torch", top_k_filter),
    Form("top_p", "torch", top_p_filter),
    Form(
        "temperature",
        "torch",
        lambda logits, t: next_logits(logits, temperature=t).softmax(-1),
    ),
    Form("speculative", "torch", speculative(acceptance, after_rejection)),
    Form(
        "speculative",
        "twin",
        speculative(reference.acceptance, reference.after_rejection),
        "numpy",
    ),
    Form("smoothed_loss", "torch", loss(label_smoothed_cross_entropy)),
]

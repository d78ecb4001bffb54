"""Every form that the package has of a concept: in torch, and in the NumPy twin."""

from functools import partial
from inspect import signature

import numpy as np
import torch
from torch.func import functional_call

import spec_forms as of
from brute_force import tiny_gpt
from newer_forms import NEWER
from spec_forms import Form, even_width
from tformer import beam_search, greedy, nn, reference
from tformer.check import Case
from tformer.generate import sampling
from tformer.generate import speculative as speculation
from tformer.nn.attention import scaled_dot_product_attention
from tformer.nn.cache import KeyValueCache

# Functions that have the name of their spec.
SAME_NAME = (
    *("causal_mask", "length_mask", "combine_masks", "split_heads", "merge_heads"),
    *("layer_norm", "rms_norm"),
)
TORCH = [
    Form("attention", "function", scaled_dot_product_attention),
    Form("attention", "function in blocks", of.in_blocks),
    Form("attention", "weights", of.by_weights, only=of.whole_text),
    Form("attention", "function in tiles", of.in_tiles, only=of.for_tiles),
    Form("attention", "function of segments", of.by_segments, only=of.in_segments),
    Form("grouped_attention", "function", scaled_dot_product_attention),
    Form("grouped_attention", "weights", of.by_weights),
    Form("grouped_attention", "function in blocks", of.in_blocks),
    Form(
        "multi_head",
        "module in pieces",
        partial(of.multi_head, of.in_every_split),
        only=of.is_causal,
        gradient=False,
    ),
    Form("sinusoids", "function", nn.sinusoidal_positions, only=even_width),
    Form(
        "sinusoids",
        "module",
        partial(of.sinusoids, functional_call),
        only=even_width,
        rtol=1e-6,
    ),
    Form("rotary", "function", partial(of.rotate, nn, torch)),
    Form("alibi", "module", lambda H, T, S: nn.ALiBi(H).double()(T, S)[0]),
    Form("cached_step", "KeyValueCache", of.cached_step),
    Form("cached_pieces", "KeyValueCache", of.cached_step),
    Form("cache", "KeyValueCache", KeyValueCache),
    Form("rolling_cache", "KeyValueCache", lambda W: KeyValueCache(11, window=W)),
    Form("top_k", "function", sampling.top_k_filter),
    Form("top_p", "function", sampling.top_p_filter),
    Form("temperature", "function", of.temperature),
    Form("speculative", "functions", partial(of.speculative, speculation)),
    Form("smoothed_loss", "function", of.loss),
]


def in_numpy(*inputs, **options):
    return reference.scaled_dot_product_attention(*inputs, **options)


# The judge leaves out cases with other options than these.
in_numpy.__signature__ = signature(reference.attention_weights)
BLOCKS = partial(reference.attention_in_blocks, queries_at_a_time=2)
SINUSOIDS = reference.sinusoidal_positional_encoding
NUMPY = [
    Form("attention", "function", in_numpy, "numpy"),
    Form("attention", "function in blocks", BLOCKS, "numpy"),
    Form("grouped_attention", "function", in_numpy, "numpy"),
    Form("grouped_attention", "function in blocks", BLOCKS, "numpy"),
    Form("sinusoids", "function", SINUSOIDS, "numpy", even_width),
    Form("sinusoids", "class", partial(of.sinusoids, of.in_numpy), "numpy", even_width),
    Form("rotary", "function", partial(of.rotate, reference, np), "numpy"),
    Form("alibi", "class", lambda H, T, S: reference.ALiBi(H)(T, S)[0], "numpy"),
    Form("speculative", "functions", partial(of.speculative, reference), "numpy"),
]
BOTH = [
    form
    for names, call, library in (
        (nn, functional_call, "torch"),
        (reference, of.in_numpy, "numpy"),
    )
    for form in (
        *(Form(name, "function", getattr(names, name), library) for name in SAME_NAME),
        Form("multi_head", "module", partial(of.multi_head, call), library),
        Form("layer_norm", "module", partial(of.layer_norm, call), library),
        Form("rms_norm", "module", partial(of.rms_norm, call), library),
        Form("learned", "module", partial(of.learned, call), library),
        Form("rotary", "module", partial(of.rotary, names), library),
        Form(
            "rotary",
            "module from",
            partial(of.rotary, names, from_first=True),
            library,
            of.one_after_another,
        ),
        Form("t5_buckets", "functions", partial(of.t5_buckets, names), library),
    )
]


class Scores:
    """The log-probabilities of a model's next token."""

    def __init__(self, seed):
        self.model, self.known = tiny_gpt(seed), {}

    @torch.no_grad()
    def __call__(self, ids):
        if (ids := tuple(ids)) not in self.known:
            logits = self.model(torch.tensor([ids]))[0, -1]
            self.known[ids] = logits.log_softmax(-1).tolist()
        return self.known[ids]


def text_of(ids, eos):
    ids = ids.tolist()
    return ids[: ids.index(eos) + 1] if eos in ids else ids


def greedy_of_model(scores, bos, eos, max_len):
    begin = torch.tensor([[bos]])
    return text_of(greedy(scores.model, begin, max_len=max_len, eos_id=eos)[0], eos)


def beam_of_model(scores, bos, eos, num_beams, max_len, length_penalty):
    options = {"num_beams": num_beams, "max_len": max_len, "eos_id": eos}
    options["length_penalty"] = length_penalty
    begin = torch.tensor([[bos]])
    return text_of(beam_search(scores.model, begin, **options).ids[0, 0], eos)


SHORT = tuple(
    Case(f"seed {seed}, {n} tokens", (Scores(seed), 1, 2, n))
    for seed in range(6)
    for n in (1, 4, 7)
)
WIDE = tuple(
    Case(f"seed {seed}, {K} beams, α = {alpha}", (Scores(seed), 1, 2, K, 4, alpha))
    for seed in range(5)
    for K in (1, 2, 3, 300)
    for alpha in (0.0, 0.6, -0.7)
)
OF_MODELS = [  # what a model scores, in place of the tables that a reader's is asked
    Form("greedy", "a model", greedy_of_model, cases=SHORT),
    Form("beam", "a model", beam_of_model, cases=WIDE),
]
FORMS = [*TORCH, *NUMPY, *BOTH, *OF_MODELS, *NEWER]

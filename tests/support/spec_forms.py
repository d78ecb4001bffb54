"""The forms of each concept that the package has, by the signature of its spec."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch

from brute_force import tiny_gpt
from tformer import beam_search, greedy
from tformer.check import SPECS, Case, Spec


@dataclass(frozen=True)
class Form:
    """One form of a concept, of which a spec is asked.

    Args:
        spec: the name of the spec.
        name: of the form.
        function: takes the arguments of the spec.
        framework: "torch" or "numpy".
        only: says of a case whether the form is made for it.
        rtol: how far numbers may be from the oracle's.
        gradient: whether gradients are asked, and narrower dtypes.
        cases: in place of those of the spec.
    """

    spec: str
    name: str
    function: Callable[..., Any]
    framework: str = "torch"
    only: Callable[[Case], object] | None = None
    rtol: float = 1e-9
    gradient: bool = True
    cases: tuple[Case, ...] = ()

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


def rotate(of, library):
    def call(x, positions, base, *, layout="halves"):
        angle = positions[:, None] * of.rotary_frequencies(x.shape[-1], base=base)
        return of.rotate(x, library.cos(angle), library.sin(angle), layout=layout)

    return call


def rotary(of):
    def call(x, positions, base, *, layout="halves"):
        frequencies = of.rotary_frequencies(x.shape[-1], base=base)
        return of.RotaryEmbedding(frequencies, layout=layout)(x, positions=positions)

    return call


def rotary_from(of):
    def call(x, positions, base, *, layout="halves"):
        frequencies = of.rotary_frequencies(x.shape[-1], base=base)
        module = of.RotaryEmbedding(frequencies, layout=layout)
        return module(x, start=int(positions[0]))

    return call


def one_after_another(case):
    first, length = case.args[1][0], case.args[0].shape[2]
    return list(case.args[1]) == list(range(first, first + length))


def t5_buckets(of):
    def call(distance, buckets, furthest, both):
        starts = of.bucket_starts(buckets // 2 if both else buckets, furthest)
        return of.relative_buckets(distance, starts, bidirectional=both)

    return call


def speculative(of):
    def call(p, q, draft, u):
        for n, token in enumerate(draft):
            if not u[n] < of.acceptance(p[n], q[n])[token]:
                return n, of.after_rejection(p[n], q[n])
        return len(draft), p[len(draft)]

    return call


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


# What a model scores, in place of the tables that a reader's function is asked.
OF_MODELS = [
    Form(
        "greedy",
        "a model",
        greedy_of_model,
        cases=tuple(
            Case(f"seed {seed}, {n} tokens", (Scores(seed), 1, 2, n))
            for seed in range(6)
            for n in (1, 4, 7)
        ),
    ),
    Form(
        "beam",
        "a model",
        beam_of_model,
        cases=tuple(
            Case(
                f"seed {seed}, {K} beams, α = {alpha}",
                (Scores(seed), 1, 2, K, 4, alpha),
            )
            for seed in range(5)
            for K in (1, 2, 3, 300)
            for alpha in (0.0, 0.6, -0.7)
        ),
    ),
]

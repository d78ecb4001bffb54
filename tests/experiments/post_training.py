"""Run the trainings of the chapter on post-training with five seeds, and keep them.

    PYTHONPATH=docs python tests/experiments/post_training.py

Each seed has a base model, demonstrations, pairs and samples of its own. The code is
the chapter's, which shows what is kept in `post_training_kept.py`. Thirteen minutes on
one core.
"""

from collections.abc import Iterator
from typing import Any

import torch

from chapters import as_on_the_page, functions_of, keep
from tformer.training.post_training import kl_k3

SFT_RATES = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)
SFT_RATE = 0.002  # of the model that the others begin with
DPO_RATES = {  # by β
    10.0: (0.0003, 0.001, 0.002, 0.004),
    3.0: (0.0003, 0.001, 0.002, 0.004),
    1.0: (0.00003, 0.0001, 0.0003, 0.001),
    0.1: (0.000003, 0.00001, 0.00003, 0.0001, 0.0003),
}
GRPO_RATES = (0.001, 0.002, 0.004)
LONG_SFT, LONG_DPO = 160, 1000  # steps: four times the others', and ten times
LONG_DPO_RATE = 0.00001  # at β = 0.1, a thirtieth of the largest
LENIENT_RATE, BETAS = 0.002, (0.0, 0.3, 1.0, 3.0)
LENIENT_RATES = (0.0002, 0.0005, 0.001, 0.002, 0.004)  # without KL
LONG_LENIENT = 300  # steps: three times the others'
Rows = Iterator[tuple[str, object, str, float]]


def measured(seed: int) -> Rows:
    """Train everything with one seed; yield way, setting, what, and its number."""
    c = functions_of("post-training.md")

    def new() -> torch.Generator:
        return torch.Generator().manual_seed(seed)

    def asked(way: str, setting: float, model: object) -> Rows:
        right, _, difference = c["measure"](model)
        yield way, f"{setting:g}", "right", right
        yield way, f"{setting:g}", "differences", difference

    base = c["pretrained"](seed)
    yield from asked("base", 0.0, base)
    shuffled = c["SUMS"][torch.randperm(100, generator=new())]
    some, unseen = shuffled[:40], shuffled[40:]
    for way, steps in (("SFT", 40), (f"SFT,steps={LONG_SFT}", LONG_SFT)):
        for rate in SFT_RATES:
            tuned = c["sft"](base, some, rate, new(), steps=steps)
            yield from asked(way, rate, tuned)
            yield way, f"{rate:g}", "unseen", c["probability"](tuned, unseen)
    model = c["sft"](base, some, SFT_RATE, new())
    pairs = c["pairs_of"](model, new())
    for beta, rates in DPO_RATES.items():
        for rate in rates:
            tuned = c["dpo"](model, *pairs, rate, new(), beta=beta)
            yield from asked(f"DPO,β={beta:g}", rate, tuned)
    tuned = c["dpo"](model, *pairs, LONG_DPO_RATE, new(), beta=0.1, steps=LONG_DPO)
    yield from asked(f"DPO,β=0.1,steps={LONG_DPO}", LONG_DPO_RATE, tuned)
    for rate in GRPO_RATES:
        yield from asked("GRPO", rate, c["grpo"](model, c["strict"], rate, new()))
    for beta in BETAS:
        tuned = c["grpo"](model, c["lenient"], LENIENT_RATE, new(), beta=beta)
        ids = c["answered"](tuned, c["SUMS"][:, :4].repeat(20, 1), new())
        paid = c["rewards_of"](ids, c["lenient"]).mean().item()
        way, setting = "GRPO,lenient", f"{beta:g}"
        yield way, setting, "right", c["measure"](tuned)[0]
        yield way, setting, "paid", paid
        yield way, setting, "KL", divergence(c, tuned, model, ids)
    way = "GRPO,lenient,β=0"
    for rate in LENIENT_RATES:
        tuned = c["grpo"](model, c["lenient"], rate, new())
        yield way, f"{rate:g}", "right", c["measure"](tuned)[0]
    tuned = c["grpo"](model, c["lenient"], LENIENT_RATE, new(), steps=LONG_LENIENT)
    way, setting = f"{way},steps={LONG_LENIENT}", f"{LENIENT_RATE:g}"
    yield way, setting, "right", c["measure"](tuned)[0]


def divergence(
    c: dict[str, Any], model: Any, reference: Any, ids: torch.Tensor
) -> float:
    """Estimate the KL from the reference, nats an answer, from answers of the model."""
    with torch.no_grad():
        new, ref = (
            c["token_log_probs"](each(ids[:, :-1]), ids[:, 1:])
            for each in (model, reference)
        )
    return kl_k3(new, ref)[c["answers_in"](ids)].sum().item() / len(ids)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, (row for seed in range(5) for row in measured(seed)))

"""Give models of five seeds other frequencies, train them further, and keep it.

    PYTHONPATH=docs python tests/experiments/raised_base.py

The models and their texts are those of the needle test in the chapter on long context.
The frequencies are those of the chapter on longer texts, which shows what is kept in
`raised_base_kept.py`. A way is tried with no step, by the factor of the base, and with
some steps on texts of four times the trained length, by their rate. Ten minutes on one
core.
"""

import copy
from collections.abc import Iterator
from typing import Any

import torch

from chapters import as_on_the_page, functions_of, keep
from tformer import RotaryEmbedding
from tformer.nn import rotary_frequencies

FACTORS = (1, 2, 4, 8, 16, 32, 64, 256)  # of the base, with no step
RATES = {  # the best rate lies within each grid
    10: (0.001, 0.003, 0.01, 0.03),
    100: (0.003, 0.01, 0.03, 0.1),
}
LONGER = (
    ("unchanged", 400, RATES[100]),
    ("linear", 400, RATES[100]),
    ("unchanged", 1600, RATES[100][:3]),
)
FAST = ("base_×4", "base_×16", "base_×64", "YaRN")  # done after 10 steps
Rows = Iterator[tuple[str, object, str, float]]


def measured(seed: int) -> Rows:
    """Yield way, setting, what, and the share of right answers of one seed."""
    needle, c = functions_of("long-context.md"), functions_of("longer-texts.md")
    trained, long = needle["finder"](seed), 4 * needle["SHORT"]

    def asked(way: str, setting: object, steps: int, model: Any) -> Rows:
        near, facts, _ = needle["shares_right"](model, long, seed)
        yield way, setting, f"fact@{steps}", facts
        yield way, setting, f"word@{steps}", near

    def changed(theta: torch.Tensor, factor: float = 1.0) -> Any:
        model = copy.deepcopy(trained)
        model.attention.rotary = RotaryEmbedding(theta, factor=factor)
        return model

    for factor in FACTORS:
        theta = rotary_frequencies(16, base=factor * needle["BASE"])
        yield from asked("base", factor, 0, changed(theta))
    for way in ("linear", "YaRN"):
        yield from asked(way, 0, 0, changed(*c["FURTHER"][way]))
    for steps, rates in RATES.items():
        for way in ("unchanged", "linear") if steps == 100 else ("unchanged", *FAST):
            for rate in rates:
                model = changed(*c["FURTHER"][way])
                needle["learn"](model, steps, long, rate, 10 + seed)
                yield from asked(way, rate, steps, model)
    for way, steps, grid in LONGER:
        for rate in grid:
            model = changed(*c["FURTHER"][way])
            needle["learn"](model, steps, long, rate, 10 + seed)
            yield from asked(way, rate, steps, model)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, (row for seed in range(5) for row in measured(seed)))

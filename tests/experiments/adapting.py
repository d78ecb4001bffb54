"""Run the comparisons of the chapter on fine-tuning with five seeds, and keep them.

    PYTHONPATH=docs python tests/experiments/adapting.py

LoRA beside all weights: the shares of Croatian dates, and of the 24 locales from
before, that are right. The code is the chapter's, which shows what is kept in
`adapting_kept.py`. Three minutes on one core.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from chapters import as_on_the_page, functions_of, keep
from tformer import Transformer, load_pretrained

WAYS = {  # 0 is no adapter: all weights learn. Rates grow by about √2
    0: (0.00025, 0.00035, 0.0005, 0.0007, 0.001, 0.0014, 0.002),
    1: (0.005, 0.007, 0.01, 0.014, 0.02),
    8: (0.001, 0.0014, 0.002, 0.0028, 0.004),
}
Rows = Iterator[tuple[str, object, str, float]]


def adapters(c: dict[str, Any], trained: Transformer, seed: int) -> Rows:
    """Yield what each way has learned and kept, by rate."""
    for rank, rates in WAYS.items():
        for rate in rates:
            model = c["adapted"](rank, seed) if rank else deepcopy(trained)
            new, old = c["correct"](c["tune"](model, rate, seed=seed))
            way = f"rank_{rank}" if rank else "all_weights"
            yield way, rate, "Croatian", new
            yield way, rate, "24_locales", old


def measured() -> Rows:
    """Yield everything, seed after seed."""
    c = functions_of("adapting.md")
    trained, vocabulary, _ = load_pretrained("dates")
    draw, croatian = c["draw"], {"locales": ["hr"]}
    c |= {
        "trained": trained,
        "vocabulary": vocabulary,
        "croatian": draw(400, "train", **croatian),
        "tests": {"hr": draw(200, "test", **croatian), "all": draw(200, "test")},
    }
    for seed in range(5):
        yield from adapters(c, trained, seed)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())

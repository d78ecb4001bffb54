"""Train experts and dense networks with five seeds and bracketed rates, and keep it.

    PYTHONPATH=docs python tests/experiments/experts.py

Facts that are known, and unseen pairs of a rule, by the peak of the learning rate after
150 steps, and after 2,000 at one rate. The code is that of the chapter on experts, and
it shows what is kept in `experts_kept.py`. Three minutes on one core.
"""

from collections.abc import Iterator
from typing import Any

from chapters import as_on_the_page, functions_of, keep

RATES = {  # the best rate lies within each grid
    "dense, equal compute": (0.03, 0.1, 0.3),
    "2 of 8 experts": (0.01, 0.03, 0.1),
    "dense, equal parameters": (0.01, 0.03, 0.1),
}
RULE_RATES = (0.1, 0.3, 1.0)
Rows = Iterator[tuple[str, object, str, float]]


def tasks(c: dict[str, Any], seed: int) -> Rows:
    """Yield what each kind of network knows of the facts, and finds of the rule."""
    for name, (make, coefficient) in c["KINDS"].items():
        kind = name.replace(" ", "_")
        options = {"coefficient": coefficient}
        for rate in RATES[name]:
            model, answers = c["train"](make, seed, rate=rate, **options)
            yield kind, rate, "facts", c["correct"](model, answers)
        for rate in RULE_RATES:
            task = c["RULE"], c["SEEN"]
            model, answers = c["train"](make, seed, *task, rate=rate, **options)
            yield kind, rate, "rule", c["correct"](model, answers, c["UNSEEN"])
        options |= {"rate": 0.03, "steps": 2000}
        model, answers = c["train"](make, seed, **options)
        yield kind, 0.03, "facts_2000", c["correct"](model, answers)
        model, answers = c["train"](make, seed, *task, **options)
        yield kind, 0.03, "rule_2000", c["correct"](model, answers, c["UNSEEN"])


def measured() -> Rows:
    """Yield everything, seed after seed."""
    c = functions_of("experts.md")
    for seed in range(5):
        yield from tasks(c, seed)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())

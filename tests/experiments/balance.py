"""Train experts with five seeds, balanced in three ways, and keep their loads.

    PYTHONPATH=docs python tests/experiments/balance.py

With a part that all tokens have in common, and without one. The code is that of the
chapter on load balancing, which shows what is kept in `balance_kept.py`. Two minutes
on one core.
"""

from collections.abc import Iterator
from typing import Any

from chapters import as_on_the_page, functions_of, keep

# A learning rate, and how many steps.
SETTINGS = [(rate, 150) for rate in (0.01, 0.003, 0.03, 0.1, 0.3)] + [(0.01, 1500)]
Rows = Iterator[tuple[str, object, str, float]]


def loads(c: dict[str, Any], seed: int) -> Rows:
    """Yield how many experts are unused, the largest load, and the facts known."""
    ways = {name.replace(" ", "_"): (*each, 2.0) for name, each in c["WAYS"].items()}
    plain = c["experts"](), 0.0, 0.0
    runs = [(0.01, 150, "no_common_part", plain)]
    runs += [(rate, steps, *way) for rate, steps in SETTINGS for way in ways.items()]
    for rate, steps, name, (make, coefficient, offset) in runs:
        options = {"coefficient": coefficient, "offset": offset}
        model, answers = c["train"](make, seed, rate=rate, steps=steps, **options)
        load = c["load_of"](model)
        more = "" if steps == 150 else f"_{steps}"
        yield name, rate, "unused" + more, (load < 0.01).sum().item()
        yield name, rate, "least" + more, load.min().item()
        yield name, rate, "most" + more, load.max().item()
        yield name, rate, "known" + more, c["correct"](model, answers)


def measured() -> Rows:
    """Yield everything, seed after seed."""
    c = functions_of("balance.md")
    for seed in range(5):
        yield from loads(c, seed)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())

"""Train experts with five seeds, balanced in three ways, and keep their loads.

    PYTHONPATH=docs python tests/experiments/balance.py

With a part that all tokens have in common, and without one. The code is that of the
chapter on load balancing, which shows what is kept in `balance_kept.py`. A minute on
one core.
"""

from collections.abc import Iterator
from typing import Any

from chapters import as_on_the_page, functions_of, keep

Rows = Iterator[tuple[str, object, str, float]]


def loads(c: dict[str, Any], seed: int) -> Rows:
    """Yield how many experts are unused, the largest load, and the facts known."""
    ways = {name.replace(" ", "_"): (*each, 2.0) for name, each in c["WAYS"].items()}
    ways["no_common_part"] = (c["experts"](), 0.0, 0.0)
    for name, (make, coefficient, offset) in ways.items():
        options = {"coefficient": coefficient, "offset": offset}
        model, answers = c["train"](make, seed, **options)
        load = c["load_of"](model)
        yield name, 0.01, "unused", (load < 0.01).sum().item()
        yield name, 0.01, "least", load.min().item()
        yield name, 0.01, "most", load.max().item()
        yield name, 0.01, "known", c["correct"](model, answers)


def measured() -> Rows:
    """Yield everything, seed after seed."""
    c = functions_of("balance.md")
    for seed in range(5):
        yield from loads(c, seed)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())

"""Train models of three widths, usual and with µP, at several rates, and keep them.

    PYTHONPATH=docs python tests/experiments/mup.py

Five seeds of each. The code is that of the chapter on µP, which shows what is kept in
`mup_kept.py`. Rates are exponents of 2. Ten minutes on one core.
"""

from collections.abc import Iterator

from chapters import as_on_the_page, functions_of, keep

WIDTHS = {  # the best rate lies within each range
    ("usual", 1): range(-9, -4),
    ("usual", 2): range(-10, -5),
    ("usual", 4): range(-10, -5),
    ("with_mup", 2): range(-9, -4),
    ("with_mup", 4): range(-9, -4),
}
LONGER = {  # 200 steps
    ("usual", 1): range(-10, -4),
    ("usual", 4): range(-11, -5),
    ("with_mup", 4): range(-10, -4),
}
Rows = Iterator[tuple[str, object, str, float]]


def measured() -> Rows:
    """Yield the loss of each width and rate, usual and with µP, seed after seed."""
    c = functions_of("mup.md")
    for steps, more, widths in ((50, "", WIDTHS), (200, ",200", LONGER)):
        for seed in range(5):
            for (name, m), rates in widths.items():
                for rate in rates:
                    made = c[name](m, seed)
                    loss = c["end_of_training"](*made, steps, lambda _, k=rate: 2.0**k)
                    yield f"{name},{32 * m}{more}", rate, "loss", loss


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())

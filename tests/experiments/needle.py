"""Ask models of five seeds for facts in texts longer than those of their training.

    PYTHONPATH=docs python tests/experiments/needle.py

The share of right answers by the length of the text and the fifth in which the fact
stands, and of the words three places before; after 600 steps, and after 2,400. The code
is that of the chapter on long context, which shows what is kept in `needle_kept.py`.
Three minutes on one core.
"""

from collections.abc import Iterator

from chapters import as_on_the_page, functions_of, keep


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the shares of each length, seed after seed."""
    c = functions_of("long-context.md")
    for seed in range(5):
        for steps, mark in ((600, ""), (2400, "_2400")):
            model = c["finder"](seed, steps)
            for times in (1, 2, 4, 8, 16):
                length = times * c["SHORT"]
                near, facts, by_depth = c["shares_right"](model, length, seed)
                for fifth, share in enumerate(by_depth, 1):
                    yield f"fact{mark}", length, f"fifth_{fifth}", share
                yield f"fact{mark}", length, "all", facts
                yield f"word_before{mark}", length, "all", near


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())

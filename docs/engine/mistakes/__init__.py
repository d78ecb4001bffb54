"""The atlas of mistakes: a page for each known mistake of `tformer.check`."""

from collections.abc import Iterator

from tformer.check import SPECS, Mistake, Spec


def known() -> Iterator[tuple[Spec, Mistake]]:
    """Yield every mistake with its spec, in the order of the specs."""
    for spec in SPECS.values():
        for mistake in spec.mistakes:
            yield spec, mistake


def name_of(spec: Spec, mistake: Mistake) -> str:
    """Return the name of a mistake, which is its address too: `attention/unscaled`."""
    return f"{spec.name}/{mistake.id}"


def names_of(spec: Spec, mistake: Mistake) -> list[str]:
    """Return under which names texts speak of a mistake: its own, then its part's.

    `attention` calls `causal_mask`, so that what is said of `causal_mask/one_ahead`
    holds for `attention/one_ahead`.
    """
    parts = [x.name for x in SPECS.values() if x.oracle is mistake.right]
    return list(dict.fromkeys(f"{x}/{mistake.id}" for x in (spec.name, *parts)))

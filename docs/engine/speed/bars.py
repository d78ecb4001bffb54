"""What was asked of speed and memory, and by how much it is missed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.results.numbers import table
from engine.speed.rows import SHORT, Report, Row, megabytes, milliseconds

TWO, ONE = "forward and backward", "forward"
LONG, LONG_LIMIT = "T = 16,384", 200e6  # bytes above the inputs
NEAR = 0.02  # what equal code may differ by in a run
GROWTH = 1.25  # a step may grow by so much more than the reading of its cache
EARLY = 0.050  # seconds of an import beyond torch's
NUMPY = ("causal attention in NumPy", "T = 2,048")
TORCH = "F.scaled_dot_product_attention"


@dataclass(frozen=True)
class Bar:
    """A bar: what was asked, what was measured, by how much it is missed."""

    asked: str
    measured: str
    missed: str  # nothing if it is met


def section(report: Report) -> str:
    """Write the table of the bars for which something was measured."""
    found = [bar for make in MAKERS for bar in make(report)]
    rows = [
        [b.asked, f"missed {b.missed}" if b.missed else "met", b.measured]
        for b in found
    ]
    return table(["asked", "result", "measured"], rows, right=range(0))


def every_row(report: Report) -> Iterator[Bar]:
    """No row is slower than the best other."""
    for dtype, short in SHORT.items():
        rows = [row for row in report.compared() if row.dtype == dtype]
        behind = [row for row in rows if row.missed]
        if rows:
            worst = max(rows, key=lambda row: row.missed)
            yield Bar(
                f"every row in {short} at most 1.00 of the best other",
                f"{len(rows) - len(behind)} of {len(rows)} rows, and "
                f"{sum(row.missed <= NEAR for row in behind)} more within {NEAR}",
                f"in {len(behind)}; by {worst.missed:.2f} in the worst: "
                f"{worst.whole_name}"
                if behind
                else "",
            )


def fast_product(report: Report) -> Iterator[Bar]:
    """The figures for processors whose fast matrix product `F.linear` does not take."""
    asked: list[tuple[str, float, Callable[[Row], bool]]] = [
        ("encoder", 0.55, lambda row: row.name == "encoder"),
        ("encoder with padding", 0.45, lambda row: row.name.startswith("encoder, len")),
        ("training steps", 0.60, lambda row: row.family == "training"),
        ("decoding", 0.75, lambda row: row.family == "decoding"),
    ]
    for name, most, belongs in asked:
        rows = [r for r in report.compared() if r.dtype == "float32" and belongs(r)]
        if rows and "AMD" in report.about["machine"]["name"]:
            worst = max(r.ratio or 0.0 for r in rows)
            best = min(r.ratio or 0.0 for r in rows)
            span = f"{best:.2f}" if len(rows) == 1 else f"{best:.2f} to {worst:.2f}"
            yield Bar(
                f"{name} in fp32, on AMD, whose fastest product `F.linear` does not "
                f"take: at most {most:.2f}",
                span,
                f"by {worst - most:.2f}" if round(worst, 2) > most else "",
            )


def memory_of_attention(report: Report) -> Iterator[Bar]:
    """Memory grows with T and not with its square."""
    for kind in ("causal", "padding"):
        for way in (ONE, TWO):
            rows = [*report.named(f"{kind}, {way}")]
            if way == ONE:  # the name of the other begins with it
                rows = [row for row in rows if TWO not in row.name]
            peaks = {row.size: row.peak(row.mine) for row in rows}
            most = peaks.get(LONG)
            if most is not None:
                yield Bar(
                    f"attention, {kind}, {way}, at {LONG}: at most "
                    f"{megabytes(int(LONG_LIMIT))} above its inputs",
                    megabytes(most),
                    f"by {megabytes(int(most - LONG_LIMIT))}"
                    if most > LONG_LIMIT
                    else "",
                )
            quarter = peaks.get("T = 4,096")
            if most is not None and quarter is not None:
                factor = most / quarter
                yield Bar(
                    f"attention, {kind}, {way}: memory linear in T",
                    f"{factor:.2f} times for 4 times T",
                    f"by {factor - 4:.2f}" if factor > 4.2 else "",
                )


def cached_decoding(report: Report) -> Iterator[Bar]:
    """A token takes longer after a longer text only by the reading of its cache."""
    rows = sorted(report.named("small GPT, the next token"), key=_length)
    if len(rows) < 2:
        return
    first, last = rows[0], rows[-1]
    step = last.seconds(last.ours) - first.seconds(first.ours)
    part = "the cache read alone"
    read = last.seconds(part) - first.seconds(part)
    yield Bar(
        f"a token after {last.length:,} others takes longer than after {first.length} "
        f"by the reading of the cache alone, to a factor of {GROWTH}",
        f"{milliseconds(step)} longer; the reading {milliseconds(read)}",
        f"by {milliseconds(step - GROWTH * read)}" if step > GROWTH * read else "",
    )
    facts = [row.contenders[row.mine]["facts"] for row in rows]
    apart = max(abs(f["cache_bytes"] - f["formula_bytes"]) for f in facts)
    yield Bar(
        "the cache takes 2 · layers · key/value heads · their width · length · bytes",
        f"{facts[-1]['cache_bytes']:,} bytes for {last.length:,} tokens",
        f"by {apart:,} bytes" if apart else "",
    )


def _length(row: Row) -> int:
    return row.length or 0


def twin(report: Report) -> Iterator[Bar]:
    """NumPy stays near torch, and small: the fastest of ours."""
    row = report.find(*NUMPY)
    if row is None:
        return
    ratio = row.seconds(row.ours) / row.seconds(TORCH)
    yield Bar(
        f"attention in NumPy at {row.size}: at most 1.2 of torch's time",
        f"{ratio:.2f}",
        f"by {ratio - 1.2:.2f}" if round(ratio, 2) > 1.2 else "",
    )
    peak = row.peak(row.ours) or 0
    yield Bar(
        "and less than 50 MB",
        megabytes(peak),
        f"by {megabytes(int(peak - 50e6))}" if peak >= 50e6 else "",
    )


def imports(report: Report) -> Iterator[Bar]:
    """The package is not much slower to import than torch."""
    row = report.find("every name of tformer, beside torch", "")
    if row is None:
        return
    more = row.seconds(row.ours) - row.seconds(row.best)
    yield Bar(
        "every name of tformer imported: at most 50 ms more than torch",
        f"{milliseconds(more)} more",
        f"by {milliseconds(more - EARLY)}" if more > EARLY else "",
    )
    loaded = row.contenders[row.mine]["facts"]["loaded"]
    yield Bar(
        "no import of matplotlib, tokenizers or babel with it",
        ", ".join(loaded) or "none",
        f"by {len(loaded)}" if loaded else "",
    )


MAKERS = (every_row, fast_product, memory_of_attention, cached_decoding, twin, imports)

"""What was asked of speed and memory, and by how much it is missed."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from engine.speed.rows import KERNEL, SHORT, Report, Row, megabytes, milliseconds
from engine.tables import table

LONG, QUARTER, LONG_LIMIT = "T = 16,384", "T = 4,096", 200e6  # bytes above the inputs
NEAR = 0.02  # what equal code may differ by in a run
GROWTH = 1.25  # a step may grow by so much more than the reading of its cache
CACHE = "the cache read alone"
FAST_PRODUCT: list[tuple[str, float, Callable[[Row], bool]]] = [
    ("encoder", 0.55, lambda row: row["name"] == "encoder"),
    ("encoder with padding", 0.45, lambda row: "encoder, len" in row["name"]),
    ("training steps", 0.60, lambda row: row["family"] == "training"),
    ("decoding", 0.75, lambda row: row["family"] == "decoding"),
]


class Bar(NamedTuple):
    """A bar: what was asked, what was measured, by how much it is missed."""

    asked: str
    measured: str
    missed: str = ""  # nothing if it is met


def _bar(asked: str, measured: str, over: float, form: Callable[[float], str]) -> Bar:
    """Make a bar that is missed if something is above 0."""
    return Bar(asked, measured, f"by {form(over)}" if over > 0 else "")


def _two(value: float) -> str:
    return f"{value:.2f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def bars(report: Report) -> str:
    """Write the table of the bars for which something was measured."""
    makers = (every_row, fast_product, memory, cached_decoding, twin, imports)
    columns: dict[str, Callable[[Bar], object]] = {
        "asked": lambda bar: bar.asked,
        "result": lambda bar: f"missed {bar.missed}" if bar.missed else "met",
        "measured": lambda bar: bar.measured,
    }
    found = [bar for make in makers for bar in make(report)]
    return table(columns, found, left=columns)


def every_row(report: Report) -> Iterator[Bar]:
    """No row is slower than the best other."""
    for dtype, short in SHORT.items():
        rows = [row for row in report.compared() if row["dtype"] == dtype]
        behind = [row for row in rows if row.missed]
        near = sum(row.missed <= NEAR for row in behind)
        worst = max(rows, key=lambda row: row.missed, default=None)
        if worst:
            yield Bar(
                f"every row in {short} at most 1.00 of the best other",
                f"{len(rows) - len(behind)} of {len(rows)} rows, and {near} more "
                f"within {NEAR}",
                f"in {len(behind)}; by {worst.missed:.2f} in the worst: "
                f"{worst.label}, {short}"
                if behind
                else "",
            )


def fast_product(report: Report) -> Iterator[Bar]:
    """The figures for processors whose fast matrix product `F.linear` does not take."""
    rows = [row for row in report.compared() if row["dtype"] == "float32"]
    for name, most, belongs in FAST_PRODUCT:
        ratios = sorted({round(row.ratio or 0.0, 2) for row in rows if belongs(row)})
        if ratios and "AMD" in report["machine.name"]:
            yield _bar(
                f"{name} in fp32, on AMD, whose fastest product `F.linear` does not "
                f"take: at most {most:.2f}",
                " to ".join(dict.fromkeys(map(_two, (ratios[0], ratios[-1])))),
                ratios[-1] - most,
                _two,
            )


def memory(report: Report) -> Iterator[Bar]:
    """Memory of attention grows with T and not with its square."""
    for kind in ("causal", "padding"):
        for way in ("forward", "forward and backward"):
            name = f"{kind}, {way}"  # or ", memory", where the time was not taken
            rows = report.named(name) + report.named(f"{name}, memory")
            peaks = {row["size"]: row.peak(row.ours) for row in rows}
            most, quarter = peaks.get(LONG), peaks.get(QUARTER)
            if most is not None:
                yield _bar(
                    f"attention, {kind}, {way}, at {LONG}: at most "
                    f"{megabytes(LONG_LIMIT)} above its inputs",
                    megabytes(most),
                    most - LONG_LIMIT,
                    megabytes,
                )
            if most is not None and quarter is not None:
                times = most / quarter
                yield _bar(
                    f"attention, {kind}, {way}: memory linear in T",
                    f"{times:.2f} times for 4 times T",
                    times - 4 if times > 4.2 else 0,
                    _two,
                )


def cached_decoding(report: Report) -> Iterator[Bar]:
    """A token takes longer after a longer text only by the reading of its cache."""
    rows = report.named("small GPT, the next token")
    rows.sort(key=lambda row: row.number("length"))
    if len(rows) < 2:
        return
    first, last = rows[0], rows[-1]
    step = last.seconds(last.ours) - first.seconds(first.ours)
    read = last.seconds(CACHE) - first.seconds(CACHE)
    yield _bar(
        f"a token after {last['length']:,} others takes longer than after "
        f"{first['length']} by the reading of the cache alone, to a factor of {GROWTH}",
        f"{milliseconds(step)} longer; the reading {milliseconds(read)}",
        step - GROWTH * read,
        milliseconds,
    )
    takes = [row.contenders[row.ours].number("facts.cache_bytes") for row in rows]
    asked = [row.contenders[row.ours].number("facts.formula_bytes") for row in rows]
    yield _bar(
        "the cache takes 2 · layers · key/value heads · their width · length · bytes",
        f"{takes[-1]:,} bytes for {last['length']:,} tokens",
        max(abs(a - b) for a, b in zip(takes, asked, strict=True)),
        lambda apart: f"{_whole(apart)} bytes",
    )


def twin(report: Report) -> Iterator[Bar]:
    """NumPy stays near torch, and small: the fastest of ours."""
    for row in report.named("causal attention in NumPy", "T = 2,048"):
        times = row.seconds(row.ours) / row.seconds(KERNEL)
        yield _bar(
            f"attention in NumPy at {row['size']}: at most 1.5 of torch's time",
            _two(times),
            round(times, 2) - 1.5,
            _two,
        )
        peak = row.peak(row.ours) or 0
        asked = "and less than 50 MB"
        yield _bar(asked, megabytes(peak), peak - 50e6, megabytes)


def imports(report: Report) -> Iterator[Bar]:
    """The package is not much slower to import than torch."""
    for row in report.named("every name of tformer, beside torch", ""):
        more = row.seconds(row.ours) - row.seconds(row.best)
        yield _bar(
            "every name of tformer imported: at most 50 ms more than torch",
            f"{milliseconds(more)} more",
            more - 0.050,
            milliseconds,
        )
        loaded = row.contenders[row.ours]["facts.loaded"]
        yield _bar(
            "no import of matplotlib, tokenizers or babel with it",
            ", ".join(loaded) or "none",
            len(loaded),
            _whole,
        )

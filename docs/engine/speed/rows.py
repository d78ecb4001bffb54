"""What a file of `make bench` holds, and what a cell of a table says of it."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from engine.tables import MISSING, SPACE, Kept, table

OURS = "tformer"  # the role of ours
KERNEL = "F.scaled_dot_product_attention"
SHORT = {"float32": "fp32", "bfloat16": "bf16"}
CURVES = {  # of contenders, and how a short legend names them
    "tformer": "tformer",
    KERNEL: "torch's kernel",
    "as in tutorials": "as in tutorials",
}


class Row(Kept):
    """A workload, and what was measured of each contender."""

    @property
    def contenders(self) -> dict[str, dict[str, Any]]:
        """What was measured, by the name of who ran."""
        return dict(self["contenders"])

    @property
    def label(self) -> str:
        """The name, with its size."""
        return ", ".join(filter(None, (self["name"], self["size"])))

    @property
    def title(self) -> str:
        """The name, with its size and dtype, each size on one line."""
        text = f"{self.label}, {SHORT[self['dtype']]}"
        return re.sub(" ([=×]) ", rf"{SPACE}\1{SPACE}", text)

    @property
    def ratio(self) -> float | None:
        """Time of ours over the best other's, if both were timed."""
        found: float | None = self.get("ratio")
        return found

    @property
    def missed(self) -> float:
        """By how much the ratio is above 1.00, to two digits as the page has it."""
        return max(0.0, round((self.ratio or 0.0) - 1, 2))

    @property
    def ours(self) -> str:
        """The fastest of ours; the first contender if none was timed."""
        return self.get("ours") or next(iter(self.contenders))

    def seconds(self, contender: str) -> float:
        """Return the median of a contender's time."""
        return float(self.contenders[contender]["median"])

    def peak(self, contender: str) -> int | None:
        """Return the peak of a contender's memory in bytes, if it was measured."""
        return self.contenders[contender].get("peak_bytes")


class Report(Kept):
    """A file: rows, and on what they were measured."""

    @cached_property
    def rows(self) -> list[Row]:
        """All rows."""
        found = enumerate(self["rows"])
        return [Row(row, f"{self.where}: rows[{i}]") for i, row in found]

    def compared(self, family: str) -> list[Row]:
        """Return the rows of a family that have a ratio."""
        found = [row for row in self.rows if row.ratio is not None]
        return [row for row in found if row["family"] == family]

    def named(self, name: str) -> list[Row]:
        """Return the rows of a name in float32."""
        found = [row for row in self.rows if row["dtype"] == "float32"]
        return [row for row in found if row["name"] == name]


def _digits(value: float, count: int) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.{count}g}".rstrip(".")


def milliseconds(seconds: float) -> str:
    """Write a time with three digits: 0.875 ms, 41.8 ms, 1,430 ms."""
    return f"{_digits(1e3 * seconds, 3)}{SPACE}ms"


def megabytes(count: float | None) -> str:
    """Write a memory with two digits: 10⁶ bytes are a megabyte."""
    return MISSING if count is None else f"{_digits(count / 1e6, 2)}{SPACE}MB"


COMPARED: dict[str, Callable[[Row], object]] = {  # a phone shows the first columns
    "workload": lambda row: row.title,
    "ratio": lambda row: f"{row.ratio:.2f}",
    "tformer": lambda row: milliseconds(row.seconds(row.ours)),
    "best other": lambda row: milliseconds(row.seconds(row["best"])),
    "which": lambda row: row["best"],
    "memory": lambda row: megabytes(row.peak(row.ours)),
    "its memory": lambda row: megabytes(row.peak(row["best"])),
    "missed by": lambda row: f"{row.missed:.2f}" if row.missed else MISSING,
}


def compared(rows: Iterable[Row]) -> str:
    """Write what was compared."""
    return table(COMPARED, rows, left=["which"])


def behind(rows: Iterable[Row], near: float) -> int:
    """Count the rows that are behind by more than a run can decide."""
    return sum(row.missed > near for row in rows)


Ran = tuple[Row, str]  # a row, and the name of a contender; "" is all of the row


def _cell(write: Callable[[Row, str], str]) -> Callable[[Ran], str]:
    """Leave a cell empty where the name of a row stands."""
    return lambda ran: write(*ran) if ran[1] else ""


def _ran(field: str, form: Callable[[float], str]) -> Callable[[Ran], str]:
    def write(row: Row, name: str) -> str:
        found = row.contenders[name].get(field)
        return form(found) if found else MISSING

    return _cell(write)


def _ratio(row: Row, name: str) -> str:
    found = row.get("ratios", {}).get(name)
    return f"{found:.2f}" if found else MISSING


def _difference(row: Row, name: str) -> str:
    """Write how far an output is from ours, and of whom it was not asked."""
    found = row.contenders[name]
    if name == row.ours and found["role"] == OURS:
        return MISSING
    if found.get("failed") is not None:
        return "did not run"
    if found.get("disagrees"):
        return "differs: not timed"
    apart = found["difference"]
    if apart is None:
        return "not checked"
    return "0" if apart == 0 else f"{apart:.0e}".replace("e-0", "e-")


EVERYONE: dict[str, Callable[[Ran], object]] = {
    "contender": lambda ran: ran[1] or f"**{ran[0].title}**",
    "tformer over it": _cell(_ratio),
    "median": _ran("median", milliseconds),
    "lowest": _ran("lowest", milliseconds),
    "memory": _ran("peak_bytes", megabytes),
    "largest difference": _cell(_difference),
}


def everyone(report: Report) -> str:
    """Write what was measured of every contender, below the name of its row."""
    ran = [(row, name) for row in report.rows for name in ("", *row.contenders)]
    return table(EVERYONE, ran)


def by_dtype(rows: Sequence[Row]) -> tuple[list[str], dict[str, list[float]]]:
    """Give the bars of a picture: names, and their ratios in each dtype, or nan."""
    ratios = {(row["dtype"], row.label): row.ratio or 0.0 for row in rows}
    names = list(dict.fromkeys(row.label for row in rows))
    bars = {
        short: [round(ratios.get((dtype, name), float("nan")), 3) for name in names]
        for dtype, short in SHORT.items()
        if any(row["dtype"] == dtype for row in rows)
    }
    return names, bars


def told(names: Sequence[str], bars: dict[str, list[float]]) -> str:
    """Say the ratios of a picture in words."""
    parts = []
    for name, *ratios in zip(names, *bars.values(), strict=True):
        pairs = zip(bars, ratios, strict=True)
        known = [f"{x:.2f} in {dtype}" for dtype, x in pairs if not math.isnan(x)]
        parts.append(f"{name}: {', '.join(known)}")
    return "; ".join(parts)


def curves(rows: Iterable[Row]) -> list[tuple[str, dict[str, list[float]]]]:
    """Give the curves of a picture: time and memory of some contenders over T."""
    found = []
    for name, label in CURVES.items():
        those = [x for x in rows if x.contenders.get(name, {}).get("median")]
        numbers = {
            "lengths": [float(row["length"]) for row in those],
            "times": [1e3 * row.seconds(name) for row in those],
            "memory": [(row.peak(name) or 0) / 1e6 for row in those],
        }
        found += [(label, numbers)] if those else []
    return found


def of_kernel(rows: Iterable[Row]) -> list[float]:
    """Return the ratios to torch's kernel."""
    return [row["ratios"][KERNEL] for row in rows]


def ticks(rows: Iterable[Row]) -> list[int]:
    """Return powers of 2 from the shortest to the longest, as many as have room."""
    lengths = [int(row["length"]) for row in rows]
    first, last = (most(lengths).bit_length() - 1 for most in (min, max))
    step = 1 if last - first < 4 else 2
    return [2**power for power in range(first, last + 1, step)]

"""What a file of `make bench` holds, and what a cell of a table says of it."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from engine.tables import MISSING, SPACE, Kept, KeptError, table

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

    @cached_property
    def contenders(self) -> dict[str, Kept]:
        """What was measured, by the name of who ran."""
        found = self["contenders"].items()
        return {name: Kept(x, f"{self.where}.contenders.{name}") for name, x in found}

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
        return None if self.get("ratio") is None else self.number("ratio")

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
        if contender not in self.contenders:
            raise KeptError(f"{self.where}: there is no contender {contender}")
        return self.contenders[contender].number("median")

    def peak(self, contender: str) -> int | None:
        """Return the peak of a contender's memory in bytes, if it was measured."""
        found = self.contenders.get(contender)
        return found.get("peak_bytes") if found else None


class Report(Kept):
    """A file: rows, and on what they were measured."""

    @cached_property
    def rows(self) -> list[Row]:
        """All rows."""
        self["rows"]
        return [Row(x.data, x.where) for x in self.each("rows")]

    def compared(self, family: str | None = None) -> list[Row]:
        """Return the rows that have a ratio, of a family or all."""
        found = [row for row in self.rows if row.ratio is not None]
        return [row for row in found if family in (None, row["family"])]

    def named(self, name: str, size: str | None = None) -> list[Row]:
        """Return the rows of a name in float32, of a size or all."""
        found = [row for row in self.rows if row["dtype"] == "float32"]
        found = [row for row in found if row["name"] == name]
        return [row for row in found if size in (None, row["size"])]


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


def _ran(field: str, form: Callable[[float], str]) -> Callable[[Ran], str]:
    def cell(ran: Ran) -> str:
        row, name = ran
        if not name:
            return ""
        found = row.contenders[name].get(field)
        return form(found) if found else MISSING

    return cell


def _ratio(ran: Ran) -> str:
    found = ran[0].get("ratios", {}).get(ran[1])
    return f"{found:.2f}" if found else MISSING if ran[1] else ""


def _difference(ran: Ran) -> str:
    """Write how far an output is from ours, and of whom it was not asked."""
    row, name = ran
    if not name:
        return ""
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
    "tformer over it": _ratio,
    "median": _ran("median", milliseconds),
    "lowest": _ran("lowest", milliseconds),
    "memory": _ran("peak_bytes", megabytes),
    "largest difference": _difference,
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
    found: list[tuple[str, dict[str, list[float]]]] = []
    for name, label in CURVES.items():
        those = [row for row in rows if name in row.contenders]
        those = [row for row in those if row.contenders[name].get("median")]
        numbers: dict[str, list[float]] = {
            "lengths": [row.number("length") for row in those],
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
    lengths = [int(row.number("length")) for row in rows]
    first, last = (most(lengths).bit_length() - 1 for most in (min, max))
    step = 1 if last - first < 4 else 2
    return [2**power for power in range(first, last + 1, step)]

"""What a file of `make bench` holds, and how its numbers are written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.results.numbers import MISSING, SPACE

OURS = "tformer"  # the role of ours
SHORT = {"float32": "fp32", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Row:
    """A workload, and what was measured of each contender."""

    family: str
    name: str
    size: str
    dtype: str
    length: int | None
    ours: str | None  # the fastest of ours
    best: str | None  # of the others
    ratio: float | None  # time of ours over the best other's
    ratios: dict[str, float]
    contenders: dict[str, dict[str, Any]]

    @property
    def whole_name(self) -> str:
        """The name, with its size and dtype."""
        words = [self.name, self.size, SHORT[self.dtype]]
        return ", ".join(word for word in words if word)

    @property
    def missed(self) -> float:
        """By how much the ratio is above 1.00, to two digits as the page has it."""
        return max(0.0, round((self.ratio or 0.0) - 1, 2))

    def seconds(self, contender: str | None) -> float:
        """Return the median of a contender's time."""
        return float(self.contenders[contender or ""]["median"])

    def peak(self, contender: str | None) -> int | None:
        """Return the peak of a contender's memory in bytes, if it was measured."""
        found: int | None = self.contenders.get(contender or "", {}).get("peak_bytes")
        return found

    @property
    def mine(self) -> str:
        """The contender of ours, timed or not."""
        return self.ours or next(iter(self.contenders))


@dataclass(frozen=True)
class Report:
    """A file: rows, and on what they were measured."""

    rows: tuple[Row, ...]
    about: dict[str, Any]

    @classmethod
    def of(cls, kept: dict[str, Any]) -> "Report":
        """Read what was kept."""
        names = ("family", "name", "size", "dtype", "length", "contenders")
        rows = [
            Row(
                **{name: row[name] for name in names},
                **{name: row.get(name) for name in ("ours", "best", "ratio")},
                ratios=row.get("ratios", {}),
            )
            for row in kept["rows"]
        ]
        return cls(tuple(rows), {n: x for n, x in kept.items() if n != "rows"})

    def compared(self, family: str | None = None) -> list[Row]:
        """Return the rows that have a ratio, of a family or all."""
        return [
            row
            for row in self.rows
            if row.ratio is not None and family in (None, row.family)
        ]

    def find(self, name: str, size: str, dtype: str = "float32") -> Row | None:
        """Return a row, if it was measured."""
        for row in self.rows:
            if (row.name, row.size, row.dtype) == (name, size, dtype):
                return row
        return None

    def named(self, beginning: str, dtype: str = "float32") -> Iterator[Row]:
        """Yield the rows whose names begin so."""
        for row in self.rows:
            if row.name.startswith(beginning) and row.dtype == dtype:
                yield row


def milliseconds(seconds: float) -> str:
    """Write a time with three digits: 0.875 ms, 41.8 ms, 1,430 ms."""
    value = 1e3 * seconds
    digits = f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"
    return f"{digits}{SPACE}ms"


def megabytes(count: int | None) -> str:
    """Write a memory: 10⁶ bytes are a megabyte."""
    if count is None:
        return MISSING
    value = count / 1e6
    digits = f"{value:,.0f}" if value >= 100 else f"{value:#.2g}".rstrip(".")
    return f"{digits}{SPACE}MB"

"""The tables of a file: a family each, and all contenders."""

import re
from collections.abc import Sequence

from engine.results.numbers import MISSING, SPACE, table
from engine.speed.rows import OURS, Report, Row, megabytes, milliseconds


def family(rows: Sequence[Row]) -> str:
    """Write what was compared; a phone shows the first columns."""
    head = ["workload", "ratio", "tformer", "best other", "which"]
    head += ["memory", "its memory", "missed by"]
    lines = [
        [
            _name(row),
            f"{row.ratio:.2f}",
            milliseconds(row.seconds(row.ours)),
            milliseconds(row.seconds(row.best)),
            row.best or MISSING,
            megabytes(row.peak(row.ours)),
            megabytes(row.peak(row.best)),
            f"{row.missed:.2f}" if row.missed else MISSING,
        ]
        for row in rows
    ]
    return table(head, lines, right={*range(1, len(head))} - {head.index("which")})


def everyone(report: Report) -> str:
    """Write what was measured of every contender, below the name of its row."""
    head = ["contender", "tformer over it", "median", "lowest"]
    head += ["memory", "largest difference"]
    lines = []
    for row in report.rows:
        lines.append([f"**{_name(row)}**", *[""] * (len(head) - 1)])
        for name, found in row.contenders.items():
            ratio = row.ratios.get(name)
            timed = "median" in found
            lines.append(
                [
                    name,
                    f"{ratio:.2f}" if ratio else MISSING,
                    milliseconds(found["median"]) if timed else MISSING,
                    milliseconds(found["lowest"]) if timed else MISSING,
                    megabytes(found.get("peak_bytes")),
                    _difference(row, name),
                ]
            )
    return table(head, lines, right=range(1, len(head)))


def _name(row: Row) -> str:
    """Name a row, each size on one line."""
    return re.sub(" ([=×]) ", rf"{SPACE}\1{SPACE}", row.whole_name)


def _difference(row: Row, name: str) -> str:
    """Write how far an output is from ours, and of whom it was not asked."""
    found = row.contenders[name]
    apart = found["difference"]
    if name == row.mine and found["role"] == OURS:
        return MISSING
    if "failed" in found:
        return "did not run"
    if found.get("disagrees"):
        return "differs: not timed"
    if apart is None:
        return "not checked"
    return "0" if apart == 0 else f"{apart:.0e}".replace("e-0", "e-")

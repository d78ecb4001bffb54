"""The tables of a file: a family each, and all contenders."""

from collections.abc import Sequence

from engine.results.numbers import MISSING, table
from engine.speed.rows import OURS, SHORT, Report, Row, megabytes, milliseconds


def family(rows: Sequence[Row]) -> str:
    """Write what was compared: ours beside the best other."""
    head = ["workload", "dtype", "best other", "its time", "tformer", "ratio"]
    head += ["missed by", "its memory", "tformer"]
    lines = [
        [
            ", ".join(filter(None, (row.name, row.size))),
            SHORT[row.dtype],
            row.best or MISSING,
            milliseconds(row.seconds(row.best)),
            milliseconds(row.seconds(row.ours)),
            f"{row.ratio:.2f}",
            f"{row.missed:.2f}" if row.missed else MISSING,
            megabytes(row.peak(row.best)),
            megabytes(row.peak(row.ours)),
        ]
        for row in rows
    ]
    return table(head, lines, right=range(3, len(head)))


def everyone(report: Report) -> str:
    """Write what was measured of every contender."""
    head = ["workload", "contender", "median", "lowest", "tformer over it"]
    head += ["memory", "largest difference"]
    lines = []
    for row in report.rows:
        for i, (name, found) in enumerate(row.contenders.items()):
            ratio = row.ratios.get(name)
            timed = "median" in found
            lines.append(
                [
                    row.whole_name if i == 0 else "",
                    name,
                    milliseconds(found["median"]) if timed else MISSING,
                    milliseconds(found["lowest"]) if timed else MISSING,
                    f"{ratio:.2f}" if ratio else MISSING,
                    megabytes(found.get("peak_bytes")),
                    _difference(row, name),
                ]
            )
    return table(head, lines, right=range(2, 7))


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

"""Numbers on the page: intervals, and how they are written."""

import math
import statistics
import textwrap
from collections.abc import Container, Iterable, Sequence

SPACE = "\u00a0"  # a line of a table is not broken here
MISSING = "–"  # a run was kept before this was recorded
# Student's t at 97.5 %, by degrees of freedom.
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
Z = statistics.NormalDist().inv_cdf(0.975)


def wilson(rate: float, count: int) -> tuple[float, float]:
    """Compute the 95 % interval of a rate that was seen in so many trials.

    Wilson 1927; unlike p ± 1.96·√(p(1-p)/n) it has a width at 0 and 1 too.

    Args:
        rate: successes a trial.
        count: trials.

    Returns:
        From where to where, in [0, 1].

    Raises:
        ValueError: `count` is below 1.
    """
    if count < 1:
        raise ValueError(f"count ({count}) must be at least 1")
    shrink = 1 + Z**2 / count
    middle = (rate + Z**2 / (2 * count)) / shrink
    half = Z / shrink * math.sqrt(rate * (1 - rate) / count + Z**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def paired(differences: Sequence[float]) -> tuple[float, float]:
    """Compute the mean of some differences, and half of its 95 % interval.

    Student's: t · s / √n, with n − 1 degrees of freedom.

    Raises:
        ValueError: there are fewer than 2, or more than the table of t has.
    """
    n = len(differences)
    if not 2 <= n <= len(T) + 1:
        raise ValueError(f"there must be 2 to {len(T) + 1} differences, not {n}")
    half = T[n - 2] * statistics.stdev(differences) / math.sqrt(n)
    return statistics.mean(differences), half


def signed(value: float, digits: int = 3) -> str:
    """Write a difference with its sign, and with a minus that is one."""
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")


def percent(rate: float, digits: int = 2) -> str:
    """Write a rate in percent."""
    return f"{100 * rate:.{digits}f}{SPACE}%"


def interval(rate: float, count: int, digits: int = 2) -> str:
    """Write the interval of a rate, in percent, without the sign."""
    low, high = wilson(rate, count)
    return f"{100 * low:.{digits}f} to {100 * high:.{digits}f}".replace(" ", SPACE)


def span(values: Sequence[float], form: str) -> str:
    """Write the lowest and the highest of some values."""
    low, high = number(min(values), form), number(max(values), form)
    return low if low == high else f"{low}{SPACE}to{SPACE}{high}"


def number(value: float, form: str) -> str:
    """Write a number as people do: 9.0e-06 is 9.0 × 10⁻⁶."""
    digits, _, power = f"{value:{form}}".partition("e")
    if not power:
        return digits
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}{SPACE}×{SPACE}10{raised}"


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Container[int]
) -> str:
    """Write a table in Markdown; the columns of `right` are flush right."""
    marks = ["---:" if i in right else "---" for i in range(len(head))]
    rows = [[wide(first), *others] for first, *others in rows]
    lines = [head, marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def wide(name: str, least: int = 14) -> str:
    """Keep the first words of a name in one line, or a phone would set one a line."""
    if "`" in name or len(name) <= least:
        return name if "`" in name else name.replace(" ", SPACE)
    cut = name.find(" ", least)
    kept, rest = (name, "") if cut < 0 else (name[:cut], name[cut:])
    return kept.replace(" ", SPACE) + rest


def text_cell(text: str) -> str:
    """Write a text that a model read or wrote, in a table: `|` would end the cell."""
    return f"`{text}`".replace("|", "\\|") if text else "(nothing)"


def fold(text: str, width: int) -> str:
    """Break a label of a picture into lines."""
    return "\n".join(textwrap.wrap(text, width))


def items(values: Iterable[object], name: str) -> str:
    """Write a list of Python with a line an item."""
    lines = "".join(f"        {value!r},\n" for value in values)
    return f"    {name} = [\n{lines}    ]"


def listed(values: Iterable[float], name: str) -> str:
    """Write numbers as a line of Python, folded where it is long."""
    words, lines = [f"{value:g}" for value in values], [f"    {name} = ["]
    for word in words:
        if len(lines[-1]) + len(word) > 84:
            lines.append(" " * 8)
        lines[-1] += f"{word}, "
    return "\n".join(line.rstrip() for line in lines).rstrip(", ") + "]"

"""Pages that are written from kept files: tables declared by their columns, numbers.

A table is `table({"title": cell, …}, rows)`, a cell a function of a row. The words
around it stand in a template (`page.md.jinja`), a page with blanks.
"""

import json
import math
import re
import statistics
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import jinja2

SPACE = "\u00a0"  # a line of a table is not broken here
MISSING = "–"  # it was not recorded, or there is none
# Student's t at 97.5 %, by degrees of freedom.
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
Z = statistics.NormalDist().inv_cdf(0.975)
Item = TypeVar("Item")


class KeptError(ValueError):
    """A kept file is not as it must be; the message names file and field."""


class Kept:
    """What a file holds, or a part of it: `kept["result.test_loss"]` is a field.

    `where` is the file, and the place in it, for messages.
    """

    def __init__(self, data: dict[str, Any], where: str) -> None:
        self.data, self.where = data, where

    def __getitem__(self, field: str) -> Any:
        """Return a field, or raise a KeptError."""
        value: Any = self.data
        for name in field.split("."):
            if not isinstance(value, dict) or name not in value:
                raise KeptError(f"{self.where}: there is no {field}")
            value = value[name]
        return value

    def get(self, field: str, default: Any = None) -> Any:
        """Return a field, or `default` if there is none."""
        try:
            return self[field]
        except KeptError:
            return default


def read_kept(file: Path) -> dict[str, Any]:
    """Read a kept file, or raise a KeptError."""
    try:
        found = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise KeptError(f"{file}: it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise KeptError(f"{file}: it must hold an object")
    return found


def render(template: Path, **values: object) -> str:
    """Fill the blanks of a template; a name that has no value is an error."""
    blanks = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    blanks.filters |= {"fold": fold, "repr": repr}
    text = blanks.from_string(template.read_text("utf-8")).render(
        values, items=items, listed=listed
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def table(
    columns: Mapping[str, Callable[[Item], object]],
    rows: Iterable[Item],
    *,
    left: Iterable[str] = (),
) -> str:
    """Write a table in Markdown; columns named in `left` are flush left, as the first.

    A column is what its cell says of a row, by its title.
    """
    marks = ["---" if title in left else "---:" for title in columns]
    lines = [[*columns], ["---", *marks[1:]]]
    for row in rows:
        first, *others = [str(cell(row)) for cell in columns.values()]
        lines.append([wide(first), *others])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wide(name: str, least: int = 14) -> str:
    """Keep the first words of a name in one line, or a phone would set one a line."""
    if "`" in name:
        return name
    cut = name.find(" ", least)
    kept, rest = (name, "") if cut < 0 else (name[:cut], name[cut:])
    return kept.replace(" ", SPACE) + rest


def wilson(rate: float, count: int) -> tuple[float, float]:
    """Compute the 95 % interval of a rate that was seen in so many trials.

    Wilson 1927; unlike p ± 1.96·√(p(1-p)/n) it has a width at 0 and 1 too.
    """
    shrink = 1 + Z**2 / count
    middle = (rate + Z**2 / (2 * count)) / shrink
    half = Z / shrink * math.sqrt(rate * (1 - rate) / count + Z**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def paired(differences: Sequence[float]) -> tuple[float, float]:
    """Compute the mean of some differences, and half of its 95 % interval.

    Student's: t · s / √n, with n - 1 degrees of freedom.
    """
    n = len(differences)
    half = T[n - 2] * statistics.stdev(differences) / math.sqrt(n)
    return statistics.mean(differences), half


def signed(value: float) -> str:
    """Write a difference with its sign, and with a minus that is one."""
    return f"{round(value, 3) + 0.0:+.3f}".replace("-", "−")


def percent(rate: float, digits: int = 2) -> str:
    """Write a rate in percent."""
    return f"{100 * rate:.{digits}f}{SPACE}%"


def interval(rate: float, count: int, digits: int = 2) -> str:
    """Write the interval of a rate, in percent, without the sign."""
    low, high = (f"{100 * end:.{digits}f}" for end in wilson(rate, count))
    return f"{low}{SPACE}to{SPACE}{high}"


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


def fold(text: str, width: int) -> str:
    """Break a label of a picture into lines."""
    return "\n".join(textwrap.wrap(text, width))


def items(values: Iterable[object], name: str) -> str:
    """Write a list of Python with a line an item, as code in a folded box."""
    lines = "".join(f"        {value!r},\n" for value in values)
    return f"    {name} = [\n{lines}    ]"


def listed(values: Iterable[float], name: str) -> str:
    """Write numbers as a line of Python, folded where it is long."""
    code = f"    {name} = [{', '.join(f'{value:g}' for value in values)}]"
    return "\n".join(textwrap.wrap(code, 86, subsequent_indent=" " * 8))

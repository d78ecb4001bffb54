"""The picture of a mistake: right, wrong and the difference, number by number.

Written as SVG without a library: there are many, and each is a few rectangles. In a
page it is an image, which follows the scheme that the reader chose.
"""

from html import escape
from math import isinf, isnan

import numpy as np

from engine.mistakes.showing import Rows, Shown, differing
from engine.run.style import INK, MAPS, PAPER
from tformer.check.spec import Array

FLOAT, WHOLE, HIGH = 44, 30, 26  # pixels: a column of floats, of others, and a row
NARROW = 328  # what a phone has
GAP, TITLE, PAD = 22, 22, 3
LEVELS = 5
RED = ("#a11d36", "#ef6478")  # of `style.COLOURS`: around what differs


def picture(shown: Shown) -> str:
    """Draw panels beside each other where a phone is wide enough, or else below."""
    panels = panels_of(shown)
    wide = FLOAT if shown.dtype == "f" else WHOLE
    sizes = [(max(len(x[0]) * wide, 92), len(x) * HIGH) for _, x, _ in panels]
    beside = sum(width for width, _ in sizes) + GAP * (len(sizes) - 1) <= NARROW
    parts, x, y = [], PAD, 0
    for (title, numbers, marks), (width, height) in zip(panels, sizes, strict=True):
        parts.append(_panel(title, numbers, marks, shown, wide, (x, y)))
        x, y = (x + width + GAP, y) if beside else (x, y + height + TITLE + 16)
    if beside:
        width, height = x - GAP + PAD, max(high for _, high in sizes) + TITLE
    else:
        width, height = max(wide for wide, _ in sizes) + 2 * PAD, y - 16
    size = f'width="{width}" height="{height + PAD}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {width} {height + PAD}">'
        f"<title>{escape(text_of(shown))}</title>{_style()}{''.join(parts)}</svg>\n"
    )


def panels_of(shown: Shown) -> list[tuple[str, Array, Array]]:
    """Return the title, the numbers and what is marked of each panel."""
    right, wrong = _array(shown.right), _array(shown.wrong)
    none = np.zeros(right.shape, bool)
    if shown.kind == "shape" or right.shape != wrong.shape:
        return [("right", right, none), ("wrong", wrong, np.zeros(wrong.shape, bool))]
    marks = differing(wrong, right, 1e-5)
    panels = [("right", right, none), ("wrong", wrong, marks)]
    if shown.dtype == "f" and np.isfinite(wrong).all() and np.isfinite(right).all():
        panels.append(("wrong − right", np.where(marks, wrong - right, 0.0), none))
    return panels


def text_of(shown: Shown) -> str:
    """Say what the picture shows, for whoever does not see it."""
    if not shown.right:
        return f"Nothing is drawn: {shown.message}."
    (_, right, _), (_, wrong, marks), *_ = panels_of(shown)
    if shown.kind == "shape" or right.shape != wrong.shape:
        return f"Right and wrong have different shapes: {shown.message}."
    few = right.size <= 12
    told = "; ".join(
        f"{title}: " + ", ".join(printed(x, shown.dtype) for x in numbers.flat)
        for title, numbers in (("right", right), ("wrong", wrong))
    )
    count = f"{marks.sum()} of {marks.size} differ"
    return f"Two grids of numbers, {told}; {count}." if few else f"Two grids, {count}."


def printed(x: float, dtype: str) -> str:
    """Print a number in five characters or so."""
    if dtype == "b":
        return "yes" if x else "no"
    if isnan(x):
        return "NaN"
    if isinf(x):
        return "∞" if x > 0 else "−∞"
    if dtype == "i" or x == 0:
        text = f"{x:.0f}"
    elif 0.00095 <= abs(x) < 1000:
        places = 2 if 0.0095 <= abs(x) < 100 else 3 if abs(x) < 1 else 0
        text = f"{x:.{places}f}"
    else:
        digits, _, power = f"{x:.0e}".partition("e")
        text = f"{digits}e{int(power)}"
    return text.replace("-", "−")


def tiny(shown: Shown) -> str:
    """Draw right and wrong without numbers, in the colours of the page: for lists."""
    if not shown.right:
        return ""
    cell, x, parts, high = 6, 0, [], 0
    panels = panels_of(shown)[:2]
    largest = _largest([numbers for _, numbers, _ in panels])
    for _, numbers, _ in panels:
        paths: dict[str, str] = {}
        for (row, column), number in np.ndenumerate(numbers):
            kind = _level(number, largest, shown.dtype)
            at = f"M{x + column * cell} {row * cell}h5v5h-5z"
            paths[kind] = paths.get(kind, "") + at
        parts += [f'<path class="m-{kind}" d="{d}"/>' for kind, d in paths.items()]
        x += numbers.shape[1] * cell + 8
        high = max(high, numbers.shape[0] * cell)
    box = f'viewBox="0 0 {x - 8} {high}" width="{x - 8}" height="{high}"'
    return f'<svg class="mistake-tiny" aria-hidden="true" {box}>{"".join(parts)}</svg>'


def _panel(
    title: str,
    numbers: Array,
    marks: Array,
    shown: Shown,
    wide: int,
    place: tuple[int, int],
) -> str:
    """Draw one grid, its title above it."""
    difference = "−" in title
    shared = [numbers] if difference else [_array(shown.right), _array(shown.wrong)]
    largest = _largest(shared)
    x0, y0 = place
    parts = [f'<text class="t" x="{x0}" y="{y0 + 14}">{title}</text>']
    for (row, column), number in np.ndenumerate(numbers):
        x, y = x0 + column * wide, y0 + TITLE + row * HIGH
        kind = _level(number, largest, shown.dtype)
        box = f'x="{x}" y="{y}" width="{wide - 2}" height="{HIGH - 2}"'
        ring = " o" * bool(marks[row, column])
        said = "" if difference and number == 0 else printed(number, shown.dtype)
        ink = " d" * (kind[-1] in "45x")
        parts.append(f'<rect class="{kind}{ring}" {box}/>')
        if said:
            middle = f'x="{x + wide // 2 - 1}" y="{y + 16}"'
            parts.append(f'<text class="c{ink}" {middle}>{said}</text>')
    return "".join(parts)


def _array(rows: Rows) -> Array:
    return np.array(rows, float)


def _largest(arrays: list[Array]) -> float:
    every = np.concatenate([np.abs(x[np.isfinite(x)]).ravel() for x in arrays])
    return float(every.max(initial=0)) or 1.0


def _level(x: float, largest: float, dtype: str) -> str:
    """Return the class of a cell: p1 … p5 above 0, n1 … n5 below, z for 0, x for NaN.

    Whole numbers are names, of tokens or of buckets: no colour says which is more.
    """
    if isnan(x):
        return "x"
    if dtype == "b":
        return "p4" if x else "z"
    if dtype == "i" or x == 0:
        return "z"
    share = 1.0 if isinf(x) else abs(x) / largest
    return f"{'p' if x > 0 else 'n'}{min(LEVELS, 1 + int(share * LEVELS))}"


def _style() -> str:
    """Write the colours for both schemes: of the heat maps of the book."""
    sheets = []
    for scheme in (0, 1):
        ramp = MAPS["RdBu"][scheme]
        reds, blues = ramp[:LEVELS][::-1], ramp[-LEVELS:]
        rules = [
            f".{sign}{level + 1}{{fill:{colour}}}"
            for sign, colours in (("n", reds), ("p", blues))
            for level, colour in enumerate(colours)
        ]
        rules += [f"text{{fill:{INK[scheme]}}}", f".d{{fill:{PAPER[scheme]}}}"]
        rules += [f".z{{stroke:{INK[scheme]}}}", f".x{{fill:{RED[scheme]}}}"]
        rules += [f".o{{stroke:{RED[scheme]}}}"]
        sheets.append("".join(rules))
    always = (
        "text{font:12px ui-sans-serif,system-ui,sans-serif}.t{font-weight:600}"
        ".c{text-anchor:middle;font-size:11.5px}"
        ".z{fill:none;stroke-opacity:.25}.o{stroke-width:2;stroke-opacity:1}"
    )
    dark = f"@media (prefers-color-scheme:dark){{{sheets[1]}}}"
    return f"<style>{always}{sheets[0]}{dark}</style>"

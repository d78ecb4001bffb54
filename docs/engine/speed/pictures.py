"""The pictures of a file, each drawn by the page from the numbers beside it."""

import textwrap
from collections.abc import Iterable, Sequence

from engine.results.numbers import fold, items, listed
from engine.speed.rows import SHORT, Report, Row

KINDS = {"float32": "C0", "bfloat16": "C1"}
CURVES = {  # of contenders, and how a short legend names them
    "tformer": "tformer",
    "F.scaled_dot_product_attention": "torch's kernel",
    "as in tutorials": "as in tutorials",
}


def ratios(rows: Sequence[Row], stem: str, family: str) -> str:
    """Draw a bar for each row: our time over the best other's."""
    names = list(dict.fromkeys(", ".join(filter(None, (r.name, r.size))) for r in rows))
    values = {dtype: [float("nan")] * len(names) for dtype in KINDS}
    for row in rows:
        place = names.index(", ".join(filter(None, (row.name, row.size))))
        values[row.dtype][place] = round(row.ratio or 0.0, 3)
    drawn = {d: v for d, v in values.items() if any(x == x for x in v)}
    lists = "\n".join(
        f"{listed(v, SHORT[d])}\n    bars[{SHORT[d]!r}] = {SHORT[d]}"
        for d, v in drawn.items()
    )
    if "nan" in lists:  # a row that was not measured in this dtype
        lists = f'    nan = float("nan")\n{lists}'
    told = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{v[i]:.2f} in {SHORT[d]}" for d, v in drawn.items() if v[i] == v[i]
        )
        for i, name in enumerate(names)
    )
    height = 1.2 + 0.56 * len(names)
    code = f"""
import matplotlib.pyplot as plt

{textwrap.dedent(items((fold(name, 24) for name in names), "names"))}
bars = {{}}
{textwrap.dedent(lists)}
figure, ax = plt.subplots(figsize=(4.8, {height:.1f}))
thick = 0.8 / len(bars)
for i, (dtype, values) in enumerate(bars.items()):
    places = [row + thick * (i - (len(bars) - 1) / 2) for row in range(len(names))]
    ax.barh(places, values, height=thick, color=f"C{{i}}", label=dtype)
ax.axvline(1, color="black", linewidth=1)
ax.set_yticks(range(len(names)), names)
ax.invert_yaxis()
ax.set(xlabel="time of tformer / best other")
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
"""
    caption = (
        "Left of the line tformer is faster than the best other, right of it slower."
    )
    return _folded(code, f"Bars: {told}.", f"speed-{stem}-{family}", caption)


def attention(report: Report, stem: str, way: str) -> str:
    """Draw time and memory of causal attention over T."""
    rows = [r for r in report.named(f"causal, {way}") if r.name == f"causal, {way}"]
    rows = [row for row in rows if row.length is not None]
    if len(rows) < 2:
        return ""
    parts = []
    for name, label in CURVES.items():
        those = [r for r in rows if "median" in r.contenders.get(name, {})]
        if those:
            parts += [
                listed((r.length or 0 for r in those), "lengths"),
                listed((1e3 * r.seconds(name) for r in those), "times"),
                listed(((r.peak(name) or 0) / 1e6 for r in those), "memory"),
                f"    curves[{label!r}] = lengths, times, memory",
            ]
    numbers = textwrap.dedent("\n".join(parts))
    code = f"""
import matplotlib.pyplot as plt

curves = {{}}
{numbers}
figure, axes = plt.subplots(2, 1, figsize=(4.8, 6.4), sharex=True)
for (name, (lengths, *measured)), style in zip(curves.items(), ["o-", "s--", "^:"]):
    for ax, values in zip(axes, measured):
        ax.loglog(lengths, values, style, label=name, base=2)
for ax, label in zip(axes, ["milliseconds", "megabytes"]):
    ax.set_yscale("log", base=10)
    ax.set(ylabel=label)
    ax.minorticks_off()
    ax.yaxis.set_major_locator(plt.LogLocator(subs=(1, 3)))
    ax.yaxis.set_major_formatter("{{x:,g}}")
ticks = {_ticks(r.length or 0 for r in rows)}
axes[1].set_xticks(ticks, [f"{{tick:,}}" for tick in ticks])
axes[1].set(xlabel="T")
axes[0].legend(loc="lower center", bbox_to_anchor=(0.4, 1))
"""
    kernel = [row.ratios["F.scaled_dot_product_attention"] for row in rows]
    alt = (
        "Two pictures of lines that rise with T, time above and memory below. tformer "
        f"takes {min(kernel):.2f} to {max(kernel):.2f} of the time of torch's kernel."
    )
    caption = (
        f"Causal attention, {way}, fp32, 8 heads of 64. Both axes are logarithmic: a "
        "step is a factor."
    )
    figure = f"speed-{stem}-attention-{way.split()[-1]}"
    return _folded(code, alt, figure, caption)


def _ticks(lengths: Iterable[int]) -> list[int]:
    """Return powers of 2 from the shortest to the longest, as many as have room."""
    known = set(lengths)
    first, last = (most(known).bit_length() - 1 for most in (min, max))
    step = 1 if last - first < 4 else 2
    return [2**power for power in range(first, last + 1, step)]


def _folded(code: str, alt: str, figure: str, caption: str) -> str:
    """Put the code into a box that is closed, and the picture after it."""
    inside = textwrap.indent(f"```python{code}```", "    ")
    return (
        '??? note "The code of this picture, and its numbers"\n\n'
        f'{inside}\n\n![{alt}](figures/{figure}.svg "{caption}")\n\n'
    )

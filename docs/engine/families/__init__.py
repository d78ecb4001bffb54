"""The page of families: a section for each file of `tformer/models/families`.

`python -m engine families` counts all presets anew and writes docs/families.md; what
the blocks of the page print is then written by `python -m engine outputs`.
"""

import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.families.facts import families
from engine.families.facts import write as write_facts
from engine.families.lineage import capital, changes, in_order
from engine.families.terms import Terms, link_numbers, linked, linked_name
from engine.tables import SPACE, read_kept, render, table

__all__ = ["page", "write"]

PAGE = "families.md"
FILES = "families"
LETTERS = {"all": "a", "latent": "l", "delta rule": "d", "linear": "s"}
COLUMNS = 84


class Family:
    """What the page says of a family."""

    def __init__(
        self, name: str, told: dict[str, str], presets: dict[str, dict[str, Any]]
    ) -> None:
        _, self.module = families()[name]
        self.name, self.told, self.presets = name, told, presets
        first, *rest = inspect.getdoc(self.module).split("\n\n")  # type: ignore[union-attr]
        called, _, summary = first.partition(": ")
        self.title = told.get("title", called if summary else name)
        self.summary = summary or first
        self.source = link_numbers(" ".join(" ".join(rest).split()))
        self.after = predecessor(self.module.__file__ or "") or told.get("after")

    @property
    def bought(self) -> str:
        """What the change bought, and where that is said."""
        if "bought" not in self.told:
            return ""
        number = self.told.get("arxiv")
        link = f", [arXiv:{number}](https://arxiv.org/abs/{number})" if number else ""
        said = link_numbers(self.told["bought"])
        return f"*What it bought.* {said} ({self.told['report']}{link})"

    @property
    def prose(self) -> str:
        """What it changed and where that is said; below it, what that bought."""
        said = f"{capital(self.summary)}\n{self.source}"
        return f"{said}\n\n{self.bought}" if self.bought else said

    @property
    def drawn(self) -> str:
        """The call that draws the family, as code of the page."""
        lines = [
            f"    {preset!r}: {code_of(letters(facts))},"
            for preset, facts in self.presets.items()
        ]
        widths = {n: w for n, w in [*self.presets.values()][-1]["widths"].items() if w}
        return "\n".join(["gallery({", *lines, f"}}, {widths})"])

    @property
    def alt(self) -> str:
        """What the picture shows, in words."""
        return "; ".join(f"{p}: {layers_of(x)}" for p, x in self.presets.items())

    @property
    def parts(self) -> dict[str, str]:
        """What a model of the last preset is made of, by the names of the parts."""
        return dict([*self.presets.values()][-1]["parts"])

    @property
    def last(self) -> str:
        """The preset whose widths are drawn."""
        return [*self.presets][-1]


def predecessor(file: str) -> str | None:
    """Return the family that a file stands on: whose defaults, or parts, it changes."""
    source = Path(file).read_text("utf-8")
    named = re.findall(r"\*\*(\w+)\.DEFAULTS|\b(\w+)\.PARTS", source)
    return next((x for each in named for x in each if x in families()), None)


def letters(facts: dict[str, Any]) -> str:
    """Write a letter for each layer: how it attends; a capital has experts."""
    written = ""
    for attention, network, count in facts["layers"]:
        kind = attention.partition(",")[0]
        letter = "w" if kind.startswith("window") else LETTERS.get(kind, "x")
        letter = "m" if "memory" in attention else letter
        written += count * (letter.upper() if network == "experts" else letter)
    return written


def code_of(text: str) -> str:
    """Write a text of letters as code of few columns."""
    if len(set(text)) == 1:
        return f"{text[0]!r} * {len(text)}"
    rows = [repr(row) for row in textwrap.wrap(text, 60)]
    return rows[0] if len(rows) == 1 else "\n        ".join(("(", *rows)) + "\n    )"


def layers_of(facts: dict[str, Any]) -> str:
    """Say how many layers attend how."""
    counts: dict[str, int] = {}
    for attention, network, count in facts["layers"]:
        kind = f"{attention}, experts" if network == "experts" else attention
        counts[kind] = counts.get(kind, 0) + count
    return " · ".join(f"{count}{SPACE}×{SPACE}{kind}" for kind, count in counts.items())


def parts_table(family: Family, before: Family, terms: Terms) -> str:
    """Make the table of the parts that two families do not have in common."""
    was, now = before.parts, family.parts
    names = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    return (
        table(
            {
                "part": lambda name: f"`{name}`",
                before.title: lambda name: linked_name(was.get(name, "–"), terms),
                family.title: lambda name: linked_name(now.get(name, "–"), terms),
            },
            names,
            left=(before.title, family.title),
        )
        if names
        else ""
    )


def size(number: int) -> str:
    """Write a number of parameters or bytes with its commas."""
    return f"{number:,}"


def presets_table(found: list[Family]) -> str:
    """Make the table of all presets."""
    rows = [(family, *item) for family in found for item in family.presets.items()]
    return table(
        {
            "preset": lambda row: row[1].replace("-", "\u2011"),
            "family": lambda row: f"[{row[0].title}](#{row[0].name})",
            "parameters": lambda row: size(row[2]["parameters"]),
            "of a token": lambda row: size(row[2]["active"]),
            "layers": lambda row: sum(count for *_, count in row[2]["layers"]),
            "how they attend": lambda row: layers_of(row[2]),
            "cache, bytes a token": lambda row: (
                size(row[2]["cache"]) if "cache" in row[2] else "–"
            ),
            "longest text": lambda row: (
                size(row[2]["max_len"]) if "max_len" in row[2] else "–"
            ),
            "its cache, bytes": lambda row: (
                size(row[2]["cache_full"]) if "cache" in row[2] else "–"
            ),
        },
        rows,
        left=("family", "how they attend"),
    )


def today_table(today: dict[str, Any]) -> str:
    """Make the table of who uses what."""
    users: dict[str, list[str]] = {}
    for kind, parts in today["families"].items():
        for part in parts:
            users.setdefault(part, []).append(kind)
    kinds = {kind: name for name, (kind, _) in families().items()}
    linked = {kind: f"[{kind}](#{name})" for kind, name in kinds.items()}
    return table(
        {
            "part": lambda row: row[0],
            "models": lambda row: len(row[1]),
            "which": lambda row: folded(linked.get(x, x) for x in row[1]),
        },
        sorted(users.items(), key=lambda item: (-len(item[1]), item[0])),
        left=("which",),
    )


def folded(names: Iterable[str]) -> str:
    """Fold many names, which a phone has no room for in a table."""
    text = ", ".join(names)
    return f"<details><summary>names</summary>{text}</details>"


def page(docs: Path) -> str:
    """Make the page from what is kept, and from the files of the families."""
    folder = docs / FILES
    told, terms = (
        tomllib.loads((folder / f"{x}.toml").read_text("utf-8"))
        for x in ("told", "terms")
    )
    facts, today = (read_kept(folder / f"{x}.json") for x in ("facts", "today"))
    found = in_order(
        Family(name, told.get(name, {}), facts[name])
        for name in families()
        if name in facts
    )
    named = {family.name: family for family in found}
    waiting = [Family(name, told.get(name, {}), {}) for name in families()]
    waiting = [family for family in waiting if family.name not in facts]
    return render(
        Path(__file__).parent / "page.md.jinja",
        families=found,
        waiting=waiting,
        parts={
            family.name: parts_table(family, named[family.after], terms)
            for family in found
            if family.after in named
        },
        named=named,
        prose={family.name: linked(family.prose, terms) for family in found},
        changes=linked(changes(found), terms),
        presets=presets_table(found),
        defaults=any(family.last.endswith(", defaults") for family in found),
        today=today,
        today_table=today_table(today),
    )


def write(docs: Path, *, anew: bool = True) -> None:
    """Write the page; with `anew` all presets are built once more, in minutes."""
    write_facts(docs / FILES / "facts.json", anew=anew)
    file = docs / PAGE
    before = file.read_text("utf-8") if file.exists() else ""
    file.write_text(with_outputs(page(docs), before), "utf-8")


_OUTPUT = re.compile(
    r"(```python\n(?:(?!```).)*```\n\n```\{\.\w+ \.output\}\n)(.*?)```", re.S
)


def with_outputs(page: str, before: str) -> str:
    """Keep what blocks have printed, where the block is the same."""
    printed = {found[1]: found[2] for found in _OUTPUT.finditer(before)}
    return _OUTPUT.sub(lambda x: f"{x[1]}{printed.get(x[1], x[2])}```", page)

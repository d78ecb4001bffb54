"""Sentences with numbers, and what on their page holds each number.

A quantity in the prose must be printed by a block of the page, stand in the code of
one, or come with its source. `make lists` writes the list of all of them into
`tests/engine/numbers/`, one file a page; a test fails where nothing holds a number. A
reason written by hand, after `by hand:`, stays as long as its sentence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.pages.blocks import Block, Line, Origin
from engine.pages.reading import CHAPTERS, Page
from engine.project import Project

NOTHING = "NOTHING"
BY_HAND = "by hand: "
FOLDER = "tests/engine/numbers"

_UNIT = (
    r"%|×|times|fold|(?:mi|na|micro|milli)?(?:ms|s|seconds?|minutes?|hours?|days?)\b"
    r"|[kKMGT]i?B\b|bytes?\b|bits?\b|GPUs?\b|TFLOP|points?\b|nats?\b|BLEU\b"
)
# A number that is a quantity: not a part of a name (GPT-2) or of a version (3.11.2).
_NUMBER = re.compile(
    r"(?<![\w.,^§⁻-])(?P<digits>\d+(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+)"
    r"(?P<power>[⁻⁰¹²³⁴-⁹]*)(?![\w]|[.,]\d|-\w)"
    rf"(?:\s*(?P<unit>{_UNIT}))?"
)
_POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
# No quantities: places in papers, versions, and what is numbered.
_NO_QUANTITY = re.compile(
    r"(?:sections?|tables?|figures?|equations?|chapters?|appendix|exercises?|pages?|"
    r"versions?|Python|torch|PyTorch|arXiv|CUDA|opset|seed|steps?|layers?|lines?|"
    r"positions?|head|row|column|token)[: ]\s*[\d.]+(?:\s*(?:,|and|to|–)\s*[\d.]+)*",
    re.IGNORECASE,
)
_CITED = re.compile(
    r"\]\(https?:|\bthe paper\b|\bet al\.|\barXiv\b|\bSection \d|\bsection \d|"
    r"\btable \d|\bappendix\b|\breadme\b",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"(?<![\w.])[-+]?(?:\d+(?:[,_]\d{3})+(?:\.\d+)?|\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?"
)
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)(?:\{[^}]*\})?")
_SENTENCE_END = re.compile(r"(?<=[.!?:])[)”*]*\s+(?=[“(*\[]?[A-Z0-9])")
_SKIPPED = ("References",)  # sections


@dataclass(frozen=True)
class Quantity:
    """A number in a sentence: its text, its value, and a unit of its last digit."""

    text: str
    value: float
    step: float
    percent: bool

    def equals(self, other: float) -> bool:
        """Say whether `other`, rounded as the sentence rounds, is this number."""
        scales = (1.0, 100.0) if self.percent else (1.0,)
        return any(
            abs(abs(other) * scale - self.value) <= 0.501 * self.step
            for scale in scales
        )


@dataclass(frozen=True)
class Sentence:
    """A sentence of a page that has quantities."""

    text: str
    origin: Origin
    quantities: tuple[Quantity, ...]
    cites: bool


@dataclass(frozen=True)
class Held:
    """A sentence, and for each of its quantities what holds it."""

    sentence: Sentence
    holders: tuple[str, ...]


def held_numbers(page: Page) -> list[Held]:
    """Return the sentences of a page with numbers, and what holds each number."""
    shown = [(block, *_values(block)) for block in page.blocks]
    held = []
    for sentence in sentences(page):
        holders = (
            _holder(each, _nearest_first(sentence.origin, shown))
            or ("its source" if sentence.cites else NOTHING)
            for each in sentence.quantities
        )
        held.append(Held(sentence, tuple(holders)))
    return held


def sentences(page: Page) -> Iterator[Sentence]:
    """Yield the sentences of a page that have quantities, in order."""
    for origin, text in _paragraphs(page):
        for written in _SENTENCE_END.split(_PICTURE.sub(" ", text)):
            quantities = tuple(find_quantities(written))
            if quantities:
                told = " ".join(_plain(written).split())
                cites = bool(_CITED.search(written))
                yield Sentence(told, origin, quantities, cites)


def find_quantities(text: str) -> Iterator[Quantity]:
    """Yield the quantities of a sentence: decimals, units, and numbers from 10 on."""
    plain = _NO_QUANTITY.sub(" ", _plain(text))
    for match in _NUMBER.finditer(plain):
        digits, unit = match["digits"].replace(",", ""), match["unit"] or ""
        value, places = float(digits), len(digits.partition(".")[2])
        step = 10.0**-places
        if match["power"]:
            power = float(match["power"].translate(_POWERS))
            value, step = value**power, 10.0 ** (power - 1)
        small = not (places or unit or match["power"] or value >= 10)
        year = not unit and "," not in match["digits"] and 1900 <= value <= 2099
        if not (small or (year and not places)):
            yield Quantity(match[0].strip(), value, step, unit == "%")


def _paragraphs(page: Page) -> Iterator[tuple[Origin, str]]:
    """Yield the paragraphs, items and rows of a page, without code."""
    inside = {n for f in page.fences for n in range(f.start, f.end + 1)}
    waiting: list[Line] = []
    skipped = in_math = False
    for n, line in enumerate([*page.lines, Line("", page.top)]):
        stripped = line.strip(" >")
        if stripped.count("$$") % 2:
            in_math = not in_math
        heading = stripped.startswith("#") and n not in inside
        ends = not stripped or heading or n in inside or in_math or "$$" in stripped
        if (ends or re.match(r"[-*|:]\s|\||\d+\.\s", stripped)) and waiting:
            if not skipped:
                yield waiting[0].origin, " ".join(x.strip(" >") for x in waiting)
            waiting = []
        if heading and stripped.startswith("## "):
            skipped = stripped[3:].split(" {")[0].strip() in _SKIPPED
        if not ends and not re.match(r"[?!]{3}|\*\[|\[\^|<!--|===|--8<", stripped):
            waiting.append(line)


def _plain(text: str) -> str:
    """Drop what is no prose: code, formulas, pictures, targets of links, tags."""
    text = _PICTURE.sub(" ", text)
    text = re.sub(r"(`+).+?\1", "`…`", text)
    text = re.sub(r"\$[^$]+\$", "$…$", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"<[^>]+>|\{[^{}]*\}", " ", text)
    return re.sub(r"^(?:[-*] (?:\[[ x]\] )?|\d+\. )", "", text)


Shown = tuple[Block, list[float], list[float]]


def _values(block: Block) -> tuple[list[float], list[float]]:
    printed = block.output.code if block.output else ""
    return _numbers_in(printed), _numbers_in(block.fence.code)


def _numbers_in(text: str) -> list[float]:
    return [float(re.sub("[,_]", "", x)) for x in _VALUE.findall(text)]


def _nearest_first(place: Origin, shown: list[Shown]) -> list[Shown]:
    """Sort blocks by how far they stand from a sentence: many hold small numbers."""
    return sorted(
        shown, key=lambda entry: abs(entry[0].fence.opening.origin.line - place.line)
    )


def _holder(quantity: Quantity, shown: list[Shown]) -> str | None:
    for block, printed, _ in shown:
        if any(map(quantity.equals, printed)):
            return f"printed by: {_name(block)}"
    for block, _, set_ in shown:
        if any(map(quantity.equals, set_)):
            return f"set in: {_name(block)}"
    return None


def _name(block: Block) -> str:
    """Return the first line of a block that is no import: how a reader finds it."""
    lines = [line.strip() for line in block.fence.lines]
    lines = [x for x in lines if x and not x.startswith(("import ", "from ", "#", '"'))]
    return lines[0][:60] if lines else "the imports"


def write_numbers(project: Project) -> list[str]:
    """Write the list of each chapter anew; return the files that changed."""
    folder, changed = project.root / FOLDER, []
    wanted = {page.path.stem: page for page in chapters_of(project)}
    for path in sorted(folder.glob("*.txt")):
        if path.stem not in wanted:
            path.unlink()
            changed.append(project.relative(path))
    for name, page in wanted.items():
        path = folder / f"{name}.txt"
        former = path.read_text("utf-8") if path.exists() else ""
        new = list_of(page, former)
        if new != former:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(new, "utf-8")
            changed.append(project.relative(path))
    return changed


def chapters_of(project: Project) -> list[Page]:
    """Return the chapters of a project, read."""
    folder = project.docs / CHAPTERS
    return [Page(project, path) for path in sorted(folder.glob("*.md"))]


def list_of(page: Page, former: str = "") -> str:
    """Return the list of a page; reasons by hand are taken over from the former one."""
    reasons = _reasons(former)
    held = held_numbers(page)
    lines = [f"{page.title}: {len(held)} sentences with numbers, and what holds each."]
    for each in held:
        lines += ["", each.sentence.text]
        for quantity, holder in zip(
            each.sentence.quantities, each.holders, strict=True
        ):
            reason = reasons.get((each.sentence.text, quantity.text))
            told = reason if reason and holder == NOTHING else holder
            lines.append(f"    {quantity.text} <- {told}")
    return "\n".join(lines) + "\n"


def _reasons(text: str) -> dict[tuple[str, str], str]:
    reasons, sentence = {}, ""
    for line in text.split("\n"):
        if line.startswith("    "):
            quantity, _, holder = line.strip().partition(" <- ")
            if holder.startswith(BY_HAND):
                reasons[sentence, quantity] = holder
        elif line:
            sentence = line
    return reasons

"""Sentences with numbers, and what on their page holds each number.

A quantity in the prose must be printed by a block of the page, stand in the code of
one, or come with its source. For the few that none of these holds, a reason stands in
`tests/engine/numbers.yml`, as long as the sentence does.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from engine.pages.blocks import Line, Origin
from engine.pages.reading import Page
from engine.run.figures import find_places

REASONS = Path("tests", "engine", "numbers.yml")

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


def number_problems(page: Page) -> list[str]:
    """Return the numbers of a page that nothing holds, and reasons without a number."""
    values = set()
    for block in page.blocks:
        printed = block.output.code if block.output else ""
        values |= _numbers_in(printed) | _numbers_in(block.fence.code)
    file = page.project.root / REASONS
    given: Any = yaml.safe_load(file.read_text("utf-8")) if file.is_file() else {}
    reasons = {(x, y) for x, each in given.get(page.name, {}).items() for y in each}
    problems, used = [], set()
    for origin, written in _sentences(page):
        text = " ".join(_plain(written).split())
        for each in find_quantities(written):
            if _CITED.search(written) or any(map(each.equals, values)):
                continue
            used.add((text, each.text))
            if (text, each.text) not in reasons:
                problem = f"{each.text!r} is printed by no block and has no source"
                told = f"in “{text}”; a reason may stand in {REASONS}"
                problems.append(f"{origin}: {problem}, {told}")
    return problems + [
        f"{REASONS}: {page.name} needs no reason for {number!r} in “{text}”"
        for text, number in sorted(reasons - used)
    ]


def _sentences(page: Page) -> Iterator[tuple[Origin, str]]:
    """Yield the sentences of a page as they are written, then those of its figures."""
    figures = find_places(page)
    texts = [(x.origin, text) for x in figures for text in (x.alt, x.caption)]
    prose = ((origin, _PICTURE.sub(" ", text)) for origin, text in _paragraphs(page))
    for origin, text in (*prose, *texts):
        for written in _SENTENCE_END.split(text):
            yield origin, written


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
    prose = dict(page.prose)
    waiting: list[Line] = []
    skipped = in_math = False
    for n, line in enumerate([*page.lines, Line("", page.top)]):
        stripped = line.strip(" >")
        if (mark := page.depth_marks.get(n)) is not None:
            stripped = ""
            if mark and not skipped:
                yield line.origin, mark
        if stripped.count("$$") % 2:
            in_math = not in_math
        heading = stripped.startswith("#") and n in prose
        ends = not stripped or heading or n not in prose or in_math or "$$" in stripped
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


def _numbers_in(text: str) -> set[float]:
    return {float(re.sub("[,_]", "", x)) for x in _VALUE.findall(text)}

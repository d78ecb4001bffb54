"""The forms in which people type dates: words, numbers in each order, ordinals.

What a locale writes is taken from the Unicode CLDR, as in `tformer.tasks.dates`; what
people leave out or put in when they type stands here.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tformer.checks import require
from tformer.tasks.dates import date_patterns

KINDS = ("words", "bare-words", "numbers", "two-digit-years", "ordinals")
ANY_DAY = range(1, 32)
# POSIX's reading of two digits: 69 is 1969, and 68 is 2068 (strptime, %y).
TWO_DIGIT_YEARS = range(1969, 2069)
# 11/22/2026 has no 22nd month, so 22 is the day. Of 04/05/2026 nothing tells it but
# habit: of the nine locales that write slashes and the year last, eight put the day
# first, and so it is read.
MONTH_FIRST_DAYS = range(13, 32)
ISO = "y-MM-dd"
MORE_NUMBERS = {"en_US": ("M-d-y",)}  # typed often, and not in CLDR
_TH = tuple(day for day in ANY_DAY if day not in (1, 2, 3, 21, 22, 23, 31))
# Of a language: what is written at the number of the day, and at which days.
ORDINALS: dict[str, dict[str, tuple[int, ...]]] = {
    "en": {"st": (1, 21, 31), "nd": (2, 22), "rd": (3, 23), "th": _TH},
    "fr": {"er": (1,)},
    "es": {"º": (1,)},
    "it": {"º": (1,)},
    "pt": {"º": (1,)},
}


class Form(NamedTuple):
    """A way to write some dates."""

    kind: str  # one of KINDS
    pattern: str  # of CLDR: "d.M.y"
    days: Sequence[int] = ANY_DAY  # of the month
    years: range | None = None  # that two digits can mean; None where they are four


@functools.cache
def typed_forms(locale: str) -> tuple[Form, ...]:
    """List the forms in which people of a locale type dates, each once.

    "words": as CLDR has them, `tformer.tasks.dates.date_patterns`. "bare-words": the
    same without commas, dots and small words, as 3 mayo 1979. "numbers": the order and
    the signs of the locale, with and without zeros, and ISO 8601 itself.
    "two-digit-years": the same where CLDR's short form of the locale has such years, of
    1969 to 2068. "ordinals": July 20th, 1969, where a language has them beside CLDR's.

    No two forms of all the locales read a text in two ways: month before day and year,
    which the United States write, is for days after the twelfth alone.

    Raises:
        ImportError: Babel is not installed.
        ValueError: Babel does not know the locale.
    """
    found: dict[str, Form] = {}
    for make in (_words, _bare_words, _numbers, _ordinals):
        for form in make(locale):
            found.setdefault(form.pattern, form)
    return tuple(found.values())


def _words(locale: str) -> Iterator[Form]:
    yield from (Form("words", pattern) for pattern in date_patterns(locale))


def _bare(pattern: str) -> str:
    if "MMM" in pattern:  # or "tháng" would go, which says what is the month
        pattern = re.sub(r"'[^']*'", "", pattern)
    return " ".join(re.sub(r"[.,]", "", pattern.replace("\u202f", " ")).split())


def _bare_words(locale: str) -> Iterator[Form]:
    yield from (Form("bare-words", _bare(pattern)) for pattern in date_patterns(locale))


def _numbers(locale: str) -> Iterator[Form]:
    data = require("babel").Locale.parse(locale)
    short = data.date_formats["short"].pattern
    own = (short, data.datetime_skeletons["yMd"].pattern)
    for pattern in (*own, *MORE_NUMBERS.get(locale, ())):
        shape = re.sub(r"([dMy])\1*", r"\1", pattern)
        for typed in (shape, shape.replace(" ", "").rstrip(".")):
            yield from _with_and_without_zeros("numbers", typed)
    if "yy" in short:
        shape = re.sub(r"([dM])\1*", r"\1", short)
        yield from _with_and_without_zeros("two-digit-years", shape, TWO_DIGIT_YEARS)
    yield Form("numbers", ISO)


def _with_and_without_zeros(
    kind: str, pattern: str, years: range | None = None
) -> Iterator[Form]:
    days = MONTH_FIRST_DAYS if pattern.startswith("M") else ANY_DAY
    for typed in (pattern, pattern.replace("d", "dd").replace("M", "MM")):
        yield Form(kind, typed, days, years)


def _ordinals(locale: str) -> Iterator[Form]:
    language = locale[:2]
    for mark, days in ORDINALS.get(language, {}).items():
        for pattern in date_patterns(locale):
            for typed in (pattern, _bare(pattern)):
                yield Form("ordinals", _marked(typed, mark), days)
        if language == "en":
            yield Form("ordinals", f"d'{mark}' 'of' MMMM y", days)
            yield Form("ordinals", f"'the' d'{mark}' 'of' MMMM y", days)


def _marked(pattern: str, mark: str) -> str:
    """Put a mark at the day of a pattern; letters in quotes are no day."""
    return re.sub(
        r"(?P<quoted>'[^']*')|d+", lambda x: x["quoted"] or f"d'{mark}'", pattern
    )

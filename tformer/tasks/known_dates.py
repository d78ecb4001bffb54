"""Whether a text is a date as the task `dates-as-typed` draws them, or what is not.

The rule that tells a reader "the model was not trained on this". It follows from the
forms that draw the training: it holds no list of its own, and asks no model.
"""

import datetime
import functools
import re
import unicodedata
from collections.abc import Callable

from tformer.tasks.date_forms import ANY_DAY, TWO_DIGIT_YEARS, Form, typed_forms
from tformer.tasks.dates import FIRST_DAY, LAST_DAY, LOCALES, write_date

_PART = re.compile(r"'(?P<quoted>[^']*)'|(?P<field>[A-Za-z])(?P=field)*|[^A-Za-z']+")
_MONTHS = [datetime.date(2001, month, 1) for month in range(1, 13)]
_WEEK = [datetime.date(2001, 1, day) for day in range(1, 8)]


@functools.cache
def known_dates() -> tuple[str, ...]:
    """Return regular expressions that match what training can have drawn, and no more.

    They have the groups d, m and y, or yy for a year of two digits. Where the month is
    a word, m1 to m12 stand for m, and one of them is not empty.
    """
    found = {
        _expression(form, locale, case)
        for locale in LOCALES
        for form in typed_forms(locale)
        for case in (str, str.lower, str.upper)
    }
    return tuple(sorted(found))


def unlike_training(text: str) -> str:
    """Say what of a text the training of `dates-as-typed` has not.

    Returns:
        "form": it is written in no form of the task. "year": it is, with a year before
        1900 or after 2099. "day": no calendar has the day. "": nothing, training can
        have drawn it.
    """
    told = "form"
    for expression in _compiled():
        match = expression.fullmatch(text)
        if match:
            parts = match.groupdict()
            month = parts.get("m") or next(
                name[1:] for name in parts if name[0] == "m" and parts[name]
            )
            year = int(parts.get("y") or two_digit_year(int(parts["yy"])))
            try:
                datetime.date(year, int(month), int(parts["d"]))
            except ValueError:
                told = "day"
            else:
                if FIRST_DAY.year <= year <= LAST_DAY.year:
                    return ""
                told = "year"
    return told


def two_digit_year(digits: int) -> int:
    """Return the year that two digits mean: 69 to 99 are of the 1900s, 0 to 68 not."""
    return next(year for year in TWO_DIGIT_YEARS if year % 100 == digits)


@functools.cache
def _compiled() -> list[re.Pattern[str]]:
    return [re.compile(expression) for expression in known_dates()]


def _expression(form: Form, locale: str, case: Callable[[str], str]) -> str:
    """Return a regular expression for the texts of a form in one locale."""

    def piece(match: re.Match[str]) -> str:
        part, letter = match[0], match["field"]
        if letter == "y":
            return r"(?P<yy>\d{2})" if part == "yy" else r"(?P<y>\d{4})"
        if letter == "d":
            return _day(form, zeros=part == "dd")
        if letter in ("M", "L") and len(part) < 3:
            return r"(?P<m>\d{2})" if part == "MM" else r"(?P<m>[1-9]\d?)"
        if letter in ("M", "L"):
            months = (case(write_date(day, part, locale)) for day in _MONTHS)
            named = (f"(?P<m{n}>{_plain(x)})" for n, x in enumerate(months, 1))
            return f"(?:{'|'.join(named)})"
        if letter:  # a weekday
            names = {_plain(case(write_date(day, part, locale))) for day in _WEEK}
            return f"(?:{'|'.join(sorted(names))})"
        return _plain(case(write_date(_WEEK[0], part, locale)))

    return _PART.sub(piece, form.pattern)


def _day(form: Form, *, zeros: bool) -> str:
    if form.days == ANY_DAY:
        return r"(?P<d>\d{2})" if zeros else r"(?P<d>[1-9]\d?)"
    days = (f"{day:02}" if zeros else str(day) for day in form.days)
    return f"(?P<d>{'|'.join(days)})"


def _plain(text: str) -> str:
    """Return a text, composed as the training's are, as an expression that matches it.

    Python's `re.escape` would escape blanks, which JavaScript refuses.
    """
    text = unicodedata.normalize("NFC", text)
    return re.sub(r"([.()*+?\[\]{}|\\^$/])", r"\\\1", text)

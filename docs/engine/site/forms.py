"""The forms of dates that the model of the live page was trained on, for the page.

`docs/live/explorer/forms.js` says of a text whether training could have drawn it: a
pattern of CLDR from `tformer.tasks.dates`, in the case that CLDR gives, in lower or in
upper case, with a day that exists in the years of the training. What share of dates in
other orders and of other years such a model reads right is measured: docs/results/.
"""

import datetime
import json
import re
import unicodedata
from pathlib import Path
from statistics import mean
from typing import Any

from tformer.tasks.dates import (
    FIRST_DAY,
    LAST_DAY,
    LOCALES,
    date_patterns,
    write_date,
)

_PART = re.compile(r"'(?P<quoted>[^']*)'|(?P<field>[A-Za-z])(?P=field)*|[^A-Za-z']+")
_MONTHS = [datetime.date(2001, month, 1) for month in range(1, 13)]
_WEEK = [datetime.date(2001, 1, day) for day in range(1, 8)]


def forms(results: Path) -> dict[str, Any]:
    """Return what `docs/live/explorer/forms.js` reads.

    `forms` are regular expressions with the groups y, d and m; where the month is a
    word, m1 to m12, of which one is not empty.
    """
    found = {
        form(pattern, locale, case)
        for locale in LOCALES
        for pattern in date_patterns(locale)
        for case in (str, str.lower, str.upper)
    }
    runs = [json.loads(x.read_text("utf-8")) for x in results.glob("dates-[0-9].json")]

    def right(split: str) -> float:
        asked = (run.get("evaluations", {}).get(split) for run in runs)
        return mean(x["result"]["exact_match"] for x in asked if x)

    return {
        "forms": sorted(found),
        "years": [FIRST_DAY.year, LAST_DAY.year],
        "right": {
            "otherOrders": right("new-formats"),
            "otherYears": right("new-years"),
        },
    }


def form(pattern: str, locale: str, case: Any) -> str:
    """Return a regular expression for the texts of a CLDR pattern in one locale."""

    def piece(match: re.Match[str]) -> str:
        part, letter = match[0], match["field"]
        if letter == "y":
            return r"(?<y>\d{4})"
        if letter == "d":
            return r"(?<d>\d\d)" if len(part) == 2 else r"(?<d>[1-9]\d?)"
        if letter in ("M", "L") and len(part) < 3:
            return r"(?<m>[1-9]\d?)"
        if letter in ("M", "L"):
            months = (case(write_date(day, part, locale)) for day in _MONTHS)
            named = (f"(?<m{n}>{_plain(x)})" for n, x in enumerate(months, 1))
            return f"(?:{'|'.join(named)})"
        if letter:  # a weekday
            names = {_plain(case(write_date(day, part, locale))) for day in _WEEK}
            return f"(?:{'|'.join(sorted(names))})"
        return _plain(case(write_date(_WEEK[0], part, locale)))

    return _PART.sub(piece, pattern)


def _plain(text: str) -> str:
    """Return a text, composed as the training's are, as an expression that matches it.

    Python's `re.escape` would escape blanks, which JavaScript refuses.
    """
    text = unicodedata.normalize("NFC", text)
    return re.sub(r"([.()*+?\[\]{}|\\^$/])", r"\\\1", text)

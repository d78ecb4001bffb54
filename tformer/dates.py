"""A task to learn: read a date in any of 24 locales, write it as ISO 8601.

"jeudi 3 mai 1979" becomes "1979-05-03". How the date is written comes from Unicode's
CLDR, by way of Babel.
"""

import datetime
import functools
import random
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from tformer.extras import require

LOCALES = tuple(
    "en_US en_GB de fr es it pt nl sv da fi pl cs hu ro tr el ru uk ja zh ko vi id".split()
)
FIRST_DAY = datetime.date(1900, 1, 1)
LAST_DAY = datetime.date(2099, 12, 31)
HELD_OUT = 2000
ISO_LENGTH = len("1979-05-03")


class DateExample(NamedTuple):
    """A date as people write it, and as ISO 8601."""

    text: str
    iso: str
    locale: str


@functools.cache
def split_days() -> dict[str, list[datetime.date]]:
    """Deal all days from 1900 to 2099 to the splits "train", "validation" and "test"."""
    length = (LAST_DAY - FIRST_DAY).days + 1
    days = [FIRST_DAY + datetime.timedelta(days=i) for i in range(length)]
    random.Random(2017).shuffle(days)
    return {
        "test": days[:HELD_OUT],
        "validation": days[HELD_OUT : 2 * HELD_OUT],
        "train": days[2 * HELD_OUT :],
    }


@functools.cache
def patterns(locale: str):
    babel = require("babel")
    data = babel.Locale.parse(locale)
    formats = [data.date_formats[name] for name in ("full", "long", "medium")]
    formats += [data.datetime_skeletons[name] for name in ("yMMMd", "yMMMEd")]
    return tuple(
        sorted({f.pattern for f in formats if "MMM" in f.pattern or "月" in f.pattern})
    )


def write(day, pattern, locale):
    text = require("babel.dates").format_date(day, pattern, locale=locale)
    return (
        unicodedata.normalize("NFC", text).replace("\u202f", " ").replace("\xa0", " ")
    )


def date_examples(
    count: int, *, seed: int, split: str = "train", locales: Sequence[str] = LOCALES
):
    rng = random.Random(f"{split} {seed}")
    days = split_days()[split]
    out = []
    for _ in range(count):
        day, locale = rng.choice(days), rng.choice(locales)
        text = write(day, rng.choice(patterns(locale)), locale)
        case = rng.random()
        if case < 0.15:
            text = text.lower()
        elif case < 0.25:
            text = text.upper()
        out.append(
            DateExample(unicodedata.normalize("NFC", text), day.isoformat(), locale)
        )
    return out

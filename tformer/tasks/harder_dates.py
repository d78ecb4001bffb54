"""Dates on which a model that was trained on `dates` can fail, to see what it learned.

The test of the task has days that were not trained on, in locales, formats and years
that were. Each split here has one thing more that the training has not.
"""

import datetime
import random
import re
from collections.abc import Callable, Sequence

from tformer.checks import check_positive
from tformer.tasks.dates import (
    FIRST_DAY,
    LAST_DAY,
    DateExample,
    date_patterns,
    split_days,
    write_date,
)

YEARS_AROUND = 200  # before the first year of the task, and after its last


def harder_examples(
    split: str, count: int, *, seed: int, locales: Sequence[str]
) -> list[DateExample]:
    """Draw dates of a harder split, locales evenly; all in the case that CLDR gives.

    "new-years": in the formats of the training, from 1700 to 1899 and 2100 to 2299.
    "new-formats": days of the test, their parts in orders that no locale of the task
    writes with these signs, as 1979 mai 3. "long-texts": days of the test, each written
    again and again, until the text is longer than any of the training.

    Raises:
        ImportError: Babel is not installed.
        ValueError: `count` is below 1, or `split` unknown.
    """
    check_positive(count=count)
    if split not in HARDER_SPLITS:
        raise ValueError(f"split ({split!r}) must be one of {', '.join(HARDER_SPLITS)}")
    draw = random.Random(f"{split} {seed}")
    examples = []
    for _ in range(count):
        locale = draw.choice(list(locales))
        pattern = draw.choice(date_patterns(locale))
        day, text = HARDER_SPLITS[split](draw, pattern, locale)
        examples.append(DateExample(text, day.isoformat(), locale))
    return examples


def new_formats(pattern: str) -> tuple[str, ...]:
    """Put day, month and year of a pattern in three other orders.

    Such as "y MMMM d" of "EEEE, d 'de' MMMM 'de' y"; the signs at a part are kept.
    """
    bare = re.sub(r"'[^']*'", "", pattern)
    year, month, day = (
        re.findall(part, bare)[0] for part in ("y[年년]?", "M+月?", "d+[日일]?")
    )
    return f"{year} {month} {day}", f"{day}-{month}-{year}", f"{month} {day} {year}"


def _new_year(
    draw: random.Random, pattern: str, locale: str
) -> tuple[datetime.date, str]:
    before = (FIRST_DAY.year - YEARS_AROUND, FIRST_DAY.year - 1)
    after = (LAST_DAY.year + 1, LAST_DAY.year + YEARS_AROUND)
    first, last = draw.choice((before, after))
    begin = datetime.date(first, 1, 1)
    days = (datetime.date(last, 12, 31) - begin).days + 1
    day = begin + datetime.timedelta(days=draw.randrange(days))
    return day, write_date(day, pattern, locale)


def _new_format(
    draw: random.Random, pattern: str, locale: str
) -> tuple[datetime.date, str]:
    day = draw.choice(split_days()["test"])
    own = date_patterns(locale)  # Korean has the year first itself
    patterns = [new for new in new_formats(pattern) if new not in own]
    return day, write_date(day, draw.choice(patterns), locale)


def _long_text(
    draw: random.Random, pattern: str, locale: str
) -> tuple[datetime.date, str]:
    day = draw.choice(split_days()["test"])
    once = write_date(day, pattern, locale)
    return day, ", ".join([once] * (LONGEST // len(once) + 1))


LONGEST = len("segunda-feira, 28 de fevereiro de 2005")  # of the task

Draw = Callable[[random.Random, str, str], tuple[datetime.date, str]]
HARDER_SPLITS: dict[str, Draw] = {
    "new-years": _new_year,
    "new-formats": _new_format,
    "long-texts": _long_text,
}

"""A task to learn: read a date as people write it in 24 locales, write ISO 8601.

"jeudi 3 mai 1979" becomes "1979-05-03". How people write a date is taken from the
Unicode CLDR, which the package Babel carries. Nothing is downloaded.
"""

import datetime
import functools
import random
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from tformer.checks import require
from tformer.data.pairs import Pair
from tformer.data.vocabulary import CharacterVocabulary
from tformer.tasks.task import Task, check_draw

LOCALES = (
    *("en_US", "en_GB", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "fi", "pl"),
    *("cs", "hu", "ro", "tr", "el", "ru", "uk", "ja", "zh", "ko", "vi", "id"),
)
FIRST_DAY = datetime.date(1900, 1, 1)
LAST_DAY = datetime.date(2099, 12, 31)
HELD_OUT = 2000  # days for validation, and as many for the test
ISO_LEN = len("1979-05-03")
HARDER_SPLITS = ("new-years", "new-formats", "long-texts")
YEARS_AROUND = 200  # of "new-years": before the first year and after the last


class DateExample(NamedTuple):
    """One date, written twice."""

    text: str  # "jeudi 3 mai 1979"
    iso: str  # "1979-05-03"
    locale: str  # "fr"


@functools.cache
def split_days() -> dict[str, tuple[datetime.date, ...]]:
    """Deal the 73,049 days from 1900 to 2099 out to the splits, always the same way.

    A day of the test is in no other split, in no language. Were the *texts* split, the
    model could meet "3 May 1979" in training and be asked for "3. Mai 1979".
    """
    count = (LAST_DAY - FIRST_DAY).days + 1
    days = [FIRST_DAY + datetime.timedelta(days=i) for i in range(count)]
    random.Random("tformer.dates").shuffle(days)
    return {
        "test": tuple(days[:HELD_OUT]),
        "validation": tuple(days[HELD_OUT : 2 * HELD_OUT]),
        "train": tuple(days[2 * HELD_OUT :]),
    }


@functools.cache
def date_patterns(locale: str) -> tuple[str, ...]:
    """List the CLDR patterns of a locale that can be read in one way only.

    Those are the ones in which the month is a word, or is marked as a month, such as
    "EEEE d MMMM y". Numbers alone, as in 03/05/1979, mean May in London and March in
    New York.

    Raises:
        ImportError: Babel is not installed.
        ValueError: Babel does not know the locale.
    """
    babel = require("babel")
    try:
        data = babel.Locale.parse(locale)
    except babel.UnknownLocaleError as error:
        raise ValueError(f"locale ({locale!r}) is unknown to Babel") from error
    formats = [data.date_formats[name] for name in ("full", "long", "medium")]
    formats += [data.datetime_skeletons[name] for name in ("yMMMd", "yMMMEd")]
    patterns = {form.pattern for form in formats}
    return tuple(sorted(p for p in patterns if "MMM" in p or "月" in p))


def write_date(day: datetime.date, pattern: str, locale: str) -> str:
    """Write a day as a locale does, with plain spaces and composed letters (NFC)."""
    return _plain(require("babel.dates").format_date(day, pattern, locale=locale))


def _plain(text: str) -> str:
    # Without CLDR's narrow and no-break spaces.
    text = text.replace("\u202f", " ").replace("\xa0", " ")
    return unicodedata.normalize("NFC", text)


def date_examples(
    count: int, *, seed: int, split: str = "train", locales: Sequence[str] = LOCALES
) -> list[DateExample]:
    """Draw examples: the days of a split in random order, as some locale writes each.

    Locale and pattern are drawn evenly. Of the texts 15 % are in lower case and 10 % in
    upper case, as people write them too.

    Beyond the days of the split, they come round again. The same seed gives the same
    examples, with one version of Babel.

    Raises:
        ImportError: Babel is not installed.
        ValueError: `count` is below 1, `split` unknown, or a locale unknown or missing.
    """
    check_draw(split, count)
    if not locales:
        raise ValueError("locales must name at least one")
    draw = random.Random(f"{split} {seed}")
    days = draw.sample(split_days()[split], len(split_days()[split]))
    examples = []
    for i in range(count):
        day, locale = days[i % len(days)], draw.choice(locales)
        text = write_date(day, draw.choice(date_patterns(locale)), locale)
        text = in_some_case(text, draw)
        examples.append(DateExample(text, day.isoformat(), locale))
    return examples


def in_some_case(text: str, draw: random.Random) -> str:
    """Write 15 % of texts in lower case and 10 % in upper case, as people do."""
    case = draw.random()
    if case < 0.15:
        return _plain(text.lower())
    return _plain(text.upper()) if case < 0.25 else text


def harder_examples(
    split: str, count: int, *, seed: int, locales: Sequence[str] = LOCALES
) -> list[DateExample]:
    """Draw dates that have one thing more than the training: a model can fail on them.

    "new-years": in the formats of the training, from 1700 to 1899 and 2100 to 2299.
    "new-formats": days of the test, their parts in orders that no locale of the task
    writes with these signs, as 1979 mai 3. "long-texts": days of the test, each written
    again and again, until the text is longer than any of the training.

    Locales are drawn evenly, and all is in the case that CLDR gives. What is wrong is
    named as in `date_examples`.
    """
    check_draw(split, count, HARDER_SPLITS)
    draw = random.Random(f"{split} {seed}")
    examples = []
    for _ in range(count):
        locale = draw.choice(locales)
        own = date_patterns(locale)
        pattern = draw.choice(own)
        if split == "new-years":
            day = draw_new_year(draw)
        else:
            day = draw.choice(split_days()["test"])
        if split == "new-formats":
            # Not of its own: Korean has the year first itself.
            pattern = draw.choice([p for p in new_formats(pattern) if p not in own])
        text = write_date(day, pattern, locale)
        if split == "long-texts":
            text = ", ".join([text] * (DatesTask.max_source_len // len(text) + 1))
        examples.append(DateExample(text, day.isoformat(), locale))
    return examples


def draw_new_year(draw: random.Random) -> datetime.date:
    """Draw a day of the years around those of the training, before or after."""
    year = draw.choice((FIRST_DAY.year - YEARS_AROUND, LAST_DAY.year + 1))
    first = datetime.date(year, 1, 1)
    days = (first.replace(year=year + YEARS_AROUND) - first).days
    return first + datetime.timedelta(days=draw.randrange(days))


def new_formats(pattern: str) -> tuple[str, ...]:
    """Put day, month and year of a pattern in three other orders.

    Such as "y MMMM d" of "EEEE, d 'de' MMMM 'de' y"; the signs at a part are kept.
    """
    bare = re.sub(r"'[^']*'", "", pattern)
    year, month, day = (
        re.findall(part, bare)[0] for part in ("y[年년]?", "M+月?", "d+[日일]?")
    )
    return f"{year} {month} {day}", f"{day}-{month}-{year}", f"{month} {day} {year}"


def date_vocabulary(locales: Sequence[str] = LOCALES) -> CharacterVocabulary:
    """Collect every character in which these locales write a date, and ISO 8601."""
    # Every month, every weekday and every digit come up in these.
    days = [datetime.date(2000, 1, 1) + datetime.timedelta(days=i) for i in range(366)]
    texts = {"0123456789-"}
    for locale in locales:
        for pattern in date_patterns(locale):
            texts.update(write_date(day, pattern, locale) for day in days)
    cases = (texts, map(str.lower, texts), map(str.upper, texts))
    return CharacterVocabulary.of(_plain(text) for case in cases for text in case)


_cached_vocabulary = functools.cache(date_vocabulary)


class DatesTask(Task):
    """Dates as people write them, in ISO 8601.

    Beside the three splits of every task it can draw others: those of
    `harder_examples`, and "locale-fr" and the like, the test of one locale.

    Of locales that are held out, some and not all, there is no text in training and
    validation; the test has no others.
    """

    max_source_len = len("segunda-feira, 28 de fevereiro de 2005")
    max_target_len = ISO_LEN

    def __init__(
        self,
        *,
        name: str = "dates",
        locales: Sequence[str] = LOCALES,
        held_out: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.locales, self.held_out = tuple(locales), tuple(held_out)
        self.trained = tuple(x for x in self.locales if x not in self.held_out)
        if not set(self.held_out) < set(self.locales):
            raise ValueError(
                f"held_out ({self.held_out}) must be some of the locales, and not all"
            )
        kept = f", not of {', '.join(self.held_out)}" if held_out else ""
        read = f"dates of {len(self.trained)} locales{kept}"
        self.description = f"{read}, as ISO 8601: jeudi 3 mai 1979 → 1979-05-03"
        self.more_splits = (*HARDER_SPLITS, *(f"locale-{x}" for x in self.locales))

    def vocabulary(self) -> CharacterVocabulary:
        """Return every character of these dates, those of held-out locales as well."""
        return _cached_vocabulary(self.locales)

    def pairs(self, split: str, count: int, seed: int) -> list[Pair]:
        """Draw pairs of a split, which is by day: see `split_days`."""
        return [Pair(text, iso) for text, iso, _ in self.examples(split, count, seed)]

    def examples(self, split: str, count: int, seed: int) -> list[DateExample]:
        """Draw what `pairs` draws, each with its locale."""
        if split in HARDER_SPLITS:
            return harder_examples(split, count, seed=seed, locales=self.trained)
        locales = self.trained
        if split in self.more_splits:
            split, locales = "test", (split.removeprefix("locale-"),)
        elif split == "test" and self.held_out:
            locales = self.held_out
        return date_examples(count, seed=seed, split=split, locales=locales)

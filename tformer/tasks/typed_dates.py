"""A task to learn: read dates as people type them, write ISO 8601.

In words, in numbers and with ordinals: "22.11.2026", "July 20th, 1969", "3 mai 1979".
"""

import datetime
import functools
import itertools
import random
from collections.abc import Iterator, Sequence

from tformer.checks import check_one_of
from tformer.data.pairs import SPLITS
from tformer.data.vocabulary import CharacterVocabulary
from tformer.tasks.date_forms import (
    KINDS,
    TWO_DIGIT_YEARS,
    typed_forms,
)
from tformer.tasks.dates import (
    FIRST_DAY,
    LAST_DAY,
    LOCALES,
    DateExample,
    DatesTask,
    draw_new_year,
    harder_examples,
    in_some_case,
    split_days,
    write_date,
)
from tformer.tasks.known_dates import unlike_training
from tformer.tasks.task import check_draw

# How often a kind comes up. Words, in 24 locales, are the most to learn.
WEIGHTS = {
    "words": 4,
    "bare-words": 2,
    "numbers": 3,
    "two-digit-years": 2,
    "ordinals": 1,
}
IN_NUMBERS = ("numbers", "two-digit-years")


def typed_examples(
    count: int,
    *,
    seed: int,
    split: str = "train",
    locales: Sequence[str] = LOCALES,
    kinds: Sequence[str] = KINDS,
) -> list[DateExample]:
    """Draw examples: the days of a split in random order, as somebody types each.

    A kind is drawn of those that can write the day, with WEIGHTS. Of numbers, which
    belong to no language, each order with its signs then comes up as often as another,
    or a model would hardly meet 11/22/2026, which one locale writes; of all others each
    locale, and evenly one of its forms. The case is that of `date_examples`; the split
    "new-years" has days as in `harder_examples`, both in `tformer.tasks.dates`.

    Raises:
        ImportError: Babel is not installed.
        ValueError: `count` is below 1, `split` or a kind unknown, a locale unknown, or
            no locale has forms of these kinds.
    """
    check_draw(split, count, (*SPLITS, "new-years"))
    for kind in kinds:
        check_one_of("kind", kind, KINDS)
    forms = (form for locale in locales for form in typed_forms(locale))
    if split == "new-years":  # which two digits cannot mean
        forms = (form for form in forms if form.years is None)
    if not any(form.kind in kinds for form in forms):
        raise ValueError(f"locales ({locales}) have no forms of these kinds ({kinds})")
    draw = random.Random(f"typed {split} {seed}")
    examples: list[DateExample] = []
    days = _days(split, draw)
    while len(examples) < count:
        day = next(days)
        two_digits = day.year in TWO_DIGIT_YEARS
        ways = _ways(day.day, two_digits, tuple(locales), tuple(kinds))
        if ways:
            weights = [WEIGHTS[kind] for kind in ways]
            groups = ways[draw.choices(list(ways), weights)[0]]
            locale, pattern = draw.choice(draw.choice(groups))
            text = in_some_case(write_date(day, pattern, locale), draw)
            examples.append(DateExample(text, day.isoformat(), locale))
    return examples


def _days(split: str, draw: random.Random) -> Iterator[datetime.date]:
    if split == "new-years":
        while True:
            yield draw_new_year(draw)
    yield from itertools.cycle(
        draw.sample(split_days()[split], len(split_days()[split]))
    )


@functools.cache
def _ways(
    day: int, two_digits: bool, locales: tuple[str, ...], kinds: tuple[str, ...]
) -> dict[str, list[list[tuple[str, str]]]]:
    """Return the locales and patterns that write a day of the month, by kind.

    They stand in groups of which each comes up as often: of one pattern in numbers, of
    one locale else. `two_digits` says whether such a year can mean the day's.
    """
    found: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for locale in locales:
        for form in typed_forms(locale):
            writes = day in form.days and (two_digits or form.years is None)
            if form.kind in kinds and writes:
                by = form.pattern if form.kind in IN_NUMBERS else locale
                group = found.setdefault(form.kind, {}).setdefault(by, [])
                group.append((locale, form.pattern))
    return {kind: [*groups.values()] for kind, groups in found.items()}


UNLIKE = {
    "": "",
    "form": "is in no form that the model was trained on, and may be read wrong",
    "year": f"is not in {FIRST_DAY.year} to {LAST_DAY.year}, the years of the training",
    "day": "is a day that no calendar has",
}


class TypedDatesTask(DatesTask):
    """Dates as people type them, in ISO 8601: also in numbers, and with ordinals.

    Beside the splits of `DatesTask` it can draw each kind of form, KINDS, from the days
    of the test. Its "new-years" are of all kinds but two-digit years.
    """

    def __init__(self) -> None:
        super().__init__(name="dates-as-typed")
        self.description = (
            f"dates as people of {len(self.locales)} locales type them, as ISO 8601: "
            "July 20th, 1969 → 1969-07-20"
        )
        self.more_splits = (*self.more_splits, *KINDS)

    def unlike_training(self, text: str) -> str:
        """Say of a source what its training has not; see `known_dates`."""
        return UNLIKE[unlike_training(text)]

    def vocabulary(self) -> CharacterVocabulary:
        """Return every character of these dates."""
        names = super().vocabulary().characters
        return CharacterVocabulary.of([*names, *_signs(self.locales)])

    def examples(self, split: str, count: int, seed: int) -> list[DateExample]:
        """Draw what `pairs` draws, each with its locale."""
        if split in ("new-formats", "long-texts"):
            # What is new in one locale can be another's: jun 10 1952, as in English.
            drawn = harder_examples(
                split, 2 * count + 20, seed=seed, locales=self.locales
            )
            return [each for each in drawn if unlike_training(each.text)][:count]
        kinds: Sequence[str] = KINDS
        locales = self.locales
        if split in KINDS:
            split, kinds = "test", (split,)
        elif split.startswith("locale-") and split in self.more_splits:
            split, locales = "test", (split.removeprefix("locale-"),)
        return typed_examples(
            count, seed=seed, split=split, locales=locales, kinds=kinds
        )


@functools.cache
def _signs(locales: tuple[str, ...]) -> frozenset[str]:
    """Return the characters of all forms, but for those of names."""
    found: set[str] = set()
    for locale in locales:
        for form in typed_forms(locale):
            day = datetime.date(2000, 1, form.days[0])
            text = write_date(day, form.pattern, locale)
            found |= {*text, *text.lower(), *text.upper()}
    return frozenset(found)

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
    Form,
    typed_forms,
)
from tformer.tasks.dates import (
    LOCALES,
    DateExample,
    DatesTask,
    date_vocabulary,
    draw_new_year,
    harder_examples,
    in_some_case,
    split_days,
    write_date,
)
from tformer.tasks.known_dates import unlike_training
from tformer.tasks.task import check_draw


def typed_examples(
    count: int,
    *,
    seed: int,
    split: str = "train",
    locales: Sequence[str] = LOCALES,
    kinds: Sequence[str] = KINDS,
) -> list[DateExample]:
    """Draw examples: the days of a split in random order, as somebody types each.

    A locale is drawn evenly; then a kind of those that it has for the day, words twice
    as often as each other, since they are the most to learn; then a form of the kind
    evenly. For a day that a locale writes in none of the kinds, another is drawn. The
    case is that of `date_examples`; the split "new-years" has days as in
    `harder_examples`, both in `tformer.tasks.dates`.

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
        for locale in draw.sample(locales, len(locales)):
            having = _forms_of(day, locale, kinds)
            if having:
                weights = [2 if kind == "words" else 1 for kind in having]
                of_kind = having[draw.choices(list(having), weights)[0]]
                text = write_date(day, draw.choice(of_kind).pattern, locale)
                text = in_some_case(text, draw)
                examples.append(DateExample(text, day.isoformat(), locale))
                break
    return examples


def _days(split: str, draw: random.Random) -> Iterator[datetime.date]:
    if split == "new-years":
        while True:
            yield draw_new_year(draw)
    yield from itertools.cycle(
        draw.sample(split_days()[split], len(split_days()[split]))
    )


def _forms_of(
    day: datetime.date, locale: str, kinds: Sequence[str]
) -> dict[str, list[Form]]:
    """Return the forms for a day by their kinds, in the order of KINDS."""
    found: dict[str, list[Form]] = {}
    for form in typed_forms(locale):
        if form.kind in kinds and form.has(day):
            found.setdefault(form.kind, []).append(form)
    return found


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

    def vocabulary(self) -> CharacterVocabulary:
        """Return every character of these dates."""
        return _vocabulary(self.locales)

    def examples(self, split: str, count: int, seed: int) -> list[DateExample]:
        """Draw what `pairs` draws, each with its locale."""
        if split in ("new-formats", "long-texts"):
            # What is new in one locale can be another's: jun 10 1952, as in English.
            drawn = harder_examples(
                split, 2 * count + 20, seed=seed, locales=self.locales
            )
            return [each for each in drawn if unlike_training(each.text)][:count]
        kinds, locales = KINDS, self.locales
        if split in KINDS:
            split, kinds = "test", (split,)
        elif split.startswith("locale-") and split in self.more_splits:
            split, locales = "test", (split.removeprefix("locale-"),)
        return typed_examples(
            count, seed=seed, split=split, locales=locales, kinds=kinds
        )


@functools.cache
def _vocabulary(locales: Sequence[str]) -> CharacterVocabulary:
    texts = set(date_vocabulary(locales).characters)
    for locale in locales:
        for form in typed_forms(locale):  # their signs; the words are there
            day = datetime.date(2000, 1, form.days[0])
            text = write_date(day, form.pattern, locale)
            texts |= {text, text.lower(), text.upper()}
    return CharacterVocabulary.of(texts)

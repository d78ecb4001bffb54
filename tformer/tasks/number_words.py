"""A task on words: "siebenundzwanzig" becomes "27". The package num2words has them."""

import functools
import random
import unicodedata
from collections.abc import Sequence

from tformer.checks import check_positive, require
from tformer.data.pairs import Pair
from tformer.data.vocabulary import CharacterVocabulary
from tformer.tasks.task import HashSplitTask, draw_number

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "uk")
# Zero, and in some languages others, occur in the words of no larger number: a model
# that has not read them cannot guess them.
ALWAYS_IN_TRAINING = 100


@functools.lru_cache(maxsize=2**17)  # slow to make, and drawn again and again
def write_number(number: int, language: str) -> str:
    """Write a number in words of a language such as "de", in composed letters (NFC).

    Raises:
        ImportError: num2words is not installed.
        ValueError: it does not know the language.
    """
    try:
        words: str = require("num2words").num2words(number, lang=language)
    except NotImplementedError as error:
        raise ValueError(f"language ({language!r}) is unknown to num2words") from error
    return unicodedata.normalize("NFC", words)


class NumberWordsTask(HashSplitTask):
    """Numbers in words of several languages, to be written in digits.

    How many digits a number has is drawn evenly, and so is the language. Split by the
    *number*: a number of the test is in no other split, in no language. Numbers below
    100 are always in the training. No words mean one number in one language and another
    in another: a test compares them.

    Raises:
        ValueError: there is no language, or `max_digits` is not from 1 to 6.
    """

    name = "number-words"

    def __init__(
        self, *, languages: Sequence[str] = LANGUAGES, max_digits: int = 4
    ) -> None:
        check_positive(max_digits=max_digits)
        if max_digits > 6:
            raise ValueError(f"max_digits ({max_digits}) must be at most 6")
        if not languages:
            raise ValueError("languages must name at least one")
        self.languages = tuple(languages)
        self.max_digits = self.max_target_len = max_digits
        read = f"number words of {len(languages)} languages"
        self.description = f"{read}, in digits: siebenundzwanzig → 27"

    @functools.cached_property
    def max_source_len(self) -> int:  # type: ignore[override]
        """Characters of the longest words."""
        return _characters(self.languages, self.max_digits)[1]

    def vocabulary(self) -> CharacterVocabulary:
        """Return every character of the words, and the digits."""
        return CharacterVocabulary(_characters(self.languages, self.max_digits)[0])

    def draw(self, chance: random.Random) -> str:
        """Draw a number of any split."""
        return str(draw_number(chance, self.max_digits))

    def pair(self, drawn: str, chance: random.Random) -> Pair:
        """Write the number in one of the languages."""
        return Pair(write_number(int(drawn), chance.choice(self.languages)), drawn)

    def split_of(self, drawn: str) -> str:
        """Say in which split a number is."""
        return "train" if int(drawn) < ALWAYS_IN_TRAINING else super().split_of(drawn)


@functools.cache
def _characters(languages: tuple[str, ...], max_digits: int) -> tuple[str, int]:
    """Collect the characters of number words, and measure the longest.

    A number is so many thousand and so many: every word, and the longest of each kind,
    comes up where the two are the same, 000 000 to 999 999, and in few thousands with
    what is long. A test compares with all numbers.
    """
    words: set[str] = set()
    for language in languages:
        hundreds = [write_number(n, language) for n in range(min(1000, 10**max_digits))]
        longest = sorted(range(len(hundreds)), key=lambda n: len(hundreds[n]))[-3:]
        thousands = {1001 * n for n in range(1, 1000)}
        many = range(1, min(1000, 10 ** max(0, max_digits - 3)))
        lengths = {a: len(write_number(1000 * a, language)) for a in many}
        long = sorted(many, key=lengths.__getitem__)[-5:]
        few = {*range(1, 10), *long}
        thousands |= {1000 * a + b for a in few for b in (0, 1, 100, *longest)}
        words.update(hundreds)
        words.update(write_number(n, language) for n in thousands if n < 10**max_digits)
    vocabulary = CharacterVocabulary.of([*words, "0123456789"])
    return vocabulary.characters, max(map(len, words))

"""Tasks on strings of letters: copy, reverse, sort. All depends on where they stand."""

import random
from collections.abc import Callable

from tformer.checks import check_one_of, check_positive
from tformer.data.pairs import Pair
from tformer.data.vocabulary import CharacterVocabulary
from tformer.tasks.task import HashSplitTask

ANSWERS: dict[str, Callable[[str], str]] = {
    "copy": lambda text: text,
    "reverse": lambda text: text[::-1],
    "sort": lambda text: "".join(sorted(text)),
}


class SequenceTask(HashSplitTask):
    """Strings of letters, to be copied, reversed or sorted.

    Lengths are drawn evenly, then letters evenly. Strings are split by a hash of their
    *sorted* letters: what was not asked in training is no string of the test, nor any
    other order of its letters, whose sorted form would be the same.

    Raises:
        ValueError: `name` is unknown, `max_len` below 1, or a letter missing or double.
    """

    def __init__(
        self,
        name: str,
        *,
        alphabet: str = "abcdefghijklmnopqrstuvwxyz",
        max_len: int = 16,
    ) -> None:
        check_one_of("name", name, ANSWERS)
        check_positive(max_len=max_len)
        if not alphabet:
            raise ValueError("alphabet must hold at least one letter")
        self.name = name
        self.alphabet = alphabet
        self.max_source_len = self.max_target_len = max_len
        self._vocabulary = CharacterVocabulary("".join(sorted(alphabet)))
        example = "".join(alphabet[i % len(alphabet)] for i in (3, 0, 19, 4))
        self.description = f"{name} letters: {example} → {ANSWERS[name](example)}"

    def vocabulary(self) -> CharacterVocabulary:
        """Return the letters."""
        return self._vocabulary

    def draw(self, chance: random.Random) -> str:
        """Draw a string of any split."""
        length = chance.randrange(self.max_source_len) + 1
        return "".join(chance.choices(self.alphabet, k=length))

    def item(self, drawn: str) -> str:
        """Return the sorted letters, which must not be in two splits."""
        return "".join(sorted(drawn))

    def pair(self, drawn: str, chance: random.Random) -> Pair:  # noqa: ARG002
        """Return the string and the answer."""
        return Pair(drawn, ANSWERS[self.name](drawn))

"""What a task is: pairs of texts, dealt out to training, validation and test.

Sources and targets are texts, so that one command serves all tasks.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence

from tformer.checks import check_one_of, check_positive
from tformer.data.pairs import SPLITS, Pair, hash_split
from tformer.data.vocabulary import CharacterVocabulary


class Task(ABC):
    """What every task can do."""

    name: str  # on the command line
    description: str  # what is to be learned, in one line, with an example
    max_source_len: int  # characters of the longest source
    max_target_len: int  # the end token comes on top
    more_splits: tuple[str, ...] = ()  # that can be drawn beside the three

    @abstractmethod
    def vocabulary(self) -> CharacterVocabulary:
        """Return every character of sources and targets."""

    @abstractmethod
    def pairs(self, split: str, count: int, seed: int) -> list[Pair]:
        """Draw pairs of "train", "validation" or "test".

        No source of one split is in another, and a test that was drawn with one seed
        may be used beside a training with any other.

        Raises:
            ValueError: `count` is below 1, or `split` unknown.
        """

    def unlike_training(self, text: str) -> str:  # noqa: ARG002  # for those that can
        """Say of a source what its training has not: the end of a sentence, or ""."""
        return ""


def check_draw(split: str, count: int, splits: Sequence[str] = SPLITS) -> None:
    """Raise a ValueError unless a split is one of these, and a pair of it is wanted."""
    check_positive(count=count)
    check_one_of("split", split, splits)


def draw_number(chance: random.Random, max_digits: int) -> int:
    """Draw how many digits, evenly, then a number of so many."""
    digits = chance.randrange(max_digits) + 1
    return chance.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)


class HashSplitTask(Task):
    """A task that can draw sources without end, split by a hash of each one's item."""

    GIVE_UP = 100_000  # draws in a row that brought nothing new

    @abstractmethod
    def draw(self, chance: random.Random) -> str:
        """Draw what a pair is made from, of any split."""

    @abstractmethod
    def pair(self, drawn: str, chance: random.Random) -> Pair:
        """Make the pair."""

    def item(self, drawn: str) -> str:
        """Say what of it must not be in two splits."""
        return drawn

    def split_of(self, drawn: str) -> str:
        """Say in which split it is."""
        return hash_split(self.item(drawn))

    def pairs(self, split: str, count: int, seed: int) -> list[Pair]:
        """Draw pairs of a split; sources of validation and test are all different."""
        check_draw(split, count)
        chance = random.Random(f"{self.name} {split} {seed}")
        pairs: list[Pair] = []
        seen: set[str] = set()
        in_vain = 0
        while len(pairs) < count:
            drawn = self.draw(chance)
            in_vain += 1
            if self.split_of(drawn) == split:
                pair = self.pair(drawn, chance)
                if pair.source not in seen:
                    pairs.append(pair)
                    in_vain = 0
                if split != "train":  # where a source may come up again
                    seen.add(pair.source)
            if in_vain == self.GIVE_UP:
                raise ValueError(
                    f"count ({count}) is too large: after {len(pairs)} pairs, nothing "
                    f"new was found in the {split} split of {self.name}"
                )
        return pairs

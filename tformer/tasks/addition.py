"""A task on numbers: add two of them, digit by digit.

"57+68" becomes "125".
"""

import random

from tformer.checks import check_positive
from tformer.data.pairs import Pair
from tformer.data.vocabulary import CharacterVocabulary
from tformer.tasks.task import HashSplitTask, draw_number


class AdditionTask(HashSplitTask):
    """Sums of two whole numbers of up to so many digits, written as people do.

    How many digits each number has is drawn evenly, so that short ones are not lost
    among the many long ones. A sum and the same sum the other way round, 57+68 and
    68+57, are in one split: the second would only be remembered.

    `max_digits` below 1 is a ValueError.
    """

    name = "addition"

    def __init__(self, *, max_digits: int = 3) -> None:
        check_positive(max_digits=max_digits)
        self.max_digits = max_digits
        self.max_source_len = 2 * max_digits + 1
        self.max_target_len = max_digits + 1
        self.description = f"add numbers of up to {max_digits} digits: 57+68 → 125"

    def vocabulary(self) -> CharacterVocabulary:
        """Return the digits and the plus sign."""
        return CharacterVocabulary("+0123456789")

    def draw(self, chance: random.Random) -> str:
        """Draw a sum of any split."""
        first, second = (draw_number(chance, self.max_digits) for _ in range(2))
        return f"{first}+{second}"

    def item(self, drawn: str) -> str:
        """Return the sum with the smaller number first: both orders are one item."""
        return "{}+{}".format(*sorted(map(int, drawn.split("+"))))

    def pair(self, drawn: str, chance: random.Random) -> Pair:  # noqa: ARG002
        """Return the sum and the answer."""
        return Pair(drawn, str(sum(map(int, drawn.split("+")))))

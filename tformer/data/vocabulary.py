"""A vocabulary of characters: from text to ids, and from ids to text.

B batch · L length of the longest text
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


class Vocabulary(ABC):
    """Text to ids and back; 0, 1 and 2 are padding, start and end."""

    pad_id = 0
    bos_id = 1
    eos_id = 2

    @abstractmethod
    def __len__(self) -> int:
        """Count the ids, those three included."""

    @abstractmethod
    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> list[int]:
        """Turn text into ids, with the start and the end token if asked for.

        Raises:
            ValueError: a character is unknown.
        """

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text, up to the first end token, without padding and start.

        Raises:
            ValueError: an id is outside the vocabulary.
        """

    def encode_batch(
        self, texts: Sequence[str], *, bos: bool = False, eos: bool = False
    ) -> Tensor:
        """Encode texts and fill the shorter ones up with padding: int64 (B, L)."""
        if not texts:
            raise ValueError("texts must hold at least one text")
        rows = [self.encode(text, bos=bos, eos=eos) for text in texts]
        each = [torch.tensor(row, dtype=torch.int64) for row in rows]
        return pad_sequence(each, batch_first=True, padding_value=self.pad_id)  # (B, L)

    def num_bytes(self, ids: Iterable[int]) -> int:
        """Count the bytes that these ids have as text in UTF-8."""
        return len(self.decode(ids).encode())

    def _of_text(self, ids: Iterable[int]) -> Iterator[int]:
        """Yield what `decode` shows, counted from the first that is not special."""
        for i in ids:
            if not 0 <= i < len(self):
                raise ValueError(f"id ({i}) must be in [0, {len(self)})")
            if i == self.eos_id:
                return
            if i > self.eos_id:
                yield i - self.eos_id - 1


class CharacterVocabulary(Vocabulary):
    """Give each character an id, from 3 on; each must come once, in one str.

    Example:
        >>> vocabulary = CharacterVocabulary("abc")
        >>> vocabulary.encode("cab", bos=True, eos=True)
        [1, 5, 3, 4, 2]
        >>> vocabulary.decode([1, 5, 3, 4, 2, 0, 0])
        'cab'
    """

    def __init__(self, characters: str) -> None:
        if not isinstance(characters, str):  # a list could not be saved
            kind = type(characters).__name__
            raise TypeError(f"characters must be a str, not {kind}")
        self.characters = characters
        self._id_of = {c: i for i, c in enumerate(characters, start=3)}
        if len(self._id_of) < len(characters):
            twice = [c for c, n in Counter(characters).items() if n > 1][:10]
            raise ValueError(f"characters must differ, but {twice} occur twice")

    @classmethod
    def of(cls, texts: Iterable[str]) -> "CharacterVocabulary":
        """Collect the characters of texts, in the order of their code points."""
        return cls("".join(sorted(set().union(*texts))))

    def __len__(self) -> int:
        return 3 + len(self.characters)

    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> list[int]:
        """Turn text into ids, as in `Vocabulary`."""
        try:
            ids = [self._id_of[c] for c in text]
        except KeyError as error:
            (unknown,) = error.args
            at = text.index(unknown)
            around = text[max(0, at - 30) : at + 30]
            raise ValueError(
                f"{unknown!r} (U+{ord(unknown):04X}) in {around!r} is not among the "
                f"{len(self.characters)} characters of the vocabulary"
            ) from None
        return [self.bos_id] * bos + ids + [self.eos_id] * eos

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text, as in `Vocabulary`."""
        return "".join(self.characters[i] for i in self._of_text(ids))

"""The tokenizer of a downloaded model: tokenizer.json, read by the package tokenizers.

The file may be of a stranger. It holds no code; what it may hold that harms, such as
padding to a million tokens, is switched off.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tformer.checks import require
from tformer.data.vocabulary import Vocabulary
from tformer.files import read_whole

T = TypeVar("T")
MOST = 2**28  # bytes; the largest in use have 34 million


class FileTokenizer(Vocabulary):
    """Text to the ids of a tokenizer.json, and back.

    Args:
        path: of the file.
        vocab_size: V of the model that reads the ids; the file may know fewer tokens.

    Raises:
        OSError: the file is missing, no regular one, or too large.
        ValueError: it is no tokenizer's.
    """

    pad_id = bos_id = eos_id = -1  # which of its ids are so, other files say

    def __init__(self, path: Path, vocab_size: int) -> None:
        data = read_whole(path, MOST)
        load = require("tokenizers").Tokenizer.from_buffer
        self.path, self.vocab_size = path, vocab_size
        self._tokenizer = self._asked(lambda: load(data))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def id_of(self, token: str) -> int | None:
        """Return the id of a token, as the file spells it; None if it has none."""
        return self._tokenizer.token_to_id(token)

    def token_of(self, token_id: int) -> str | None:
        """Return the token of an id, as the file spells it; None if it has none."""
        return self._tokenizer.id_to_token(token_id) if token_id >= 0 else None

    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> list[int]:
        """Turn text into ids; with the tokenizer's own special ones, if `bos` is given.

        Which they are says the file: often a start token, often none. Where a text
        spells a special token, it is read as that token: so chat templates write them.

        Raises:
            ValueError: the text is no Unicode, `eos` is asked for, or an id is not
                below `vocab_size`.
        """
        return [i for i, _ in self.encode_with_ends(text, bos=bos, eos=eos)]

    def encode_with_ends(
        self, text: str, *, bos: bool = False, eos: bool = False
    ) -> list[tuple[int, int]]:
        """Turn text into pairs: an id, and where its token ends, in characters."""
        if eos:
            raise ValueError("eos (True) is no choice here: the file says what follows")
        text.encode()  # says what is wrong and where, which tokenizers does not
        encode = self._tokenizer.encode
        encoding = self._asked(lambda: encode(text, add_special_tokens=bos))
        for i in encoding.ids:
            if i >= self.vocab_size:
                raise ValueError(
                    f"{self.path} has the id {i} ({self.token_of(i)!r}), but the "
                    f"model's vocab_size is {self.vocab_size}"
                )
        ends = (end for _, end in encoding.offsets)
        return list(zip(encoding.ids, ends, strict=True))

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text, without special tokens and ids that the file lacks."""
        known = list(ids)
        return self._asked(lambda: self._tokenizer.decode(known))

    def _asked(self, call: Callable[[], T]) -> T:
        """Ask tokenizers; whatever it raises becomes a ValueError with the file's name.

        What Rust calls a panic is no Exception, and is told on the standard error by
        itself, in many lines, before Python hears of it: for that time it is shut.
        """
        try:
            with _shut_stderr():
                return call()
        except BaseException as error:
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                first = str(error).partition("\n")[0]
                raise ValueError(f"{self.path} is no tokenizer's: {first}") from error
            raise


@contextmanager
def _shut_stderr() -> Iterator[None]:
    """Let the handle 2 lead nowhere, and back to where it led."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)

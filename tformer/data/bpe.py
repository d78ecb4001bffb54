"""A vocabulary of pieces of words: byte-level byte pair encoding.

The pieces are found by the package tokenizers: the 256 bytes first, then, again and
again, the pair of pieces that stands side by side most often becomes one (Sennrich et
al. 2016, arXiv:1508.07909; on bytes Radford et al. 2019, GPT-2). As every text is
bytes, every text can be written, and none needs an "unknown" token.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tformer.checks import check_positive, require
from tformer.data.vocabulary import CharacterVocabulary, Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIALS = 3  # padding, start, end; the pieces follow
BYTES = 256
# tokenizers makes room for all pieces at once, and aborts where there is none. One of
# the largest vocabularies in use, XLM-V's, has 901,629 tokens.
MOST = 2**20


class BytePairVocabulary(Vocabulary):
    """Cut text into pieces of UTF-8 bytes; 0, 1 and 2 are padding, start and end.

    The three have no spelling: `<pad>` or `<|endoftext|>` in a text are text like any
    other, so nobody can end a sequence by writing so. A line end is always a piece of
    its own, so that a text cut at line ends gives the ids of the whole text.

    Args:
        tokenizer: what `BytePairVocabulary.train` made, in the JSON of tokenizers; of
            one that might not give back every text as it was, a ValueError.

    Example:
        >>> texts = ["low lower lowest"] * 2
        >>> vocabulary = BytePairVocabulary.train(texts, vocab_size=262)
        >>> len(vocabulary)
        262
        >>> vocabulary.decode(vocabulary.encode("lowly 😀"))
        'lowly 😀'
    """

    def __init__(self, tokenizer: str) -> None:
        self._tokenizer = _checked(tokenizer)
        self._len = SPECIALS + self._tokenizer.get_vocab_size()

    @classmethod
    def train(cls, texts: Iterable[str], *, vocab_size: int) -> "BytePairVocabulary":
        """Find the pieces in texts, such as `read_pieces(path)`.

        The same texts give the same pieces, in whatever portions they come, as long as
        these are cut at line ends.

        Args:
            texts: to find them in; read once, one after the other.
            vocab_size: how many tokens in all, from 259, the bytes and the three, to
                2^20. There are fewer where no pair of pieces comes twice any more.
        """
        check_positive(vocab_size=vocab_size)
        if vocab_size < SPECIALS + BYTES:
            raise ValueError(
                f"vocab_size ({vocab_size}) must be at least {SPECIALS + BYTES}: "
                f"{BYTES} bytes, padding, start and end"
            )
        if vocab_size > MOST:
            raise ValueError(f"vocab_size ({vocab_size}) must be at most {MOST}")
        tokenizer = _untrained()
        trainer = require("tokenizers").trainers.BpeTrainer(
            vocab_size=vocab_size - SPECIALS,
            min_frequency=2,
            initial_alphabet=_alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer.to_str())

    def __len__(self) -> int:
        return self._len

    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> list[int]:
        """Turn text into ids, as in `Vocabulary`.

        Raises:
            ValueError: the text holds half of a surrogate pair, which no UTF-8 has.
        """
        text.encode()  # says what is wrong and where, which tokenizers does not
        # "fast" leaves out where each piece stood in the text.
        (encoding,) = self._tokenizer.encode_batch_fast([text])
        ids = [piece + SPECIALS for piece in encoding.ids]
        return [self.bos_id] * bos + ids + [self.eos_id] * eos

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text, as in `Vocabulary`.

        A character can be cut in two between pieces: a lone half becomes U+FFFD.
        """
        pieces = list(self._of_text(ids))
        return self._tokenizer.decode(pieces, skip_special_tokens=False)

    def num_bytes(self, ids: Iterable[int]) -> int:
        """Count the bytes of these ids, also where they begin or end in a character."""
        # The tokenizer writes each byte as one character.
        pieces = (i - SPECIALS for i in ids if i >= SPECIALS)
        return sum(len(self._tokenizer.id_to_token(piece) or "") for piece in pieces)

    def to_json(self) -> dict[str, object]:
        """Return the tokenizer in the JSON of the package tokenizers."""
        return json.loads(self._tokenizer.to_str())


def _untrained() -> "Tokenizer":
    """Make a tokenizer that cuts at line ends, then before words, then into bytes."""
    tokenizers = require("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    steps = tokenizers.pre_tokenizers
    tokenizer.pre_tokenizer = steps.Sequence(
        [steps.Split("\n", "isolated"), steps.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return tokenizer


def _alphabet() -> list[str]:
    """List the characters that stand for the 256 bytes."""
    return require("tokenizers").pre_tokenizers.ByteLevel.alphabet()


def _checked(text: str) -> "Tokenizer":
    """Read a tokenizer's JSON, of which the pieces alone may be its own.

    Then every text comes back as it was: each byte is a piece, and each piece is bytes.
    """
    ours = json.loads(_untrained().to_str())
    try:
        tokenizer = require("tokenizers").Tokenizer.from_str(text)
    except BaseException as error:  # what Rust calls a panic is no Exception
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ValueError(f"this is no JSON of tokenizers: {error}") from error
        raise
    settings = json.loads(tokenizer.to_str())
    pieces, merges = (settings["model"].get(name) for name in ("vocab", "merges"))
    ours["model"] |= {"vocab": pieces, "merges": merges}
    for name, wanted in ours.items():
        if settings[name] != wanted:
            raise ValueError(
                f"this tokenizer was not made by BytePairVocabulary.train: its {name} "
                "is another, and it might not give back every text as it was"
            )
    if sorted(pieces.values()) != list(range(len(pieces))):
        raise ValueError(f"the ids of {len(pieces)} pieces must be 0, 1, 2 and so on")
    alphabet = set(_alphabet())
    if "" in pieces or set().union(*pieces) != alphabet or alphabet - pieces.keys():
        raise ValueError("each byte must be a piece, and each piece bytes alone")
    return tokenizer


def vocabulary_to_json(vocabulary: Vocabulary) -> dict[str, object]:
    """Turn a vocabulary into what JSON can hold.

    Raises:
        TypeError: it is none of ours; what inherits from them would come back as ours.
    """
    if type(vocabulary) is CharacterVocabulary:
        return {"characters": vocabulary.characters}
    if type(vocabulary) is BytePairVocabulary:
        return {"byte_pairs": vocabulary.to_json()}
    raise TypeError(f"a {type(vocabulary).__name__} cannot be saved as JSON")


def vocabulary_from_json(values: Mapping[str, object]) -> Vocabulary:
    """Turn what `vocabulary_to_json` gave into a vocabulary again, nothing else."""
    match list(values.items()):
        case [("characters", str(characters))]:
            return CharacterVocabulary(characters)
        case [("byte_pairs", dict(tokenizer))]:
            return BytePairVocabulary(json.dumps(tokenizer))
    raise ValueError(f"no JSON of a vocabulary: it holds {sorted(map(str, values))}")


def vocabulary_digest(vocabulary: Vocabulary) -> str:
    """Return the sha256 of a vocabulary: equal for equal ones, on every machine."""
    text = json.dumps(vocabulary_to_json(vocabulary), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()

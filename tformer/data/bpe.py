"""A vocabulary of pieces of words: byte-level byte pair encoding.

The pieces are found by the package tokenizers: the 256 bytes first, then, again and
again, the pair of pieces that stands side by side most often becomes one (Sennrich et
al. 2016, arXiv:1508.07909; on bytes Radford et al. 2019, GPT-2). As every text is
bytes, every text can be written, and none needs an "unknown" token.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Tensor

from tformer.checks import check_positive, require
from tformer.data.vocabulary import encode_padded

SPECIALS = 3  # padding, start, end; the pieces follow
BYTES = 256
# tokenizers makes room for all pieces at once, and aborts where there is none. The
# largest vocabularies in use have 262,144 tokens.
MOST = 2**20


class BytePairVocabulary:
    """Cut text into pieces of UTF-8 bytes; 0, 1 and 2 are padding, start and end.

    The three have no spelling: `<pad>` or `<|endoftext|>` in a text are text like any
    other, so nobody can end a sequence by writing so. A line end is always a piece of
    its own, so that a text cut at line ends gives the ids of the whole text.

    Args:
        tokenizer: what `BytePairVocabulary.train` made, in the JSON of tokenizers.

    Raises:
        ImportError: tokenizers is not installed.
        ValueError: it is no such JSON, or of a tokenizer of another kind, which would
            not give back every text as it was.

    Example:
        >>> texts = ["low lower lowest"] * 2
        >>> vocabulary = BytePairVocabulary.train(texts, vocab_size=262)
        >>> len(vocabulary)
        262
        >>> vocabulary.decode(vocabulary.encode("lowly 😀"))
        'lowly 😀'
    """

    pad_id = 0
    bos_id = 1
    eos_id = 2

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
            vocab_size: how many tokens in all, at least 259: the bytes and the three;
                at most 2^20.

        Returns:
            The vocabulary. It is smaller where no pair of pieces comes twice any more.

        Raises:
            ImportError: tokenizers is not installed.
            ValueError: `vocab_size` is below 259, or above 2^20.
        """
        check_positive(vocab_size=vocab_size)
        if vocab_size < SPECIALS + BYTES:
            raise ValueError(
                f"vocab_size ({vocab_size}) must be at least {SPECIALS + BYTES}: "
                f"{BYTES} bytes, padding, start and end"
            )
        if vocab_size > MOST:
            raise ValueError(f"vocab_size ({vocab_size}) must be at most {MOST}")
        tokenizers = require("tokenizers")
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        on_bytes = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        line_ends = tokenizers.pre_tokenizers.Split("\n", "isolated")
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [line_ends, on_bytes]
        )
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocab_size - SPECIALS,
            min_frequency=2,
            initial_alphabet=on_bytes.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer.to_str())

    def __len__(self) -> int:
        return self._len

    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> list[int]:
        """Turn text into ids, with the start and the end token if asked for.

        Raises:
            ValueError: the text holds half of a surrogate pair, which no UTF-8 has.
        """
        try:
            # "fast" leaves out where each piece stood in the text.
            (encoding,) = self._tokenizer.encode_batch_fast([text])
        except (TypeError, UnicodeEncodeError):
            text.encode()  # says what and where, as a ValueError
            raise
        ids = [piece + SPECIALS for piece in encoding.ids]
        return [self.bos_id] * bos + ids + [self.eos_id] * eos

    def encode_batch(
        self, texts: Sequence[str], *, bos: bool = False, eos: bool = False
    ) -> Tensor:
        """Encode texts and fill the shorter ones up with padding.

        Returns:
            int64 (B, L).

        Raises:
            ValueError: there is no text.
        """
        return encode_padded(self, texts, bos=bos, eos=eos)

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text, up to the first end token, without padding and start.

        A character can be cut in two between pieces: a lone half becomes U+FFFD.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        pieces = []
        for i in ids:
            if not 0 <= i < len(self):
                raise ValueError(f"id ({i}) must be in [0, {len(self)})")
            if i == self.eos_id:
                break
            if i >= SPECIALS:
                pieces.append(i - SPECIALS)
        text: str = self._tokenizer.decode(pieces, skip_special_tokens=False)
        return text

    def num_bytes(self, ids: Iterable[int]) -> int:
        """Count the bytes of these ids, also where they begin or end in a character."""
        # The tokenizer writes each byte as one character.
        pieces = (i - SPECIALS for i in ids if i >= SPECIALS)
        return sum(len(self._tokenizer.id_to_token(piece)) for piece in pieces)

    def piece(self, i: int) -> str:
        """Return the text of one id, to look at: U+FFFD where it is no whole character.

        Raises:
            ValueError: the id is outside the vocabulary.
        """
        return self.decode([i])

    def to_json(self) -> dict[str, Any]:
        """Return the tokenizer in the JSON of the package tokenizers."""
        tokenizer: dict[str, Any] = json.loads(self._tokenizer.to_str())
        return tokenizer


# Of a tokenizer's JSON: what decides whether every text comes back as it was.
_LINE_ENDS: dict[str, Any] = {
    "type": "Split",
    "pattern": {"String": "\n"},
    "behavior": "Isolated",
}
_ON_BYTES: dict[str, Any] = {"type": "ByteLevel", "add_prefix_space": False}
_NOTHING_ELSE = (
    *("normalizer", "post_processor", "truncation", "padding", "added_tokens"),
    *("model.dropout", "model.unk_token", "model.continuing_subword_prefix"),
    *("model.end_of_word_suffix", "model.byte_fallback", "model.ignore_merges"),
    "pre_tokenizer.pretokenizers.0.invert",
)


def _checked(text: str) -> Any:
    """Read a tokenizer's JSON, and refuse what would not keep every text as it is."""
    try:
        tokenizer = _panicking(require("tokenizers").Tokenizer.from_str, text)
        settings = json.loads(tokenizer.to_str())
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"this is no JSON of tokenizers: {error}") from error
    if wrong := _difference(settings):
        raise ValueError(
            f"this is no byte-level tokenizer made by BytePairVocabulary.train: {wrong}"
        )
    pieces = settings["model"]["vocab"]
    if len(pieces) < BYTES:
        raise ValueError(f"a vocabulary of {len(pieces)} lacks bytes")
    if sorted(pieces.values()) != list(range(len(pieces))):
        raise ValueError(f"the ids of {len(pieces)} pieces must be 0, 1, 2 and so on")
    alphabet = set(require("tokenizers").pre_tokenizers.ByteLevel.alphabet())
    if lacking := alphabet - pieces.keys():
        raise ValueError(f"a vocabulary without {min(lacking)!r} lacks a byte")
    if strange := set().union(*pieces) - alphabet:
        raise ValueError(f"a piece holds {min(strange)!r}, which stands for no byte")
    if "" in pieces:
        raise ValueError("a piece is empty")
    every = _text_of_every_byte()
    ids = _panicking(tokenizer.encode, every).ids
    if _panicking(tokenizer.decode, ids, skip_special_tokens=False) != every:
        raise ValueError("this tokenizer does not give back every text as it was")
    return tokenizer


def _difference(settings: dict[str, Any]) -> str | None:
    """Say what a tokenizer does otherwise than those of `BytePairVocabulary.train`."""
    steps = (settings.get("pre_tokenizer") or {}).get("pretokenizers", [])
    kinds = [step["type"] for step in steps]
    if settings["model"]["type"] != "BPE" or kinds != ["Split", "ByteLevel"]:
        return f"model {settings['model']['type']}, steps {kinds}"
    for step, wanted in zip(steps, (_LINE_ENDS, _ON_BYTES), strict=True):
        for name, value in wanted.items():
            if step.get(name) != value:
                return f"{step['type']} has {name} {step.get(name)!r}, not {value!r}"
    decoder = (settings.get("decoder") or {}).get("type")
    if decoder != "ByteLevel":
        return f"decoder {decoder}"
    extra = [path for path in _NOTHING_ELSE if _at(settings, path)]
    return f"extras {extra}" if extra else None


def _at(settings: Any, path: str) -> Any:
    for name in path.split("."):
        key: Any = int(name) if name.isdecimal() else name
        settings = settings[key] if isinstance(settings, list) else settings.get(key)
    return settings


def _text_of_every_byte() -> str:
    """Return characters that hold each of the 243 bytes which UTF-8 has."""
    of_two = range(0x800)  # of one and two bytes; three begin here, and four at 0x10000
    of_three = (c for c in range(0x800, 0x10000, 0x400) if not 0xD800 <= c < 0xE000)
    return "".join(map(chr, (*of_two, *of_three, *range(0x10000, 0x110000, 0x8000))))


def _panicking(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call into tokenizers, where what Rust calls a panic is no `Exception`.

    Raises:
        ValueError: it panicked.
    """
    try:
        return call(*args, **kwargs)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"tokenizers cannot take it: {error}") from error

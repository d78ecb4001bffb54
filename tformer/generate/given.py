"""What a model is given to write after, checked; a beginning that many texts share.

B batch · S length of a source · P of a prompt or prefix · T of what is written
"""

from collections.abc import Sequence
from typing import NamedTuple, Required, TypedDict

import torch
from torch import Tensor, nn

from tformer.checks import check_id, check_positive
from tformer.generate.crossing import crossing
from tformer.generate.decode import (
    Choose,
    Score,
    continuing,
    rereading,
    translating,
    write,
)
from tformer.generate.evaluating import evaluating
from tformer.models.causal_lm import CausalLM
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.nn.cache import ModelCache
from tformer.nn.positions import LearnedPositionalEmbedding
from tformer.nn.rotary import LongRotaryEmbedding as Long


class Prefix:
    """Ids that a model has read, and the cache that any number of texts go on from.

    A causal model computes keys and values of a token from that token and those before
    it. So they are the same whatever follows, and need not be computed again: `greedy`
    and `sample` take a prefix, and each of their texts begins with a copy of its cache.

    Args:
        model: a trained CausalLM; read again after its weights have changed.
        ids: what the texts begin with, (P,).
    """

    def __init__(self, model: CausalLM, ids: Tensor) -> None:
        self.model = model = getattr(model, "_orig_mod", model)  # of torch.compile
        ids = torch.as_tensor(ids, device=model.embedding.weight.device)
        if ids.ndim != 1 or not len(ids):
            raise ValueError(f"ids must be (P,), and not empty, not {tuple(ids.shape)}")
        self._cache: ModelCache = model.new_cache(len(ids))
        with evaluating(model), torch.no_grad():
            continuing(model, self._cache)(ids[None])

    @property
    def length(self) -> int:
        """P, how many ids were read."""
        return self._cache.length

    @property
    def nbytes(self) -> int:
        """The memory that is kept, in bytes."""
        return self._cache.nbytes

    def new_cache(self, rows: int, max_len: int) -> ModelCache:
        """Copy the cache for each of so many texts, with room for so many tokens."""
        cache = self._cache.copy(max_len)
        device = self.model.embedding.weight.device
        cache.reorder(torch.zeros(rows, dtype=torch.int64, device=device))
        return cache


class Options(TypedDict, total=False):
    """What every way of decoding takes.

    Attributes:
        max_len: write at most so many tokens, the end token included.
        eos_id: the end token, or several; without one every row has `max_len` tokens.
        bos_id: the start token, with which a Transformer's target begins.
        src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.
        window: where a GPT's positions are used up, or a CausalLM's `max_len`, let it
            read its newest `window` tokens anew, from position 0, and forget what was
            before them. Not for beam search.
        prefix: what all prompts begin with, read once; `given` is what follows it.
    """

    max_len: Required[int]
    eos_id: int | Sequence[int] | None
    bos_id: int | None
    src_key_mask: Tensor | None
    window: int | None
    prefix: Prefix | None


class Given(NamedTuple):
    """What every way of decoding begins with, checked."""

    score: Score
    prompts: Tensor  # int64 (B, P); of a Transformer the start tokens
    max_len: int
    stops: list[int]
    fill_id: int  # stands after an end token
    lengths: list[int]  # of the prompts
    cache: ModelCache  # where `score` keeps what it has read
    vocab_size: int

    def write(self, choose: Choose) -> Tensor:
        """Write until all rows have ended: ids (B, T)."""
        return write(*self[:6], choose)


def check_given(
    model: Seq2SeqLM | CausalLM,
    given: Tensor | Sequence[Sequence[int]],
    *,
    max_len: int,
    eos_id: int | Sequence[int] | None = None,
    bos_id: int | None = None,
    src_key_mask: Tensor | None = None,
    window: int | None = None,
    prefix: Prefix | None = None,
) -> Given:
    """Check what is given to `greedy`, and its options."""
    check_positive(max_len=max_len)
    # torch.compile puts another module around a model; its parts are asked here.
    model = getattr(model, "_orig_mod", model)
    cache: ModelCache
    if isinstance(model, Seq2SeqLM):
        V = model.tgt_embedding.vocab_size
        check_id("bos_id", bos_id, V)
        for name, other in {"window": window, "prefix": prefix}.items():
            if other is not None:
                raise ValueError(f"{name} is for a GPT; a Transformer has a source")
        src = torch.as_tensor(given, device=model.src_embedding.weight.device)
        if src.ndim != 2:
            raise ValueError(f"given must be (B, S), not {tuple(src.shape)}")
        prompts = src.new_full((len(src), 1), bos_id or 0, dtype=torch.int64)
        lengths = [1] * len(src)
        cache = model.new_cache(_room(model.tgt_positions, 1, max_len))
        score = translating(model, src, cache, src_key_mask)
    else:
        V, most = model.vocab_size, model.max_len
        for name, value in (("bos_id", bos_id), ("src_key_mask", src_key_mask)):
            if value is not None:
                raise ValueError(f"{name} is for a Transformer; a GPT has a prompt")
        device = model.embedding.weight.device
        rows = [torch.as_tensor(row, device=device) for row in given]
        if not rows or any(row.ndim != 1 or not len(row) for row in rows):
            shapes = [tuple(row.shape) for row in rows]
            raise ValueError(f"prompts must be (B, P) or a list of (P,), not {shapes}")
        if window is not None:
            check_positive(window=window)
            if window > most:
                raise ValueError(f"window ({window}) must be at most {most}")
            if prefix is not None:
                raise ValueError("a window forgets the prefix: give one of the two")
            # Of a prompt beyond the positions the window is read: as it would be alone.
            rows = [row[-window:] if len(row) > most else row for row in rows]
        prompts = nn.utils.rnn.pad_sequence(rows, batch_first=True)  # (B, P)
        lengths = [len(row) for row in rows]
        if prefix is not None and prefix.model is not model:
            raise ValueError("prefix was read by another model")
        read = max(lengths) + (0 if prefix is None else prefix.length)
        if window is None:
            room = _room(model.positions, read, max_len)
            copied = None if prefix is None else prefix.new_cache(len(rows), room)
            cache = copied or model.new_cache(room)
            score = continuing(model, cache)
            switch = [m.trained_len for m in model.modules() if isinstance(m, Long)]
            if switch and prefix is None:
                score = crossing(model, cache, switch[0], room)
        else:
            room = min(read + max_len - 1, most)
            cache = model.new_cache(room)
            score = rereading(model, cache, room, window)

    eos_id = [] if eos_id is None else eos_id
    stops = list(eos_id) if isinstance(eos_id, Sequence) else [eos_id]
    for stop in stops:
        check_id("eos_id", stop, V)
    fill_id = [*stops, 0][0] if model.pad_id is None else model.pad_id
    return Given(score, prompts, max_len, stops, fill_id, lengths, cache, V)


def _room(positions: nn.Module | None, read: int, max_len: int) -> int:
    """Return how many tokens are read, if positions do: the last is only written."""
    room = read + max_len - 1
    if not isinstance(positions, LearnedPositionalEmbedding):
        return room
    limit = positions.max_len
    if read > limit:
        raise ValueError(
            f"given has a prompt of {read} tokens, but the model's learned positions "
            f"({limit}) end before: shorten it, or give a window"
        )
    if room > limit:
        raise ValueError(
            f"max_len ({max_len}) must be at most {max_len + limit - room}, as the "
            f"model's learned positions ({limit}) end there"
        )
    return room

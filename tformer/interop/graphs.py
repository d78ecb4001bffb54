"""The graphs that a model is exported as: what goes in, and what comes out.

B batch · T new tokens · L tokens so far · S length of a source · G key/value heads ·
Dh head_dim · D d_model · V vocabulary
"""

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.export import Dim

from tformer.models.bert import BERT
from tformer.models.causal_lm import CausalLM
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.nn.cache import BlockCache, KeysValues, KeyValueCache, ModelCache, cache_of

B, T, L, S = 2, 3, 5, 7  # of the examples that an export sees; all differ


class PastCache:
    """Keys and values that were given, to which new ones are joined: (B, G, L, Dh)."""

    nbytes = 0  # it takes no memory of its own

    def __init__(self, past: KeysValues) -> None:
        self.past = past

    @property
    def length(self) -> int:
        """L, how many tokens so far."""
        return self.past[0].shape[2]

    def append(self, key: Tensor, value: Tensor) -> KeysValues:
        """Join T new ones, and return all L + T; a window hides what is too old."""
        keys, values = self.past
        self.past = torch.cat((keys, key), dim=2), torch.cat((values, value), dim=2)
        return self.past


def caches_of(past: list[Tensor]) -> tuple[list[PastCache], ModelCache]:
    """Make a cache of keys and values of the first block, of the second, and so on."""
    pairs = zip(past[::2], past[1::2], strict=True)
    caches = [PastCache(pair) for pair in pairs]
    blocks = (BlockCache(each) for each in caches)  # type: ignore[arg-type]
    return caches, ModelCache(blocks)


def without_keys(blocks: nn.ModuleList) -> list[str]:
    """Name the blocks whose attention keeps something else than keys and values."""
    attentions = [cast(nn.Module, block.attention) for block in blocks]
    return [
        f"block {i} ({type(each).__name__})"
        for i, each in enumerate(attentions)
        if not isinstance(cache_of(each, 1), KeyValueCache)
    ]


def no_tokens(
    blocks: nn.ModuleList, x: Tensor, batch: int, length: int
) -> list[Tensor]:
    """Make the cache of so many sequences, without a token, or with zeros.

    How wide it is, an attention says of one vector x (1, 1, D).
    """
    shapes = []
    with torch.no_grad():
        for block in blocks:
            attention: Any = block.attention
            cache = cast(KeyValueCache, cache_of(attention, 1))
            attention(x, is_causal=True, cache=cache)
            shapes += [cache.keys.shape, cache.values.shape]  # (1, G, 1, Dh)
    return [x.new_zeros(batch, G, length, Dh) for _, G, _, Dh in shapes]


class CachedStep(nn.Module):
    """A language model that is given its cache: logits, and the cache with more in it.

    Args:
        model: each of whose attentions keeps keys and values; or a latent and one key.

    Raises:
        ValueError: an attention keeps something else, such as a state.
    """

    def __init__(self, model: CausalLM) -> None:
        super().__init__()
        for block in without_keys(model.blocks):
            raise ValueError(f"{block} keeps no keys and values")
        self.model = model

    def forward(self, ids: Tensor, past: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Score what follows each of the new ids.

        Args:
            ids: (B, T), the tokens after those that are in the cache.
            past: keys (B, G, L, Dh) and values of the first block, of the second, and
                so on; L = 0 at the beginning. Of latent attention they are the latents
                (B, 1, L, R) and the rotated keys.

        Returns:
            logits (B, T, V), and the same list with L + T tokens.
        """
        caches, cache = caches_of(past)
        logits = self.model(ids, cache=cache)
        return logits, [x for each in caches for x in each.past]

    def empty(self, batch: int, length: int = 0) -> list[Tensor]:
        """Make the cache of so many sequences, without a token, or with zeros."""
        x = self.model.embedding.weight.new_zeros(1, 1, self.model.d_model)
        return no_tokens(self.model.blocks, x, batch, length)


class SourceEncoder(nn.Module):
    """The encoder of a model that translates: ids to the memory."""

    def __init__(self, model: Seq2SeqLM) -> None:
        super().__init__()
        self.model = model

    def forward(self, src: Tensor) -> Tensor:
        """Read ids (B, S), in which padding is not attended to: (B, S, D)."""
        return self.model.encode(src)


class TargetDecoder(nn.Module):
    """The decoder of a model that translates, without a cache."""

    def __init__(self, model: Seq2SeqLM) -> None:
        super().__init__()
        self.model = model

    def forward(self, tgt: Tensor, memory: Tensor, memory_key_mask: Tensor) -> Tensor:
        """Score what follows tgt (B, T), given memory (B, S, D), mask (B, S)."""
        return self.model.decode(tgt, memory, memory_key_mask=memory_key_mask)


class TargetStep(TargetDecoder):
    """The decoder that is given its cache; it reads the memory anew at each step."""

    def forward(  # type: ignore[override]
        self, tgt: Tensor, memory: Tensor, memory_key_mask: Tensor, past: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Score what follows the new tgt (B, T), as `CachedStep` does."""
        caches, cache = caches_of(past)
        logits = self.model.decode(
            tgt, memory, memory_key_mask=memory_key_mask, cache=cache
        )
        return logits, [x for each in caches for x in each.past]

    def empty(self, batch: int, length: int = 0) -> list[Tensor]:
        """Make the cache of so many targets, without a token, or with zeros."""
        x = self.model.src_embedding.weight.new_zeros(1, 1, self.model.d_model)
        return no_tokens(self.model.decoder.blocks, x, batch, length)


class TextReader(nn.Module):
    """BERT: logits of every token, or the states of one without a head."""

    def __init__(self, model: BERT) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, segments: Tensor) -> tuple[Tensor, ...]:
        """Read ids (B, S), in which padding is not attended to, and their segments.

        Returns:
            logits (B, S, V) or states (B, S, D); if it has a pooler, then (B, D).
        """
        x = self.model.states(ids, segments=segments)
        found = x if self.model.head is None else self.model.logits(x)
        return (found,) if self.model.pooler is None else (found, self.model.pooled(x))


class Graph(NamedTuple):
    """What is exported: a module, inputs to see it with, and which axes may change."""

    module: nn.Module
    example: tuple[object, ...]
    axes: tuple[object, ...]
    inputs: list[str]
    outputs: list[str]


def graphs_of(model: CausalLM | Seq2SeqLM | BERT) -> dict[str, Graph]:
    """Name the graphs of a model, and the inputs and outputs of each.

    Another kind of model is a TypeError. Of a language model in which an attention
    keeps a state, such as the delta rule, there is no step.
    """
    if isinstance(model, CausalLM):
        return of_causal_lm(model)
    if isinstance(model, Seq2SeqLM):
        return of_seq2seq_lm(model)
    if not isinstance(model, BERT):
        kind = type(model).__name__
        raise TypeError(f"model must be a CausalLM, a Seq2SeqLM or a BERT, not {kind}")
    ids = torch.zeros(B, S, dtype=torch.int64)
    found = ["states" if model.head is None else "logits"]
    outputs = found if model.pooler is None else [*found, "pooled"]
    given = ids, torch.zeros_like(ids)  # of one tensor a graph would have one input
    names, reader = ["ids", "segments"], TextReader(model)
    return {"model": Graph(reader, given, (IDS, IDS), names, outputs)}


def of_causal_lm(model: CausalLM) -> dict[str, Graph]:
    """Name the whole forward, and the step with a cache of keys and values."""
    ids = torch.zeros(B, T, dtype=torch.int64)
    whole = {"model": Graph(model, (ids,), (IDS,), ["ids"], ["logits"])}
    if without_keys(model.blocks):
        return whole
    step = CachedStep(model)
    past = step.empty(B, L)
    into, out = names_of(past)
    axes: tuple[object, ...] = (IDS, [PAST] * len(past))
    with_past = Graph(step, (ids, past), axes, ["ids", *into], ["logits", *out])
    return {**whole, "step": with_past}


def of_seq2seq_lm(model: Seq2SeqLM) -> dict[str, Graph]:
    """Name the encoder, the decoder, and its step with a cache."""
    src, tgt = (torch.zeros(B, n, dtype=torch.int64) for n in (S, T))
    mask, step = torch.ones(B, S, dtype=torch.bool), TargetStep(model)
    given = (tgt, model.encode(src), mask)
    names, axes = ["tgt", "memory", "memory_key_mask"], (IDS, IDS, IDS)
    past = step.empty(B, L)
    into, out = names_of(past)
    with_past: tuple[object, ...] = (*axes, [PAST] * len(past))
    return {
        "encoder": Graph(SourceEncoder(model), (src,), (IDS,), ["src"], ["memory"]),
        "decoder": Graph(TargetDecoder(model), given, axes, names, ["logits"]),
        "step": Graph(
            step, (*given, past), with_past, [*names, *into], ["logits", *out]
        ),
    }


def names_of(past: list[Tensor]) -> tuple[list[str], ...]:
    """Name the tensors of a cache, as they go in and as they come out."""
    names = [f"{i}_{kind}" for i in range(len(past) // 2) for kind in KINDS]
    return tuple([f"{when}_{name}" for name in names] for when in WHEN)


KINDS, WHEN = ("keys", "values"), ("past", "present")
IDS = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
PAST = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC}

"""A model that writes: the core of every way of decoding.

B batch · S length of a source · P of a prompt · T of what is written · V vocabulary
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tformer.checks import check_positive
from tformer.generate.prompts import stack_prompts
from tformer.models.causal_lm import CausalLM
from tformer.models.gpt import GPT
from tformer.models.transformer import Transformer
from tformer.nn.rolling import RollingCache

if TYPE_CHECKING:
    from tformer.generate.prefix import Prefix


class Writer:
    """A model that writes: it scores the next token of each row, and remembers.

    Prompts of different lengths need no padding: the batch begins with as many tokens
    as the shortest has, and the longer ones are read on, token by token, while the
    others already write (as the first LLaMA did, arXiv:2302.13971).

    Args:
        model: a trained Transformer, GPT or CausalLM.
        given: of a Transformer the sources, ids (B, S). Of the others the prompts, ids
            (B, P), or a list of them where they differ in length.
        max_len: how many tokens will be written at most.
        eos_id: the end token, or several, or None.
        bos_id: the start token of a Transformer's target.
        src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.
        window: where the positions of a GPT are used up, or the `max_len` of a
            CausalLM, read so many tokens anew.
        prefix: what all prompts begin with, and what the model has read already.

    Raises:
        TypeError: a size or a token is not an int, or a mask not boolean.
        ValueError: an argument is out of its range, or for the other model.
    """

    def __init__(
        self,
        model: Transformer | GPT | CausalLM,
        given: Tensor | Sequence[Sequence[int]],
        *,
        max_len: int,
        eos_id: int | Sequence[int] | None = None,
        bos_id: int | None = None,
        src_key_mask: Tensor | None = None,
        window: int | None = None,
        prefix: "Prefix | None" = None,
    ) -> None:
        check_positive(max_len=max_len)
        # torch.compile puts another module around a model; its parts are asked here.
        model = self.model = getattr(model, "_orig_mod", model)
        self.max_len = max_len
        if isinstance(model, Transformer):
            self.vocab_size = model.tgt_embedding.vocab_size
            self._check_id("bos_id", bos_id)
            if window is not None:
                raise ValueError(f"window ({window}) is for a GPT")
            if prefix is not None:
                raise ValueError("prefix is for a GPT; a Transformer has a source")
            given = torch.as_tensor(given, device=model.src_embedding.weight.device)
            if given.ndim != 2:
                raise ValueError(f"given must be (B, S), not {tuple(given.shape)}")
            mask = model.source_mask(given, src_key_mask)  # (B, S)
            self._memory = model.encode(given, src_key_mask=mask)  # (B, S, D)
            # Where nothing is hidden, no mask is faster: asked once for all tokens.
            self._key_mask = None if mask is not None and bool(mask.all()) else mask
            prompts = given.new_full((len(given), 1), bos_id or 0, dtype=torch.int64)
            late = given.new_zeros(len(given), dtype=torch.int64)
        else:
            self.vocab_size = model.config.vocab_size
            for name, value in (("bos_id", bos_id), ("src_key_mask", src_key_mask)):
                if value is not None:
                    raise ValueError(f"{name} is for a Transformer; a GPT has a prompt")
            if window is not None:
                check_positive(window=window)
                if window > model.config.max_len:
                    raise ValueError(
                        f"window ({window}) must be at most {model.config.max_len}"
                    )
                if prefix is not None:
                    raise ValueError("a window forgets the prefix: give one of the two")
            if prefix is not None and prefix.model is not model:
                raise ValueError("prefix was read by another model")
            prompts, late = stack_prompts(model, given, window)
        self.late = late  # (B,): by how much each prompt is longer than the shortest
        begin = prompts.shape[1] - int(late.max())
        self.begin, self._rest = prompts[:, :begin], prompts[:, begin:]

        stops: list[Any] = [] if eos_id is None else [eos_id]
        if isinstance(eos_id, Sequence):
            stops = list(eos_id)
        for stop in stops:
            self._check_id("eos_id", stop)
        self.stops = torch.tensor(stops, dtype=torch.int64, device=prompts.device)
        fill = model.config.pad_id
        self.fill_id = fill if fill is not None else stops[0] if stops else 0

        before = 0 if prefix is None else prefix.length
        read = before + prompts.shape[1]
        room = read + max_len - 1  # the last token is not read again
        ends = positions_of(model) == "learned" or window is not None
        limit = model.config.max_len if ends else room
        if read > limit and window is None:
            raise ValueError(
                f"given has a prompt of {read} tokens, but the model's "
                f"learned positions ({limit}) end before: shorten it, or give a window"
            )
        if room > limit and window is None:
            raise ValueError(
                f"max_len ({max_len}) must be at most {max_len + limit - room}, as the "
                f"model's learned positions ({limit}) end there"
            )
        self._room = min(room, limit)
        self._window = window
        self._text = prompts[:, :0]  # all that was read, where a window needs it
        self._cache: Any = (
            model.new_cache(self._room)
            if prefix is None
            else prefix.new_cache(len(prompts), self._room)
        )
        self._largest: list[Tensor] = []  # of the scores of each text, once a token

    def _check_id(self, name: str, token: int | None) -> None:
        if token is not None and type(token) is not int:  # nor a bool
            raise TypeError(f"{name} must be an int, not {type(token).__name__}")
        if token is None or not 0 <= token < self.vocab_size:
            raise ValueError(
                f"{name} ({token}) must be in [0, vocab_size = {self.vocab_size})"
            )

    def score(self, newest: Tensor) -> Tensor:
        """Read the newest tokens, ids (B, T), and score what follows them: (B, V)."""
        if self._window is not None:
            self._text = torch.cat((self._text, newest), dim=1)
            if self._cache.length + newest.shape[1] > self._room:
                newest = self._text[:, -self._window :]
                self._cache = self.model.new_cache(self._room)
        if not isinstance(self.model, Transformer):
            logits = self.model(newest, cache=self._cache, last_only=True)
        else:
            logits = self.model.decode(
                newest, self._memory, memory_key_mask=self._key_mask, cache=self._cache
            )
        last = logits[:, -1]  # (B, V)
        self._largest.append(last.amax(dim=-1))
        return last

    def score_all(self, newest: Tensor) -> Tensor:
        """Read the newest tokens of one GPT's text, (1, T); score after each: (T, V).

        In float32 at least, for probabilities.
        """
        logits: Tensor = self.model(newest, cache=self._cache)[0]
        self._largest.append(logits.amax(dim=-1))
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    @property
    def length(self) -> int:
        """How many tokens have been read."""
        return int(self._cache.length)

    def truncate(self, length: int) -> None:
        """Forget all that was read but the first tokens; fewer may have been read."""
        self._cache.truncate(min(length, self.length))

    def spare(self, tokens: int) -> None:
        """Let so many tokens be forgotten at a time, before anything is read.

        A cache that rolls keeps as many more than its window; others keep all anyway.
        """
        for layer in self._cache.layers:
            if isinstance(layer, RollingCache):
                layer.spare = tokens

    def check_finite(self) -> None:
        """Raise if a score that was read was NaN or infinite: nothing can be chosen.

        Some tokens may be at -inf. Asked once, at the end: a GPU is waited for.

        Raises:
            FloatingPointError: so it was.
        """
        if self._largest and not torch.cat(self._largest).isfinite().all():
            raise FloatingPointError(
                "the model's scores of the next token are not finite: its weights may "
                "hold NaN or infinity, or numbers too large for their dtype"
            )

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from row rows[i]; there may be more rows than before."""
        self._cache.reorder(rows)

    def write(self, choose: Callable[[Tensor], Tensor]) -> Tensor:
        """Write until every row has ended; `choose` makes logits (B, V) to ids (B,)."""
        # To ask whether all have ended, the host must wait for a GPU: not every time.
        ask_every = 1 if self.begin.device.type == "cpu" else 8
        may_end = len(self.stops) > 0
        ended = torch.zeros_like(self.late, dtype=torch.bool)  # (B,)
        newest, columns = self.begin, []
        for step in range(self._rest.shape[1] + self.max_len):
            chosen = choose(self.score(newest))  # (B,)
            if may_end:
                chosen = chosen.masked_fill(ended, self.fill_id)
                ended = ended | torch.isin(chosen, self.stops) & (step >= self.late)
            if step < self._rest.shape[1]:  # some prompts are still being read
                chosen = torch.where(step < self.late, self._rest[:, step], chosen)
            columns.append(chosen)
            if may_end and (step + 1) % ask_every == 0 and ended.all():
                break
            newest = chosen[:, None]  # (B, 1)
        self.check_finite()
        return self._tidy(torch.stack(columns, dim=1))

    def _tidy(self, ids: Tensor) -> Tensor:
        """Shift each row to where it began to write; cut what no row needs."""
        steps = torch.arange(ids.shape[1], device=ids.device)
        places = (self.late[:, None] + steps).clamp(max=ids.shape[1] - 1)
        ids = ids.gather(1, places)[:, : self.max_len]  # (B, T)
        is_stop = torch.isin(ids, self.stops)
        needed = is_stop.cumsum(1) - is_stop.long() == 0  # up to the first end token
        ids = ids.masked_fill(~needed, self.fill_id)
        return ids[:, : int(needed.any(0).sum())]


def positions_of(model: Transformer | GPT | CausalLM) -> str:
    """Return the kind of a model's positions: only "learned" ones end."""
    if isinstance(model, GPT):
        return "learned"
    if isinstance(model, CausalLM):
        return model.config.parts.positions
    return model.config.positions

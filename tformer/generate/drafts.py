"""What proposes and what checks in speculative decoding: models that read one text.

T new tokens · L tokens of a text · D d_model · V vocabulary
"""

import torch
from torch import Tensor

from tformer.generate.given import Given
from tformer.models.causal_lm import CausalLM
from tformer.models.multi_token import MultiTokenHeads
from tformer.nn.cache import KeyValueCache


class Reader:
    """A model, and what it has read of one text: the prompt but for its newest token.

    Args:
        model: a trained CausalLM.
        given: the prompt, checked, and an empty cache.
        spare: how many tokens can be taken back at a time.
    """

    def __init__(self, model: CausalLM, given: Given, spare: int) -> None:
        self.model, self.vocab_size = model, given.vocab_size
        self.cache = given.cache  # of this model: its states take no other
        for block in self.cache.blocks:
            if isinstance(block.sequence, KeyValueCache):
                block.sequence.spare = spare  # with a window it keeps so many more
        if given.prompts.shape[1] > 1:
            self.read(given.prompts[:, :-1], last_only=True)

    def read(self, newest: Tensor, *, last_only: bool = False) -> Tensor:
        """Score what follows new tokens, ids (1, T), or the last: (1, T or 1, V)."""
        return self.model(newest, cache=self.cache, last_only=last_only)

    def unread(self, text: Tensor) -> Tensor:
        """Return what of a text, ids (1, L), is new."""
        return text[:, self.cache.length :]

    def scores(self, text: Tensor) -> Tensor:
        """Read what is new of a text, and score what follows each token: (T, V).

        In float32 at least, for probabilities.
        """
        logits = self.read(self.unread(text))[0]  # (T, V)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens of the text; fewer may have been read."""
        self.cache.truncate(min(length, self.cache.length))


class Trunk(Reader):
    """A reader that keeps the states of its newest forward, for heads."""

    _first = 0  # the position of the first of these states
    _states: Tensor | None = None  # (1, T, D)

    def read(self, newest: Tensor, *, last_only: bool = False) -> Tensor:
        """As `Reader.read`."""
        self._first = self.cache.length
        self._states = self.model.states(newest, cache=self.cache)
        return self.model.logits(self._states[:, -1:] if last_only else self._states)

    def state_after(self, length: int) -> Tensor:
        """Return the state that the newest forward had after so many tokens, (1, 1, D).

        Before the first token there is none, and zeros stand for it.
        """
        if self._states is None:
            weight = self.model.embedding.weight
            return weight.new_zeros(1, 1, weight.shape[1])
        place = length - 1 - self._first
        return self._states[:, place : place + 1]


class HeadsDraft:
    """A model's own heads propose: to `speculate` they are what the draft's reader is.

    Head 1 takes the trunk's last state and the newest token, and scores the next;
    head 2 takes what head 1 made and the token that was proposed, and so on.

    Args:
        heads: trained beside the trunk.
        trunk: its reader.
        ahead: how many tokens they will propose at a time.
    """

    def __init__(self, heads: MultiTokenHeads, trunk: Trunk, ahead: int) -> None:
        check_heads(heads, trunk.model, ahead=ahead)
        self.heads, self.trunk, self.vocab_size = heads, trunk, trunk.vocab_size

    def truncate(self, length: int) -> None:
        """Begin again after so many tokens, which the trunk has read."""
        self._used = 0
        self._state = self.trunk.state_after(length)  # (1, 1, D)

    def scores(self, text: Tensor) -> Tensor:
        """Score what follows a text, ids (1, L), with the next head: (1, V)."""
        model, head = self.trunk.model, self.heads.heads[self._used]
        self._state = head(self._state, model.embedding(text[:, -1:]))  # (1, 1, D)
        self._used += 1
        logits = model.logits(self._state)[0]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))


def check_heads(heads: MultiTokenHeads, model: CausalLM, **ahead: int) -> None:
    """Raise unless heads are of a model's width, and enough to propose so far ahead."""
    D, n = model.d_model, len(heads.heads)
    if heads.d_model != D:
        message = f"({heads.d_model}) must be that of the model ({D})"
        raise ValueError(f"the heads' d_model {message}")
    for name, count in ahead.items():
        if count > n:
            message = f"must be at most {n}: as many as the draft has heads"
            raise ValueError(f"{name} ({count}) {message}")

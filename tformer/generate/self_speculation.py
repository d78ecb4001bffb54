"""Self-speculation: a model's own heads are the draft, and no second model is needed.

K tokens ahead · T new tokens · L tokens so far · D d_model · V vocabulary
"""

import torch
from torch import Tensor

from tformer.generate.writer import Writer
from tformer.models.causal_lm import CausalLM
from tformer.models.gpt import GPT
from tformer.models.multi_token import MultiTokenHeads


class Trunk(Writer):
    """A writer that keeps the states of its newest forward, for the heads."""

    model: GPT | CausalLM
    _first = 0  # the position of the first of these states
    _states: Tensor | None = None  # (1, T, D)

    def _read(self, newest: Tensor) -> Tensor:
        self._first = self.length
        self._states = self.model.states(newest, cache=self._cache)
        return self._states

    def score(self, newest: Tensor) -> Tensor:
        """Read the newest tokens of one text, (1, T); score what follows: (1, V)."""
        last: Tensor = self.model.logits(self._read(newest)[:, -1:])[:, 0]
        self._largest.append(last.amax(dim=-1))
        return last

    def score_all(self, newest: Tensor) -> Tensor:
        """Read the newest tokens of one text, (1, T); score after each: (T, V)."""
        logits: Tensor = self.model.logits(self._read(newest))[0]
        self._largest.append(logits.amax(dim=-1))
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

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
    """Heads that propose: to `speculate` they are what the `Writer` of a draft is.

    The trunk has read all tokens but the newest. Head 1 takes its last state and the
    newest token and scores the next, head 2 takes what head 1 made and the token that
    was proposed, and so on. After each forward of the trunk they begin again, with the
    state after the last token that was kept.

    Args:
        heads: trained beside the trunk.
        trunk: its writer.

    Raises:
        ValueError: the heads have another width than the trunk.
    """

    def __init__(self, heads: MultiTokenHeads, trunk: Trunk) -> None:
        if heads.d_model != trunk.model.config.d_model:
            raise ValueError(
                f"the heads' d_model ({heads.d_model}) must be that of the model "
                f"({trunk.model.config.d_model})"
            )
        self.heads, self.trunk = heads, trunk
        self.vocab_size = trunk.vocab_size
        self.truncate(0)

    def truncate(self, length: int) -> None:
        """Begin again after so many tokens, which the trunk has read."""
        self.length, self._used = length, 0
        self._state = self.trunk.state_after(length)  # (1, 1, D)

    def score(self, newest: Tensor) -> Tensor:
        """Begin after a prompt (1, T), which the trunk has read; (1, 1, D)."""
        self.truncate(self.length + newest.shape[1])
        return self._state

    def score_all(self, newest: Tensor) -> Tensor:
        """Score what follows the newest token, (1, 1), with the next head: (1, V)."""
        model, head = self.trunk.model, self.heads.heads[self._used]
        self._state = head(self._state, model.embedding(newest))  # (1, 1, D)
        self.length, self._used = self.length + 1, self._used + 1
        logits: Tensor = model.logits(self._state)[0]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def spare(self, tokens: int) -> None:
        """Raise a ValueError unless there is a head for each of so many proposals."""
        if tokens > len(self.heads.heads):
            raise ValueError(
                f"ahead ({tokens}) must be at most {len(self.heads.heads)}: as many "
                "as the draft has heads"
            )

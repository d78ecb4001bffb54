"""Multi-token prediction: heads beside a language model, for the tokens further on.

B batch · T length · D d_model · V vocabulary · n heads
"""

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.models.causal_lm import CausalLM
from tformer.nn.feed_forward import GatedFeedForward
from tformer.nn.norm import RMSNorm


class MultiTokenHead(nn.Module):
    """Make from the state that predicts a token the state that predicts the next one.

    h' = norm(y + FFN(norm(y))) with y = M [h; norm(e)], where e is the embedded token
    that h predicted. Without the token y = M h.

    Args:
        d_model: width D of the trunk.
        d_ff: inner width of the feed-forward network.
        see_token: whether the head reads the token before its own.
    """

    def __init__(self, d_model: int, d_ff: int, *, see_token: bool = True) -> None:
        super().__init__()
        self.token_norm = RMSNorm(d_model) if see_token else None
        self.proj = nn.Linear((1 + see_token) * d_model, d_model, bias=False)  # M
        self.feed_forward_norm = RMSNorm(d_model)
        self.feed_forward = GatedFeedForward(d_model, d_ff)
        self.norm = RMSNorm(d_model)

    def forward(self, state: Tensor, embedded: Tensor) -> Tensor:
        """Map states and the tokens that they predicted, both (B, T, D): (B, T, D)."""
        if self.token_norm is not None:
            state = torch.cat((state, self.token_norm(embedded)), dim=-1)  # (B, T, 2D)
        y = self.proj(state)  # (B, T, D)
        return self.norm(y + self.feed_forward(self.feed_forward_norm(y)))


class MultiTokenHeads(nn.Module):
    """n heads, one after the other: head k predicts the token k + 1 places further.

    DeepSeek-V3, section 2.2 (arXiv:2412.19437), with a feed-forward network where it
    has a whole layer, so that no head needs a cache. Without tokens all heads stand on
    the trunk's state alone, as in Medusa (arXiv:2401.10774), whose heads stand side by
    side; those of Gloeckle et al. 2024 (arXiv:2404.19737) are whole layers. Embedding
    and logits are the trunk's; the trunk itself stays as it is.

    Args:
        d_model: width D of the trunk.
        num_ahead: n, how many heads.
        d_ff: inner width of a head; D if None.
        see_tokens: whether a head reads the token before its own.

    Raises:
        TypeError, ValueError: a size is not an int, or below 1.
    """

    def __init__(
        self,
        d_model: int,
        num_ahead: int,
        *,
        d_ff: int | None = None,
        see_tokens: bool = True,
    ) -> None:
        super().__init__()
        check_positive(num_ahead=num_ahead)
        self.d_model = d_model
        d_ff = d_model if d_ff is None else d_ff
        self.heads = nn.ModuleList(
            MultiTokenHead(d_model, d_ff, see_token=see_tokens)
            for _ in range(num_ahead)
        )

    def forward(self, trunk: CausalLM, ids: Tensor) -> list[Tensor]:
        """Score with every head at every position at which its tokens are known.

        Args:
            trunk: the model beside which the heads stand.
            ids: (B, T), with T > n.

        Returns:
            for each k from 1 to n logits (B, T - k, V): those at position t are of
            token t + k + 1, made from ids[:, : t + 1] and ids[:, t + 1 : t + k + 1].
        """
        n, T = len(self.heads), ids.shape[1]
        if n >= T:
            raise ValueError(f"ids ({T} tokens) must be longer than {n}: {n} heads")
        state, logits = trunk.states(ids), []  # (B, T, D)
        for k, head in enumerate(self.heads, start=1):
            state = head(state[:, : T - k], trunk.embedding(ids[:, k:]))  # (B, T-k, D)
            logits.append(trunk.logits(state))  # (B, T - k, V)
        return logits


def multi_token_losses(trunk: CausalLM, heads: MultiTokenHeads, ids: Tensor) -> Tensor:
    """Compute the mean cross-entropy of each head; the trunk's own is not among them.

    Gloeckle et al. add all of them to the loss of the trunk; DeepSeek-V3 their mean,
    times 0.3 at first and 0.1 in the end. To train the heads of a trunk that shall stay
    as it is, as Medusa-1 does, `trunk.requires_grad_(False)`.

    Args:
        trunk: the model beside which the heads stand.
        heads: n of them.
        ids: (B, T), with T > n + 1. Where the token that is predicted is the `pad_id`
            of the trunk, it is left out.

    Returns:
        losses (n,).
    """
    n, T = len(heads.heads), ids.shape[1]
    if n + 1 >= T:
        raise ValueError(f"ids ({T} tokens) must be longer than {n + 1}: {n} heads")
    pad = -100 if trunk.pad_id is None else trunk.pad_id
    losses = []
    for k, logits in enumerate(heads(trunk, ids), start=1):
        # The logits at position t are of token t + k + 1.
        scores, wanted = logits[:, :-1].transpose(1, 2), ids[:, k + 1 :]
        losses.append(functional.cross_entropy(scores, wanted, ignore_index=pad))
    return torch.stack(losses)

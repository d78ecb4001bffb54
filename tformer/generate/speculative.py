"""Speculative decoding: a small model proposes tokens, the large one checks them.

K tokens ahead · P of a prompt · T of what is written · V vocabulary
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tformer.checks import check_positive
from tformer.generate.decode import check_finite
from tformer.generate.drafts import HeadsDraft, Reader, Trunk
from tformer.generate.evaluating import evaluating
from tformer.generate.given import Given, check_given
from tformer.generate.sampling import draw, next_logits
from tformer.models.causal_lm import CausalLM
from tformer.models.multi_token import MultiTokenHeads


def acceptance(p: Tensor, q: Tensor) -> Tensor:
    """Compute min(1, p / q): how probably a token that q proposed is kept.

    Leviathan et al. 2023, section 2.3 (arXiv:2211.17192). A token is proposed with q
    and kept with this: together with min(q, p), never more often than p wants it.
    Both are (V,): p the model's, q the draft's. Where q is 0 nothing is proposed.
    """
    return (p / q).clamp(max=1.0)


def after_rejection(p: Tensor, q: Tensor) -> Tensor:
    """Compute (p − q)₊ / Σ (p − q)₊, from which is drawn where a token was not kept.

    It holds what `acceptance` leaves of p: p − min(q, p).
    """
    missing = (p - q).clamp(min=0)
    # Where p and q are equal but for rounding, nothing is missing.
    return missing / missing.sum() if missing.any() else p


class Speculation(NamedTuple):
    """What was written, and what it took."""

    ids: Tensor  # int64 (1, T), the end token included
    forwards: int  # of the model, each over K + 1 tokens; reading the prompt is not one
    checked: int  # proposed tokens up to the first that was not kept, over all forwards
    accepted: int  # those that were kept


def speculative_sample(
    model: CausalLM,
    draft: CausalLM | MultiTokenHeads,
    given: Tensor | Sequence[Sequence[int]],
    *,
    max_len: int,
    ahead: int = 4,
    eos_id: int | Sequence[int] | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Speculation:
    """Write as `sample` does, with fewer forwards of the model.

    Leviathan et al. 2023 (arXiv:2211.17192), Chen et al. 2023 (arXiv:2302.01318). The
    draft proposes K tokens, the model scores all of them in one forward. Each is kept
    with probability min(1, p / q); in place of the first that is not, one is drawn from
    (p − q)₊, renormalised; where all are kept, one more is drawn from p. Texts have the
    very distribution of `sample`; with one seed it is not the same text.

    Args:
        model: a trained CausalLM; its text is written.
        draft: a faster one with the same vocabulary, or heads trained beside the model.
        given: one prompt, ids (1, P) or a list with one.
        max_len: write at most so many tokens, the end token included.
        ahead: K, how many tokens the draft proposes at a time; at most one a head.
        eos_id: the end token, or several; without one `max_len` tokens are written.
        temperature: as in `sample`, for both models; at 0 it is `greedy`.
        top_k: as in `sample`, for both models, and so are the next two.
        top_p: of the nucleus.
        min_p: of the likeliest.
        generator: where the randomness comes from.
    """
    check_positive(ahead=ahead)
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature ({temperature}) must be at least 0 and finite")

    def probabilities(logits: Tensor) -> Tensor:
        if temperature == 0:
            likeliest = logits.argmax(dim=-1, keepdim=True)
            return torch.zeros_like(logits).scatter(-1, likeliest, 1.0)
        return next_logits(
            logits, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p
        ).softmax(dim=-1)

    def choose(p: Tensor) -> int:
        return int(draw(p.log()[None], generator))

    with evaluating(model), evaluating(draft), torch.no_grad():
        asked = check_given(model, given, max_len=max_len, eos_id=eos_id)
        if len(asked.prompts) != 1:
            raise ValueError(f"given must be one prompt, not {len(asked.prompts)}")
        if isinstance(draft, MultiTokenHeads):
            trunk = Trunk(model, asked, ahead)
            both = trunk, HeadsDraft(draft, trunk, ahead)
            return speculate(*both, asked, ahead, probabilities, choose)
        proposes = check_given(draft, given, max_len=max_len)
        own, V = proposes.vocab_size, asked.vocab_size
        if own != V:
            message = f"({own}) must be that of the model ({V})"
            raise ValueError(f"the draft's vocab_size {message}")
        readers = Reader(model, asked, ahead), Reader(draft, proposes, ahead)
        return speculate(*readers, asked, ahead, probabilities, choose)


def speculate(
    model: Reader,
    draft: Reader | HeadsDraft,
    given: Given,
    ahead: int,
    probabilities: Callable[[Tensor], Tensor],
    choose: Callable[[Tensor], int],
) -> Speculation:
    """Write until the end: propose, check, cut both caches back.

    Args:
        model: what writes; it has read all of the prompt but the newest token.
        draft: what proposes; so has it.
        given: the prompt, and where to end.
        ahead: K.
        probabilities: makes them from logits, both (..., V).
        choose: draws an index from probabilities (V,). All randomness comes from it.
    """
    text = given.prompts  # (1, P), and then what is written
    P, forwards, checked, accepted = text.shape[1], 0, 0, 0
    while text.shape[1] < P + given.max_len:
        L, K = text.shape[1], min(ahead, P + given.max_len - text.shape[1] - 1)
        for each in (model, draft):  # of the text the newest token is not read yet
            each.truncate(L - 1)
        proposed, q = text, []
        for _ in range(K):
            q.append(probabilities(draft.scores(proposed)[-1]))
            proposed = append(proposed, choose(q[-1]))

        # One forward: the newest token and K proposals make K + 1 distributions.
        logits = model.scores(proposed)[-K - 1 :]
        check_finite([logits.amax(dim=-1)])
        p = probabilities(logits)
        forwards, kept = forwards + 1, 0
        while kept < K and keeps(p[kept], q[kept], int(proposed[0, L + kept]), choose):
            kept += 1
        checked, accepted = checked + min(kept + 1, K), accepted + kept
        rest = after_rejection(p[kept], q[kept]) if kept < K else p[K]
        text = append(proposed[:, : L + kept], choose(rest))

        new = text[0, L:].tolist()
        ends = [i for i, token in enumerate(new, L + 1) if token in given.stops]
        if ends:
            text = text[:, : ends[0]]
            break
    return Speculation(text[:, P:], forwards, checked, accepted)


def keeps(p: Tensor, q: Tensor, token: int, choose: Callable[[Tensor], int]) -> bool:
    """Decide by chance whether a proposed token is kept."""
    yes = acceptance(p, q)[token]
    return choose(torch.stack((1 - yes, yes))) == 1


def append(text: Tensor, token: int) -> Tensor:
    """Return ids (1, L) with one more token."""
    return torch.cat((text, text.new_tensor([[token]])), dim=1)

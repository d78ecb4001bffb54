"""Greedy decoding takes the likeliest next token; sampling draws it at random.

B batch · S length of a source · P of a prompt · T of what is written · V vocabulary
"""

import math
from collections.abc import Sequence
from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer.checks import check_positive
from tformer.generate.decode import likeliest
from tformer.generate.evaluating import evaluating
from tformer.generate.given import Options, check_given
from tformer.models.causal_lm import CausalLM
from tformer.models.seq2seq_lm import Seq2SeqLM


def best_k(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """Pick the k largest of logits (B, V), falling, and their ids, both (B, k)."""
    check_positive(top_k=top_k)
    V = logits.shape[-1]
    if top_k > V:
        raise ValueError(f"top_k ({top_k}) must be at most vocab_size = {V}")
    logits, ids = logits.topk(top_k)
    return logits, ids


def top_k_filter(logits: Tensor, top_k: int) -> Tensor:
    """Keep the k largest logits, and make the others -inf (Fan et al. 2018).

    arXiv:1805.04833, section 5.4. Of equal ones at the k-th place any may stay.
    """
    kept, ids = best_k(logits, top_k)
    return torch.full_like(logits, -math.inf).scatter(-1, ids, kept)


def top_p_filter(logits: Tensor, top_p: float) -> Tensor:
    """Keep the fewest tokens whose probabilities sum to p or more: the nucleus.

    Holtzman et al. 2020 (arXiv:1904.09751, section 3.1). The likeliest always stays.
    The logits are (B, V), p is in (0, 1].
    """
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p ({top_p}) must be in (0, 1]")
    if top_p == 1:
        return logits
    falling, order = logits.sort(dim=-1, descending=True)  # (B, V)
    sums = falling.float().softmax(dim=-1).cumsum(dim=-1)
    before = F.pad(sums[..., :-1], (1, 0))  # what the larger ones sum to
    hidden = before >= top_p
    hidden[..., 0] = False  # a p that float32 rounds to 0 would hide the likeliest too
    kept = falling.masked_fill(hidden, -math.inf)
    return torch.empty_like(logits).scatter(-1, order, kept)


def min_p_filter(logits: Tensor, min_p: float) -> Tensor:
    """Keep the tokens at least `min_p` times as probable as the likeliest.

    Nguyen et al. 2024 (arXiv:2407.01082). Where the model is sure, few stay; where it
    is not, many do. The logits are (B, V), `min_p` is in (0, 1].
    """
    if not 0 < min_p <= 1:
        raise ValueError(f"min_p ({min_p}) must be in (0, 1]")
    # A quotient of probabilities is a difference of logits: the sum of both cancels.
    largest = logits.amax(dim=-1, keepdim=True)  # (B, 1)
    return logits.masked_fill(logits < largest + math.log(min_p), -math.inf)


def next_logits(
    logits: Tensor,
    *,
    temperature: float,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Tensor:
    """Divide logits (B, V) by the temperature, and filter them, as `sample` does."""
    # No quotient overflows where the largest is 0, however small the temperature; and
    # none vanishes, however large it is: else all would be equal.
    logits = logits - logits.amax(-1, keepdim=True)  # (B, V)
    logits = logits / min(max(temperature, 1e-30), 1e30)
    if top_k is not None:
        logits = top_k_filter(logits, top_k)
    if top_p is not None:
        logits = top_p_filter(logits, top_p)
    if min_p is not None:
        logits = min_p_filter(logits, min_p)
    return logits


def draw(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw a token of each row from softmax(logits): (B, V) to ids (B,).

    The smallest of independent waiting times, exponential with rate pᵢ, is the i-th
    with probability pᵢ. `torch.multinomial` does the same, and then makes the host
    wait for the device to check its input.
    """
    p = logits.softmax(dim=-1)
    device = p.device if generator is None else generator.device
    waiting = torch.empty(p.shape, device=device).exponential_(generator=generator)
    # On MPS a waiting time can be 0 (pytorch issue 192577): 0 / 0 would beat all.
    waiting = waiting.clamp(min=torch.finfo(waiting.dtype).eps / 2)
    return (p / waiting.to(p.device)).argmax(dim=-1)


def greedy(
    model: Seq2SeqLM | CausalLM,
    given: Tensor | Sequence[Sequence[int]],
    **options: Unpack[Options],
) -> Tensor:
    """Append the likeliest next token, argmax p(next | so far), until the end token.

    The source is encoded once, and keys and values are kept in a cache. The model is
    asked in `eval()`, without gradients, and left in the mode in which it came. A row
    that has ended is filled up with padding, and the loop ends with the last of them.

    Args:
        model: a trained Seq2SeqLM, such as Transformer, or CausalLM.
        given: of a Transformer the sources, ids (B, S). Of the others the prompts, ids
            (B, P), or a list of them where they differ in length.
        options: `max_len`, and the other `Options`.

    Returns:
        int64 (B, T), T <= max_len: what follows the start token or the prompt, with the
        end token, if it came, and after it `pad_id` (`eos_id` if the model has no
        padding).

    Raises:
        TypeError, ValueError: an argument is out of its range, or for the other model.
        FloatingPointError: the model's scores are NaN or infinite.
    """
    with evaluating(model), torch.no_grad():
        return check_given(model, given, **options).write(likeliest)


def sample(
    model: Seq2SeqLM | CausalLM,
    given: Tensor | Sequence[Sequence[int]],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    generator: torch.Generator | None = None,
    **options: Unpack[Options],
) -> Tensor:
    """Append a next token drawn at random from softmax(logits / temperature).

    The temperature comes first, then the filters, in the order of their arguments; each
    sees what the one before it has left. Hugging Face has the same order.

    Args:
        model: as in `greedy`, and so are `given` and what is returned.
        given: the sources, or the prompts.
        temperature: above 0. Below 1 the likeliest becomes likelier; towards 0 it is
            greedy decoding.
        top_k: keep the k likeliest only.
        top_p: keep the fewest that sum to p.
        min_p: keep those at least this times as probable as the likeliest.
        generator: where the randomness comes from: one with the same seed gives the
            same text, for the same batch on the same device.
        options: `max_len`, and the other `Options`.
    """
    if not 0 < temperature < math.inf:
        rule = "must be above 0 and finite; at 0 it would be greedy"
        raise ValueError(f"temperature ({temperature}) {rule}")

    def choose(logits: Tensor) -> Tensor:
        logits, ids = logits.float(), None
        if top_k is not None:  # among k all that follows is faster than among V
            logits, ids = best_k(logits, top_k)  # (B, k)
        logits = next_logits(logits, temperature=temperature, top_p=top_p, min_p=min_p)
        drawn = draw(logits, generator)  # (B,)
        return drawn if ids is None else ids.gather(-1, drawn[:, None])[:, 0]

    with evaluating(model), torch.no_grad():
        return check_given(model, given, **options).write(choose)

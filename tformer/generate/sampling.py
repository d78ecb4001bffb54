"""Sampling: draw the next token at random, from all tokens or the likelier ones.

B batch · V vocabulary
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer.checks import check_positive
from tformer.generate.evaluating import evaluating
from tformer.generate.prefix import Prefix
from tformer.generate.writer import Writer
from tformer.models.causal_lm import CausalLM
from tformer.models.gpt import GPT
from tformer.models.transformer import Transformer


def top_k_filter(logits: Tensor, top_k: int) -> Tensor:
    """Keep the k largest logits, and make the others -inf (Fan et al. 2018).

    arXiv:1805.04833, section 5.4. Tokens as large as the k-th stay too.

    Args:
        logits: (B, V).
        top_k: k, in [1, V].

    Raises:
        TypeError: `top_k` is not an int.
        ValueError: it is not in [1, V].
    """
    check_positive(top_k=top_k)
    if top_k > logits.shape[-1]:
        raise ValueError(
            f"top_k ({top_k}) must be at most vocab_size = {logits.shape[-1]}"
        )
    smallest = logits.topk(top_k).values[..., -1:]  # (B, 1)
    return logits.masked_fill(logits < smallest, -math.inf)


def top_p_filter(logits: Tensor, top_p: float) -> Tensor:
    """Keep the fewest tokens whose probabilities sum to p or more: the nucleus.

    Holtzman et al. 2020 (arXiv:1904.09751, section 3.1). The likeliest always stays.

    Args:
        logits: (B, V).
        top_p: p, in (0, 1].

    Raises:
        ValueError: `top_p` is not in (0, 1].
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
    is not, many do.

    Args:
        logits: (B, V).
        min_p: in (0, 1].

    Raises:
        ValueError: `min_p` is not in (0, 1].
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
    """Divide logits by the temperature, and filter them: the arguments of `sample`.

    Args:
        logits: (B, V).
        temperature: above 0.
        top_k: for `top_k_filter`; it comes first.
        top_p: for `top_p_filter`.
        min_p: for `min_p_filter`.
    """
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


def sample(
    model: Transformer | GPT | CausalLM,
    given: Tensor | Sequence[Sequence[int]],
    *,
    max_len: int,
    eos_id: int | Sequence[int] | None = None,
    bos_id: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    generator: torch.Generator | None = None,
    src_key_mask: Tensor | None = None,
    window: int | None = None,
    prefix: Prefix | None = None,
) -> Tensor:
    """Append a next token drawn at random from softmax(logits / temperature).

    The temperature comes first, then the filters, in the order of their arguments; each
    sees what the one before it has left. Hugging Face has the same order.

    Args:
        model: a trained Transformer, GPT or CausalLM.
        given: of a Transformer the sources, ids (B, S). Of the others the prompts, ids
            (B, P), or a list of them where they differ in length.
        max_len: write at most so many tokens, the end token included.
        eos_id: the end token, or several; without one every row has `max_len` tokens.
        bos_id: the start token, with which a Transformer's target begins.
        temperature: above 0. Below 1 the likely become likelier; towards 0 it is
            greedy decoding.
        top_k: keep the k likeliest only.
        top_p: keep the fewest that sum to p.
        min_p: keep those at least this times as probable as the likeliest.
        generator: where the randomness comes from: one with the same seed gives the
            same text, for the same batch on the same device.
        src_key_mask: bool (B, S), True = a real token; src != pad_id if not given.
        window: where a GPT's positions are used up, or a CausalLM's `max_len`, let it
            read its newest `window` tokens anew, from position 0, and forget what was
            before them.
        prefix: what all prompts begin with, read once; `given` is what follows it.

    Returns:
        int64 (B, T), as `greedy`.

    Raises:
        TypeError: a size or a token is not an int, or the mask is not boolean.
        ValueError: as in `greedy`; or the temperature or a filter is out of its range.
        FloatingPointError: as in `greedy`.
    """
    if not 0 < temperature < math.inf:
        raise ValueError(
            f"temperature ({temperature}) must be above 0 and finite; at 0 it would be "
            "greedy"
        )

    def choose(logits: Tensor) -> Tensor:
        logits = next_logits(
            logits.float(),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
        )
        return draw(logits, generator)

    with evaluating(model), torch.no_grad():
        writer = Writer(
            model,
            given,
            max_len=max_len,
            eos_id=eos_id,
            bos_id=bos_id,
            src_key_mask=src_key_mask,
            window=window,
            prefix=prefix,
        )
        return writer.write(choose)

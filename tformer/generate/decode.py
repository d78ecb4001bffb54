"""The loop that writes tokens, and what it asks a model at each of them.

B batch · S length of a source · P of a prompt · T of what is written · V vocabulary
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tformer.models.causal_lm import CausalLM
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.nn.cache import ModelCache

Score = Callable[[Tensor], Tensor]  # reads the newest ids (B, T): the next's (B, V)
Choose = Callable[[Tensor], Tensor]  # logits (B, V) to ids (B,)


def continuing(model: CausalLM, cache: ModelCache) -> Score:
    """Score what follows a text, of which only the newest ids are given each time."""
    return lambda newest: model(newest, cache=cache, last_only=True)[:, -1]


def rereading(model: CausalLM, cache: ModelCache, room: int, window: int) -> Score:
    """As `continuing`; where the room ends, read the newest `window` tokens anew."""
    text: Tensor | None = None

    def score(newest: Tensor) -> Tensor:
        nonlocal cache, text
        text = newest if text is None else torch.cat((text, newest), dim=1)
        if cache.length + newest.shape[1] > room:
            newest, cache = text[:, -window:], model.new_cache(room)
        return model(newest, cache=cache, last_only=True)[:, -1]

    return score


def translating(
    model: Seq2SeqLM, src: Tensor, cache: ModelCache, key_mask: Tensor | None = None
) -> Score:
    """Encode a source, ids (B, S), once; score what follows the target so far.

    The cache is of `model.new_cache`, and keeps keys and values of the source too.
    `key_mask` is bool (B, S), True = a real token; src != pad_id if None.
    """
    mask = model.source_mask(src, key_mask)
    memory = model.encode(src, src_key_mask=mask)  # (B, S, D)
    # Where nothing is hidden, no mask is faster: asked once for all tokens.
    mask = None if mask is not None and bool(mask.all()) else mask
    return lambda newest: model.decode(
        newest, memory, memory_key_mask=mask, cache=cache
    )[:, -1]


def likeliest(logits: Tensor) -> Tensor:
    """Choose the likeliest token of each row: logits (B, V) to ids (B,)."""
    return logits.argmax(dim=-1)


@torch.no_grad()
def write(
    score: Score,
    prompts: Tensor,
    max_len: int,
    stops: Sequence[int] = (),
    fill_id: int = 0,
    lengths: Sequence[int] | None = None,
    choose: Choose = likeliest,
) -> Tensor:
    """Choose a token, append it, read it, choose again, until all rows have ended.

    Prompts of different lengths need no mask: the batch begins with as many tokens as
    the shortest has, and the longer ones are read on, token by token, while the others
    already write (as the first LLaMA did, arXiv:2302.13971).

    Args:
        score: reads the newest ids (B, T), and returns logits (B, V) of the next.
        prompts: ids (B, P). Of a shorter prompt the end is filled up, and never read.
        max_len: write at most so many tokens, the end token included.
        stops: the end tokens.
        fill_id: what stands after the end token of a row.
        lengths: of the prompts; P each if None.
        choose: makes of logits (B, V) ids (B,).

    Returns:
        ids (B, T), T <= max_len: what follows each prompt.
    """
    B, P = prompts.shape
    device, lengths = prompts.device, [P] * B if lengths is None else lengths
    first, ends = min(lengths), torch.tensor(lengths, device=device)  # ends: (B,)
    stop_ids = torch.tensor(stops, dtype=torch.int64, device=device)
    # To ask whether all have ended, the host must wait for a GPU: not every time.
    ask_every = 1 if device.type == "cpu" else 8
    newest, columns, largest = prompts[:, :first], [], []
    ended = torch.zeros_like(ends, dtype=torch.bool)
    for t in range(first, P + max_len):
        logits = score(newest)  # (B, V)
        token = choose(logits)  # (B,)
        if t < P:  # some prompts are still being read
            token = torch.where(t < ends, prompts[:, t], token)
        if stops:
            ended = ended | torch.isin(token, stop_ids) & (t >= ends)
        columns.append(token)
        largest.append(logits.amax(dim=-1))
        if stops and (t - first) % ask_every == ask_every - 1 and ended.all():
            break
        newest = token[:, None]  # (B, 1)
    check_finite(largest)

    ids = torch.stack(columns, dim=1)  # all rows from the end of the shortest prompt
    places = torch.arange(ids.shape[1], device=device) + (ends - first)[:, None]
    ids = ids.gather(1, places.clamp(max=ids.shape[1] - 1))[:, :max_len]
    needed = through_first(torch.isin(ids, stop_ids))
    return ids.masked_fill(~needed, fill_id)[:, : int(needed.any(0).sum())]


def through_first(is_stop: Tensor) -> Tensor:
    """Mark the tokens up to the first end token and it: bool (..., T), and the same."""
    return is_stop.cumsum(dim=-1) - is_stop.long() == 0


def check_finite(largest: Sequence[Tensor]) -> None:
    """Raise a FloatingPointError if a largest score, each (B,), is NaN or infinite.

    Some tokens may be at -inf. Asked once, at the end: a GPU is waited for.
    """
    if largest and not torch.cat(list(largest)).isfinite().all():
        found = "the model's scores of the next token are not finite: its weights"
        cause = "may hold NaN or infinity, or numbers too large for their dtype"
        raise FloatingPointError(f"{found} {cause}")

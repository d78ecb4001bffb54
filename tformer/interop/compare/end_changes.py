"""Changes of what stands before and after the blocks, to be tried.

B batch · T length · D d_model · V vocabulary
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.interop.compare.block_changes import ROUNDED, rounded
from tformer.interop.compare.norm_changes import Formula, norm_forms
from tformer.interop.compare.rotary_changes import Hints, copied
from tformer.models.causal_lm import CausalLM

Form = tuple[str, Callable[[], Tensor]]


def embedding_forms(model: CausalLM, ids: Tensor) -> Iterator[Form]:
    """Yield what goes into the first block: as it is, then as others do."""
    embedding, positions = model.embedding, model.positions
    x, root = embedding(ids), math.sqrt(model.d_model)

    def placed(x: Tensor, start: int = 0) -> Tensor:
        return x if positions is None else positions(x, start=start)

    yield "", lambda: placed(x)
    factor = "√d_model" if isinstance(embedding.scale, bool) else embedding.scale
    if embedding.scale is False:
        yield f"the embedding is multiplied by {factor}", lambda: placed(x * root)
    else:
        looked_up = embedding.weight[ids]
        yield f"the embedding is not multiplied by {factor}", lambda: placed(looked_up)
    yield (
        "embedding and positions together are multiplied by √d_model",
        (lambda: placed(x) * root),
    )
    if positions is not None:
        yield "no positions are added", lambda: x
        for start in (1, 2):
            yield f"positions begin at {start}", partial(placed, x, start)
        back = placed(torch.zeros_like(x))
        told = "sines and cosines of positions stand side by side, not in turn"
        turns = torch.cat((back[..., 0::2], back[..., 1::2]), -1)
        yield told, lambda: x + turns
        yield "positions are counted from the end", lambda: x + back.flip(1)
    for told, dtype in ROUNDED.items():
        yield told, partial(rounded_embedding, model, ids, dtype)


def rounded_embedding(model: CausalLM, ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Embed with rounded weights."""
    embedding, positions = copied(model.embedding), model.positions
    positions = None if positions is None else copied(positions)
    for part in (embedding, positions):
        if part is not None:
            rounded(part, dtype)
    x = embedding(ids)
    return x if positions is None else positions(x)


def norm_row_forms(norm: nn.Module, last: Tensor, hints: Hints) -> Iterator[Form]:
    """Yield what the final norm makes of the last block's output: ours, then others."""
    yield "", partial(norm, last)
    for told, form in norm_forms(norm, hints):
        yield f"the final norm {told}", partial(form, last)
    for told, dtype in ROUNDED.items():
        copy = copied(norm)
        rounded(copy, dtype)
        yield told, partial(copy, last)


def logit_forms(
    model: CausalLM, x: Tensor, last: Tensor, hints: Hints, *, norm_is_known: bool
) -> Iterator[Form]:
    """Yield the logits of x, what the final norm made of `last`: ours, then others."""
    head = model.embedding if model.output is None else model.output
    bias = None if model.output is None else model.output.bias
    raw = F.linear(x, head.weight, bias)
    logits, norm = model.logits(x), model.norm
    yield "", lambda: logits
    yield "there is no final norm", lambda: model.logits(last)
    if norm is not None:
        yield "the final norm stands twice", lambda: model.logits(norm(x))
        forms = () if norm_is_known else (*norm_forms(norm, hints),)[1:]
        for told, form in forms:
            yield f"the final norm {told}", partial(after, model.logits, form, last)
    if model.output is not None:
        told = "the embedding makes the logits (tied), not the output's own weight"
        yield told, lambda: model.embedding.logits(x)
    if bias is not None:
        yield "the output has no bias", lambda: logits - bias
    if model.logit_scale != 1 or model.logit_cap is not None:
        yield "the logits are neither scaled nor softcapped", lambda: raw
    for cap in dict.fromkeys((30.0, 50.0, 15.0, *(c for c in hints.floats if c > 1))):
        if cap != model.logit_cap:
            capped = partial(torch.mul, cap, torch.tanh(raw / cap))
            yield f"the logits are softcapped at {cap:g}", capped
    root = math.sqrt(model.d_model)
    yield "the logits are divided by √d_model", lambda: logits / root
    yield "log-probabilities are returned, not logits", lambda: logits.log_softmax(-1)
    yield "probabilities are returned, not logits", lambda: logits.softmax(-1)
    for told, dtype in ROUNDED.items():
        weight = head.weight.to(dtype).to(x.dtype)
        yield told, partial(finished, model, F.linear(x, weight, bias))


def finished(model: CausalLM, raw: Tensor) -> Tensor:
    """Scale and bound logits as the model does."""
    raw, cap = model.logit_scale * raw, model.logit_cap
    return raw if cap is None else cap * torch.tanh(raw / cap)


def after(last: Formula, first: Formula, x: Tensor) -> Tensor:
    """Compute one function of another."""
    return last(first(x))

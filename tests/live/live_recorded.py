"""What the package computes on the way to the logits, with what a reader changed.

It is asked by hooks: each module's output, and the steps of each attention. It computes
in float64, so that what is seen is the engine's own rounding, to float32.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from tformer import Transformer
from tformer.nn import heads as of_heads
from tformer.nn.attention import attention_weights
from tformer.nn.block import Block
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.masks import causal_mask
from tformer.nn.positions import SinusoidalPositionalEncoding, sinusoidal_positions


@dataclass(frozen=True)
class Case:
    """What the model reads, and what is changed in it."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    off: tuple[str, ...] = ()
    scale: float = 1.0
    positions: float = 1.0
    causal: bool = True
    whole: bool = False  # compare every step, and not only weights and logits

    def asked(self) -> dict[str, Any]:
        changes = asdict(self)
        given = {name: changes.pop(name) for name in ("source", "target", "whole")}
        return {**given, "changes": changes}


def attention_names(model: nn.Module) -> dict[str, int]:
    """The attentions of a model, and how many heads each has."""
    named = model.named_modules()
    return {n: m.num_heads for n, m in named if isinstance(m, MultiHeadAttention)}


def blocks_of(model: nn.Module) -> list[tuple[str, Block]]:
    return [(n, m) for n, m in model.named_modules() if isinstance(m, Block)]


@contextmanager
def changed(model: Transformer, case: Case) -> Iterator[dict[str, Tensor]]:
    """Change the package's model as a case says; yield what its modules compute."""
    kept: dict[str, Tensor] = {}
    running = [""]  # the name of the attention that runs
    names = {module: name for name, module in model.named_modules()}
    # What comes in: embeddings, which both sides share, and the input of a block.
    inputs: dict[nn.Module, str] = {
        model.src_positions: "src_embedding",
        model.tgt_positions: "tgt_embedding",
    }
    for name, block in blocks_of(model):
        inputs[block] = f"{name}.came_in"
        inputs[block.feed_forward.linear2] = f"{name}.feed_forward.hidden"

    def enter(module: nn.Module, args: Any) -> None:
        if module in inputs:
            kept[inputs[module]] = args[0][0]
        if isinstance(module, MultiHeadAttention):
            running[0] = names[module]

    def leave(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        if isinstance(module, SinusoidalPositionalEncoding):
            output = args[0] + case.positions * (output - args[0])
        if names[module] and not isinstance(module, TokenEmbedding):
            kept[names[module]] = output[0]
        return output

    def see(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        return args, {**kwargs, "is_causal": case.causal}

    attending = partial(attend, kept, running, case)
    with (
        register_module_forward_pre_hook(enter),
        register_module_forward_hook(leave),
        model.decoder.register_forward_pre_hook(see, with_kwargs=True),
        patch.object(of_heads, "scaled_dot_product_attention", attending),
    ):
        yield kept


def add_sums(name: str, block: Block, kept: dict[str, Tensor]) -> None:
    """Add the sum after each sub-layer of a block to what was kept."""
    x = kept.pop(f"{name}.came_in")
    for part in ("attention", "cross_attention", "feed_forward"):
        if f"{name}.{part}" in kept:
            x = x + kept[f"{name}.{part}"]
            x = x if block.placement == "pre" else kept[f"{name}.{part}_norm"]
            kept[f"{name}.after_{part}"] = x
    torch.testing.assert_close(x, kept[name])


def attend(
    kept: dict[str, Tensor],
    running: list[str],
    case: Case,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    *,
    is_causal: bool,
    **_: Any,
) -> Tensor:
    """Attend as the package does, and keep the steps."""
    (name,) = running
    scale = case.scale * query.shape[3] ** -0.5
    options = {"is_causal": is_causal, "scale": scale}
    weights = attention_weights(query, key, attn_mask, **options)
    heads = weights @ value.repeat_interleave(query.shape[1] // value.shape[1], 1)
    gone = [h for h in range(query.shape[1]) if f"{name}:{h}" in case.off]
    heads[:, gone] = 0.0
    scores = query @ key.repeat_interleave(query.shape[1] // key.shape[1], 1).mT
    masked = scaled = scale * scores
    if attn_mask is not None:
        masked = masked.masked_fill(~attn_mask, -torch.inf)
    if is_causal:
        masked = masked.masked_fill(~causal_mask(*masked.shape[2:]), -torch.inf)
    steps = {"query": query, "key": key, "value": value, "scores": scores}
    steps |= {"scaled": scaled, "masked": masked, "weights": weights, "heads": heads}
    kept |= {f"{name}:{step}": x[0] for step, x in steps.items()}
    kept[f"{name}:joined"] = heads.transpose(1, 2).flatten(2)[0]
    return heads


@cache
@torch.no_grad()
def expected(model: Transformer, case: Case) -> dict[str, Tensor]:
    """Every number of the package on the way to the logits."""
    with changed(model, case) as kept:
        logits = model(torch.tensor([case.source]), torch.tensor([case.target]))[0]
    for name, block in blocks_of(model):
        add_sums(name, block, kept)
    kept |= {"logits": logits, "probabilities": logits.softmax(-1)}
    return {name: x for name, x in kept.items() if not name.endswith("dropout")}


@cache
@torch.no_grad()
def choices(model: Transformer, case: Case, ids: tuple[int, ...]) -> Tensor:
    """The logits from which the package chooses each token after those written."""
    src, read = torch.tensor([case.source]), torch.tensor([[1, *ids]])
    with changed(model, case):
        mask = model.source_mask(src)
        memory = model.encode(src)
        # With the mask, one pass over all shows what each step has seen.
        ends = [len(ids) + 1] if case.causal else range(1, len(ids) + 2)
        passes = [model.decode(read[:, :n], memory, memory_key_mask=mask) for n in ends]
    return passes[0][0] if case.causal else torch.stack([x[0, -1] for x in passes])


@cache
def exact(model: Transformer) -> Transformer:
    """The same model in float64; its positions are not rounded either."""
    other = Transformer(replace(model.config, max_len=1)).double().eval()
    other.load_state_dict({n: x.double() for n, x in model.state_dict().items()})
    for positions in (other.src_positions, other.tgt_positions):
        positions._table = sinusoidal_positions(64, model.config.d_model)
    return other

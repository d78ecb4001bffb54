"""One more token by fewer calls: what a decoder does at each step of writing.

B batch · D d_model · R rows of the memory · S its length · H heads ·
G key/value heads · Dh head_dim
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from tformer.fast.attention import fused_attention
from tformer.fast.linear import FEWEST_POSITIONS

# The modules whose `forward` is known here, and no subclass of them.
KNOWN_LAYERS = {
    "tformer.nn.decoder.DecoderLayer",
    "tformer.nn.residual.Residual",
    "tformer.nn.norm.LayerNorm",
    "tformer.nn.heads.MultiHeadAttention",
    "tformer.nn.feed_forward.FeedForward",
    "tformer.fast.linear.Linear",
    "tformer.fast.dropout.Dropout",
    "torch.nn.modules.linear.Linear",
    "torch.nn.modules.dropout.Dropout",
}


def read_one_token(
    layers: Iterable[Any],
    x: Tensor,
    memory: Tensor | None,
    memory_mask: Tensor | None,
    caches: Iterable[Any],
) -> Tensor:
    """Send the newest token, x (B, 1, D), through decoder layers: (B, 1, D).

    Each layer does what its `forward` does. But torch has a matrix (B, D) to multiply,
    and Python does not call each module, ask for dropout, and check each shape.
    """
    x = x[:, 0]  # (B, D)
    for layer, cache in zip(layers, caches, strict=True):
        parts = layer._modules  # asking the module for each takes longer
        around = parts["self_attn_residual"]
        y = _attend_to_text(parts["self_attn"], _before(around, x), cache.target)
        x = _after(around, x, y)
        if memory is not None:
            around, attention = parts["cross_attn_residual"], parts["cross_attn"]
            given = memory, memory_mask, cache.memory
            y = _look_at_memory(attention, _before(around, x), *given)
            x = _after(around, x, y)
        around = parts["feed_forward_residual"]
        x = _after(around, x, parts["feed_forward"].forward(_before(around, x)))
    return x[:, None]


def skip_calls(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make `Decoder.forward` read a single token with a cache by `read_one_token`."""

    @functools.wraps(forward)
    def quick(
        self: Any,
        x: Tensor,
        memory: Tensor | None = None,
        attn_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: Any = None,
    ) -> Tensor:
        if attn_mask is None and _can_skip(self, x, memory, cache):
            x = read_one_token(self.layers, x, memory, memory_mask, cache.layers)
            return x if self.norm is None else self.norm(x)
        options = {"is_causal": is_causal, "cache": cache}
        return forward(self, x, memory, attn_mask, memory_mask, **options)

    return quick


def _before(around: Any, x: Tensor) -> Tensor:
    """Normalise what goes into a sub-layer, with pre-norm."""
    normed: Tensor = around._modules["norm"](x) if around.norm_first else x
    return normed


def _after(around: Any, x: Tensor, y: Tensor) -> Tensor:
    """Add what a sub-layer gave, and normalise, with post-norm."""
    total: Tensor = x + y if around.norm_first else around._modules["norm"](x + y)
    return total


def _linear(module: nn.Module, name: str, x: Tensor) -> Tensor:
    """Multiply x by the weights of the linear layer of this name, in the module."""
    own: Any = vars(module)["_modules"][name]._parameters
    return F.linear(x, own["weight"], own["bias"])


def _attend_to_text(attention: Any, x: Tensor, cache: Any) -> Tensor:
    """Attend from the newest token, x (B, D), to itself and all before it: (B, D)."""
    B, Dh = len(x), attention.head_dim
    q = _linear(attention, "q_proj", x).view(B, attention.num_heads, 1, Dh)
    k = _linear(attention, "k_proj", x).view(B, attention.num_kv_heads, 1, Dh)
    v = _linear(attention, "v_proj", x).view(B, attention.num_kv_heads, 1, Dh)
    heads = fused_attention(q, *cache.append(k, v))  # (B, H, 1, Dh)
    return _linear(attention, "out_proj", heads.reshape(x.shape))


def _look_at_memory(
    attention: Any, x: Tensor, memory: Tensor, mask: Tensor | None, cache: Any
) -> Tensor:
    """Attend from x (B, D) to the memory (R, S, D); B / R beams share a row: (B, D)."""
    R, H, Dh = len(memory), attention.num_heads, attention.head_dim
    q = _linear(attention, "q_proj", x).view(R, -1, H, Dh).transpose(1, 2)
    heads = attention.attend(q, *cache.read(memory, memory), mask)  # (R, H, B / R, Dh)
    return _linear(attention, "out_proj", heads.transpose(1, 2).reshape(x.shape))


def _can_skip(decoder: Any, x: Tensor, memory: Tensor | None, cache: Any) -> bool:
    """Say whether x is a token for each row, and every module does what is known.

    What is wrong, and a memory that is not in the cache yet, is left to `forward`.
    """
    if torch.compiler.is_compiling() or torch.is_grad_enabled() or cache is None:
        return False
    attention = decoder.layers[0].self_attn
    if x.shape[1:] != (1, attention.d_model) or not 0 < len(x) < FEWEST_POSITIONS:
        return False
    if (memory is None) != (decoder.layers[0].cross_attn is None):
        return False
    if memory is not None:
        kept = cache.layers[0].memory
        if kept.length == 0 or len(memory) == 0 or len(x) % len(memory):
            return False
    watched = _has_any_global_hook()  # type: ignore[no-untyped-call]
    return not watched and _are_plain(decoder.layers)


def _are_plain(layers: Iterable[nn.Module]) -> bool:
    """Say whether nothing is replaced or watched in them, and nothing is dropped."""
    waiting = list(layers)
    for module in waiting:  # it grows meanwhile
        own, kind = vars(module), cast(Any, type(module))
        if own["training"] or own["_forward_hooks"] or own["_forward_pre_hooks"]:
            return False
        if "attend" in own or "forward" in own or not _is_known(kind):
            return False
        waiting.extend(own["_modules"].values())
    return True


@functools.cache
def _is_known(kind: type) -> bool:
    return f"{kind.__module__}.{kind.__qualname__}" in KNOWN_LAYERS

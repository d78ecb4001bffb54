"""Padding left out: the real tokens of a batch side by side, as one long row.

B batch · S length with padding · N real tokens of all sequences · D d_model ·
H heads · G key/value heads · Dh head_dim
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

# Measured: below so many numbers (B · S · D), or with less padding than this share,
# arranging the tokens costs what it saves.
FEWEST_NUMBERS = 2**18
LEAST_PADDING = 1 / 16
# The layers and the attention whose `forward` is known here, and no subclass of them.
KNOWN = ("tformer.nn.encoder.EncoderLayer", "tformer.nn.heads.MultiHeadAttention")


class Packing:
    """Which tokens of a batch are real, in the order of their sequences' lengths.

    Sequences of one length follow each other, so that they are a batch without padding.

    Args:
        mask: bool (B, S), True = a real token.
    """

    def __init__(self, mask: Tensor) -> None:
        counts = mask.sum(dim=1)
        order = counts.argsort(stable=True)  # (B,), the shortest sequence first
        within = mask[order].nonzero()  # (N, 2): which of the sorted, which position
        self.shape = mask.shape
        self.indices = order[within[:, 0]] * mask.shape[1] + within[:, 1]  # (N,)
        # (length, how many sequences have it), as they follow each other
        lengths = itertools.groupby(counts[order].tolist())
        self.groups = [(length, len(list(same))) for length, same in lengths]

    def pack(self, x: Tensor) -> Tensor:
        """Take the real tokens of x (B, S, D): (1, N, D)."""
        return x.flatten(0, 1).index_select(0, self.indices)[None]

    def unpack(self, packed: Tensor) -> Tensor:
        """Put (1, N, D) back to (B, S, D); zeros where there was padding."""
        B, S = self.shape
        flat = packed.new_zeros(B * S, packed.shape[2])
        return flat.index_copy(0, self.indices, packed[0]).view(B, S, -1)

    def attend(self, attention: Any, x: Tensor) -> Tensor:
        """Let the tokens of each sequence attend to each other: (1, N, D) to the same.

        Args:
            attention: a `MultiHeadAttention`, whose projections see all tokens at once.
            x: (1, N, D).
        """
        H, G, Dh = attention.num_heads, attention.num_kv_heads, attention.head_dim
        dropout_p = attention.dropout if attention.training else 0.0
        sizes = [length * n for length, n in self.groups]
        q, k, v = (
            projection(x)[0].split(sizes)  # each (n · length, H · Dh)
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        mixed = []
        for (length, n), *qkv in zip(self.groups, q, k, v, strict=True):
            if length == 0:
                continue
            heads = (
                y.view(n, length, number, Dh).transpose(1, 2)  # (n, H, length, Dh)
                for y, number in zip(qkv, (H, G, G), strict=True)
            )
            y = attention.attend(*heads, None, dropout_p=dropout_p)
            mixed.append(y.transpose(1, 2).reshape(n * length, H * Dh))
        return attention.out_proj(torch.cat(mixed)[None])  # (1, N, D)


def find_packing(
    layers: nn.ModuleList, x: Tensor, attn_mask: Tensor | None
) -> Packing | None:
    """Say which tokens to pack, if that is possible here and saves time.

    Args:
        layers: those that x will go through: None if one is not `KNOWN`. A hook on one
            of their modules, such as of `record_weights`, would see another shape than
            it expects: then None, too.
        x: (B, S, D).
        attn_mask: only a mask (B, 1, 1, S) says that tokens are padding.
    """
    if torch.compiler.is_compiling() or x.device.type != "cpu":
        return None  # a graph knows no lengths; elsewhere the host would wait for them
    if x.numel() < FEWEST_NUMBERS or attn_mask is None or attn_mask.dtype != torch.bool:
        return None
    if x.ndim != 3 or attn_mask.shape != (x.shape[0], 1, 1, x.shape[1]):
        return None
    if any((_name(each), _name(each.self_attn)) != KNOWN for each in layers):
        return None
    if any(map(_is_watched, layers.modules())):
        return None
    mask = attn_mask[:, 0, 0]  # (B, S)
    try:
        real = int(mask.sum())
    except RuntimeError:  # torch.func.vmap has no single answer
        return None
    return Packing(mask) if 0 < real < (1 - LEAST_PADDING) * mask.numel() else None


def encode_packed(layers: Any, x: Tensor, packing: Packing) -> Tensor:
    """Send x (B, S, D) through encoder layers, each as its `forward` does: (B, S, D).

    What stands at padding is zeros; without packing it is numbers that mean nothing.
    """
    x = packing.pack(x)  # (1, N, D)
    for layer in layers:
        x = layer.self_attn_residual(
            x, lambda y, attention=layer.self_attn: packing.attend(attention, y)
        )
        x = layer.feed_forward_residual(x, layer.feed_forward)
    return packing.unpack(x)  # (B, S, D)


def skip_padding(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make `Encoder.forward` compute the real tokens alone, where that saves time."""

    @functools.wraps(forward)
    def packed(self: Any, x: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        packing = find_packing(self.layers, x, attn_mask)
        if packing is None:
            return forward(self, x, attn_mask)
        x = encode_packed(self.layers, x, packing)
        return x if self.norm is None else self.norm(x)

    return packed


def _name(module: Any) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"


def _is_watched(module: nn.Module) -> bool:
    watchers = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks"
    replaced = "attend", "forward"
    return any(vars(module).get(name) for name in (*watchers, *replaced))

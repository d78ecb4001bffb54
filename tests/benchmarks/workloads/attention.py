"""Attention alone: 8 heads of 64, one sequence of T tokens."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.peers.plain import attention as plain_attention
from benchmarks.workload import (
    Contender,
    Workload,
    dtype_of,
    ours,
    plain,
    without_gradients,
)
from tformer import causal_mask, length_mask, scaled_dot_product_attention

H, DH = 8, 64
LENGTHS = (128, 512, 2048, 4096, 16384)
LONGEST_PLAIN = {"forward": 4096, "backward": 2048}  # its scores must fit in memory
REAL = 5 / 8  # of a padded sequence: the mean of lengths from 25 to 100 %


def make(kind: str, T: int, dtype: str, backward: bool) -> Sequence[Contender]:
    """Build the contenders for one kind: "causal", "padding" or "grouped"."""
    torch.manual_seed(0)
    G = 2 if kind == "grouped" else H
    shape, kv = (1, H, T, DH), (1, G, T, DH)
    q, k, v = (torch.randn(s, dtype=dtype_of(dtype)) for s in (shape, kv, kv))
    grad = torch.randn(shape, dtype=dtype_of(dtype))
    mask = length_mask(torch.tensor([int(REAL * T)]), T) if kind == "padding" else None
    causal = kind != "padding"

    def kernel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=G < H
        )

    def tutorial(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = (x.repeat_interleave(H // G, dim=1) for x in (k, v))
        seen = causal_mask(T, device=q.device) if causal else mask
        return plain_attention(q, k, v, seen)

    mine = partial(scaled_dot_product_attention, attn_mask=mask, is_causal=causal)
    way = partial(_backward, q, k, v, grad) if backward else partial(_forward, q, k, v)
    found = [ours(way(mine)), Contender("F.scaled_dot_product_attention", way(kernel))]
    longest = LONGEST_PLAIN["backward" if backward else "forward"]
    if longest >= T:
        found.append(plain("as in tutorials", way(tutorial)))
    return found


def _forward(q: Tensor, k: Tensor, v: Tensor, attend: Any) -> Callable[[], Tensor]:
    return without_gradients(lambda: attend(q, k, v))


def _backward(
    q: Tensor, k: Tensor, v: Tensor, grad: Tensor, attend: Any
) -> Callable[[], tuple[Tensor, ...]]:
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]

    def run() -> tuple[Tensor, ...]:
        out = attend(*leaves)
        return (out.detach(), *torch.autograd.grad(out, leaves, grad))

    return run


PLAN = {
    ("causal", False, "float32"): LENGTHS,
    ("causal", True, "float32"): LENGTHS,
    ("padding", False, "float32"): LENGTHS,
    ("padding", True, "float32"): LENGTHS[:3],
    ("grouped", False, "float32"): LENGTHS[:3],
    ("causal", False, "bfloat16"): LENGTHS,
    ("causal", True, "bfloat16"): LENGTHS[:3],
    ("padding", False, "bfloat16"): LENGTHS[:3],
}


def workloads() -> list[Workload]:
    rows = []
    for (kind, backward, dtype), lengths in PLAN.items():
        name = f"{kind}, forward{' and backward' if backward else ''}"
        for T in lengths:
            build = partial(make, kind, T, dtype, backward)
            short = dtype == "float32" and (T == 512 or (kind, T) == ("causal", 2048))
            row = Workload("attention", name, f"T = {T:,}", build, dtype, T, short)
            rows.append(row)
    return rows

"""The NumPy twin: causal attention of 8 heads of 64, beside torch on the processor."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.peers.plain import numpy_attention
from benchmarks.workload import OURS, Contender, Workload, plain, without_gradients
from tformer import reference


def make(T: int) -> Sequence[Contender]:
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 1, 8, T, 64), dtype=np.float32)
    tensors = [torch.from_numpy(x) for x in (q, k, v)]

    def kernel() -> torch.Tensor:
        return F.scaled_dot_product_attention(*tensors, is_causal=True)

    blocks = partial(reference.attention_in_blocks, q, k, v, is_causal=True)
    return [
        Contender("tformer.reference", blocks, OURS),
        Contender("F.scaled_dot_product_attention", without_gradients(kernel)),
        plain("NumPy, as in tutorials", partial(numpy_attention, q, k, v)),
    ]


def workloads() -> list[Workload]:
    return [
        Workload(
            "numpy",
            "causal attention in NumPy",
            f"T = {T:,}",
            partial(make, T),
            length=T,
            short=T == 512,
            device="cpu",
        )
        for T in (128, 512, 2048)
    ]

"""Small inputs of attention, of sizes that are all different primes."""

from functools import partial

import pytest
import torch

from tformer import scaled_dot_product_attention
from tformer.nn.recording import _attend_and_keep

B, H, G, T, S, DH, DV = 2, 6, 3, 5, 7, 11, 13
DTYPES = [torch.float32, torch.bfloat16, torch.float16]

# The code path by the formula is the one of `record_weights`: it holds all weights.
by_formula = partial(_attend_and_keep, ())
CODE_PATHS = pytest.mark.parametrize(
    "attend", [scaled_dot_product_attention, by_formula], ids=["kernel", "formula"]
)


def draw(heads=H, length=T, width=DH, dtype=torch.float64, batch=B):
    return torch.randn(batch, heads, length, width, dtype=torch.float64).to(dtype)

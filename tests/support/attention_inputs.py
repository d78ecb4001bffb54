"""Small inputs of attention, of sizes that are all different primes."""

import pytest
import torch

from tformer import scaled_dot_product_attention

B, H, G, T, S, DH, DV = 2, 6, 3, 5, 7, 11, 13
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
ROADS = pytest.mark.parametrize("return_weights", [False, True])


def draw(heads=H, length=T, width=DH, dtype=torch.float64, batch=B):
    return torch.randn(batch, heads, length, width, dtype=torch.float64).to(dtype)


def attend(*tensors, return_weights, **options):
    """The output, by the road that was asked for."""
    attended = scaled_dot_product_attention(
        *tensors, return_weights=return_weights, **options
    )
    return attended[0] if return_weights else attended

"""Small inputs of attention, of sizes that are all different primes."""

import pytest
import torch
import torch.nn.functional as F

from tformer import attention_weights, scaled_dot_product_attention

B, H, G, T, S, DH, DV = 2, 6, 3, 5, 7, 11, 13
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def by_formula(query, key, value, attn_mask=None, *, dropout_p=0.0, **options):
    """Attention by its weights, which are held whole: no kernel computes it."""
    weights = attention_weights(query, key, attn_mask, **options)
    value = value.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    dropped = F.dropout(weights, dropout_p) @ value.to(weights.dtype)
    return dropped.to(query.dtype)


CODE_PATHS = pytest.mark.parametrize(
    "attend", [scaled_dot_product_attention, by_formula], ids=["kernel", "formula"]
)


def draw(heads=H, length=T, width=DH, dtype=torch.float64, batch=B):
    return torch.randn(batch, heads, length, width, dtype=torch.float64).to(dtype)

import re

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import causal_mask, length_mask
from tformer.interop import (
    attn_mask_from_torch,
    attn_mask_to_torch,
    from_torch,
    key_mask_from_torch,
    key_mask_to_torch,
)

B, T, S, H, D = 2, 5, 7, 3, 21
DTYPES = [torch.bool, torch.float32, torch.bfloat16, torch.float16, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(T, S), (B, H, T, S)])
def test_attention_masks_there_and_back(shape, dtype):
    mask = torch.rand(shape) < 0.6
    theirs = attn_mask_to_torch(mask, dtype=dtype)
    assert theirs.dtype == dtype
    assert theirs.shape == (shape if len(shape) == 2 else (B * H, T, S))
    ours = attn_mask_from_torch(theirs, num_heads=H)
    assert ours.dtype == torch.bool
    assert torch.equal(ours, mask)
    again = attn_mask_to_torch(ours, dtype=dtype)
    assert torch.equal(again, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_key_masks_there_and_back(dtype):
    mask = length_mask(torch.tensor([3, S]))[:, 0, 0]  # (B, S)
    theirs = key_mask_to_torch(mask, dtype=dtype)
    assert theirs.dtype == dtype
    assert torch.equal(key_mask_from_torch(theirs), mask)


def test_true_means_may_not():
    assert attn_mask_to_torch(causal_mask(2)).tolist() == [
        [False, True],
        [False, False],
    ]
    floats = attn_mask_to_torch(causal_mask(2), dtype=torch.float32)
    assert floats.tolist() == [[0, -torch.inf], [0, 0]]
    future = nn.Transformer.generate_square_subsequent_mask(T)
    assert torch.equal(attn_mask_from_torch(future), causal_mask(T))
    padding = torch.tensor([[False, True]])
    assert key_mask_from_torch(padding).tolist() == [[True, False]]
    assert key_mask_to_torch(padding).tolist() == [[True, False]]


def test_missing_sizes_are_filled_in():
    of_heads = torch.rand(H, T, S) < 0.6
    full = of_heads.expand(B, H, T, S)
    theirs = attn_mask_to_torch(of_heads, batch=B)
    assert torch.equal(theirs, ~full.flatten(0, 1))
    of_rows = torch.rand(B, 1, T, S) < 0.6
    theirs = attn_mask_to_torch(of_rows, num_heads=H)
    assert torch.equal(theirs, ~of_rows.expand(B, H, T, S).flatten(0, 1))
    for_all = of_rows[:1]
    assert torch.equal(
        attn_mask_to_torch(for_all, batch=B, num_heads=H), ~for_all[0, 0]
    )
    of_no_rows = attn_mask_to_torch(torch.ones(1, 3, 5, 7).bool(), batch=0)
    assert of_no_rows.shape == (0, 5, 7)


@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
def test_modules_agree(kind):
    """The order of batch and heads in torch's three axes is not to be mixed up."""
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    ours = from_torch(theirs)
    query, key = torch.randn(B, T, D), torch.randn(B, S, D)
    mask = torch.rand(B, H, T, S) < 0.6
    mask[..., 0] = True
    tokens = length_mask(torch.tensor([3, S]))  # (B, 1, 1, S)
    wanted = theirs(
        query,
        key,
        key,
        attn_mask=attn_mask_to_torch(mask, dtype=kind),
        key_padding_mask=key_mask_to_torch(tokens[:, 0, 0], dtype=kind),
        need_weights=False,
    )[0]
    assert_close(ours(query, key, attn_mask=mask & tokens), wanted)


def seen(*shape, dtype=torch.bool):
    return torch.ones(shape, dtype=dtype)


TO_KEYS, FROM_KEYS = key_mask_to_torch, key_mask_from_torch
TO, FROM = attn_mask_to_torch, attn_mask_from_torch
FLOATS, INTS = {"dtype": torch.float32}, {"dtype": torch.uint8}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: FROM(seen(S, **INTS)), TypeError, "boolean or floating, not torch.ui"),
        (lambda: FROM_KEYS(seen(B, S, **INTS)), TypeError, "boolean or floating, not"),
        (
            lambda: TO(seen(T, S, **FLOATS)),
            TypeError,
            "be bool (True = may attend)",
        ),
        (
            lambda: TO_KEYS(seen(B, S, **INTS)),
            TypeError,
            "be bool (True = may att",
        ),
        (lambda: TO(seen(T, S), **INTS), TypeError, "torch.bool or floating, not tor"),
        (lambda: TO_KEYS(seen(B, S), **INTS), TypeError, "torch.bool or floating, not"),
        (lambda: FROM_KEYS(seen(S)), ValueError, "mask must be (B, S), not (7,)"),
        (lambda: TO_KEYS(seen(B, 1, S)), ValueError, "must be (B, S), not (2, 1, 7)"),
        (lambda: FROM(seen(S)), ValueError, "(T, S) or (B * H, T, S), not (7,)"),
        (lambda: FROM(seen(B, H, T, S)), ValueError, "(B * H, T, S), not (2, 3, 5, 7)"),
        (lambda: FROM(seen(6, T, S)), ValueError, "num_heads must be given for a mask"),
        (
            lambda: FROM(seen(6, T, S), num_heads=4),
            ValueError,
            "the first size of mask (6) must be divisible by num_heads (4)",
        ),
        (lambda: TO(seen(S)), ValueError, "(H, T, S) or (B, H, T, S), not (7,)"),
        (lambda: TO(seen(1, B, H, T, S)), ValueError, "not (1, 2, 3, 5, 7)"),
        (lambda: TO(seen(B, 1, T, S)), ValueError, "num_heads must be given for a mas"),
        (lambda: TO(seen(H, T, S)), ValueError, "batch must be given for a mask (1, 3"),
        (lambda: TO(seen(H, T, S), batch=B, num_heads=4), ValueError, "of mask (3)"),
        (
            lambda: TO(seen(B, 1, T, S), batch=3),
            ValueError,
            "batch (3) must be that of",
        ),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.parametrize("bad", [0.5, -1e9, torch.inf, torch.nan])
def test_other_numbers_are_a_bias(bad):
    for function in (attn_mask_from_torch, key_mask_from_torch):
        with pytest.raises(ValueError, match="what is added to the scores is no mask"):
            function(torch.tensor([[0.0, bad]]))

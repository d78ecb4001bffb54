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


class TestBadInput:
    def test_other_numbers_are_a_bias(self, raises):
        message = (
            "mask holds other numbers than 0 and -inf: what is added to the scores "
            "is no mask but a `bias`"
        )
        for bad in (0.5, -1e9, torch.inf, torch.nan):
            with raises(ValueError, message):
                attn_mask_from_torch(torch.full((T, S), bad))
            with raises(ValueError, message):
                key_mask_from_torch(torch.tensor([[0.0, bad]]))

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int64])
    def test_dtypes(self, raises, dtype):
        bad = torch.ones(B, S, dtype=dtype)
        for function in (attn_mask_from_torch, key_mask_from_torch):
            with raises(TypeError, f"mask must be boolean or floating, not {dtype}"):
                function(bad)
        rule = "mask must be torch.bool (True = may attend), not"
        for function in (attn_mask_to_torch, key_mask_to_torch):
            with raises(TypeError, f"{rule} {dtype}"):
                function(bad)
            with raises(TypeError, f"{rule} torch.float32"):
                function(bad.float())
            with raises(
                TypeError, f"dtype must be torch.bool or floating, not {dtype}"
            ):
                function(bad.bool(), dtype=dtype)

    @pytest.mark.parametrize("shape", [(S,), (B, 1, S)])
    def test_key_masks(self, raises, shape):
        for function in (key_mask_from_torch, key_mask_to_torch):
            with raises(ValueError, f"mask must be (B, S), not {shape}"):
                function(torch.ones(shape, dtype=torch.bool))

    def test_shapes_from_torch(self, raises):
        for shape in ((S,), (B, H, T, S)):
            message = f"mask must be (T, S) or (B * H, T, S), not {shape}"
            with raises(ValueError, message):
                attn_mask_from_torch(torch.zeros(shape), num_heads=H)
        mask = torch.zeros(B * H, T, S)
        message = "num_heads must be given for a mask (B * H, T, S) = (6, 5, 7)"
        with raises(ValueError, message):
            attn_mask_from_torch(mask)
        message = "the first size of mask (6) must be divisible by num_heads (4)"
        with raises(ValueError, message):
            attn_mask_from_torch(mask, num_heads=4)

    def test_shapes_to_torch(self, raises):
        for shape in ((S,), (1, B, H, T, S)):
            message = f"mask must be (T, S), (H, T, S) or (B, H, T, S), not {shape}"
            with raises(ValueError, message):
                attn_mask_to_torch(torch.ones(shape, dtype=torch.bool))
        of_rows = torch.ones(B, 1, T, S, dtype=torch.bool)
        message = "num_heads must be given for a mask (2, 1, 5, 7)"
        with raises(ValueError, message):
            attn_mask_to_torch(of_rows)
        of_heads = torch.ones(H, T, S, dtype=torch.bool)
        with raises(ValueError, "batch must be given for a mask (1, 3, 5, 7)"):
            attn_mask_to_torch(of_heads)
        with raises(ValueError, "num_heads (4) must be that of mask (3)"):
            attn_mask_to_torch(of_heads, batch=B, num_heads=4)
        with raises(ValueError, "batch (3) must be that of mask (2)"):
            attn_mask_to_torch(of_rows, batch=3, num_heads=H)

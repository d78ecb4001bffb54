"""Masks beyond their specs (`tformer.check`): defaults, devices, bad input."""

import pytest
import torch
from torch import nn

from tformer import causal_mask, length_mask
from tformer.nn import combine_masks
from tformer.nn.masks import check_key_mask


def test_causal_mask_is_the_opposite_of_torchs():
    theirs = nn.Transformer.generate_square_subsequent_mask(7) == float("-inf")
    assert torch.equal(causal_mask(7), ~theirs)


def test_masks_are_made_on_the_device():
    assert causal_mask(2, device="meta").is_meta
    assert causal_mask(2, window=1, device="meta").is_meta


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_length_mask_ends_with_the_longest(dtype):
    mask = length_mask(torch.tensor([2, 3, 0], dtype=dtype))
    assert mask[:, 0, 0].int().tolist() == [[1, 1, 0], [1, 1, 1], [0, 0, 0]]


def test_key_mask_gets_the_shape_of_scores():
    key_mask = torch.rand(2, 5) < 0.5
    assert torch.equal(check_key_mask(key_mask, 2, 5), key_mask.view(2, 1, 1, 5))


def test_sizes(raises):
    with raises(ValueError, "query_len (0) must be at least 1"):
        causal_mask(0)
    with raises(ValueError, "key_len (0) must be at least 1"):
        causal_mask(3, 0)
    with raises(TypeError, "query_len must be an int, not float"):
        causal_mask(3.0)
    with raises(ValueError, "window (0) must be at least 1"):
        causal_mask(3, window=0)
    with raises(ValueError, "max_len (0) must be at least 1"):
        length_mask(torch.tensor([0, 0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64])
def test_lengths_are_integers(raises, dtype):
    with raises(TypeError, f"lengths must hold integers, not {dtype}"):
        length_mask(torch.ones(2, dtype=dtype))


@pytest.mark.parametrize("shape", [(), (0,), (2, 1)])
def test_lengths_have_one_axis(raises, shape):
    with raises(ValueError, f"lengths must be (B,) with B >= 1, not {shape}"):
        length_mask(torch.ones(shape, dtype=torch.int64))


@pytest.mark.parametrize(("low", "high"), [(-1, 3), (2, 5)])
def test_lengths_are_in_range(raises, low, high):
    message = f"lengths ({low} to {high}) must be in [0, max_len = 4]"
    with raises(ValueError, message):
        length_mask(torch.tensor([high, low]), 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_masks_are_boolean(raises, dtype):
    bad = torch.ones(2, 5, dtype=dtype)
    rule = "must be torch.bool (True = may attend)"
    for masks in ((causal_mask(5), bad), (bad,)):
        with raises(TypeError, f"a mask {rule}, not {dtype}"):
            combine_masks(*masks)
    rule = "must be torch.bool (True = a real token)"
    with raises(TypeError, f"key_mask {rule}, not {dtype}"):
        check_key_mask(bad, 2, 5)


def test_masks_broadcast(raises):
    message = (
        "masks do not broadcast: The size of tensor a (3) must match the size of "
        "tensor b (2) at non-singleton dimension 1"
    )
    with raises(ValueError, message):
        combine_masks(causal_mask(3), causal_mask(2))


@pytest.mark.parametrize("shape", [(5,), (1, 5), (2, 1), (2, 4), (2, 1, 1, 5)])
def test_key_mask_is_not_broadcast(raises, shape):
    with raises(ValueError, f"key_mask must be (B, S) = (2, 5), not {shape}"):
        check_key_mask(torch.ones(shape, dtype=torch.bool), 2, 5)

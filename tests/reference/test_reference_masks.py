import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tformer
from tformer.nn import masks as original
from tformer.reference import (
    causal_mask,
    combine_masks,
    length_mask,
    masks,
    sliding_window_mask,
)

length = st.integers(1, 9)


def same(twin, expected):
    assert isinstance(twin, np.ndarray)
    assert twin.dtype == bool
    np.testing.assert_array_equal(twin, expected.numpy(), strict=True)


def test_by_hand():
    assert causal_mask(2, 3).astype(int).tolist() == [[1, 1, 0], [1, 1, 1]]
    assert causal_mask(3, 2).astype(int).tolist() == [[0, 0], [1, 0], [1, 1]]
    window = sliding_window_mask(3, 2, 4).astype(int).tolist()
    assert window == [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    lengths = length_mask(np.array([2, 0, 3])).astype(int).tolist()
    assert lengths == [[[[1, 1, 0]]], [[[0, 0, 0]]], [[[1, 1, 1]]]]


@settings(max_examples=50, deadline=None)
@given(queries=length, keys=st.none() | length)
def test_causal_mask(queries, keys):
    same(causal_mask(queries, keys), tformer.causal_mask(queries, keys))


@settings(max_examples=50, deadline=None)
@given(queries=length, window=st.integers(1, 12), keys=st.none() | length)
def test_sliding_window_mask(queries, window, keys):
    same(
        sliding_window_mask(queries, window, keys),
        tformer.sliding_window_mask(queries, window, keys),
    )


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("max_len", [None, 7, 11])
def test_length_mask(dtype, max_len):
    lengths = np.array([3, 0, 7], dtype=dtype)
    same(
        length_mask(lengths, max_len),
        tformer.length_mask(torch.tensor(lengths), max_len),
    )


def test_combine_masks(new_parity):
    parity = new_parity()
    pairs = [parity.mask(2, 1, 1, 7), parity.mask(5, 7), parity.mask(3, 1, 1)]
    arrays, tensors = zip(*pairs, strict=True)
    same(
        combine_masks(arrays[0], None, *arrays[1:]),
        tformer.combine_masks(tensors[0], None, *tensors[1:]),
    )
    same(combine_masks(None, arrays[0]), tensors[0])
    assert combine_masks(None, None) is None
    assert combine_masks() is None


def test_key_mask(new_parity):
    array, tensor = new_parity().mask(2, 7)
    same(masks.check_key_mask(array, 2, 7), original.check_key_mask(tensor, 2, 7))
    assert masks.check_key_mask(None, 2, 7) is None


def test_bad_window(same_error):
    same_error(
        lambda: sliding_window_mask(3, 0),
        lambda: tformer.sliding_window_mask(3, 0),
        ValueError,
        "window (0) must be at least 1",
    )


@pytest.mark.parametrize(
    ("lengths", "max_len", "kind", "message"),
    [
        ([1.0, 2.0], None, TypeError, "lengths must hold integers, not float64"),
        ([True, False], None, TypeError, "lengths must hold integers, not bool"),
        ([2, 9], 7, ValueError, "lengths (2 to 9) must be in [0, max_len = 7]"),
        ([-1, 3], None, ValueError, "lengths (-1 to 3) must be in [0, max_len = 3]"),
    ],
)
def test_bad_lengths(same_error, lengths, max_len, kind, message):
    same_error(
        lambda: length_mask(np.array(lengths), max_len),
        lambda: tformer.length_mask(torch.tensor(np.array(lengths)), max_len),
        kind,
        message,
    )


@pytest.mark.parametrize("lengths", [np.array([[1, 2]]), np.zeros(0, int), [1, 2]])
def test_what_are_no_lengths(lengths):
    with pytest.raises((ValueError, AttributeError)):
        length_mask(lengths)


@pytest.mark.parametrize(
    "mask", [np.ones((5, 7)), np.ones((5, 7), int), np.ones((3, 5), bool)]
)
def test_bad_masks(both_refuse, mask):
    other = np.ones((5, 7), dtype=bool)
    both_refuse(
        lambda: combine_masks(other, mask),
        lambda: tformer.combine_masks(torch.tensor(other), torch.tensor(mask)),
        "" if mask.dtype == bool else "a mask must be bool (True = may attend), not",
    )


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((2, 7)), "key_mask must be bool (True = "),
        (np.ones((7, 2), dtype=bool), "(B, S) = (2, 7), not (7, 2)"),
        (np.ones((1, 7), dtype=bool), "(B, S) = (2, 7), not (1, 7)"),
        (np.ones((2, 1, 1, 7), dtype=bool), "(B, S) = (2, 7), not (2, 1, 1, 7)"),
    ],
)
def test_bad_key_mask(both_refuse, mask, message):
    both_refuse(
        lambda: masks.check_key_mask(mask, 2, 7),
        lambda: original.check_key_mask(torch.tensor(mask), 2, 7),
        message,
    )


def test_what_is_no_array():
    tensor = torch.ones(2, 7, dtype=torch.bool)
    with pytest.raises(TypeError, match="a mask must be bool"):
        combine_masks(tensor)
    with pytest.raises(TypeError, match="key_mask must be bool"):
        masks.check_key_mask(tensor, 2, 7)

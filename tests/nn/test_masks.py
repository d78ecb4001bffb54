import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tformer import causal_mask, length_mask
from tformer.nn import combine_masks
from tformer.nn.masks import check_key_mask

SIZES = st.integers(1, 11)


@given(query_len=SIZES, key_len=SIZES)
def test_causal_mask_is_its_definition(query_len, key_len):
    mask = causal_mask(query_len, key_len)
    assert mask.shape == (query_len, key_len)
    assert mask.dtype == torch.bool
    for i in range(query_len):
        for j in range(key_len):
            assert mask[i, j].item() is (j <= i + key_len - query_len)


def test_causal_mask_of_itself():
    assert causal_mask(3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_causal_mask_lines_up_the_last_query():
    assert causal_mask(2, 3).int().tolist() == [[1, 1, 0], [1, 1, 1]]
    assert causal_mask(3, 2).int().tolist() == [[0, 0], [1, 0], [1, 1]]


def test_causal_mask_is_the_opposite_of_torchs():
    theirs = nn.Transformer.generate_square_subsequent_mask(7) == float("-inf")
    assert torch.equal(causal_mask(7), ~theirs)


@given(query_len=SIZES, window=st.integers(1, 13), key_len=SIZES)
def test_sliding_window_mask_is_its_definition(query_len, window, key_len):
    mask = causal_mask(query_len, key_len, window=window)
    assert mask.shape == (query_len, key_len)
    for i in range(query_len):
        newest = i + key_len - query_len
        for j in range(key_len):
            assert mask[i, j].item() is (newest - window < j <= newest)


def test_sliding_window_of_one_and_of_everything():
    assert torch.equal(causal_mask(5, window=1), torch.eye(5, dtype=torch.bool))
    assert torch.equal(causal_mask(5, window=5), causal_mask(5))
    assert not torch.equal(causal_mask(5, window=4), causal_mask(5))


def test_masks_are_made_on_the_device():
    assert causal_mask(2, device="meta").is_meta
    assert causal_mask(2, window=1, device="meta").is_meta
    assert length_mask(torch.tensor([1]), 2).device.type == "cpu"


@given(lengths=st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_length_mask_is_its_definition(lengths):
    mask = length_mask(torch.tensor(lengths), 7)
    assert mask.shape == (len(lengths), 1, 1, 7)
    assert mask.dtype == torch.bool
    for row, length in zip(mask[:, 0, 0].tolist(), lengths, strict=True):
        assert row == [True] * length + [False] * (7 - length)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_length_mask_ends_with_the_longest(dtype):
    mask = length_mask(torch.tensor([2, 3, 0], dtype=dtype))
    assert mask.shape == (3, 1, 1, 3)
    assert mask[:, 0, 0].int().tolist() == [[1, 1, 0], [1, 1, 1], [0, 0, 0]]


def test_combined_masks_allow_what_all_allow():
    causal, real = causal_mask(3), torch.tensor([True, False, True])
    both = combine_masks(causal, None, real[None, None, None])
    assert both.shape == (1, 1, 3, 3)
    assert both[0, 0].int().tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 1]]
    assert combine_masks() is None
    assert combine_masks(None, None) is None
    assert combine_masks(None, causal) is causal


def test_key_mask_gets_the_shape_of_scores():
    key_mask = torch.rand(2, 5) < 0.5
    assert torch.equal(check_key_mask(key_mask, 2, 5), key_mask.view(2, 1, 1, 5))


class TestBadInput:
    def test_lengths_of_masks(self, raises):
        with raises(ValueError, "query_len (0) must be at least 1"):
            causal_mask(0)
        with raises(ValueError, "key_len (-1) must be at least 1"):
            causal_mask(3, -1)
        with raises(TypeError, "query_len must be an int, not float"):
            causal_mask(3.0)
        with raises(ValueError, "window (0) must be at least 1"):
            causal_mask(3, window=0)
        with raises(ValueError, "key_len (0) must be at least 1"):
            causal_mask(3, 0, window=2)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64])
    def test_lengths_are_integers(self, raises, dtype):
        with raises(TypeError, f"lengths must hold integers, not {dtype}"):
            length_mask(torch.ones(2, dtype=dtype))

    @pytest.mark.parametrize("shape", [(), (0,), (2, 1)])
    def test_lengths_have_one_axis(self, raises, shape):
        message = f"lengths must be (B,) with B >= 1, not {shape}"
        with raises(ValueError, message):
            length_mask(torch.ones(shape, dtype=torch.int64))

    @pytest.mark.parametrize(("low", "high"), [(-1, 3), (2, 5)])
    def test_lengths_are_in_range(self, raises, low, high):
        message = f"lengths ({low} to {high}) must be in [0, max_len = 4]"
        with raises(ValueError, message):
            length_mask(torch.tensor([high, low]), 4)

    def test_nothing_is_long(self, raises):
        with raises(ValueError, "max_len (0) must be at least 1"):
            length_mask(torch.tensor([0, 0]))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
    def test_masks_are_boolean(self, raises, dtype):
        bad = torch.ones(2, 5, dtype=dtype)
        rule = "must be torch.bool (True = may attend)"
        with raises(TypeError, f"a mask {rule}, not {dtype}"):
            combine_masks(causal_mask(5), bad)
        with raises(TypeError, f"a mask {rule}, not {dtype}"):
            combine_masks(bad)
        rule = "must be torch.bool (True = a real token)"
        with raises(TypeError, f"key_mask {rule}, not {dtype}"):
            check_key_mask(bad, 2, 5)

    def test_masks_broadcast(self, raises):
        message = (
            "masks do not broadcast: The size of tensor a (3) must match the size of "
            "tensor b (2) at non-singleton dimension 1"
        )
        with raises(ValueError, message):
            combine_masks(causal_mask(3), causal_mask(2))

    @pytest.mark.parametrize("shape", [(5,), (1, 5), (2, 1), (2, 4), (2, 1, 1, 5)])
    def test_key_mask_is_not_broadcast(self, raises, shape):
        message = f"key_mask must be (B, S) = (2, 5), not {shape}"
        with raises(ValueError, message):
            check_key_mask(torch.ones(shape, dtype=torch.bool), 2, 5)

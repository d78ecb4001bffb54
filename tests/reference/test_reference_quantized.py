"""Rounding in NumPy: the same codes and scales as in torch."""

import numpy as np
import pytest

from tformer import reference
from tformer.nn.quantized import dequantize, quantize


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("group_size", [None, 3, 6])
def test_quantize(parity, bits, group_size):
    array, tensor = parity.numbers(2, 5, 12)
    array[0, 0], tensor[0, 0] = 0, 0  # a group of zeros
    codes, scales = reference.quantize(array, bits, group_size)
    wanted = quantize(tensor, bits, group_size)
    assert codes.dtype == np.int8
    assert np.array_equal(codes, wanted[0].numpy())
    parity.same(scales, wanted[1])
    parity.same(reference.dequantize(codes, scales), dequantize(*wanted))

"""Queries that grow with their position. In attention: tests/nn/test_heads.py."""

import math

import pytest
import torch
from torch.testing import assert_close

from tformer.nn import QueryTemperature
from tformer.reference import from_torch


@pytest.mark.usefixtures("float64")
def test_each_further_stretch_is_a_step():
    growing, x = QueryTemperature(0.1, 4), torch.randn(2, 3, 9, 5)
    stretches = (0, 0, 0, 0, 1, 1, 1, 1, 2)
    factors = [1 + 0.1 * math.log(1 + each) for each in stretches]
    assert_close(growing(x), x * torch.tensor(factors)[:, None])
    assert torch.equal(growing(x)[:, :, :4], x[:, :, :4])
    for places in ([8, 0, 8, 3, 4, 1, 5, 2, 2], [list(range(9)), [4] * 9]):
        rows = torch.tensor(places)
        factor = torch.tensor(factors)[rows].view(-1, 1, 9, 1)
        assert_close(growing(x, positions=rows), x * factor)
    assert_close(growing(x[:, :, 3:], start=3), growing(x)[:, :, 3:])
    assert_close(torch.from_numpy(from_torch(growing)(x.numpy())), growing(x))
    assert growing(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("options", "message"),
    [((0, 8), r"beta \(0\) must be above 0"), ((0.1, 0), r"length \(0\) must be at")],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        QueryTemperature(*options)

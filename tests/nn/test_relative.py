"""Biases of the distance beyond their specs: dtypes, far distances, gradients."""

import math

import pytest
import torch
from torch.testing import assert_close

from tformer.nn import (
    ALiBi,
    RelativeBias,
    alibi_slopes,
    bucket_starts,
    relative_buckets,
)

H = 6


def test_alibi_goes_with_the_model():
    """In bfloat16 the slopes stay in float64, as they are."""
    exact = -alibi_slopes(12)[:, None] * torch.arange(999, -1, -1)
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.float16):
        kept = torch.float64 if dtype == torch.float64 else torch.float32
        bias = ALiBi(12).to(dtype)(1, 1000)
        assert bias.dtype == kept
        rounding = 0 if kept == torch.float64 else 1e-6
        assert_close(bias[0, :, 0].double(), exact, atol=0, rtol=rounding)
        assert len(bias[0, 0, 0].unique()) == 1000  # distances in bfloat16: fewer
    assert not ALiBi(5).state_dict()


def test_slopes_that_were_set_stay():
    """Whatever the module is converted to afterwards."""
    alibi, slopes = ALiBi(2), torch.tensor([0.3, 7.0])
    alibi.slopes = slopes
    wanted = -slopes[:, None].double() * torch.tensor([2, 1, 0])
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        assert_close(alibi.to(dtype)(1, 3)[0, :, 0].double(), wanted)


def test_where_a_logarithm_is_rounded():
    """64 = 4 · 32^(4/5) starts a bucket; the logarithm of a float says 3.999…"""
    assert math.floor(math.log(64 / 4) / math.log(128 / 4) * 5) == 3
    assert bucket_starts(9, 128).tolist() == [0, 1, 2, 3, 4, 8, 16, 32, 64]


def test_long_distances():
    far = 10**12
    starts = bucket_starts(32, far)
    assert (starts.diff() > 0).all()
    assert relative_buckets(torch.tensor([far, 2**60]), starts).tolist() == [31, 31]


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(("T", "S"), [(9, 9), (1, 9), (4, 9), (5, 2)])
def test_the_bias_is_a_table_of_buckets_and_learns(both, T, S):
    module = RelativeBias(H, num_buckets=6, max_distance=5, bidirectional=both)
    table = torch.nn.init.normal_(module.table).detach().requires_grad_()
    starts = bucket_starts(3 if both else 6, 5)
    apart = torch.tensor([[S - T + t - s for s in range(S)] for t in range(T)])
    wanted = table[relative_buckets(apart, starts, bidirectional=both)].permute(2, 0, 1)
    bias, weight = module(T, S), torch.randn(1, H, T, S)
    assert torch.equal(bias, wanted[None])
    (bias * weight).sum().backward()
    (wanted * weight).sum().backward()
    assert_close(module.table.grad, table.grad)


def test_the_bias_begins_at_0_and_has_the_sizes_of_t5():
    with torch.device("meta"):
        module = RelativeBias(8)
    module = module.to_empty(device="cpu")
    module.load_state_dict(RelativeBias(8).state_dict())
    assert module.table.shape == (32, 8)
    assert len(module.starts.unique()) == 32
    assert module.starts[-1] == 113  # 16 · 8^(15/16)
    assert not module(2, 300).any()

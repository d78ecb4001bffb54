"""Biases of the distance: their definitions and gradients; T5's buckets."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tformer.nn import (
    ALiBi,
    RelativeBias,
    alibi_slopes,
    bucket_starts,
    relative_buckets,
)

H = 6


def by_recursion(heads):
    """The slopes as the authors' code has them: of a smaller number, then more."""
    if math.log2(heads).is_integer():
        ratio = 2 ** (-8 / heads)
        return [ratio ** (h + 1) for h in range(heads)]
    below = 2 ** math.floor(math.log2(heads))
    return by_recursion(below) + by_recursion(2 * below)[0::2][: heads - below]


def one_bucket(distance, num_buckets, max_distance, bidirectional):
    """Of one distance, in whole numbers: E (M / E)^(j / (N − E)) ≤ distance."""
    first = 0
    if bidirectional:
        num_buckets //= 2
        first = num_buckets if distance < 0 else 0
        distance = abs(distance)
    distance = max(0, distance)
    exact = num_buckets // 2
    if distance < exact:
        return first + distance
    rest = num_buckets - exact
    j = 0
    while (
        j + 1 < rest
        and exact ** (rest - j - 1) * max_distance ** (j + 1) <= distance**rest
    ):
        j += 1
    return first + exact + j


def loop(queries, keys, bias_of):
    """(T, S, H) from what a distance adds to each head."""
    apart = [[keys - queries + i - j for j in range(keys)] for i in range(queries)]
    return torch.stack([torch.stack([bias_of(a) for a in row]) for row in apart])


def test_slopes_are_those_of_the_authors():
    for heads in range(1, 131):
        slopes = alibi_slopes(heads)
        assert slopes.dtype == torch.float64
        assert slopes.tolist() == pytest.approx(by_recursion(heads), rel=1e-12)
        assert len(set(slopes.tolist())) == heads
    six = [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]
    assert alibi_slopes(6).tolist() == six


class TestALiBi:
    @pytest.mark.parametrize(("queries", "keys"), [(5, 5), (1, 7), (3, 7), (4, 1)])
    @pytest.mark.usefixtures("float64")
    def test_is_the_loop(self, queries, keys):
        for heads in (1, 3, 8):
            slopes = torch.tensor(by_recursion(heads))
            wanted = loop(queries, keys, lambda apart, m=slopes: -m * abs(apart))
            assert_close(ALiBi(heads)(queries, keys), wanted.permute(2, 0, 1)[None])

    def test_dtype_goes_with_the_model(self):
        """In bfloat16 the slopes stay in float64, as they are."""
        exact = -alibi_slopes(12)[:, None] * torch.arange(999, -1, -1)
        for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.float16):
            kept = torch.float64 if dtype == torch.float64 else torch.float32
            bias = ALiBi(12).to(dtype)(1, 1000)
            assert bias.dtype == kept
            rounding = 0 if kept == torch.float64 else 1e-6
            assert_close(bias[0, :, 0].double(), exact, atol=0, rtol=rounding)
            assert len(bias[0, 0, 0].unique()) == 1000  # distances in bfloat16: fewer

    def test_slopes_that_were_set_stay(self):
        """Whatever the module is converted to afterwards."""
        alibi, slopes = ALiBi(2), torch.tensor([0.3, 7.0])
        alibi.slopes = slopes
        wanted = -slopes[:, None].double() * torch.tensor([2, 1, 0])
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            assert_close(alibi.to(dtype)(1, 3)[0, :, 0].double(), wanted)
        assert ALiBi(12).to("meta")(2, 3).is_meta

    def test_has_nothing_to_save(self):
        module = ALiBi(5)
        assert not module.state_dict()
        assert not list(module.parameters())
        assert "num_heads=5" in repr(module)
        assert torch.equal(copy.deepcopy(module)(2, 3), module(2, 3))


class TestBuckets:
    @pytest.mark.parametrize("bidirectional", [False, True])
    @given(each_way=st.integers(2, 40), more=st.integers(1, 300))
    def test_are_the_plain_loop(self, bidirectional, each_way, more):
        num_buckets = 2 * each_way if bidirectional else each_way
        max_distance = each_way // 2 + more
        distance = torch.arange(-700, 700)
        starts = bucket_starts(each_way, max_distance)
        buckets = relative_buckets(distance, starts, bidirectional=bidirectional)
        assert buckets.dtype == torch.int64
        wanted = [
            one_bucket(d, num_buckets, max_distance, bidirectional)
            for d in distance.tolist()
        ]
        assert buckets.tolist() == wanted
        assert buckets.max() == num_buckets - 1

    def test_where_a_logarithm_is_rounded(self):
        """64 = 4 · 32^(4/5) starts a bucket; the logarithm of a float says 3.999…"""
        rounded = math.floor(math.log(64 / 4) / math.log(128 / 4) * 5)
        assert rounded == 3
        assert bucket_starts(9, 128).tolist() == [0, 1, 2, 3, 4, 8, 16, 32, 64]

    def test_long_distances(self):
        far = 10**12
        starts = bucket_starts(32, far)
        assert (starts.diff() > 0).all()
        assert relative_buckets(torch.tensor([far, 2**60]), starts).tolist() == [31, 31]


class TestRelativeBias:
    @pytest.mark.parametrize("both", [False, True])
    @pytest.mark.parametrize(("queries", "keys"), [(9, 9), (1, 9), (4, 9), (5, 2)])
    def test_is_the_loop_and_so_are_gradients(self, both, queries, keys):
        sizes = {"num_buckets": 6, "max_distance": 5}
        module = RelativeBias(H, bidirectional=both, **sizes)
        table = torch.nn.init.normal_(module.table).detach().requires_grad_()
        wanted = loop(queries, keys, lambda apart: table[one_bucket(apart, 6, 5, both)])
        bias, weight = module(queries, keys), torch.randn(1, H, queries, keys)
        assert torch.equal(bias, wanted.permute(2, 0, 1)[None])
        (bias * weight).sum().backward()
        (wanted.permute(2, 0, 1)[None] * weight).sum().backward()
        assert_close(module.table.grad, table.grad)

    def test_begins_at_0_and_has_the_sizes_of_t5(self):
        module = RelativeBias(8)
        assert module.table.shape == (32, 8)
        assert list(module.state_dict()) == ["table"]
        assert not module(7, 7).any()
        wanted = "num_heads=8, num_buckets=32, max_distance=128, bidirectional=False"
        assert wanted in repr(module)

    def test_on_meta(self):
        with torch.device("meta"):
            module = RelativeBias(3)
        assert module(2, 3).is_meta
        filled = module.to_empty(device="cpu")
        filled.load_state_dict(RelativeBias(3).state_dict())
        assert not filled(2, 300).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: alibi_slopes(0), "num_heads (0) must be at least 1"),
        (lambda: bucket_starts(1, 9), "num_buckets (1) must be at least 2"),
        (
            lambda: bucket_starts(32, 16),
            "max_distance (16) must be above 16, the number of buckets that hold "
            "one distance each",
        ),
        (lambda: RelativeBias(0), "num_heads (0) must be at least 1"),
        (lambda: RelativeBias(2, num_buckets=0), "num_buckets (0) must be at least 1"),
        (
            lambda: RelativeBias(2, num_buckets=7, bidirectional=True),
            "num_buckets (7) must be even: half are for later keys",
        ),
        (
            lambda: RelativeBias(2, num_buckets=2, bidirectional=True),
            "num_buckets (1) must be at least 2",
        ),
    ],
)
def test_errors(raises, make, message):
    with raises(ValueError, message):
        make()

"""Biases of the distance: their definitions, gradients, and every split of a text."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer.nn import (
    ALiBi,
    MultiHeadAttention,
    RelativeBias,
    alibi_slopes,
    bucket_starts,
    cache_of,
    relative_buckets,
)

B, T, D, H = 2, 6, 20, 6


def drawn(module):
    """Give each parameter, a table too, random numbers."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) / 4)
    return module


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


class TestSlopes:
    @pytest.mark.parametrize("heads", range(1, 131))
    def test_are_those_of_the_authors(self, heads):
        slopes = alibi_slopes(heads)
        assert slopes.shape == (heads,)
        assert slopes.dtype == torch.float64
        assert slopes.tolist() == pytest.approx(by_recursion(heads), rel=1e-12)
        assert len(set(slopes.tolist())) == heads
        assert ((slopes > 0) & (slopes < 1)).all()

    def test_known_numbers(self):
        assert alibi_slopes(8).tolist() == [2**-h for h in range(1, 9)]
        assert alibi_slopes(1).tolist() == [2**-8]
        six = [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]
        assert alibi_slopes(6).tolist() == six

    def test_errors(self, raises):
        with raises(ValueError, "num_heads (0) must be at least 1"):
            alibi_slopes(0)
        with raises(TypeError, "num_heads must be an int, not float"):
            ALiBi(8.0)


class TestALiBi:
    @pytest.mark.parametrize("heads", [1, 3, 8, 12])
    @pytest.mark.parametrize(("queries", "keys"), [(5, 5), (1, 7), (3, 7), (4, 1)])
    @pytest.mark.usefixtures("float64")
    def test_is_the_loop(self, heads, queries, keys):
        bias = ALiBi(heads)(queries, keys)
        assert bias.shape == (1, heads, queries, keys)
        for h, slope in enumerate(by_recursion(heads)):
            for i in range(queries):
                for j in range(keys):
                    apart = abs(keys - queries + i - j)
                    assert bias[0, h, i, j].item() == pytest.approx(-slope * apart)

    def test_dtype_goes_with_the_model(self):
        """In bfloat16 the slopes stay in float64, as they are."""
        exact = -alibi_slopes(12)[:, None] * torch.arange(999, -1, -1)
        for dtype, kept in (
            (torch.float32, torch.float32),
            (torch.bfloat16, torch.float32),
            (torch.float64, torch.float64),
            (torch.float16, torch.float32),
        ):
            bias = ALiBi(12).to(dtype)(1, 1000)
            assert bias.dtype == kept
            rounding = 0 if kept == torch.float64 else 1e-6
            assert_close(bias[0, :, 0].double(), exact, atol=0, rtol=rounding)
            assert len(bias[0, 0, 0].unique()) == 1000  # distances in bfloat16: fewer

    def test_slopes_that_were_set_stay(self):
        """Whatever the module is converted to afterwards."""
        alibi, slopes = ALiBi(2), torch.tensor([0.3, 7.0])
        alibi.slopes = slopes
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            bias = alibi.to(dtype)(1, 3)[0, :, 0]
            assert_close(
                bias.double(), -slopes[:, None].double() * torch.tensor([2, 1, 0])
            )
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
        wanted = [
            one_bucket(d, num_buckets, max_distance, bidirectional)
            for d in distance.tolist()
        ]
        assert buckets.tolist() == wanted
        assert buckets.max() == num_buckets - 1

    def test_starts_of_t5(self):
        starts = bucket_starts(32, 128)
        assert starts[:17].tolist() == list(range(17))
        assert starts[17:24].tolist() == [19, 21, 24, 27, 31, 35, 40]
        assert starts[24:].tolist() == [46, 52, 59, 67, 77, 87, 99, 113]
        both = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
        assert bucket_starts(16, 128).tolist() == both

    def test_where_a_logarithm_is_rounded(self):
        """64 = 4 · 32^(4/5) starts a bucket; the logarithm of a float says 3.999…"""
        rounded = math.floor(math.log(64 / 4) / math.log(128 / 4) * 5)
        assert rounded == 3
        assert bucket_starts(9, 128).tolist() == [0, 1, 2, 3, 4, 8, 16, 32, 64]

    def test_all_shapes(self):
        distance = torch.arange(24).view(2, 3, 4)
        buckets = relative_buckets(distance, bucket_starts(8, 20))
        assert buckets.shape == (2, 3, 4)
        assert buckets.dtype == torch.int64

    def test_long_distances(self):
        far = 10**12
        starts = bucket_starts(32, far)
        assert (starts.diff() > 0).all()
        assert relative_buckets(torch.tensor([far, 2**60]), starts).tolist() == [31, 31]

    def test_errors(self, raises):
        for make, message in (
            (lambda: bucket_starts(1, 9), "num_buckets (1) must be at least 2"),
            (
                lambda: bucket_starts(32, 16),
                "max_distance (16) must be above 16, the number of buckets that hold "
                "one distance each",
            ),
            (lambda: RelativeBias(0), "num_heads (0) must be at least 1"),
            (
                lambda: RelativeBias(2, num_buckets=0),
                "num_buckets (0) must be at least 1",
            ),
            (
                lambda: RelativeBias(2, num_buckets=7, bidirectional=True),
                "num_buckets (7) must be even: half are for later keys",
            ),
            (
                lambda: RelativeBias(2, num_buckets=2, bidirectional=True),
                "num_buckets (1) must be at least 2",
            ),
        ):
            with raises(ValueError, message):
                make()


class TestRelativeBias:
    @pytest.mark.parametrize("bidirectional", [False, True])
    @pytest.mark.parametrize(("queries", "keys"), [(9, 9), (1, 9), (4, 9), (5, 2)])
    def test_is_the_loop(self, bidirectional, queries, keys):
        sizes = {"num_buckets": 6, "max_distance": 5}
        module = drawn(RelativeBias(H, bidirectional=bidirectional, **sizes))
        bias = module(queries, keys)
        assert bias.shape == (1, H, queries, keys)
        for i in range(queries):
            for j in range(keys):
                row = one_bucket(keys - queries + i - j, 6, 5, bidirectional)
                assert torch.equal(bias[0, :, i, j], module.table[row])

    def test_begins_at_0_and_has_the_sizes_of_t5(self):
        module = RelativeBias(8)
        assert module.table.shape == (32, 8)
        assert list(module.state_dict()) == ["table"]
        assert not module(7, 7).any()
        wanted = "num_heads=8, num_buckets=32, max_distance=128, bidirectional=False"
        assert wanted in repr(module)

    def test_each_size_changes_the_buckets(self):
        sizes = {"num_buckets": 8, "max_distance": 30, "bidirectional": True}
        first = drawn(RelativeBias(2, **sizes))
        for change in ({"max_distance": 9}, {"bidirectional": False}):
            other = RelativeBias(2, **sizes | change)
            other.load_state_dict(first.state_dict())
            assert not torch.equal(other(20, 20), first(20, 20)), change

    @pytest.mark.usefixtures("float64")
    def test_gradients(self):
        """Each row of the table learns from all pairs of its distances."""
        sizes = {"num_buckets": 6, "max_distance": 6, "bidirectional": True}
        module = drawn(RelativeBias(2, **sizes))
        weight = torch.randn(2, 5, 7)
        (module(5, 7) * weight).sum().backward()
        wanted = torch.zeros(6, 2)
        for i in range(5):
            for j in range(7):
                wanted[one_bucket(2 + i - j, 6, 6, True)] += weight[:, i, j]
        assert_close(module.table.grad, wanted)
        with torch.no_grad():
            table = module.table.clone()

        def made(numbers):
            return torch.func.functional_call(module, {"table": numbers}, (5, 7))

        assert torch.autograd.gradcheck(made, table.requires_grad_())

    def test_on_meta(self):
        with torch.device("meta"):
            module = RelativeBias(3)
        assert module(2, 3).is_meta
        filled = module.to_empty(device="cpu")
        filled.load_state_dict(RelativeBias(3).state_dict())
        assert not filled(2, 300).any()


KINDS = {
    "ALiBi": lambda: ALiBi(H),
    "T5": lambda: RelativeBias(H, num_buckets=4, max_distance=4),
    "T5, both ways": lambda: RelativeBias(
        H, num_buckets=8, max_distance=4, bidirectional=True
    ),
}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def attention(make, **parts):
    sizes = {"num_kv_heads": 2, "head_dim": 4}
    parts = {
        k: torch.nn.Parameter(torch.zeros(H)) if k == "sinks" else v
        for k, v in parts.items()
    }
    module = MultiHeadAttention(D, H, bias=False, relative=make(), **sizes, **parts)
    return drawn(module).eval()


@every_kind
@pytest.mark.parametrize("parts", [{}, {"window": 2}, {"sinks": True, "softcap": 3.0}])
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_every_split(make, parts):
    module, x = attention(make, **parts), torch.randn(B, T, D)
    whole = module(x, is_causal=True)
    for pieces in splits(T):
        cache = cache_of(module, T)
        parts_of = in_pieces(
            lambda begin, end, cache=cache: module(
                x[:, begin:end], is_causal=True, cache=cache
            ),
            pieces,
        )
        assert_close(parts_of, whole, atol=1e-13, rtol=0)


@every_kind
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_a_bias_that_ignores_the_cache_is_found(make):
    """As if the new tokens were the first: right in whole texts only."""
    module, x = attention(make), torch.randn(B, T, D)
    whole, right = module(x, is_causal=True), module.relative

    class Forgets(torch.nn.Module):
        def forward(self, query_len, key_len):
            return right(key_len, key_len)[:, :, :query_len]

    module.relative = Forgets()
    assert_close(module(x, is_causal=True), whole, atol=1e-13, rtol=0)
    cache = cache_of(module, T)
    first = module(x[:, :4], is_causal=True, cache=cache)
    assert_close(first, whole[:, :4], atol=1e-13, rtol=0)
    later = module(x[:, 4:], is_causal=True, cache=cache)
    assert (later - whole[:, 4:]).abs().amax(dim=(0, 2)).min() > 1e-3


@every_kind
@pytest.mark.usefixtures("float64")
def test_moving_a_text_changes_nothing(make):
    """Three more keys that no query may see: the rows of the others are the same."""
    module = attention(make)
    bias, longer = module.relative(T, T), module.relative(T + 3, T + 3)
    assert torch.equal(longer[:, :, 3:, 3:], bias)


@every_kind
@pytest.mark.usefixtures("float64")
def test_compiled_whole(make):
    module, x = attention(make), torch.randn(B, T, D)
    torch.compiler.reset()
    fast = torch.compile(module, fullgraph=True, backend="eager")
    assert_close(fast(x, is_causal=True), module(x, is_causal=True))
    gradients = []
    for each in (module, fast):
        loss = each(x, is_causal=True).pow(3).sum()
        gradients.append(torch.autograd.grad(loss, list(module.parameters())))
    assert_close(gradients[1], gradients[0])
    assert all(each.any() for each in gradients[1])


@every_kind
@torch.no_grad()
def test_bfloat16(make):
    module, x = attention(make), torch.randn(B, T, D)
    wanted = module(x, is_causal=True)
    half = module.bfloat16()(x.bfloat16(), is_causal=True)
    assert half.dtype == torch.bfloat16
    assert_close(half.float(), wanted, atol=0.05, rtol=0.05)

import numpy as np
import pytest
import torch

import tformer
from tformer import reference
from tformer.nn.relative import distances

T, H, D, B = 7, 6, 12, 2
SIZES = {"num_buckets": 6, "max_distance": 5}


@pytest.mark.parametrize("heads", [*range(1, 34), 100])
def test_slopes(new_parity, heads):
    twin = reference.alibi_slopes(heads)
    new_parity().same(twin, tformer.alibi_slopes(heads), 1e-15)


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (9, 128), (2, 3)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_buckets(num_buckets, max_distance, bidirectional):
    starts = reference.bucket_starts(num_buckets, max_distance)
    theirs = tformer.bucket_starts(num_buckets, max_distance)
    np.testing.assert_array_equal(starts, theirs, strict=True)
    distance = np.arange(-300, 300).reshape(20, 30)
    twin = reference.relative_buckets(distance, starts, bidirectional=bidirectional)
    ours = tformer.relative_buckets(
        torch.tensor(distance), theirs, bidirectional=bidirectional
    )
    np.testing.assert_array_equal(twin, ours, strict=True)


@pytest.mark.parametrize(("queries", "keys"), [(T, T), (1, T), (3, T), (T, 3)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_biases(new_parity, queries, keys, bidirectional):
    parity = new_parity()
    np.testing.assert_array_equal(
        reference.relative.distances(queries, keys), distances(queries, keys, None)
    )
    alibi = parity.module(tformer.ALiBi(H))
    twin = reference.from_torch(alibi)
    assert isinstance(twin, reference.ALiBi)
    parity.same(twin(queries, keys), alibi(queries, keys))
    t5 = tformer.RelativeBias(H, bidirectional=bidirectional, **SIZES)
    t5 = parity.module(t5)
    twin = reference.from_torch(t5)
    assert isinstance(twin, reference.RelativeBias)
    parity.same(twin(queries, keys), t5(queries, keys), 0)


@pytest.mark.parametrize(
    "make", [tformer.ALiBi, lambda heads: tformer.RelativeBias(heads, **SIZES)]
)
@pytest.mark.parametrize("sinks", [False, True])
def test_in_an_attention(parity, make, sinks):
    module = tformer.SelfAttention(D, H, relative=make(H), sinks=sinks)
    module = parity.module(module)
    array, tensor = parity.numbers(B, T, D)
    parity.same(reference.from_torch(module)(array), module(tensor))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p, _: p.alibi_slopes(0), "num_heads (0) must be at least 1"),
        (lambda p, _: p.bucket_starts(1, 9), "num_buckets (1) must be at least 2"),
        (lambda p, _: p.bucket_starts(32, 16), "max_distance (16) must be above 16"),
        (lambda _, bias: bias(7, True), "num_buckets (7) must be even: half are for"),
        (lambda _, bias: bias(2, True), "num_buckets (1) must be at least 2"),
    ],
)
def test_errors(same_error, make, message):
    same_error(
        lambda: make(
            reference,
            lambda n, both: reference.RelativeBias(
                np.zeros((n, 3)), bidirectional=both
            ),
        ),
        lambda: make(
            tformer,
            lambda n, both: tformer.RelativeBias(3, num_buckets=n, bidirectional=both),
        ),
        ValueError,
        message,
    )

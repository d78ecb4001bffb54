"""Relative biases in NumPy: what is added to a score depends on the distance.

H heads · T queries · S keys; the last query lines up with the last key
"""

from dataclasses import dataclass

import numpy as np

from tformer.checks import check_buckets, check_positive


def distances(query_len: int, key_len: int) -> np.ndarray:
    """Say how many places each key stands before each query, negative if after it."""
    return np.arange(key_len - query_len, key_len)[:, None] - np.arange(key_len)


def alibi_slopes(num_heads: int) -> np.ndarray:
    """Compute the slope of each head: 2^(−8h/H) for h = 1 to H, a power of two.

    Press et al. 2021, section 3 (arXiv:2108.12409). For another H: with n the power of
    two below, the slopes of n heads; then every other one of those of 2n heads.
    """
    check_positive(num_heads=num_heads)
    n = 1
    while 2 * n <= num_heads:
        n *= 2
    of_n, of_2n = (2.0 ** (-8 * np.arange(1, m + 1) / m) for m in (n, 2 * n))
    return np.concatenate((of_n, of_2n[0::2][: num_heads - n]))


@dataclass(eq=False)
class ALiBi:
    """Lower each score of H heads in proportion to the distance: −m · distance."""

    num_heads: int

    def __call__(self, query_len: int, key_len: int) -> np.ndarray:
        """Make from T and S what is added to the scores: (1, H, T, S)."""
        apart = np.abs(distances(query_len, key_len))  # (T, S)
        return (-alibi_slopes(self.num_heads)[:, None, None] * apart)[None]


def bucket_starts(num_buckets: int, max_distance: int) -> np.ndarray:
    """Find the least distance in each of N buckets of T5, int64 (N,).

    Bucket E + j of N, E = N // 2, starts at E · (max_distance / E)^(j / (N − E)),
    rounded up; those before hold one distance each.
    """
    check_buckets(num_buckets, max_distance)
    exact = num_buckets // 2
    rest = num_buckets - exact
    starts, start = list(range(exact)), exact
    for j in range(rest):
        while start**rest < exact ** (rest - j) * max_distance**j:  # whole numbers
            start += 1
        starts.append(start)
    return np.array(starts, dtype=np.int64)


def relative_buckets(
    distance: np.ndarray, starts: np.ndarray, *, bidirectional: bool = False
) -> np.ndarray:
    """Give each distance its bucket: the last that starts at it or before.

    `starts` (N,) is of `bucket_starts`. With `bidirectional`, a key after the query
    (distance below 0) has N buckets of its own, after the others; else it counts as 0.
    """
    places = np.abs(distance) if bidirectional else np.maximum(distance, 0)
    bucket = np.searchsorted(starts, places, side="right") - 1
    return bucket + len(starts) * (distance < 0) if bidirectional else bucket


@dataclass(eq=False)
class RelativeBias:
    """Add a learned number to each score: one for each bucket of distances and head."""

    table: np.ndarray  # (num_buckets, H)
    max_distance: int = 128  # from about there on all share a bucket
    bidirectional: bool = False  # later keys have buckets of their own

    def __post_init__(self) -> None:
        num_buckets = len(self.table)
        if self.bidirectional and num_buckets % 2:
            raise ValueError(
                f"num_buckets ({num_buckets}) must be even: half are for later keys"
            )
        each_way = num_buckets // 2 if self.bidirectional else num_buckets
        self.starts = bucket_starts(each_way, self.max_distance)

    def __call__(self, query_len: int, key_len: int) -> np.ndarray:
        """Make from T and S what is added to the scores: (1, H, T, S)."""
        apart = distances(query_len, key_len)  # (T, S)
        buckets = relative_buckets(apart, self.starts, bidirectional=self.bidirectional)
        return self.table[buckets].transpose(2, 0, 1)[None]  # (1, H, T, S)

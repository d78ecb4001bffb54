"""Relative biases: what is added to a score depends on the distance of its tokens.

H heads · T queries · S keys; the last query lines up with the last key
"""

from bisect import bisect_left

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_buckets, check_positive


def distances(query_len: int, key_len: int, device: torch.device | None) -> Tensor:
    """Say how many places each key stands before each query: int64 (T, S).

    The last query lines up with the last key, so the first one stands at S - T.
    """
    query = torch.arange(key_len - query_len, key_len, device=device)
    return query[:, None] - torch.arange(key_len, device=device)  # (T, S)


def alibi_slopes(num_heads: int) -> Tensor:
    """Compute the slope of each head: 2^(−8h/H) for h = 1 to H, a power of two.

    Press et al. 2021, section 3 (arXiv:2108.12409). For another H their code has, with
    n the power of two below, the slopes of n heads; then of those of 2n heads the
    first, the third, the fifth …, until there are H: float64 (H,) on the CPU.
    """
    check_positive(num_heads=num_heads)
    n = 1 << (num_heads.bit_length() - 1)  # the largest power of two up to H
    of_n, of_2n = (
        2 ** (-8 * torch.arange(1, m + 1, dtype=torch.float64, device="cpu") / m)
        for m in (n, 2 * n)
    )
    return torch.cat((of_n, of_2n[0::2][: num_heads - n]))


class ALiBi(nn.Module):
    """Lower each score in proportion to the distance, by m · distance.

    Press et al. 2021 (arXiv:2108.12409): attention with linear biases. Each of H heads,
    any number, has a slope m of its own. A key after the query counts by its distance
    too; a causal mask hides it.

    In bfloat16 distances above 256 would be rounded, and slopes in a buffer too:
    `slopes` stays float64 and may be set; biases are float32, or float64 in a model of
    float64.
    """

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.slopes = alibi_slopes(num_heads)
        # Goes with the model, and so knows its dtype and where it is.
        self.register_buffer("_like", torch.empty(0), persistent=False)
        self._like: Tensor

    def forward(self, query_len: int, key_len: int) -> Tensor:
        """Make from T and S what is added to the scores: (1, H, T, S)."""
        device = self._like.device
        slopes = self.slopes.to(
            device, torch.promote_types(self._like.dtype, torch.float32)
        )
        apart = distances(query_len, key_len, device).abs()  # (T, S)
        return (-slopes[:, None, None] * apart)[None]  # (1, H, T, S)


def bucket_starts(num_buckets: int, max_distance: int) -> Tensor:
    """Find the least distance in each bucket of T5.

    Half of the buckets, E of N, hold one distance each: 0, 1, 2, … The others follow
    the logarithm: bucket E + j starts at E · (M / E)^(j / (N − E)), rounded up.
    The last holds all that is further.

    Raffel et al. 2019, section 2.1 (arXiv:1910.10683), and their code. Powers of whole
    numbers are compared, as a rounded logarithm can put a distance one bucket too low.

    Args:
        num_buckets: N, at least 2.
        max_distance: M, above N / 2; where the last bucket would end.

    Returns:
        int64 (N,) on the CPU; the first is 0, and none is below the one before.
    """
    check_buckets(num_buckets, max_distance)
    exact = num_buckets // 2
    rest = num_buckets - exact
    starts = list(range(exact))
    for j in range(rest):
        power = exact ** (rest - j) * max_distance**j  # the real start to the rest
        starts.append(bisect_left(range(max_distance), power, key=lambda n: n**rest))
    return torch.tensor(starts, device="cpu")


def relative_buckets(
    distance: Tensor, starts: Tensor, *, bidirectional: bool = False
) -> Tensor:
    """Give each distance its bucket: the last that starts at it or before.

    Args:
        distance: int64, how many places the key stands before the query.
        starts: (N,), of `bucket_starts`.
        bidirectional: a key after the query (distance below 0) has N buckets of its
            own, after the others. Without it, it counts as distance 0.
    """
    places = distance.abs() if bidirectional else distance.clamp(min=0)
    bucket = torch.bucketize(places, starts, right=True) - 1
    return bucket + len(starts) * (distance < 0) if bidirectional else bucket


class RelativeBias(nn.Module):
    """Add a learned number to each score: one for each bucket of distances and head.

    Raffel et al. 2019 (arXiv:1910.10683): T5, where all layers share one table. All
    its numbers begin at 0.

    Args:
        num_heads: heads H.
        num_buckets: rows of the table; with `bidirectional` half for each direction.
        max_distance: from about there on, all distances share the last bucket.
        bidirectional: a key after the query has buckets of its own, as in an encoder.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = False,
    ) -> None:
        super().__init__()
        check_positive(num_heads=num_heads, num_buckets=num_buckets)
        if bidirectional and num_buckets % 2:
            rule = "must be even: half are for later keys"
            raise ValueError(f"num_buckets ({num_buckets}) {rule}")
        self.num_heads, self.max_distance = num_heads, max_distance
        self.bidirectional = bidirectional
        each_way = num_buckets // 2 if bidirectional else num_buckets
        self.starts = bucket_starts(each_way, max_distance)
        self.table = nn.Parameter(torch.zeros(num_buckets, num_heads))

    def forward(self, query_len: int, key_len: int) -> Tensor:
        """Make from T and S what is added to the scores: (1, H, T, S)."""
        device = self.table.device
        self.starts = self.starts.to(device)  # once: a GPU's host waits for a copy
        apart, both = distances(query_len, key_len, device), self.bidirectional
        buckets = relative_buckets(apart, self.starts, bidirectional=both)
        bias = F.embedding(buckets, self.table)  # (T, S, H)
        return bias.permute(2, 0, 1)[None]  # (1, H, T, S)

"""Hyper-connections: several residual streams, which are mixed at each sub-layer.

B batch · T length · D d_model · N streams
"""

import math

import torch
from torch import Tensor, nn

from tformer.checks import check_above_0, check_positive
from tformer.nn.norm import RMSNorm
from tformer.nn.state import no_autocast


def sinkhorn(scores: Tensor, rounds: int = 20, eps: float = 1e-6) -> Tensor:
    """Make matrices doubly stochastic: all rows and all columns sum to 1, nearly.

    exp(scores), then in turn each row and each column is divided by its sum (Sinkhorn
    and Knopp 1967; mHC, arXiv:2512.24880, equation 9). Columns come last, so that they
    are the more exact ones. What is small stays small, and never negative.

    Args:
        scores: (..., N, N).
        rounds: how many times rows and columns are divided.
        eps: added to what is divided by, and to the first matrix.

    Returns:
        (..., N, N), in the dtype of the scores.
    """
    check_positive(rounds=rounds)
    if scores.ndim < 2 or scores.shape[-1] != scores.shape[-2]:
        raise ValueError(f"scores must be (..., N, N), not {tuple(scores.shape)}")
    matrix = torch.softmax(scores, dim=-1) + eps
    for again in range(rounds):
        if again:  # softmax divided the rows of the first round
            matrix = matrix / (matrix.sum(dim=-1, keepdim=True) + eps)
        matrix = matrix / (matrix.sum(dim=-2, keepdim=True) + eps)
    return matrix


class HyperConnection(nn.Module):
    """A sub-layer f between N residual streams: X ← Mᵀ X + w f(norm(Xᵀ r))ᵀ.

    Zhu et al. 2024 (arXiv:2409.19606): r reads one input from the streams, w writes the
    output into them, M (N, N) mixes them; all three are computed of each token's
    streams. With `manifold` M is doubly stochastic, r and w positive: mHC (DeepSeek
    2025, arXiv:2512.24880), as in DeepSeek-V4. Without, all are free, with a tanh; Zhu
    et al. compute them of each stream by itself, and we of all, as mHC does.

    At first r is 1 / N, w is 1 and M is near the identity: if the streams are alike,
    x + f(norm(x)) in each of them.

    Args:
        branch: f, maps (B, T, D) to (B, T, D), such as `MultiHeadAttention`.
        d_model: width D.
        norm: of what goes into f; as it is if None.
        streams: N.
        manifold: keep M doubly stochastic, and r and w positive.
        rounds: of `sinkhorn`.
        eps: of `sinkhorn`, of the norm, and added to r (with `manifold`).
    """

    def __init__(
        self,
        branch: nn.Module,
        d_model: int,
        *,
        norm: nn.Module | None = None,
        streams: int = 4,
        manifold: bool = True,
        rounds: int = 20,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, streams=streams, rounds=rounds)
        check_above_0(eps=eps)
        self.branch, self.norm = branch, norm
        self.d_model, self.streams, self.manifold = d_model, streams, manifold
        self.rounds, self.eps = rounds, eps
        N = streams
        self.input_norm = RMSNorm(N * d_model, eps, learned=False)
        self.proj = nn.Linear(N * d_model, (2 + N) * N, bias=False)  # to r, w and M
        self.scale = nn.Parameter(torch.full((3,), 0.01))  # of r, w and M
        # σ(−log(N − 1)) = 1 / N; 2 σ(0) = 1; of scores 6 apart softmax is near 0 and 1.
        read = -math.log(N - 1) if N > 1 else 6.0
        begin = (read, 0.0, 6.0) if manifold else (1 / N, 1.0, 1.0)
        mix = begin[2] * torch.eye(N).flatten()
        base = [torch.full((N,), begin[0]), torch.full((N,), begin[1]), mix]
        self.base = nn.Parameter(torch.cat(base))  # ((2 + N) · N,)

    def weights(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute r, w (B, T, N) and M (B, T, N, N) of the streams x (B, T, N, D)."""
        N = self.streams
        wide = torch.promote_types(x.dtype, torch.float32)
        with no_autocast(x):
            flat = self.input_norm(x.flatten(-2).to(wide))  # (B, T, N · D)
            made = flat @ self.proj.weight.to(wide).mT  # (B, T, (2 + N) · N)
            made = made if self.manifold else torch.tanh(made)
            sizes = [N, N, N * N]
            every = zip(self.scale.to(wide), sizes, strict=True)
            scale = torch.cat([one.expand(size) for one, size in every])
            made = scale * made + self.base.to(wide)
            r, w, mix = torch.split(made, sizes, dim=-1)
            mix = mix.reshape(*mix.shape[:-1], N, N)  # (B, T, N, N)
            if not self.manifold:
                return r, w, mix
            mix = sinkhorn(mix, self.rounds, self.eps)
            return torch.sigmoid(r) + self.eps, 2 * torch.sigmoid(w), mix

    def forward(self, x: Tensor, **options: object) -> Tensor:
        """Map the streams x (B, T, N, D) to streams; the options are the branch's."""
        if x.ndim != 4 or x.shape[-2:] != (self.streams, self.d_model):
            raise ValueError(
                f"x must be (batch, length, streams = {self.streams}, d_model = "
                f"{self.d_model}), not {tuple(x.shape)}"
            )
        r, w, mix = (y.to(x.dtype) for y in self.weights(x))
        y = (r[..., None] * x).sum(dim=-2)  # (B, T, D)
        y = self.branch(y if self.norm is None else self.norm(y), **options)
        return mix.mT @ x + w[..., None] * y[..., None, :]  # (B, T, N, D)

"""Norms of queries and keys: of all heads together, and after the rotation.

B batch · T length · H heads · Dh head_dim
"""

from torch import Tensor, nn

from tformer.nn.heads import MultiHeadAttention, merge_heads, split_heads


class NormOverHeads(nn.Module):
    """Normalise the heads of a token as one vector: norm(Concat(head₁, …, head_H)).

    The norm of queries and keys of OLMo 2 (arXiv:2501.00656) and MiniMax-M2, which
    stands between the projection and the cut into heads. Qwen3 and Gemma 3 normalise
    each head by itself: there, before the gain, a weak head is as strong as the others.

    Args:
        norm: of the width H · Dh, such as `RMSNorm(H * Dh)`; for keys, of G · Dh.
    """

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (B, H, T, Dh); returns (B, H, T, Dh)."""
        whole = self.norm(merge_heads(x))  # (B, T, H · Dh)
        return split_heads(whole, x.shape[1])  # (B, H, T, Dh)


class LateNormAttention(MultiHeadAttention):
    """Multi-head attention that rotates queries and keys first: norm(R x).

    Hunyuan's, by the code of `transformers` (`hunyuan_v1_dense`). Rotation keeps the
    length, so the order is seen as soon as the two numbers of a pair have learned
    different gains.
    """

    def place(self, x: Tensor, norm: nn.Module | None, **at: object) -> Tensor:
        """Rotate queries or keys (B, H, T, Dh), and normalise them."""
        x = x if self.rotary is None else self.rotary(x, **at)
        return x if norm is None else norm(x).to(x.dtype)

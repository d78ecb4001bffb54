"""An indexer in NumPy: a small attention that chooses which keys the large one sees.

B batch · T queries · S keys · D d_model · H heads of the indexer · Dh their width
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.reference.heads import MultiHeadAttention, split_heads
from tformer.reference.linear import Linear
from tformer.reference.masks import causal_mask
from tformer.reference.norm import LayerNorm


def index_scores(query: np.ndarray, key: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute I_ts = Σₕ w_th ReLU(q_th · k_s / √Dh) / √H: how much t wants to see s.

    Query (B, H, T, Dh), key (B, 1, S, Dh), weights (B, H, T); returns (B, 1, T, S).
    """
    H, Dh = query.shape[1], query.shape[3]
    each = np.maximum(query @ key.swapaxes(-2, -1) / math.sqrt(Dh), 0)  # (B, H, T, S)
    return (weights[..., None] * each).sum(1, keepdims=True) / math.sqrt(H)


def choose_keys(scores: np.ndarray, top_k: int, attn_mask: np.ndarray) -> np.ndarray:
    """Say which keys a query sees: of those that it may see, the k with most I.

    Scores are (B, 1, T, S), and so is what is returned, True = attends. Of equal
    scores the earlier key wins.
    """
    allowed = np.broadcast_to(attn_mask, scores.shape)
    hidden = np.where(allowed, scores, -np.inf)
    best = np.argsort(-hidden, axis=-1, kind="stable")[..., :top_k]
    chosen = np.zeros(scores.shape, bool)
    np.put_along_axis(chosen, best, True, axis=-1)
    return chosen & allowed


@dataclass(eq=False)
class Indexer:
    """Score for each query which keys it wants to see, and choose k of them."""

    q_proj: Linear  # from D to H · Dh
    k_proj: Linear  # from D to Dh
    weight_proj: Linear  # from D to H
    k_norm: LayerNorm  # of each key (Dh,)
    num_heads: int  # H
    top_k: int  # k
    rotary: Callable[[np.ndarray], np.ndarray] | None = None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the scores I (B, 1, T, T) of x (B, T, D)."""
        q = split_heads(self.q_proj(x), self.num_heads)  # (B, H, T, Dh)
        k = self.k_norm(self.k_proj(x))[:, None]  # (B, 1, T, Dh)
        if self.rotary is not None:
            q, k = self.rotary(q), self.rotary(k)
        return index_scores(q, k, self.weight_proj(x).swapaxes(-2, -1))


@dataclass(eq=False)
class IndexedAttention:
    """Attend to the k keys that an indexer chooses for each query."""

    attention: MultiHeadAttention
    indexer: Indexer

    def __call__(
        self,
        x: np.ndarray,
        attn_mask: np.ndarray | None = None,
        *,
        is_causal: bool = False,
    ) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D)."""
        T = x.shape[1]
        allowed = causal_mask(T) if is_causal else np.ones((T, T), bool)
        if attn_mask is not None:
            allowed = allowed & attn_mask
        chosen = choose_keys(self.indexer(x), self.indexer.top_k, allowed)
        return self.attention(x, attn_mask=chosen)

"""An indexer: a small attention that chooses which keys the large one sees.

B batch · T queries · S keys · D d_model · H heads of the indexer · Dh their width
"""

import torch
from torch import Tensor, nn

from tformer.checks import check_positive, check_sequences
from tformer.nn.cache import Cache, KeyValueCache, cache_of
from tformer.nn.heads import MultiHeadAttention, split_heads
from tformer.nn.masks import causal_mask
from tformer.nn.norm import LayerNorm


def index_scores(query: Tensor, key: Tensor, weights: Tensor) -> Tensor:
    """Compute I_ts = Σₕ w_th ReLU(q_th · k_s / √Dh) / √H: how much t wants to see s.

    DeepSeek-V3.2 (arXiv:2512.02556), equation 1; the two roots are those of its code.
    Without a softmax, and with one key for all heads, it is cheap.

    Args:
        query: (B, H, T, Dh).
        key: (B, 1, S, Dh).
        weights: (B, H, T), of any sign.

    Returns:
        (B, 1, T, S), in float32 at least.
    """
    wide = torch.promote_types(query.dtype, torch.float32)
    query, key, weights = (x.to(wide) for x in (query, key, weights))
    H, Dh = query.shape[1], query.shape[3]
    each = torch.relu(query @ key.mT * Dh**-0.5)  # (B, H, T, S)
    return (weights[..., None] * each).sum(1, keepdim=True) * H**-0.5


def choose_keys(scores: Tensor, top_k: int, attn_mask: Tensor) -> Tensor:
    """Say which keys a query sees: of those that it may see, the k with most I.

    Of equal scores the earlier key wins: where no head wants a key, ReLU makes it 0.

    Args:
        scores: (B, 1, T, S).
        top_k: k; all that it may see, if these are fewer.
        attn_mask: bool, broadcastable to (B, 1, T, S), True = may attend.

    Returns:
        bool (B, 1, T, S), True = attends.
    """
    hidden = scores.masked_fill(~attn_mask, -torch.inf)
    order = hidden.argsort(dim=-1, descending=True, stable=True)  # (B, 1, T, S)
    rank = order.argsort(dim=-1)  # of each key, 0 for the best
    return (rank < top_k) & attn_mask


def index_loss(scores: Tensor, weights: Tensor, attn_mask: Tensor) -> Tensor:
    """Compute the mean of KL(p ‖ softmax(I)), p the mean weights of all heads.

    DeepSeek-V3.2, equation 3. A choice has no gradient: this teaches the indexer what
    attention looks at, while attention itself is left as it is.

    Args:
        scores: I, (B, 1, T, S).
        weights: of attention, (B, heads, T, S); no gradient goes into them.
        attn_mask: bool, broadcastable to (B, 1, T, S), True = may attend. Each query
            may see a key at least.
    """
    p = weights.detach().mean(1, keepdim=True)  # (B, 1, T, S): sums to 1
    log_q = scores.masked_fill(~attn_mask, -torch.inf).log_softmax(-1)
    each = torch.xlogy(p, p) - p * log_q.masked_fill(~attn_mask, 0.0)
    return each.sum(-1).mean()


class Indexer(nn.Module):
    """Score for each query which keys it wants to see, and choose k of them.

    DeepSeek-V3.2 (arXiv:2512.02556), section 2.1: the lightning indexer, whose queries
    are made of attention's latent there, and here of x.

    Args:
        d_model: width D.
        num_heads: heads H; 64 in DeepSeek-V3.2.
        head_dim: their width Dh; 128 there.
        top_k: how many keys a query sees; 2,048 there.
        rotary: rotates queries and keys, as in `MultiHeadAttention`.
        eps: in the norm of the keys.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        head_dim: int,
        *,
        top_k: int,
        rotary: nn.Module | None = None,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, num_heads=num_heads, head_dim=head_dim)
        check_positive(top_k=top_k)
        self.d_model, self.num_heads, self.top_k = d_model, num_heads, top_k
        self.q_proj = nn.Linear(d_model, num_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(d_model, head_dim, bias=False)
        self.weight_proj = nn.Linear(d_model, num_heads, bias=False)
        self.k_norm = LayerNorm(head_dim, eps)
        self.rotary = rotary

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        """Return the scores I (B, 1, T, S) of x (B, T, D); S counts all so far."""
        check_sequences(self.d_model, x=x)
        start = 0 if cache is None else cache.length
        q = split_heads(self.q_proj(x), self.num_heads)  # (B, H, T, Dh)
        k = self.k_norm(self.k_proj(x))[:, None]  # (B, 1, T, Dh)
        if self.rotary is not None:
            q, k = self.rotary(q, start=start), self.rotary(k, start=start)
        if cache is not None:
            k, _ = cache.append(k, k[..., :0])  # (B, 1, S, Dh); there are no values
        return index_scores(q, k, self.weight_proj(x).mT)


class IndexedAttention(nn.Module):
    """Attend to the k keys that an indexer chooses for each query, the newest or not.

    DeepSeek-V3.2's sparse attention (DSA). The scores of the others are masked here, so
    it shows what is computed and not the time that is saved.

    Args:
        attention: attends, by `attn_mask`.
        indexer: chooses; of the same width.
    """

    def __init__(self, attention: MultiHeadAttention, indexer: Indexer) -> None:
        super().__init__()
        if attention.d_model != indexer.d_model:
            both = f"{attention.d_model} and {indexer.d_model}"
            raise ValueError(f"attention and indexer must have one width, not {both}")
        if attention.window is not None:  # whose cache forgets what may be chosen
            raise ValueError(f"window ({attention.window}) is not for an indexer")
        self.attention, self.indexer = attention, indexer

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: "IndexedCache | None" = None,
    ) -> Tensor:
        """Map x (B, T, D) to (B, T, D); arguments as of `MultiHeadAttention`."""
        keys, own = (None, None) if cache is None else (cache.keys, cache.own)
        scores = self.indexer(x, keys)  # (B, 1, T, S)
        T, S = scores.shape[2:]
        allowed = torch.ones(1, 1, T, S, dtype=torch.bool, device=x.device)
        if is_causal:
            allowed = causal_mask(T, S, device=x.device)[None, None]
        if attn_mask is not None:
            allowed = allowed & attn_mask
        chosen = choose_keys(scores, self.indexer.top_k, allowed)
        y: Tensor = self.attention(x, attn_mask=chosen, cache=own)
        return y

    def new_cache(self, max_len: int) -> "IndexedCache":
        """Make an empty cache of keys and values, and of the indexer's keys."""
        return IndexedCache(cache_of(self.attention, max_len), KeyValueCache(max_len))


class IndexedCache:
    """Two caches as one: attention's own, and the keys of its indexer."""

    def __init__(self, own: Cache, keys: Cache) -> None:
        self.own, self.keys = own, keys

    @property
    def length(self) -> int:
        """How many tokens so far: the position of the next one."""
        return self.own.length

    @property
    def nbytes(self) -> int:
        """The memory in bytes."""
        return self.own.nbytes + self.keys.nbytes

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], as a beam search needs."""
        self.own.reorder(rows)
        self.keys.reorder(rows)

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens; the next is written after these."""
        self.own.truncate(length)
        self.keys.truncate(length)

    def copy(self, max_len: int) -> "IndexedCache":
        """Make a cache of its own with the same tokens, and room for `max_len`."""
        return IndexedCache(self.own.copy(max_len), self.keys.copy(max_len))

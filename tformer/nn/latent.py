"""Multi-head latent attention: the cache keeps one short vector for each token.

B batch · T new tokens · S tokens so far · D d_model · H heads · R kv_rank ·
Dh head_dim · Dr rotary_dim · Dv value_dim
"""

import torch
from torch import Tensor, nn

from tformer.checks import check_positive, check_probability
from tformer.fast.linear import Linear
from tformer.nn.attention import scaled_dot_product_attention
from tformer.nn.attention_checks import check_sequences
from tformer.nn.heads import merge_heads, split_heads
from tformer.nn.latent_cache import LatentCache
from tformer.nn.rms_norm import RMSNorm
from tformer.nn.rotary import RotaryEmbedding


class LatentAttention(nn.Module):
    """Attend to keys and values that are made of a short vector, the latent.

    DeepSeek-V2, section 2.1 (arXiv:2405.04434); also in DeepSeek-V3 and Kimi K2. For a
    token x the cache keeps c = RMS(W_c x), R numbers, and one turned key r, Dr numbers,
    which all heads share. Head h has the key (W_k,h c, r) and the value W_v,h c.

    The two forms compute the same. *Naive*: make the keys and values of all heads.
    *Absorbed*: qᵀ (W_k c) = (W_kᵀ q)ᵀ c, so queries go to the latents instead, where
    one key (c, r) and one value c serve all heads.

    Args:
        d_model: width D of input and output.
        num_heads: heads H.
        kv_rank: width R of the latent.
        head_dim: width Dh of the part of queries and keys that is not turned.
        rotary: turns the other part; its width is Dr.
        value_dim: width Dv of a value; Dh if not given.
        q_rank: make queries, too, of a latent of this width; of x itself if None.
        eps: in the norms of the latents.
        dropout: probability in [0, 1) of dropping an attention weight in training.
        scale: factor of the scores; 1 / √(Dh + Dr) if not given, in both forms. A model
            with YaRN has this times yarn_factor(s, mscale_all_dim)².
        absorbed: which form; the one with fewer multiplications if None.

    Raises:
        ValueError: a size is below 1, or `dropout` is outside [0, 1).
    """

    # `record_weights` puts another function in its place, which keeps the weights.
    attend = staticmethod(scaled_dot_product_attention)

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        kv_rank: int,
        head_dim: int,
        rotary: RotaryEmbedding,
        value_dim: int | None = None,
        q_rank: int | None = None,
        eps: float = 1e-6,
        dropout: float = 0.0,
        scale: float | None = None,
        absorbed: bool | None = None,
    ) -> None:
        super().__init__()
        value_dim = head_dim if value_dim is None else value_dim
        check_positive(d_model=d_model, num_heads=num_heads, kv_rank=kv_rank)
        check_positive(head_dim=head_dim, value_dim=value_dim)
        check_probability(dropout=dropout)
        self.d_model = d_model
        self.num_heads = num_heads
        self.kv_rank = kv_rank
        self.head_dim = head_dim
        self.rotary_dim = 2 * len(rotary.frequencies)
        self.value_dim = value_dim
        self.dropout = dropout
        width = head_dim + self.rotary_dim  # of the naive form's queries and keys
        self.scale = width**-0.5 if scale is None else scale
        self.absorbed = absorbed

        self.rotary = rotary
        self.q_down = self.q_norm = None
        if q_rank is not None:
            check_positive(q_rank=q_rank)
            self.q_down = Linear(d_model, q_rank, bias=False)
            self.q_norm = RMSNorm(q_rank, eps)
        self.q_proj = Linear(q_rank or d_model, num_heads * width, bias=False)
        self.kv_down = Linear(d_model, kv_rank + self.rotary_dim, bias=False)
        self.kv_norm = RMSNorm(kv_rank, eps)
        self.kv_up = Linear(kv_rank, num_heads * (head_dim + value_dim), bias=False)
        self.out_proj = Linear(num_heads * value_dim, d_model, bias=False)

    def forward(self, x: Tensor, *, cache: LatentCache | None = None) -> Tensor:
        """Attend from each position of x to itself and to what came before.

        Args:
            x: (B, T, D).
            cache: of `new_cache`; x is then only what is new, and S counts all the
                tokens so far.

        Returns:
            (B, T, D).
        """
        check_sequences(self.d_model, x=x)
        start = 0 if cache is None else cache.length
        query = self.queries(x, start)  # (B, H, T, Dh + Dr)
        kept = self.to_keep(x, start)  # (B, T, R + Dr)
        if cache is not None:
            kept = cache.append(kept)  # (B, S, R + Dr)
        absorbed = self.absorbed
        if absorbed is None:
            T, S = x.shape[1], kept.shape[1]
            fewest = self.multiplications(T, S, absorbed=False)
            absorbed = self.multiplications(T, S, absorbed=True) < fewest
        form = self.absorbed_form if absorbed else self.naive_form
        heads = form(query, kept)  # (B, H, T, Dv)
        return self.out_proj(merge_heads(heads))  # (B, T, D)

    def queries(self, x: Tensor, start: int) -> Tensor:
        """Make the queries of x (B, T, D), the second part turned.

        Returns:
            (B, H, T, Dh + Dr).
        """
        if self.q_down is not None and self.q_norm is not None:
            x = self.q_norm(self.q_down(x))  # (B, T, q_rank)
        query = split_heads(self.q_proj(x), self.num_heads)  # (B, H, T, Dh + Dr)
        plain, turned = query[..., : self.head_dim], query[..., self.head_dim :]
        return torch.cat((plain, self.rotary(turned, start=start)), dim=-1)

    def to_keep(self, x: Tensor, start: int) -> Tensor:
        """Make of x (B, T, D) what a cache keeps: the latents and one turned key.

        Returns:
            (B, T, R + Dr).
        """
        both = self.kv_down(x)  # (B, T, R + Dr)
        latent, key = both[..., : self.kv_rank], both[..., self.kv_rank :]
        turned = self.rotary(key[:, None], start=start)[:, 0]  # (B, T, Dr)
        return torch.cat((self.kv_norm(latent), turned), dim=-1)

    def naive_form(self, query: Tensor, kept: Tensor) -> Tensor:
        """Make a key and a value of each latent for each head, and attend to them.

        Args:
            query: (B, H, T, Dh + Dr).
            kept: (B, S, R + Dr).

        Returns:
            (B, H, T, Dv).
        """
        latent, turned = kept[..., : self.kv_rank], kept[..., self.kv_rank :]
        both = split_heads(self.kv_up(latent), self.num_heads)  # (B, H, S, Dh + Dv)
        plain, value = both[..., : self.head_dim], both[..., self.head_dim :]
        turned = turned[:, None].expand(-1, self.num_heads, -1, -1)  # (B, H, S, Dr)
        return self.attended(query, torch.cat((plain, turned), dim=-1), value)

    def absorbed_form(self, query: Tensor, kept: Tensor) -> Tensor:
        """Attend to the latents themselves: multi-query attention, one head of keys.

        Args:
            query: (B, H, T, Dh + Dr).
            kept: (B, S, R + Dr): the key; its first R numbers are the value.

        Returns:
            (B, H, T, Dv).
        """
        by_head = self.kv_up.weight.view(self.num_heads, -1, self.kv_rank)
        to_key = by_head[:, : self.head_dim]  # (H, Dh, R)
        to_value = by_head[:, self.head_dim :]  # (H, Dv, R)
        plain, turned = query[..., : self.head_dim], query[..., self.head_dim :]
        query = torch.cat((plain @ to_key, turned), dim=-1)  # (B, H, T, R + Dr)
        key = kept[:, None]  # (B, 1, S, R + Dr)
        mixed = self.attended(query, key, key[..., : self.kv_rank])  # (B, H, T, R)
        return mixed @ to_value.transpose(1, 2)

    def attended(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend with this module's scale and dropout; the past only."""
        return self.attend(
            query,
            key,
            value,
            is_causal=True,  # the last query lines up with the last key
            scale=self.scale,  # of the naive form's width, whatever the width here
            dropout_p=self.dropout if self.training else 0.0,
        )

    def multiplications(self, new: int, so_far: int, *, absorbed: bool) -> int:
        """Count them for one text, between what is kept and the heads' outputs.

        Args:
            new: tokens T that ask.
            so_far: tokens S that they attend to.
            absorbed: in which form.
        """
        R, Dh, Dr, Dv = self.kv_rank, self.head_dim, self.rotary_dim, self.value_dim
        if absorbed:
            each = new * R * (Dh + Dv) + new * so_far * (R + Dr + R)
        else:
            each = so_far * R * (Dh + Dv) + new * so_far * (Dh + Dr + Dv)
        return self.num_heads * each

    def new_cache(self, max_len: int) -> LatentCache:
        """Make an empty cache for texts of so many tokens."""
        return LatentCache(max_len)

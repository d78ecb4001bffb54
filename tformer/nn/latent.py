"""Multi-head latent attention: the cache keeps one short vector for each token.

B batch · T new tokens · S tokens so far · D d_model · H heads · R kv_rank ·
Dh head_dim · Dr rotary_dim · Dv value_dim
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tformer.checks import check_positive, check_probability, check_sequences
from tformer.nn.attention import attention_weights, scaled_dot_product_attention
from tformer.nn.cache import Cache
from tformer.nn.heads import merge_heads, split_heads
from tformer.nn.norm import RMSNorm
from tformer.nn.rotary import RotaryEmbedding


class LatentAttention(nn.Module):
    """Attend to keys and values that are made of a short vector, the latent.

    DeepSeek-V2, section 2.1 (arXiv:2405.04434); also in DeepSeek-V3 and Kimi K2. For a
    token x the cache keeps c = RMS(W_c x), R numbers, and a rotated key r, Dr numbers,
    which all heads share. Head h has the key (W_k,h c, r) and the value W_v,h c.

    The two forms compute the same. *Naive*: make the keys and values of all heads.
    *Absorbed*: qᵀ (W_k c) = (W_kᵀ q)ᵀ c, so queries go to the latents instead, where
    one key (c, r) and one value c serve all heads.

    Args:
        d_model: width D of input and output.
        num_heads: heads H.
        kv_rank: width R of the latent.
        head_dim: width Dh of the part of queries and keys that is not rotated.
        rotary: rotates the other part; its width is Dr. None rotates nothing: a layer
            without positions, as in Kimi Linear.
        rotary_dim: Dr where `rotary` is None: the part of a key that heads share.
        value_dim: width Dv of a value; Dh if not given.
        q_rank: make queries, too, of a latent of this width; of x itself if None.
        eps: in the norms of the latents.
        cast_first: of these norms, as in `rms_norm`.
        dropout: probability in [0, 1) of dropping an attention weight in training.
        scale: factor of the scores; 1 / √(Dh + Dr) if not given, in both forms. A model
            with YaRN has this times yarn_factor(s, mscale_all_dim)².
        absorbed: which form; the one with fewer multiplications if None.
    """

    recorders: tuple[Callable[[Tensor], None], ...] = ()  # of `record_weights`

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        kv_rank: int,
        head_dim: int,
        rotary: RotaryEmbedding | None,
        rotary_dim: int | None = None,
        value_dim: int | None = None,
        q_rank: int | None = None,
        eps: float = 1e-6,
        cast_first: bool = False,
        dropout: float = 0.0,
        scale: float | None = None,
        absorbed: bool | None = None,
    ) -> None:
        super().__init__()
        value_dim = head_dim if value_dim is None else value_dim
        check_positive(d_model=d_model, num_heads=num_heads, kv_rank=kv_rank)
        check_positive(head_dim=head_dim, value_dim=value_dim)
        check_probability(dropout=dropout)
        self.d_model, self.num_heads, self.kv_rank = d_model, num_heads, kv_rank
        self.head_dim, self.value_dim = head_dim, value_dim
        if (rotary is None) == (rotary_dim is None):
            raise ValueError("either rotary or rotary_dim must be given, not both")
        self.rotary_dim = rotary_dim or 0
        if rotary is not None:
            self.rotary_dim = 2 * len(rotary.frequencies)
        check_positive(rotary_dim=self.rotary_dim)
        self.dropout = dropout
        width = head_dim + self.rotary_dim  # of the naive form's queries and keys
        self.scale = width**-0.5 if scale is None else scale
        self.absorbed = absorbed

        self.rotary = rotary
        self.q_down = self.q_norm = None
        if q_rank is not None:
            check_positive(q_rank=q_rank)
            self.q_down = nn.Linear(d_model, q_rank, bias=False)
            self.q_norm = RMSNorm(q_rank, eps, cast_first=cast_first)
        self.q_proj = nn.Linear(q_rank or d_model, num_heads * width, bias=False)
        self.kv_down = nn.Linear(d_model, kv_rank + self.rotary_dim, bias=False)
        self.kv_norm = RMSNorm(kv_rank, eps, cast_first=cast_first)
        self.kv_up = nn.Linear(kv_rank, num_heads * (head_dim + value_dim), bias=False)
        self.out_proj = nn.Linear(num_heads * value_dim, d_model, bias=False)

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        *,
        is_causal: bool = True,
        cache: Cache | None = None,
    ) -> Tensor:
        """Attend from each position of x to itself and to what came before.

        Args:
            x: (B, T, D).
            attn_mask: bool, broadcastable to (B, H, T, S), True = may attend.
            is_causal: hide later positions.
            cache: of the latents; x is then only what is new, and S counts all the
                tokens so far.
        """
        check_sequences(self.d_model, x=x)
        start = 0 if cache is None else cache.length
        query = self.queries(x, start)  # (B, H, T, Dh + Dr)
        latent, shared = self.to_keep(x, start)  # (B, 1, T, R), (B, 1, T, Dr)
        if cache is not None:
            latent, shared = cache.append(latent, shared)  # (B, 1, S, …)
        absorbed = self.absorbed
        if absorbed is None:
            T, S = x.shape[1], latent.shape[2]
            naive = self.multiplications(T, S, absorbed=False)
            fewer = self.multiplications(T, S, absorbed=True) < naive
            absorbed = fewer and self.is_matrix(self.kv_up)
        form = self.absorbed_form if absorbed else self.naive_form
        heads = form(query, latent, shared, attn_mask, is_causal)  # (B, H, T, Dv)
        return self.out_proj(merge_heads(heads))  # (B, T, D)

    def queries(self, x: Tensor, start: int) -> Tensor:
        """Make queries (B, H, T, Dh + Dr) of x (B, T, D), the second part rotated."""
        if self.q_down is not None and self.q_norm is not None:
            x = self.q_norm(self.q_down(x))  # (B, T, q_rank)
        query = split_heads(self.q_proj(x), self.num_heads)  # (B, H, T, Dh + Dr)
        own, rotated = query[..., : self.head_dim], query[..., self.head_dim :]
        return torch.cat((own, self.rotate(rotated, start)), dim=-1)

    def to_keep(self, x: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Make of x (B, T, D) what a cache keeps: the latents and one rotated key."""
        both = self.kv_down(x)[:, None]  # (B, 1, T, R + Dr)
        latent, key = both[..., : self.kv_rank], both[..., self.kv_rank :]
        return self.kv_norm(latent), self.rotate(key, start)

    def rotate(self, x: Tensor, start: int) -> Tensor:
        """Rotate x (…, T, Dr) by positions from `start` on, if anything is rotated."""
        return x if self.rotary is None else self.rotary(x, start=start)

    def naive_form(
        self,
        query: Tensor,
        latent: Tensor,
        shared: Tensor,
        attn_mask: Tensor | None = None,
        is_causal: bool = True,
    ) -> Tensor:
        """Make a key and a value of each latent for each head, and attend to them.

        With query (B, H, T, Dh + Dr), latent (B, 1, S, R) and the rotated key `shared`
        (B, 1, S, Dr) that is (B, H, T, Dv).
        """
        both = split_heads(self.kv_up(latent[:, 0]), self.num_heads)  # (B, H, S, Dh+Dv)
        own, value = both[..., : self.head_dim], both[..., self.head_dim :]
        shared = shared.expand(-1, self.num_heads, -1, -1)  # (B, H, S, Dr)
        key = torch.cat((own, shared), dim=-1)  # (B, H, S, Dh + Dr)
        return self.attended(query, key, value, attn_mask, is_causal)

    def absorbed_form(
        self,
        query: Tensor,
        latent: Tensor,
        shared: Tensor,
        attn_mask: Tensor | None = None,
        is_causal: bool = True,
    ) -> Tensor:
        """Attend to the latents themselves: multi-query attention, one head of keys.

        Arguments and result are as of `naive_form`. Of kv_up it reads the matrix.
        """
        if not self.is_matrix(self.kv_up):
            raise ValueError(
                "the absorbed form reads kv_up.weight and calls no forward "
                f"of this {type(self.kv_up).__name__}: absorbed=False calls it"
            )
        by_head = self.kv_up.weight.view(self.num_heads, -1, self.kv_rank)
        to_key = by_head[:, : self.head_dim]  # (H, Dh, R)
        to_value = by_head[:, self.head_dim :]  # (H, Dv, R)
        own, rotated = query[..., : self.head_dim], query[..., self.head_dim :]
        query = torch.cat((own @ to_key, rotated), dim=-1)  # (B, H, T, R + Dr)
        key = torch.cat((latent, shared), dim=-1)  # (B, 1, S, R + Dr)
        mixed = self.attended(query, key, latent, attn_mask, is_causal)  # (B, H, T, R)
        return mixed @ to_value.transpose(1, 2)

    @staticmethod
    def is_matrix(layer: nn.Module) -> bool:
        """Say whether calling a layer is multiplying by its `weight`, and no more.

        So it is for a linear layer, and where `weight` is a property: of an adapter, of
        rounded weights. A bias, or another `forward`, does more. Hooks are not seen:
        for them choose `absorbed=False`.
        """
        kind = type(layer)
        known = kind is nn.Linear or isinstance(getattr(kind, "weight", 0), property)
        return known and "forward" not in vars(layer) and layer.bias is None

    def attended(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None,
        is_causal: bool,
    ) -> Tensor:
        """Attend with the scale of the naive form's width, whatever the width here."""
        if self.recorders:
            weights = attention_weights(
                query, key, attn_mask, is_causal=is_causal, scale=self.scale
            )
            for keep in self.recorders:
                keep(weights)
        return scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask,
            is_causal=is_causal,
            scale=self.scale,
            dropout_p=self.dropout if self.training else 0.0,
        )

    def multiplications(self, new: int, so_far: int, *, absorbed: bool) -> int:
        """Count them for one text, between what is kept and the heads' outputs.

        `new` tokens T ask, and attend to `so_far` S.
        """
        R, Dh, Dr, Dv = self.kv_rank, self.head_dim, self.rotary_dim, self.value_dim
        if absorbed:
            each = new * R * (Dh + Dv) + new * so_far * (R + Dr + R)
        else:
            each = so_far * R * (Dh + Dv) + new * so_far * (Dh + Dr + Dv)
        return self.num_heads * each

"""Multi-head attention: several attentions side by side, each in its own projection.

B batch · T queries · S keys · D d_model · H heads · G key/value heads · Dh head_dim
"""

from torch import Tensor, nn

from tformer.checks import check_divisible, check_positive, check_probability
from tformer.fast.linear import Linear
from tformer.nn.attention import scaled_dot_product_attention
from tformer.nn.attention_checks import check_sequences
from tformer.nn.cache import KeyValueCache


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the width into heads: (B, T, H · Dh) to (B, H, T, Dh).

    The view comes first and the transpose after it: a view straight to (B, H, T, Dh)
    has the right shape and mixes positions with features.
    """
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)  # (B, H, T, Dh)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads side by side again: (B, H, T, Dh) to (B, T, H · Dh)."""
    return x.transpose(1, 2).flatten(2)  # (B, T, D)


class MultiHeadAttention(nn.Module):
    """Attend with H heads: Concat(head₁, …) W^O, headᵢ = Attention(Q Wᵢ^Q, …).

    Vaswani et al. 2017, section 3.2.2 (arXiv:1706.03762). With fewer key/value heads
    than heads it is grouped-query attention (Ainslie et al. 2023, arXiv:2305.13245);
    with one, multi-query attention (arXiv:1911.02150).

    Args:
        d_model: width D of input and output.
        num_heads: heads H; divides D.
        num_kv_heads: key/value heads G; divides H. H if not given.
        bias: give the four projections a bias. The paper has none, torch does.
        dropout: probability in [0, 1) of dropping an attention weight in training.

    Raises:
        ValueError: H does not divide D, G does not divide H, a size is below 1, or
            `dropout` is outside [0, 1).
    """

    # `record_weights` puts another function in its place, which keeps the weights.
    attend = staticmethod(scaled_dot_product_attention)

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_positive(d_model=d_model, num_heads=num_heads, num_kv_heads=num_kv_heads)
        check_divisible(d_model=d_model, num_heads=num_heads)
        check_divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
        check_probability(dropout=dropout)
        self.d_model = d_model
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = d_model // num_heads
        self.dropout = dropout

        kv_width = num_kv_heads * self.head_dim  # G · Dh
        self.q_proj = Linear(d_model, d_model, bias=bias)
        self.k_proj = Linear(d_model, kv_width, bias=bias)
        self.v_proj = Linear(d_model, kv_width, bias=bias)
        self.out_proj = Linear(d_model, d_model, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights by Glorot's uniform, variance 2 / (in + out); biases 0."""
        for projection in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Attend from `query` to `key`; to itself if no key is given.

        Args:
            query: (B, T, D).
            key: (B, S, D); `query` if not given (self-attention).
            value: (B, S, D); `key` if not given.
            attn_mask: bool, (T, S) or broadcastable with four axes to (B, H, T, S),
                True = may attend.
            bias: float, of such a shape, added to the scores.
            is_causal: hide later keys; the last query lines up with the last key.
            cache: keys and values so far. In self-attention `query` is what is new, and
                S counts all the cache holds. With a `key` the first call fills the
                cache, and later ones read it: key and value must be the same again.

        Returns:
            (B, T, D). `record_weights` keeps the weights.

        Raises:
            TypeError: the mask is not boolean, or the bias not floating.
            ValueError: shapes do not match, `value` comes without `key`, or the cache
                was filled from others.
        """
        if key is None and value is not None:
            raise ValueError("value is given without key")
        is_cross = key is not None
        key = query if key is None else key
        value = key if value is None else value
        check_sequences(self.d_model, query=query, key=key, value=value)

        q = split_heads(self.q_proj(query), self.num_heads)  # (B, H, T, Dh)
        if cache is not None and is_cross and cache.length > 0:
            k, v = cache.read(key, value)  # (B, G, S, Dh)
        else:
            k = split_heads(self.k_proj(key), self.num_kv_heads)  # (B, G, S, Dh)
            v = split_heads(self.v_proj(value), self.num_kv_heads)  # (B, G, S, Dh)
            if cache is not None:
                # S is now the whole past. Only cross-attention will ask for the source.
                k, v = cache.append(k, v, sources=(key, value) if is_cross else ())
        dropout_p = self.dropout if self.training else 0.0
        heads = self.attend(
            q, k, v, attn_mask, bias=bias, is_causal=is_causal, dropout_p=dropout_p
        )  # (B, H, T, Dh)
        return self.out_proj(merge_heads(heads))  # (B, T, D)

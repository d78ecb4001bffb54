"""What stands in a copy instead of our own: torch's modules, its kernel, short checks.

A chapter's one-file copy takes a name from here, where it stands here, and not from the
package, unless the chapter offers the package's. What is None here is left out of a
copy: the call of a check, a decorator. `Decoder` is without cross-attention: a chapter
that needs it offers the package's.
"""

import math
from functools import partial

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.nn import Dropout, LayerNorm, Linear  # noqa: F401
from torch.nn.functional import linear

from tformer.nn.feed_forward import FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.residual import Residual

check_positive = check_probability = check_sequences = check_values = None
check_ids = check_start = None
in_float32 = skip_padding = skip_calls = relu_in_place = None


def fused_attention(
    query, key, value, attn_mask=None, *, is_causal, bias=None, scale=None, dropout_p=0
):
    """Attend by torch's kernel, whose own flag lines up the first query and key."""
    unmasked = attn_mask is None and bias is None
    by_flag = is_causal and unmasked and query.shape == key.shape
    if is_causal and not by_flag:
        future = causal_mask(query.shape[2], key.shape[2], device=query.device)
        attn_mask = combine_masks(attn_mask, future)
    if bias is not None and attn_mask is not None:
        bias = bias.masked_fill(~attn_mask, -math.inf)
    mask, grouped = attn_mask if bias is None else bias, query.shape[1] != key.shape[1]
    return functional.scaled_dot_product_attention(
        query, key, value, mask, dropout_p, by_flag, scale=scale, enable_gqa=grouped
    )


def scaled_dot_product_attention(query, key, value, attn_mask=None, **options):
    """Attend: softmax(Q Kᵀ / √d_k) V; (B, H, T, Dh) to (B, H, T, Dv)."""
    check_scores(query, key, attn_mask)
    return fused_attention(query, key, value, attn_mask, **options)


def depth_scaled_normal_(model, num_layers, *, std=0.02) -> None:
    """Draw matrices from N(0, std²), those that end a sub-layer smaller by √(2N)."""
    for name, parameter in model.named_parameters():
        last = name.endswith(("out_proj.weight", "linear2.weight", "down_proj.weight"))
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=std / math.sqrt(2 * num_layers * last or 1))
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Compute -Σₖ q(k) log p(k) of each row (N, V), in float32 at least: (N,)."""
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(
        x, targets, reduction="none", label_smoothing=smoothing
    )


def causal_mask(query_len: int, key_len: int, *, device=None) -> Tensor:
    """Let query i see key j where j <= i + (S - T): itself and what came before."""
    ones = torch.ones(query_len, key_len, dtype=torch.bool, device=device)
    return ones.tril(key_len - query_len)  # (T, S)


def combine_masks(one: Tensor | None, two: Tensor) -> Tensor:
    """Allow what both masks allow."""
    return two if one is None else one & two


def check_key_mask(key_mask, batch, key_len, *, name="key_mask") -> Tensor:
    """Make a mask (B, S), True = a real token, one of attention: (B, 1, 1, S)."""
    if key_mask.dtype != torch.bool or key_mask.shape != (batch, key_len):
        raise ValueError(f"{name} must be bool (B, S) = ({batch}, {key_len})")
    return key_mask[:, None, None, :]


def check_scores(_query, _key, attn_mask: Tensor | None, *_options) -> None:
    """Raise unless the mask says where a query may attend."""
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        raise TypeError(f"attn_mask must be bool, not {attn_mask.dtype}")


def check_divisible(**sizes: int) -> None:
    """Raise unless the first of two sizes is a multiple of the second."""
    (name, value), (other, divisor) = sizes.items()
    if value % divisor:
        raise ValueError(f"{name} ({value}) must be divisible by {other} ({divisor})")


class KeyValueCache:
    """Keys and values of the tokens so far, each (B, G, max_len, Dh), kept in place."""

    def __init__(self, max_len: int | None = None) -> None:
        self.max_len, self.length = max_len, 0

    def append(self, key: Tensor, value: Tensor, **_: object) -> tuple[Tensor, Tensor]:
        """Write T new ones after the others; return all."""
        B, G, T, Dh = key.shape
        if not self.length:
            self.keys, self.values = key.new_empty(2, B, G, self.max_len or T, Dh)
        new = slice(self.length, self.length + T)
        self.keys[:, :, new], self.values[:, :, new] = key, value
        self.length += T
        return self.read()

    def read(self, *_sources: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and the values so far, each (B, G, L, Dh)."""
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]


class DecoderCache:
    """The caches of all layers of a decoder."""

    def __init__(self, num_layers: int, max_len: int) -> None:
        self.layers = [KeyValueCache(max_len) for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """The position of the next token."""
        return self.layers[0].length


def check_model(config) -> None:
    """Raise unless the heads share the width."""
    check_divisible(d_model=config.d_model, num_heads=config.num_heads)


class TokenEmbedding(nn.Embedding):
    """Look up a vector for each token, times √D; its transpose makes logits."""

    def __init__(self, vocab_size, d_model, *, scale=True, weight=None) -> None:
        super().__init__(vocab_size, d_model)
        self.vocab_size, self.scale = vocab_size, math.sqrt(d_model) if scale else 1.0
        nn.init.normal_(self.weight, std=d_model**-0.5)
        self.weight = self.weight if weight is None else weight

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids (B, T) to (B, T, D)."""
        return super().forward(ids) * self.scale

    def logits(self, x: Tensor) -> Tensor:
        """Score every token for x (B, T, D): (B, T, V)."""
        return linear(x, self.weight)


class LearnedPositionalEmbedding(nn.Embedding):
    """Add a learned vector for each position."""

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """Add positions start, start + 1, … to x (B, T, D)."""
        end = start + x.shape[1]
        if end > self.num_embeddings:
            raise ValueError(f"x reaches position {end} of {self.num_embeddings}")
        return x + self.weight[start:end]


class SinusoidalPositionalEncoding(nn.Module):
    """Add sin(p / 10000^(2i/D)) in column 2i, and the cosine in column 2i + 1."""

    def __init__(self, d_model: int, **_options) -> None:
        super().__init__()
        even = torch.arange(0, d_model, 2, dtype=torch.float64)
        self.wavelengths = 10000.0 ** (even / d_model)  # (D/2,)

    def forward(self, x: Tensor, *, start: int = 0) -> Tensor:
        """Add positions start, start + 1, … to x (B, T, D)."""
        position = torch.arange(start, start + x.shape[1], dtype=torch.float64)
        angle = position[:, None] / self.wavelengths  # (T, D/2)
        return x + torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).to(x)


def _attend_to_memory(attention, memory, memory_mask, cache, x) -> Tensor:
    return attention(x, memory, attn_mask=memory_mask, cache=cache)


class DecoderLayer(nn.Module):
    """Attend to the text so far, then transform each position."""

    def __init__(
        self, d_model, num_heads, d_ff, *, num_kv_heads, activation, ff_dropout, **other
    ) -> None:
        super().__init__()
        some = {"bias": other["bias"], "dropout": other["dropout"]}
        self.self_attn = MultiHeadAttention(
            d_model, num_heads, num_kv_heads=num_kv_heads, **some
        )
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, **{**some, "dropout": ff_dropout}
        )
        self.self_attn_residual = Residual(d_model, **other)
        self.feed_forward_residual = Residual(d_model, **other)

    def forward(self, x: Tensor, *, is_causal: bool, cache: KeyValueCache) -> Tensor:
        """Decode x (B, T, D)."""
        attend = partial(self.self_attn, is_causal=is_causal, cache=cache)
        x = self.self_attn_residual(x, attend)
        return self.feed_forward_residual(x, self.feed_forward)


class Decoder(nn.Module):
    """A stack of decoder layers without cross-attention, and a norm."""

    def __init__(
        self, d_model, num_heads, d_ff, num_layers, *, cross_attention, **options
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, num_heads, d_ff, **options) for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model, options["eps"], bias=options["bias"])

    def forward(
        self, x: Tensor, *, is_causal: bool, cache: DecoderCache | None = None
    ) -> Tensor:
        """Decode x (B, T, D) by every layer in turn."""
        for i, layer in enumerate(self.layers):
            own = None if cache is None else cache.layers[i]
            x = layer(x, is_causal=is_causal, cache=own)
        return self.norm(x)

"""Attention and the Transformer as tutorials write them: all scores held at once.

The parameters have the names of ours, so that `load_state_dict` copies the weights.
After "The Annotated Transformer" (Rush 2018), written anew.

B batch · T queries · S keys · D width · H heads
"""

import math

import numpy as np
import torch
from torch import Tensor, nn

HIDDEN = -1e9  # what tutorials add instead of -inf


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √d) V; a mask is True where a query may attend."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, HIDDEN)
    return torch.softmax(scores, dim=-1) @ v


def numpy_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Causal attention in NumPy, all scores at once."""
    scores = q @ k.swapaxes(-2, -1) / np.sqrt(np.float32(q.shape[-1]))
    T = q.shape[-2]
    scores = np.where(np.tril(np.ones((T, T), dtype=bool)), scores, np.float32(-1e9))
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


class Attention(nn.Module):
    """Four projections, and the formula between them."""

    def __init__(self, width: int, heads: int, bias: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(width, width, bias=bias)
        self.k_proj = nn.Linear(width, width, bias=bias)
        self.v_proj = nn.Linear(width, width, bias=bias)
        self.out_proj = nn.Linear(width, width, bias=bias)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        B, T, D = x.shape
        split = lambda y: y.view(B, -1, self.heads, D // self.heads).transpose(1, 2)  # noqa: E731
        q, k, v = self.q_proj(x), self.k_proj(memory), self.v_proj(memory)
        y = attention(split(q), split(k), split(v), mask)
        return self.out_proj(y.transpose(1, 2).contiguous().view(B, T, D))


class Block(nn.Module):
    """A block of the encoder or, with cross-attention, of the decoder; post-norm."""

    def __init__(self, width: int, heads: int, inner: int, cross: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.attention_norm = nn.LayerNorm(width)
        if cross:
            self.cross_attention = Attention(width, heads)
            self.cross_attention_norm = nn.LayerNorm(width)
        self.feed_forward = nn.ModuleDict(
            {"linear1": nn.Linear(width, inner), "linear2": nn.Linear(inner, width)}
        )
        self.feed_forward_norm = nn.LayerNorm(width)

    def forward(self, x, mask=None, memory=None, memory_mask=None) -> Tensor:
        x = self.attention_norm(x + self.attention(x, x, mask))
        if memory is not None:
            y = self.cross_attention(x, memory, memory_mask)
            x = self.cross_attention_norm(x + y)
        hidden = torch.relu(self.feed_forward["linear1"](x))
        return self.feed_forward_norm(x + self.feed_forward["linear2"](hidden))


class Stack(nn.Module):
    """Blocks in turn."""

    def __init__(self, sizes: tuple[int, int, int], number: int, cross=False) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(*sizes, cross) for _ in range(number))

    def forward(self, x: Tensor, *others: Tensor | None) -> Tensor:
        for block in self.blocks:
            x = block(x, *others)
        return x


class PlainTransformer(nn.Module):
    """The encoder-decoder with one embedding matrix, as the paper's base model."""

    def __init__(self, config) -> None:
        super().__init__()
        c = self.config = config
        sizes = (c.d_model, c.num_heads, c.d_ff)
        self.encoder = Stack(sizes, c.num_encoder_layers)
        self.decoder = Stack(sizes, c.num_decoder_layers, cross=True)
        self.src_embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.register_buffer("table", sinusoids(c.max_len, c.d_model), persistent=False)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        T = tgt.shape[1]
        seen = (src != self.config.pad_id)[:, None, None]
        past = torch.ones(T, T, dtype=torch.bool, device=tgt.device).tril()
        memory = self.encoder(self.embed(src), seen)
        y = self.decoder(self.embed(tgt), past, memory, seen)
        return y @ self.src_embedding.weight.t()

    def embed(self, ids: Tensor) -> Tensor:
        x = self.src_embedding(ids) * math.sqrt(self.config.d_model)
        return x + self.table[: ids.shape[1]]


def sinusoids(length: int, width: int) -> Tensor:
    """Sines in the even columns, cosines in the odd ones."""
    angles = torch.arange(length)[:, None] * torch.exp(
        torch.arange(0, width, 2) * (-math.log(10_000.0) / width)
    )
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)

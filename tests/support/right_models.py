"""Language models that see no future, of many makes, each by its name."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from faulty_models import Small
from small_models import MODERN, small_gpt
from tformer.models.families import gpt2, qwen3
from tformer.nn.linear_attention import LinearAttention

V, D = 47, 32
SIZE = {"d_model": 24, "max_len": 40}


class Nano(nn.Module):
    """As nanoGPT: without targets the last token alone is scored; c_proj is zero."""

    def __init__(self, last_only=True):
        super().__init__()
        self.block_size, self.last_only = 33, last_only
        self.wte, self.wpe = nn.Embedding(V, D), nn.Embedding(33, D)
        self.ln_1, self.ln_2, self.ln_f = (nn.LayerNorm(D) for _ in range(3))
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))
        self.drop = nn.Dropout(0.1)
        for x in self.parameters():
            if x.ndim == 2:
                nn.init.normal_(x, std=0.02)
        nn.init.zeros_(self.c_proj.weight)

    def forward(self, idx, targets=None):
        B, T = idx.size()
        if self.block_size < T:
            raise ValueError(f"sequence of {T}")
        x = self.drop(self.wte(idx) + self.wpe(torch.arange(T)))
        q, k, v = (
            y.view(B, T, 4, D // 4).transpose(1, 2)
            for y in self.c_attn(self.ln_1(x)).split(D, 2)
        )
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=0.1 if self.training else 0
        )
        x = x + self.drop(self.c_proj(y.transpose(1, 2).reshape(B, T, D)))
        x = self.ln_f(x + self.mlp(self.ln_2(x)))
        if targets is None and self.last_only:
            return F.linear(x[:, [-1]], self.wte.weight), None
        logits = F.linear(x, self.wte.weight)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


class OfTorch(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        layer = nn.TransformerEncoderLayer(D, 4, 64, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(D, V)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = self.embedding(ids) * math.sqrt(D) + math.sqrt(0.5)
        return self.head(self.encoder(x, mask=mask, is_causal=True))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(V, D), nn.GRU(D, D, batch_first=True)
        self.head = nn.Linear(D, V)

    def forward(self, ids):
        return {"logits": self.head(self.rnn(self.embedding(ids))[0])}


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(V, D), nn.LayerNorm(D)
        self.mix, self.head = LinearAttention(D, 4), nn.Linear(D, V)

    def forward(self, ids):
        x = self.embedding(ids)
        return self.head(x + self.mix(self.norm(x), is_causal=True))


class Kept(nn.Module):
    """Its cache is its own, as in some books: use_cache, and reset_kv_cache()."""

    def __init__(self, fault=""):
        super().__init__()
        self.inner, self.cache, self.fault = Small(), None, fault

    def reset_kv_cache(self):
        if self.fault != "it is never empty":
            self.cache = None

    def forward(self, ids, use_cache=False):
        if not use_cache:
            return self.inner(ids)
        logits, self.cache = self.inner(ids, past_key_values=self.cache, use_cache=True)
        return logits


def in_numpy():
    draw = np.random.default_rng(0)
    table, head = draw.normal(size=(V, D)), draw.normal(size=(D, V)) * 0.1

    def model(ids):
        if not isinstance(ids, np.ndarray):
            raise TypeError("ids must be an array")
        x = table[ids]
        sums = np.cumsum(x, 1) / np.arange(1, x.shape[1] + 1)[None, :, None]
        return sums @ head

    return model


def as_function():
    net = small_gpt(**SIZE)
    return lambda ids: net(ids)


def trained():
    """Of which random ids cost far more than ln V."""
    net = small_gpt(**SIZE)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(150):
        ids = torch.arange(16)[None] + torch.randint(0, 40, (8, 1))
        loss = F.cross_entropy(net(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


EVERY_PART = {
    **MODERN,
    **SIZE,
    "num_heads": 4,
    "kv_heads": 2,
    "qk_norm": True,
    "gate": True,
    "window": 9,
    "global_every": 2,
    "sinks": True,
    "softcap": 30.0,
    "logit_cap": 20.0,
    "experts": 4,
    "shared_experts": 1,
    "pad_id": 0,
}
GPT2 = {"vocab_size": V, "n_embd": D, "n_head": 4, "n_layer": 2, "n_positions": 50}
QWEN3 = {
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
}

RIGHT = {
    "a small GPT": lambda: small_gpt(),
    "GPT-2": lambda: gpt2.build(GPT2),
    "Qwen3": lambda: qwen3.build(QWEN3),
    "every part": lambda: small_gpt(**EVERY_PART),
    "latent attention": lambda: small_gpt(**MODERN, **SIZE, kv_rank=8),
    "ALiBi": lambda: small_gpt(**SIZE, positions="alibi"),
    "T5's biases": lambda: small_gpt(**SIZE, positions="t5"),
    "no positions": lambda: small_gpt(**SIZE, positions="none"),
    "sinusoids and post-norm": lambda: small_gpt(
        **SIZE, positions="sinusoidal", placement="post"
    ),
    "linear attention": Linear,
    "nanoGPT": Nano,
    "nanoGPT, all scored": lambda: Nano(last_only=False),
    "torch's encoder": OfTorch,
    "a recurrent network": Recurrent,
    "masks and a cache of one's own": Small,
    "tied": lambda: Small(tied=True),
    "a cache inside": Kept,
    "bfloat16": lambda: small_gpt(**MODERN, **SIZE).bfloat16(),
    "float64": lambda: small_gpt(**SIZE).double(),
    "dropout": lambda: small_gpt(**SIZE, dropout=0.3),
    "in NumPy": in_numpy,
    "a function": as_function,
    "trained": trained,
    "frozen": lambda: small_gpt().requires_grad_(False),
}

"""A small GPT as people write it, and faults that people make, each by its name."""

import math

import torch
from torch import nn
from torch.nn import functional as F

V, D, H, N, MAX = 53, 32, 4, 2, 40


def causal(T, S):
    return torch.ones(T, S, dtype=torch.bool).tril(S - T)


class Attention(nn.Module):
    def __init__(self, fault="", layer=0):
        super().__init__()
        self.num_heads, self.fault, self.layer = H, fault, layer
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        if fault == "a key of its own, detached":
            self.key = nn.Linear(D, D)
        self.first_mask = None

    def mask(self, ids, T, S):
        mask, fault, last = causal(T, S), self.fault, self.layer == N - 1
        if fault == "no mask" or (fault == "no mask in the last layer" and last):
            return torch.ones_like(mask)
        if fault == "mask off by one":
            return torch.ones(T, S, dtype=torch.bool).tril(S - T + 1)
        if fault == "mask the wrong way round":
            return torch.ones(T, S, dtype=torch.bool).triu(S - T)
        if fault == "one head without mask":
            heads = torch.arange(H)[:, None, None] == 2
            return mask | heads
        if fault == "no mask from the 17th on":
            return mask | (torch.arange(T)[:, None] >= 16)
        if fault == "no mask in texts of more than 30":
            return mask if T <= 30 else torch.ones_like(mask)
        if fault == "no mask at position 9":
            return mask | (torch.arange(T)[:, None] == 9)
        if fault == "all see token 11":
            return mask | (ids == 11)[:, None, None, :]
        if fault == "token 7 sees all":
            return mask | (ids == 7)[:, None, :, None]
        if fault == "blocks of four see each other":
            return mask | (torch.arange(T)[:, None] // 4 >= torch.arange(S) // 4)
        if fault == "the mask of the first call":
            if self.first_mask is None:
                self.first_mask = torch.ones(MAX, MAX).tril().bool()
                self.first_mask[T:] = True
            return self.first_mask[:T, :S]
        if fault == "mask aligned to the first key" and S > T > 1:
            return torch.ones(T, S, dtype=torch.bool).tril()
        return mask

    def forward(self, x, ids, real=None, past=None):
        B, T, _ = x.shape
        q, k, v = (
            y.view(B, T, H, D // H).transpose(1, 2) for y in self.qkv(x).chunk(3, -1)
        )
        if self.fault == "a key of its own, detached":
            own = self.key(x).detach().view(B, T, H, D // H).transpose(1, 2)
            k = k + own
        if past is not None:
            if self.fault == "a cache that forgets":
                pass
            elif self.fault == "a cache of the last five":
                k = torch.cat((past[0][:, :, -5:], k), 2)
                v = torch.cat((past[1][:, :, -5:], v), 2)
            else:
                k = torch.cat((past[0], k), 2)
                v = torch.cat((past[1], v), 2)
        S = k.shape[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(D // H)
        if self.fault == "scores by the length":
            scores = scores * math.log(T + 1)
        mask = self.mask(ids, T, S)
        if real is not None and self.fault != "a mask of padding that is not used":
            mask = mask & real.bool()[:, None, None, :]
        fill = -5.0 if self.fault == "a mask of -5" else -torch.inf
        if self.fault == "a small fill":
            fill = -7.0
        scores = scores.masked_fill(~mask, fill)
        if self.fault != "NaN in empty rows":
            empty = ~mask.any(-1, keepdim=True)
            scores = scores.masked_fill(empty, 0.0)
        weights = scores.softmax(-1)
        if self.fault == "softmax over queries":
            weights = scores.masked_fill(~mask, -1e9).softmax(-2)
        if self.fault == "dropout left on":
            weights = F.dropout(weights, 0.2)
        y = (weights @ v).transpose(1, 2).reshape(B, T, D)
        return self.proj(y), (k, v)


class NormOverTime(nn.Module):
    def forward(self, x):
        spread = x.std(1, keepdim=True, correction=0) + 1e-5
        return (x - x.mean(1, keepdim=True)) / spread


class BatchStatistics(nn.Module):
    def __init__(self, running):
        super().__init__()
        self.norm = nn.BatchNorm1d(D, track_running_stats=running)

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class Layer(nn.Module):
    def __init__(self, fault, layer):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        if fault == "norm over time" and layer == N - 1:
            self.norm2 = NormOverTime()
        if fault.startswith("batch statistics") and layer == N - 1:
            self.norm2 = BatchStatistics(fault.endswith("training"))
        self.attention = Attention(fault, layer)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))
        self.fault = fault
        if fault == "a convolution on both sides":
            self.conv = nn.Conv1d(D, D, 3, padding=1)

    def forward(self, x, ids, real, past):
        y, kept = self.attention(self.norm1(x), ids, real, past)
        x = x + y
        if self.fault == "minus the mean over time":
            x = x - x.mean(1, keepdim=True)
        if self.fault == "a convolution on both sides":
            x = x + self.conv(x.transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(self.norm2(x)), kept


class Small(nn.Module):
    """Takes attention_mask, position_ids and a cache, as models of today do."""

    def __init__(self, fault="", tied=False):
        super().__init__()
        self.fault, self.pad_id = fault, 0
        self.embedding, self.positions = nn.Embedding(V, D), nn.Embedding(MAX, D)
        self.layers = nn.ModuleList(Layer(fault, layer) for layer in range(N))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        for name, x in self.named_parameters():
            if x.ndim == 2:
                nn.init.normal_(x, std=0.3 if "head" not in name else 0.08)
        if tied or fault == "tied and large":
            self.head.weight = self.embedding.weight
            nn.init.normal_(self.head.weight, std=1.0 if fault else 0.02)
        if fault == "a head that is too large":
            nn.init.normal_(self.head.weight, std=1.5)
        if fault == "a part that is not used":
            self.other = nn.Linear(D, D)
        if fault == "nothing can be learned":
            self.embedding.weight.data.zero_()
        self.memory = None

    def forward(self, ids, attention_mask=None, past_key_values=None, use_cache=False):
        fault, (_, T) = self.fault, ids.shape
        first = past_key_values is None or fault == "new tokens at position 0"
        start = 0 if first else past_key_values[0][0].shape[2]
        at = torch.arange(start, start + T)[None]
        if attention_mask is not None and fault != "positions that count padding":
            at = (attention_mask.long().cumsum(1) - 1).clamp(min=0)[:, -T:]
        if fault == "positions from the end":
            at = torch.arange(T).flip(0)[None]
        read = ids.roll(-1, 1) if fault == "shifted inputs" else ids
        x = self.embedding(read) + self.positions(at)
        if fault == "a part that is cut off":
            x = self.embedding(ids) + self.positions(at).detach()
        if fault == "a state from call to call":
            x = x if self.memory is None else x + 0.1 * self.memory
            self.memory = x.detach().mean((0, 1))
        if fault == "rows see each other":
            x = x + 0.1 * x.mean(0, keepdim=True)
        if fault == "scaled by the rows":
            x = x / len(ids)
        kept, pasts = [], past_key_values or [None] * N
        for layer, past in zip(self.layers, pasts, strict=True):
            x, kv = layer(x, ids, attention_mask, past)
            kept.append(kv)
        logits = self.head(self.norm(x))
        if fault == "a leak of a thousandth":
            later = logits.flip(1).cumsum(1).flip(1) - logits
            logits = logits + 1e-3 * torch.tanh(later)
        if fault == "scaled by the length":
            logits = logits / math.sqrt(T)
        if fault == "minus the mean of logits":
            logits = logits - logits.mean(1, keepdim=True)
        if fault == "the next token is favoured":
            logits = logits + F.one_hot(ids.roll(-1, 1), V)
        if fault == "ids are changed":
            ids[:, 0] = 0
        if fault == "a squeeze":
            logits = logits.squeeze(0)
        if fault == "NaN at the beginning":
            logits = logits.index_fill(1, torch.tensor([0]), torch.nan)
        if fault == "noise in the logits":
            logits = logits + 0.01 * torch.randn_like(logits)
        return (logits, kept) if use_cache else logits


# What a fault must be found as, and through what, if that is said.
FAULTS = {
    "no mask": ("future", "missing"),
    "no mask in the last layer": ("future", "missing"),
    "mask off by one": ("future", "near"),
    "mask the wrong way round": ("future", "inverted"),
    "one head without mask": ("future", "heads"),
    "no mask from the 17th on": ("future", None),
    "no mask in texts of more than 30": ("future", None),
    "no mask at position 9": ("future", None),
    "all see token 11": ("future", None),
    "token 7 sees all": ("future", None),
    "blocks of four see each other": ("future", "blocks"),
    "softmax over queries": ("future", None),
    "a small fill": ("future", None),
    "norm over time": ("future", "norm"),
    "minus the mean over time": ("future", "norm"),
    "minus the mean of logits": ("future", "norm"),
    "batch statistics in training": ("future", "training"),
    "a convolution on both sides": ("future", "convolution"),
    "shifted inputs": ("future", "shifted"),
    "the next token is favoured": ("future", "ahead"),
    "a leak of a thousandth": ("future", None),
    "positions from the end": ("length", "appended"),
    "scores by the length": ("length", "appended"),
    "scaled by the length": ("length", "appended"),
    "rows see each other": ("batch", "others"),
    "scaled by the rows": ("batch", "alone"),
    "dropout left on": ("random", "eval"),
    "noise in the logits": ("random", "eval"),
    "a state from call to call": ("state", "calls"),
    "the mask of the first call": ("state", "calls"),
    "a cache that forgets": ("cache", None),
    "a cache of the last five": ("cache", "differs"),
    "new tokens at position 0": ("cache", "positions"),
    "mask aligned to the first key": ("cache", "pieces"),
    "positions that count padding": ("padding", "positions"),
    "a mask of padding that is not used": ("padding", "seen"),
    "ids are changed": ("inputs", "changed"),
    "a squeeze": ("shape", "one"),
    "NaN at the beginning": ("nan", "logits"),
    "tied and large": ("start", "above"),
    "a head that is too large": ("start", "above"),
    "a part that is not used": ("unused", "idle"),
    "a part that is cut off": ("unused", "cut"),
    "a key of its own, detached": ("unused", "cut"),
}

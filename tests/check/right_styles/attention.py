"""Right attention in five styles, and grouped, cached, multi-head attention, too."""

from math import exp, sqrt

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# attention


def attention_loops(query, key, value, mask=None):
    (B, H, T, Dh), S = query.shape, key.shape[2]
    seen = np.broadcast_to(True if mask is None else mask, (B, H, T, S))
    output = np.zeros((B, H, T, value.shape[-1]), query.dtype)
    for b, h, t in np.ndindex(B, H, T):
        keys = [s for s in range(S) if seen[b, h, t, s]]
        scores = [float(query[b, h, t] @ key[b, h, s]) / sqrt(Dh) for s in keys]
        powers = [exp(x - max(scores)) for x in scores]
        for s, power in zip(keys, powers, strict=True):
            output[b, h, t] += power / sum(powers) * value[b, h, s]
    return output


def attention_einsum(query, key, value, mask=None):
    scores = torch.einsum("bhtd,bhsd->bhts", query, key) * query.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1)
    if mask is not None:
        weights = weights * mask
    return torch.einsum("bhts,bhsd->bhtd", weights, value)


class Attention(nn.Module):
    def forward(self, query, key, value, mask=None):
        scores = query @ key.transpose(2, 3) / sqrt(query.shape[3])
        if mask is None:
            return F.softmax(scores, dim=-1) @ value
        dead = ~mask.any(-1, keepdim=True)
        weights = F.softmax(scores.masked_fill(~mask & ~dead, float("-inf")), dim=-1)
        return weights.masked_fill(dead, 0.0) @ value


def attention_module(query, key, value, mask=None):
    return Attention()(query, key, value, mask)


def attention_numpy(query, key, value, mask=None):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    if mask is not None:
        hidden = np.where(mask, scores, -np.inf)
        largest = hidden.max(-1, keepdims=True)
        powers = np.exp(hidden - np.where(np.isfinite(largest), largest, 0))
    total = powers.sum(-1, keepdims=True)
    return (powers / np.where(total > 0, total, 1) @ value).astype(query.dtype)


def attention_torch(query, key, value, mask=None):
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return output if mask is None else output * mask.any(-1, keepdim=True)


# grouped_attention


def grouped_attention_loops(query, key, value):
    each = query.shape[1] // key.shape[1]
    heads = [
        attention_loops(query[:, h : h + 1], key[:, g : g + 1], value[:, g : g + 1])
        for h in range(query.shape[1])
        for g in [h // each]
    ]
    return np.concatenate(heads, 1)


def grouped_attention_einsum(query, key, value):
    grouped = query.unflatten(1, (key.shape[1], -1))
    scores = torch.einsum("bgrtd,bgsd->bgrts", grouped, key) / sqrt(query.shape[-1])
    return torch.einsum("bgrts,bgsd->bgrtd", scores.softmax(-1), value).flatten(1, 2)


class Grouped(nn.Module):
    def forward(self, query, key, value):
        each = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(each, 1) for x in (key, value))
        return attention_module(query, key, value)


def grouped_attention_module(query, key, value):
    return Grouped()(query, key, value)


def grouped_attention_numpy(query, key, value):
    each = query.shape[1] // key.shape[1]
    return attention_numpy(query, np.repeat(key, each, 1), np.repeat(value, each, 1))


def grouped_attention_torch(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, enable_gqa=True)


# cached_step


def cached_step_loops(q, k, v, cache):
    rows = cache.setdefault("rows", [])
    rows.append((k[:, :, 0].copy(), v[:, :, 0].copy()))
    output = np.zeros_like(q)
    for b, h in np.ndindex(q.shape[:2]):
        scores = [float(q[b, h, 0] @ key[b, h]) / sqrt(q.shape[-1]) for key, _ in rows]
        powers = [exp(x - max(scores)) for x in scores]
        for power, (_, value) in zip(powers, rows, strict=True):
            output[b, h, 0] += power / sum(powers) * value[b, h]
    return output


def cached_step_einsum(q, k, v, cache):
    keys = cache["keys"] = torch.cat([cache.get("keys", k[:, :, :0]), k], 2)
    values = cache["values"] = torch.cat([cache.get("values", v[:, :, :0]), v], 2)
    return attention_einsum(q, keys, values)


class Cached(nn.Module):
    def forward(self, q, k, v, cache):
        if 0 in cache:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        cache[0], cache[1] = k, v
        return attention_module(q, k, v)


def cached_step_module(q, k, v, cache):
    return Cached()(q, k, v, cache)


def cached_step_numpy(q, k, v, cache):
    for name, new in (("k", k), ("v", v)):
        kept = [cache[name], new] if name in cache else [new]
        cache[name] = np.concatenate(kept, 2)
    return attention_numpy(q, cache["k"], cache["v"])


def cached_step_torch(q, k, v, cache):
    cache.setdefault("all", []).append((k, v))
    keys, values = (torch.cat(each, 2) for each in zip(*cache["all"], strict=True))
    return F.scaled_dot_product_attention(q, keys, values)

"""Right multi-head attention and causal masks in five styles."""

from math import sqrt

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# causal_mask


def causal_mask_loops(T, S):
    return [[s - t <= S - T for s in range(S)] for t in range(T)]


def causal_mask_einsum(T, S):
    return torch.arange(S)[None, :] <= torch.arange(S - T, S)[:, None]


class Causal(nn.Module):
    def forward(self, T, S):
        return torch.full((T, S), float("-inf")).triu(S - T + 1) == 0


def causal_mask_module(T, S):
    return Causal()(T, S)


def causal_mask_numpy(T, S):
    return np.tri(T, S, S - T, dtype=bool)


def causal_mask_torch(T, S):
    return torch.ones(T, S, dtype=torch.bool).tril(diagonal=S - T)


# multi_head


def multi_head_loops(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    (B, T, _), Dh = x.shape, len(w_q) // num_heads
    seen = np.broadcast_to(True if mask is None else mask, (B, num_heads, T, T))
    output = np.zeros((B, T, len(w_q)), x.dtype)
    for b, h in np.ndindex(B, num_heads):
        part = slice(h * Dh, (h + 1) * Dh)
        q, k, v = (x[b] @ w[part].T for w in (w_q, w_k, w_v))
        for t in range(T):
            scores = np.where(seen[b, h, t], k @ q[t] / sqrt(Dh), -np.inf)
            powers = np.exp(scores - scores.max())
            output[b, t, part] = powers @ v / powers.sum()
    return output @ w_o.T


def multi_head_einsum(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    w_q, w_k, w_v = (w.unflatten(0, (num_heads, -1)) for w in (w_q, w_k, w_v))
    q, k, v = (torch.einsum("btd,hed->bhte", x, w) for w in (w_q, w_k, w_v))
    scores = torch.einsum("bhte,bhse->bhts", q, k) / sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    w_o = w_o.unflatten(1, (num_heads, -1))
    return torch.einsum("bhts,bhse,dhe->btd", scores.softmax(-1), v, w_o)


class Heads(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.num_heads = num_heads

    def split(self, x):
        B, T, D = x.shape
        return x.reshape(B, T, self.num_heads, D // self.num_heads).transpose(1, 2)

    def forward(self, x, w_q, w_k, w_v, w_o, mask):
        q, k, v = (self.split(F.linear(x, w)) for w in (w_q, w_k, w_v))
        scores = q @ k.mT / sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), float("-inf"))
        joined = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return F.linear(joined, w_o)


def multi_head_module(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    return Heads(num_heads)(x, w_q, w_k, w_v, w_o, mask)


def multi_head_numpy(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    heads = [np.stack(np.split(x @ w.T, num_heads, -1), 1) for w in (w_q, w_k, w_v)]
    scores = heads[0] @ heads[1].swapaxes(2, 3) / np.sqrt(heads[0].shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    joined = np.concatenate([*np.moveaxis(weights @ heads[2], 1, 0)], -1)
    return (joined @ w_o.T).astype(x.dtype)


def multi_head_torch(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    (B, T, D), H = x.shape, num_heads
    if len(w_q) != D:  # torch's own has heads of width D / H only
        return multi_head_module(x, w_q, w_k, w_v, w_o, H, mask)
    if mask is not None:
        mask = ~mask.expand(B, H, T, T).reshape(B * H, T, T)  # True = hidden
    query = x.transpose(0, 1)
    output, _ = F.multi_head_attention_forward(
        *(query, query, query, D, H, None, None, None, None, False, 0.0, w_o, None),
        training=False,
        need_weights=False,
        attn_mask=mask,
        use_separate_proj_weight=True,
        q_proj_weight=w_q,
        k_proj_weight=w_k,
        v_proj_weight=w_v,
    )
    return output.transpose(0, 1)

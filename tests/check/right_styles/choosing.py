"""Right routers and indexers in five styles."""

import heapq

import numpy as np
import torch
from torch import nn

# route


def route_loops(logits, top_k, scores="softmax", bias=None):
    all_scores, all_chosen, all_weights = [], [], []
    for row in logits.tolist():
        if scores == "sigmoid":
            s = [1 / (1 + np.exp(-x)) for x in row]
        else:
            powers = [np.exp(x - max(row)) for x in row]
            s = [x / sum(powers) for x in powers]
        add = [0] * len(s) if bias is None else bias
        wanted = {e: s[e] + add[e] for e in range(len(s))}
        chosen = heapq.nlargest(top_k, wanted, key=wanted.get)
        all_scores.append(s)
        all_chosen.append(chosen)
        all_weights.append([s[e] / sum(s[e] for e in chosen) for e in chosen])
    made = (np.array(x).astype(logits.dtype) for x in (all_scores, all_weights))
    scores, weights = made
    return scores, np.array(all_chosen), weights


def route_einsum(logits, top_k, scores="softmax", bias=None):
    """Gather with a matrix of ones and zeros."""
    s = logits.sigmoid() if scores == "sigmoid" else logits.softmax(-1)
    wanted = s if bias is None else s + bias
    chosen = wanted.argsort(-1, descending=True)[:, :top_k]
    marked = torch.nn.functional.one_hot(chosen, logits.shape[1]).to(s.dtype)
    weights = torch.einsum("nke,ne->nk", marked, s)
    return s, chosen, weights / torch.einsum("nk->n", weights)[:, None]


class Router(nn.Module):
    def __init__(self, top_k, scores, bias):
        super().__init__()
        self.top_k, self.scores, self.bias = top_k, scores, bias

    def forward(self, logits):
        s = torch.sigmoid(logits) if self.scores == "sigmoid" else logits.softmax(1)
        wanted = s if self.bias is None else s + self.bias
        _, chosen = torch.topk(wanted, self.top_k, 1)
        weights = s.gather(1, chosen)
        return s, chosen, weights / (weights.sum(1, keepdim=True) + 1e-20)


def route_module(logits, top_k, scores="softmax", bias=None):
    return Router(top_k, scores, bias)(logits)


def route_numpy(logits, top_k, scores="softmax", bias=None):
    if scores == "sigmoid":
        s = np.exp(-np.logaddexp(0, -logits))
    else:
        s = np.exp(logits - np.logaddexp.reduce(logits, -1, keepdims=True))
    chosen = (s if bias is None else s + bias).argsort(-1)[:, ::-1][:, :top_k]
    weights = s[np.arange(len(s))[:, None], chosen]
    return s, chosen, weights / weights.sum(-1, keepdims=True)


def route_torch(logits, top_k, scores="softmax", bias=None):
    """As in transformers' DeepSeek-V3; a softmax of the chosen logits is the same."""
    if scores == "sigmoid":
        s = logits.sigmoid()
        chosen = (s if bias is None else s + bias[None]).topk(top_k).indices
        weights = s.gather(1, chosen)
        return s, chosen, weights / weights.sum(-1, True)
    s = logits.softmax(-1)
    chosen = (s if bias is None else s + bias[None]).topk(top_k).indices
    return s, chosen, logits.gather(1, chosen).softmax(-1)


# index_scores


def index_scores_loops(query, key, weights):
    (B, H, T, Dh), S = query.shape, key.shape[2]
    scores = np.zeros((B, 1, T, S), query.dtype)
    for b, h, t, s in np.ndindex(B, H, T, S):
        product = sum(x * y for x, y in zip(query[b, h, t], key[b, 0, s], strict=True))
        if product > 0:
            scores[b, 0, t, s] += weights[b, h, t] * product / np.sqrt(Dh * H)
    return scores


def index_scores_einsum(query, key, weights):
    product = torch.einsum("bhtd,bxsd->bhts", query, key).relu()
    summed = torch.einsum("bhts,bht->bts", product, weights)
    return summed[:, None] * (query.shape[1] * query.shape[3]) ** -0.5


class Indexer(nn.Module):
    def forward(self, query, key, weights):
        wide = query.float() if query.dtype == torch.bfloat16 else query
        product = torch.relu(wide @ key.to(wide.dtype).mT / wide.shape[-1] ** 0.5)
        scaled = weights.to(wide.dtype).unsqueeze(-1) * wide.shape[1] ** -0.5
        return (product * scaled).sum(1, keepdim=True).to(query.dtype)


def index_scores_module(query, key, weights):
    return Indexer()(query, key, weights)


def index_scores_numpy(query, key, weights):
    H, Dh = query.shape[1], query.shape[3]
    key = np.swapaxes(key, 2, 3)
    above = np.clip(np.matmul(query, key) / np.sqrt(Dh), 0, None)
    rows = np.moveaxis(weights, 1, 2)[:, :, None]  # (B, T, 1, H)
    scores = np.matmul(rows, np.moveaxis(above, 1, 2)) / np.sqrt(H)
    return np.moveaxis(scores, 2, 1).astype(query.dtype)


def index_scores_torch(query, key, weights):
    """As in DeepSeek-V3.2: the scales go into the weights."""
    weights = weights * query.shape[1] ** -0.5 * query.shape[-1] ** -0.5
    scores = 0
    for q, w in zip(query.unbind(1), weights.unbind(1), strict=True):
        scores = scores + w[:, :, None] * torch.relu(torch.bmm(q, key[:, 0].mT))
    return scores[:, None]


# choose_keys


def choose_keys_loops(scores, top_k, attn_mask):
    B, _, T, S = scores.shape
    mask = np.broadcast_to(attn_mask, scores.shape)
    chosen = np.zeros((B, 1, T, S), bool)
    for b, t in np.ndindex(B, T):
        for _ in range(top_k):
            left = [s for s in range(S) if mask[b, 0, t, s] and not chosen[b, 0, t, s]]
            if left:
                best = max(left, key=scores[b, 0, t].__getitem__)
                chosen[b, 0, t, best] = True
    return chosen


def choose_keys_einsum(scores, top_k, attn_mask):
    """Count for each key those that go before it."""
    place = torch.arange(scores.shape[-1])
    one, other = scores[..., :, None], scores[..., None, :]
    before = (other > one) | ((other == one) & (place < place[:, None]))
    mask = attn_mask.expand(scores.shape)
    number = torch.einsum("...ij,...j->...i", before.double(), mask.double())
    return mask & (number < top_k)


class Chooser(nn.Module):
    def __init__(self, top_k):
        super().__init__()
        self.top_k = top_k

    def forward(self, scores, attn_mask):
        hidden = scores.masked_fill(~attn_mask, float("-inf"))
        order = hidden.sort(dim=-1, descending=True, stable=True).indices
        best = order[..., : self.top_k]
        chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True)
        return chosen.logical_and(attn_mask)


def choose_keys_module(scores, top_k, attn_mask):
    return Chooser(top_k)(scores, attn_mask)


def choose_keys_numpy(scores, top_k, attn_mask):
    wanted = np.where(attn_mask, -scores, np.inf)
    best = np.argsort(wanted, -1, kind="stable")[..., :top_k]
    chosen = np.zeros(scores.shape, bool)
    np.put_along_axis(chosen, best, True, -1)
    return chosen & attn_mask


def choose_keys_torch(scores, top_k, attn_mask):
    """All above the k-th best, and of those equal to it the first that still fit."""
    hidden = scores.masked_fill(~attn_mask, -torch.inf)
    least = hidden.topk(min(top_k, hidden.shape[-1])).values[..., -1:]
    above, equal = hidden > least, hidden == least
    left = top_k - above.sum(-1, keepdim=True)
    return (above | (equal & (equal.cumsum(-1) <= left))) & attn_mask

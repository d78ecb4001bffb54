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

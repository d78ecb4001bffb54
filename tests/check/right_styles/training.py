"""Right losses, schedules and filters in five styles."""

from math import exp, log, sqrt

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# smoothed_loss


def smoothed_loss_loops(logits, targets, pad_id, smoothing):
    V, total, count = logits.shape[-1], 0.0, 0
    rows = logits.reshape(-1, V).tolist()
    for row, target in zip(rows, targets.ravel().tolist(), strict=True):
        if target != pad_id:
            largest = max(row)
            norm = largest + log(sum(exp(x - largest) for x in row))
            total += norm - (1 - smoothing) * row[target] - smoothing / V * sum(row)
            count += 1
    return total / count


def smoothed_loss_einsum(logits, targets, pad_id, smoothing):
    V, real = logits.shape[-1], (targets != pad_id).to(logits.dtype)
    q = F.one_hot(targets, V) * (1 - smoothing) + smoothing / V
    losses = -torch.einsum("...v,...v->...", q.to(logits.dtype), logits.log_softmax(-1))
    return (losses * real).sum() / real.sum()


class Loss(nn.Module):
    def __init__(self, pad_id, smoothing):
        super().__init__()
        self.pad_id, self.smoothing = pad_id, smoothing

    def forward(self, logits, targets):
        keep = targets != self.pad_id
        log_p = nn.LogSoftmax(-1)(logits[keep])
        likely = log_p.gather(-1, targets[keep][:, None]).mean()
        return -(1 - self.smoothing) * likely - self.smoothing * log_p.mean()


def smoothed_loss_module(logits, targets, pad_id, smoothing):
    return Loss(pad_id, smoothing)(logits, targets)


def smoothed_loss_numpy(logits, targets, pad_id, smoothing):
    x, y = logits[targets != pad_id], targets[targets != pad_id]
    x = x - x.max(-1, keepdims=True)
    log_p = x - np.log(np.exp(x).sum(-1, keepdims=True))
    likely = log_p[np.arange(len(y)), y]
    return -np.mean((1 - smoothing) * likely + smoothing * log_p.mean(-1))


def smoothed_loss_torch(logits, targets, pad_id, smoothing):
    x, y = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    return F.cross_entropy(x, y, ignore_index=pad_id, label_smoothing=smoothing)


# noam


def noam_loops(step, d_model, warmup):
    rate = step / warmup**1.5 if step < warmup else 1 / sqrt(step)
    return rate / sqrt(d_model)


def noam_einsum(step, d_model, warmup):
    both = torch.tensor([step**-0.5, step * warmup**-1.5], dtype=torch.double)
    return (d_model**-0.5 * both).min()


class Noam(nn.Module):
    def __init__(self, d_model, warmup):
        super().__init__()
        self.d_model, self.warmup = d_model, warmup

    def forward(self, step):
        return (
            min(step / self.warmup, (self.warmup / step) ** 0.5)
            / (self.d_model * self.warmup) ** 0.5
        )


def noam_module(step, d_model, warmup):
    return Noam(d_model, warmup)(step)


def noam_numpy(step, d_model, warmup):
    return np.minimum(np.float64(step) ** -0.5, step * np.float64(warmup) ** -1.5) * (
        np.float64(d_model) ** -0.5
    )


def noam_torch(step, d_model, warmup):
    steps = torch.tensor(float(step), dtype=torch.double)
    return torch.minimum(steps.rsqrt(), steps * warmup**-1.5) * d_model**-0.5


# top_p


def top_p_loops(logits, p):
    output = np.full_like(logits, -np.inf)
    for b, row in enumerate(logits.tolist()):
        powers = [exp(x - max(row)) for x in row]
        total = 0.0
        for token in sorted(range(len(row)), key=lambda i: -row[i]):
            output[b, token] = logits[b, token]
            total += powers[token] / sum(powers)
            if total >= p:
                break
    return output


def top_p_einsum(logits, p):
    """Sum what is likelier than a token."""
    shares = logits.softmax(-1)
    before = shares[:, None, :] > shares[:, :, None]
    above = torch.einsum("bij,bj->bi", before.to(shares.dtype), shares)
    return logits.masked_fill(above >= p, -torch.inf)


class TopP(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, logits):
        shares, order = logits.softmax(-1).sort(descending=True)
        hidden = shares.cumsum(-1) - shares >= self.p
        return logits.masked_fill(hidden.gather(-1, order.argsort(-1)), -torch.inf)


def top_p_module(logits, p):
    return TopP(p)(logits)


def top_p_numpy(logits, p):
    order = np.argsort(-logits, -1)
    ranked = np.take_along_axis(logits, order, -1)
    shares = np.exp(ranked - ranked[:, :1])
    shares /= shares.sum(-1, keepdims=True)
    ranked[np.cumsum(shares, -1) - shares >= p] = -np.inf
    output = np.empty_like(logits)
    np.put_along_axis(output, order, ranked, -1)
    return output


def top_p_torch(logits, p):
    ranked, order = torch.sort(logits, descending=True)
    drop = torch.cumsum(ranked.softmax(-1), -1) >= p
    drop = F.pad(drop[:, :-1], (1, 0))  # what reaches p stays
    return logits.masked_fill(drop.scatter(-1, order, drop), float("-inf"))

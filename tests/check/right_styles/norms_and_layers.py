"""Right norms, SwiGLU, mixtures of experts and LoRA in five styles."""

from math import exp, sqrt

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# layer_norm


def layer_norm_loops(x, weight, bias, eps):
    rows = []
    for row in x.reshape(-1, x.shape[-1]).tolist():
        mean = sum(row) / len(row)
        root = sqrt(sum((y - mean) ** 2 for y in row) / len(row) + eps)
        rows.append([(y - mean) / root for y in row])
    return (np.array(rows).reshape(x.shape) * weight + bias).astype(x.dtype)


def layer_norm_einsum(x, weight, bias, eps):
    wide = x.double()
    centred = wide - wide.mean(-1, keepdim=True)
    variance = torch.einsum("...d,...d->...", centred, centred)[..., None] / x.shape[-1]
    return (centred * (variance + eps).rsqrt() * weight + bias).to(x.dtype)


class LayerNorm(nn.Module):
    def forward(self, x, weight, bias, eps):
        mean, wide = x.float().mean(-1, keepdim=True).to(x.dtype), x.double()
        mean = wide.mean(-1, keepdim=True) if x.dtype == torch.double else mean
        variance = wide.var(-1, keepdim=True, unbiased=False)
        return (weight * (wide - mean) / torch.sqrt(variance + eps) + bias).to(x.dtype)


def layer_norm_module(x, weight, bias, eps):
    return LayerNorm()(x, weight, bias, eps)


def layer_norm_numpy(x, weight, bias, eps):
    z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return (z * weight + bias).astype(x.dtype)


def layer_norm_torch(x, weight, bias, eps):
    return F.layer_norm(x, (x.shape[-1],), weight, bias, eps)


# rms_norm


def rms_norm_loops(x, weight, eps):
    rows = [
        [y / sqrt(sum(z * z for z in row) / len(row) + eps) for y in row]
        for row in x.reshape(-1, x.shape[-1]).tolist()
    ]
    return (np.array(rows).reshape(x.shape) * weight).astype(x.dtype)


def rms_norm_einsum(x, weight, eps):
    wide = x.double()
    square = torch.einsum("...d,...d->...", wide, wide)[..., None] / x.shape[-1]
    return (wide * (square + eps) ** -0.5 * weight).to(x.dtype)


class RMSNorm(nn.Module):
    """As Llama has it, but in float64."""

    def forward(self, x, weight, eps):
        wide = x.to(torch.float64)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        return weight * wide.to(x.dtype)


def rms_norm_module(x, weight, eps):
    return RMSNorm()(x, weight, eps)


def rms_norm_numpy(x, weight, eps):
    return (
        x
        / np.sqrt(np.mean(np.square(x), -1, keepdims=True) + x.dtype.type(eps))
        * weight
    )


def rms_norm_torch(x, weight, eps):
    return F.rms_norm(x, weight.shape, weight, eps)


# swiglu


def swiglu_loops(x, w_gate, w_up, w_down):
    rows = x.reshape(-1, x.shape[-1])
    output = np.zeros_like(rows)
    for n, row in enumerate(rows):
        for f in range(len(w_gate)):
            gate, up = float(w_gate[f] @ row), float(w_up[f] @ row)
            output[n] += gate / (1 + exp(-gate)) * up * w_down[:, f]
    return output.reshape(x.shape)


def swiglu_einsum(x, w_gate, w_up, w_down):
    gate, up = (torch.einsum("...d,fd->...f", x, w) for w in (w_gate, w_up))
    return torch.einsum("...f,df->...d", gate * gate.sigmoid() * up, w_down)


class SwiGLU(nn.Module):
    def __init__(self, w_gate, w_up, w_down):
        super().__init__()
        self.both, self.down = torch.cat((w_gate, w_up)), w_down

    def forward(self, x):
        gate, up = (x @ self.both.T).chunk(2, -1)
        return (nn.SiLU()(gate) * up) @ self.down.T


def swiglu_module(x, w_gate, w_up, w_down):
    return SwiGLU(w_gate, w_up, w_down)(x)


def swiglu_numpy(x, w_gate, w_up, w_down):
    gate = x @ w_gate.T
    return (gate / (1 + np.exp(-gate)) * (x @ w_up.T)) @ w_down.T


def swiglu_torch(x, w_gate, w_up, w_down):
    return F.linear(F.silu(F.linear(x, w_gate)) * F.linear(x, w_up), w_down)


# moe


def moe_loops(x, router, experts, k):
    output = np.zeros_like(x)
    for n in range(len(x)):
        logits = (router @ x[n]).tolist()
        best = sorted(range(len(logits)), key=logits.__getitem__)[-k:]
        powers = [exp(logits[e] - logits[best[-1]]) for e in best]
        for e, power in zip(best, powers, strict=True):
            output[n] += power / sum(powers) * experts[e](x[[n]])[0]
    return output


def moe_einsum(x, router, experts, k):
    """Ask every expert for every token, and weigh most of them by 0."""
    logits = torch.einsum("nd,ed->ne", x, router)
    least = logits.topk(k, -1).values[:, -1:]
    weights = logits.masked_fill(logits < least, -torch.inf).softmax(-1)
    return torch.einsum("ne,end->nd", weights, torch.stack([f(x) for f in experts]))


class Mixture(nn.Module):
    """As Mixtral has it: softmax over all, then divide by the sum of the chosen."""

    def __init__(self, experts, k):
        super().__init__()
        self.experts, self.k = experts, k

    def forward(self, x, router):
        weights, chosen = F.linear(x, router).softmax(-1).topk(self.k, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        output = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows, place = (chosen == e).nonzero(as_tuple=True)
            if rows.numel():
                made = weights[rows, place, None] * expert(x[rows])
                output = output.index_add(0, rows, made)
        return output


def moe_module(x, router, experts, k):
    return Mixture(experts, k)(x, router)


def moe_numpy(x, router, experts, k):
    logits = x @ router.T
    chosen = np.argsort(-logits, -1)[:, :k]
    best = np.take_along_axis(logits, chosen, -1)
    weights = np.exp(best - best.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    output = np.zeros_like(x)
    for e in np.unique(chosen):
        rows, place = np.nonzero(chosen == e)
        output[rows] += weights[rows, place, None] * experts[e](x[rows])
    return output


def moe_torch(x, router, experts, k):
    best, chosen = (x @ router.mT).topk(k)
    made = [
        torch.cat([experts[e](row[None]) for e in each])
        for row, each in zip(x, chosen.tolist(), strict=True)
    ]
    return (best.softmax(-1)[:, None] @ torch.stack(made)).squeeze(1)


# lora


def lora_loops(weight, a, b, alpha):
    merged = np.array(weight)
    for o, i in np.ndindex(merged.shape):
        for r in range(len(a)):
            merged[o, i] += alpha / len(a) * b[o, r] * a[r, i]
    return merged


def lora_einsum(weight, a, b, alpha):
    return weight + torch.einsum("or,ri->oi", b, a) * (alpha / a.shape[0])


class LoRA(nn.Module):
    def __init__(self, weight, a, b, alpha):
        super().__init__()
        self.weight, self.a, self.b, self.scale = weight, a, b, alpha / b.shape[1]

    def merged(self):
        return self.weight + self.b @ (self.scale * self.a)


def lora_module(weight, a, b, alpha):
    return LoRA(weight, a, b, alpha).merged()


def lora_numpy(weight, a, b, alpha):
    return weight + np.sum(b.T[:, :, None] * a[:, None], 0) * alpha / len(a)


def lora_torch(weight, a, b, alpha):
    return torch.addmm(weight, b, a, alpha=alpha / len(a))

"""Right clamped gates, Sinkhorn's rounds and hyper-connections in five styles."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# clamped_swiglu


def clamped_swiglu_loops(x, w_in, b_in, w_out, b_out, limit=7.0, alpha=1.702):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        inner = []
        for f in range(len(w_in) // 2):
            gate = min(w_in[2 * f] @ row + b_in[2 * f], limit)
            up = w_in[2 * f + 1] @ row + b_in[2 * f + 1]
            up = max(min(up, limit), -limit)
            inner.append((up + 1) * gate * (1 + np.tanh(alpha * gate / 2)) / 2)
        rows.append(w_out @ np.array(inner) + b_out)
    return np.array(rows).reshape(x.shape).astype(x.dtype)


def clamped_swiglu_einsum(x, w_in, b_in, w_out, b_out, limit=7.0, alpha=1.702):
    w, b = w_in.unflatten(0, (-1, 2)), b_in.view(-1, 2)
    gate, up = (torch.einsum("...d,fid->...fi", x, w) + b).unbind(-1)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    inner = gate * torch.sigmoid(gate * alpha) * (up + 1)
    return torch.einsum("...f,df->...d", inner, w_out) + b_out


class Clamped(nn.Module):
    def __init__(self, limit, alpha):
        super().__init__()
        self.limit, self.alpha = limit, alpha

    def forward(self, x, w_in, b_in, w_out, b_out):
        gate = F.linear(x, w_in[::2], b_in[::2])
        up = F.linear(x, w_in[1::2], b_in[1::2])
        gate = self.limit - torch.relu(self.limit - gate)
        up = torch.clamp(up, min=-self.limit, max=self.limit)
        glu = F.silu(gate * self.alpha) / self.alpha
        return F.linear(glu + up * glu, w_out, b_out)


def clamped_swiglu_module(x, w_in, b_in, w_out, b_out, limit=7.0, alpha=1.702):
    return Clamped(limit, alpha)(x, w_in, b_in, w_out, b_out)


def clamped_swiglu_numpy(x, w_in, b_in, w_out, b_out, limit=7.0, alpha=1.702):
    both = x @ w_in.T + b_in
    both = both.reshape(*x.shape[:-1], -1, 2)
    gate, up = np.minimum(both[..., 0], limit), both[..., 1].clip(-limit, limit)
    swish = gate * np.exp(-np.logaddexp(0, -alpha * gate))
    return ((up + 1) * swish) @ w_out.T + b_out


def clamped_swiglu_torch(x, w_in, b_in, w_out, b_out, limit=7.0, alpha=1.702):
    """As in gpt-oss, torch/model.py."""
    t = torch.einsum("...d,fd->...f", x, w_in) + b_in
    x_glu, x_linear = t[..., ::2], t[..., 1::2]
    x_glu = x_glu.clamp(min=None, max=limit)
    x_linear = x_linear.clamp(min=-limit, max=limit)
    out_glu = x_glu * torch.sigmoid(alpha * x_glu)
    return (out_glu * (x_linear + 1)) @ w_out.mT + b_out


# sinkhorn


def sinkhorn_loops(scores, rounds, eps):
    N, out = scores.shape[-1], np.empty_like(scores)
    for at in np.ndindex(scores.shape[:-2]):
        M = [[float(np.exp(s - max(row))) for s in row] for row in scores[at]]
        M = [[m / sum(row) + eps for m in row] for row in M]
        for again in range(rounds):
            if again:
                M = [[m / (sum(row) + eps) for m in row] for row in M]
            sums = [sum(row[j] for row in M) + eps for j in range(N)]
            M = [[row[j] / sums[j] for j in range(N)] for row in M]
        out[at] = M
    return out


def sinkhorn_einsum(scores, rounds, eps):
    """Keep a factor of each row and of each column."""
    M = scores.softmax(-1) + eps
    row, column = torch.ones_like(M[..., 0]), torch.ones_like(M[..., 0])
    for again in range(rounds):
        if again:
            sums = torch.einsum("...ij,...i,...j->...i", M, row, column) + eps
            row = row / sums
        column = column / (torch.einsum("...ij,...i,...j->...j", M, row, column) + eps)
    return torch.einsum("...ij,...i,...j->...ij", M, row, column)


class Sinkhorn(nn.Module):
    def __init__(self, rounds, eps):
        super().__init__()
        self.rounds, self.eps = rounds, eps

    def divided(self, matrix, axis):
        return matrix / (matrix.sum(axis, keepdim=True) + self.eps)

    def forward(self, scores):
        matrix = self.divided(torch.softmax(scores, -1) + self.eps, -2)
        for _ in range(self.rounds - 1):
            matrix = self.divided(self.divided(matrix, -1), -2)
        return matrix


def sinkhorn_module(scores, rounds, eps):
    return Sinkhorn(rounds, eps)(scores)


def sinkhorn_numpy(scores, rounds, eps):
    M = np.exp(scores - np.logaddexp.reduce(scores, -1, keepdims=True)) + eps
    for axis in (-2, -1) * (rounds - 1) + (-2,):
        M = M / (M.sum(axis, keepdims=True) + eps)
    return M


def sinkhorn_torch(scores, rounds, eps):
    """As in DeepSeek-V4's kernel: rows, then columns, and the rest in a loop."""
    comb = scores - scores.amax(-1, keepdim=True)
    comb = comb.exp() / comb.exp().sum(dim=-1, keepdim=True) + eps
    comb = comb / (comb.sum(dim=-2, keepdim=True) + eps)
    for _ in range(rounds - 1):
        comb = comb / (comb.sum(dim=-1, keepdim=True) + eps)
        comb = comb / (comb.sum(dim=-2, keepdim=True) + eps)
    return comb


# hyper_connection


def hyper_connection_loops(x, proj, scale, base, branch):
    (B, T, N, D), out = x.shape, np.zeros_like(x)
    scales = [0] * N + [1] * N + [2] * N * N
    for b, t in np.ndindex(B, T):
        z = x[b, t].reshape(N * D)
        z = z / np.sqrt((z * z).sum() / (N * D) + 0.01)
        made = [proj[i] @ z * scale[scales[i]] + base[i] for i in range(len(proj))]
        M = sinkhorn_loops(np.reshape(made[2 * N :], (N, N)), 3, 0.01)
        read = [(1 + np.tanh(made[j] / 2)) / 2 + 0.01 for j in range(N)]
        y = branch @ sum(read[j] * x[b, t, j] for j in range(N))
        for k in range(N):
            out[b, t, k] = (1 + np.tanh(made[N + k] / 2)) * y
            for j in range(N):
                out[b, t, k] += M[j, k] * x[b, t, j]
    return out


def hyper_connection_einsum(x, proj, scale, base, branch):
    N = x.shape[2]
    z = x.flatten(2)
    z = z * (z.square().mean(-1, keepdim=True) + 0.01).rsqrt()
    parts = torch.split(torch.einsum("btz,iz->bti", z, proj), (N, N, N * N), -1)
    added = torch.split(base, (N, N, N * N))
    r, w, M = (s * p + a for s, p, a in zip(scale, parts, added, strict=True))
    M = sinkhorn_einsum(M.unflatten(-1, (N, N)), 3, 0.01)
    y = torch.einsum("btn,btnd,ed->bte", r.sigmoid() + 0.01, x, branch)
    mixed = torch.einsum("btjk,btjd->btkd", M, x)
    return mixed + torch.einsum("btk,btd->btkd", 2 * w.sigmoid(), y)


class Connected(nn.Module):
    def forward(self, x, proj, scale, base, branch):
        B, T, N, D = x.shape
        z = F.rms_norm(x.reshape(B, T, N * D), (N * D,), eps=0.01)
        sizes = torch.tensor([N, N, N * N])
        made = F.linear(z, proj) * scale.repeat_interleave(sizes) + base
        read, write = made[..., :N].sigmoid() + 0.01, made[..., N : 2 * N].sigmoid()
        M = Sinkhorn(3, 0.01)(made[..., 2 * N :].reshape(B, T, N, N))
        y = (read.unsqueeze(-2) @ x) @ branch.T  # (B, T, 1, D)
        return M.mT @ x + (write + write).unsqueeze(-1) @ y


def hyper_connection_module(x, proj, scale, base, branch):
    return Connected()(x, proj, scale, base, branch)


def hyper_connection_numpy(x, proj, scale, base, branch):
    B, T, N, _ = x.shape
    z = x.reshape(B, T, -1)
    made = z / np.sqrt(np.mean(z**2, -1, keepdims=True) + 0.01) @ proj.T
    made = made * np.repeat(scale, (N, N, N * N)) + base
    read, write, M = np.split(made, (N, 2 * N), -1)
    read, write = 1 / (1 + np.exp(-read)) + 0.01, 2 / (1 + np.exp(-write))
    M = sinkhorn_numpy(M.reshape(B, T, N, N), 3, 0.01)
    y = (read[..., None, :] @ x) @ branch.T
    return np.swapaxes(M, 2, 3) @ x + write[..., None] * y


def hyper_connection_torch(x, proj, scale, base, branch):
    """As in DeepSeek-V4: the output, and what is left of the streams."""
    n = x.shape[2]
    flat = x.flatten(2)
    rsqrt = torch.rsqrt(flat.square().mean(-1, keepdim=True) + 0.01)
    mixes = F.linear(flat, proj) * rsqrt
    pre = torch.sigmoid(mixes[..., :n] * scale[0] + base[:n]) + 0.01
    post = 2 * torch.sigmoid(mixes[..., n : 2 * n] * scale[1] + base[n : 2 * n])
    comb = mixes[..., 2 * n :] * scale[2] + base[2 * n :]
    comb = sinkhorn_torch(comb.unflatten(-1, (n, n)), 3, 0.01)
    y = F.linear((pre.unsqueeze(-1) * x).sum(2), branch)
    left = (comb.unsqueeze(-1) * x.unsqueeze(-2)).sum(2)
    return post.unsqueeze(-1) * y.unsqueeze(-2) + left

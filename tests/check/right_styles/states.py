"""Right layers with a state in five styles."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# delta_rule


def delta_rule_loops(query, key, value, beta, log_decay, state):
    (B, H, T, Dk), Dv = query.shape, value.shape[-1]
    S, out = np.array(state), np.zeros_like(value)
    decay = np.broadcast_to(log_decay.reshape(B, H, T, -1), query.shape)
    for b, h, t in np.ndindex(B, H, T):
        for i in range(Dk):
            S[b, h, i] *= np.exp(decay[b, h, t, i])
        for j in range(Dv):
            answer = sum(S[b, h, i, j] * key[b, h, t, i] for i in range(Dk))
            error = beta[b, h, t] * (value[b, h, t, j] - answer)
            for i in range(Dk):
                S[b, h, i, j] += key[b, h, t, i] * error
            out[b, h, t, j] = sum(S[b, h, i, j] * query[b, h, t, i] for i in range(Dk))
    return out, S


def delta_rule_einsum(query, key, value, beta, log_decay, state):
    out = []
    for t in range(query.shape[2]):
        q, k, v, b = (x[:, :, t] for x in (query, key, value, beta))
        a = log_decay[:, :, t].exp().reshape(*b.shape, -1)
        state = torch.einsum("bhkv,bhk->bhkv", state, a.expand(k.shape))
        error = v - torch.einsum("bhkv,bhk->bhv", state, k)
        state = state + torch.einsum("bh,bhk,bhv->bhkv", b, k, error)
        out.append(torch.einsum("bhkv,bhk->bhv", state, q))
    return torch.stack(out, 2), state


class Delta(nn.Module):
    """(I - β k kᵀ) α S + β k vᵀ."""

    def forward(self, q, k, v, beta, log_decay, state):
        eye = torch.eye(q.shape[-1], dtype=q.dtype)
        alpha = log_decay.exp()
        alpha = alpha[..., None] if alpha.ndim == 3 else alpha
        outputs = []
        for t in range(q.shape[2]):
            column = k[:, :, t, :, None]
            weighted = beta[:, :, t, None, None] * column
            state = (eye - weighted @ column.mT) @ (alpha[:, :, t, :, None] * state)
            state = state + weighted @ v[:, :, t, None]
            outputs.append(q[:, :, t, None] @ state)
        return torch.cat(outputs, 2), state


def delta_rule_module(query, key, value, beta, log_decay, state):
    return Delta()(query, key, value, beta, log_decay, state)


def delta_rule_numpy(query, key, value, beta, log_decay, state):
    alpha = np.exp(log_decay if log_decay.ndim == 4 else log_decay[..., None])
    out = np.empty_like(value)
    for t in range(query.shape[2]):
        state = state * alpha[:, :, t, :, None]
        k = key[:, :, t, None]
        error = beta[:, :, t, None, None] * (value[:, :, t, None] - k @ state)
        state = state + np.swapaxes(k, 2, 3) @ error
        out[:, :, t] = (query[:, :, t, None] @ state)[:, :, 0]
    return out, state


def delta_rule_torch(query, key, value, beta, log_decay, state):
    """As in flash-linear-attention's naive form."""
    if log_decay.ndim == 3:
        log_decay = log_decay[..., None].expand(query.shape)
    outputs, S = [], state.clone()
    for q, k, v, b, g in zip(
        *(x.unbind(2) for x in (query, key, value, beta, log_decay)), strict=True
    ):
        S = S * g.exp()[..., None]
        error = (v - (S * k[..., None]).sum(-2)) * b[..., None]
        S = S + k.unsqueeze(-1) * error.unsqueeze(-2)
        outputs.append(torch.matmul(S.mT, q[..., None])[..., 0])
    return torch.stack(outputs, 2), S


# short_convolution


def short_convolution_loops(x, weight, past, bias=None):
    (B, T, C), K = x.shape, weight.shape[1]
    y = np.zeros_like(x)
    last = [[[*past[b, :, c], *x[b, :, c]] for c in range(C)] for b in range(B)]
    for b, t, c in np.ndindex(B, T, C):
        window = last[b][c][t : t + K]
        y[b, t, c] = sum(w * z for w, z in zip(weight[c], window, strict=True))
        y[b, t, c] += 0 if bias is None else bias[c]
    kept = [[row[T:] for row in rows] for rows in last]
    return y, np.array(kept, x.dtype).transpose(0, 2, 1)


def short_convolution_einsum(x, weight, past, bias=None):
    seen, T = torch.cat((past, x), 1), x.shape[1]
    windows = seen.unfold(1, weight.shape[1], 1)  # (B, T, C, K)
    y = torch.einsum("btck,ck->btc", windows, weight)
    return (y if bias is None else y + bias), seen[:, T:]


class Convolution(nn.Module):
    def forward(self, x, weight, past, bias):
        rows, y = list(past.unbind(1)), []
        for token in x.unbind(1):
            rows.append(token)
            mixed = (torch.stack(rows[-weight.shape[1] :], -1) * weight).sum(-1)
            y.append(mixed if bias is None else mixed + bias)
        kept = rows[len(rows) - past.shape[1] :]
        return torch.stack(y, 1), torch.stack(kept, 1)


def short_convolution_module(x, weight, past, bias=None):
    return Convolution()(x, weight, past, bias)


def short_convolution_numpy(x, weight, past, bias=None):
    seen = np.concatenate((past, x), 1)
    windows = np.lib.stride_tricks.sliding_window_view(seen, weight.shape[1], 1)
    y = (windows * weight).sum(-1) + (0 if bias is None else bias)
    return y.astype(x.dtype), seen[:, -past.shape[1] :]


def short_convolution_torch(x, weight, past, bias=None):
    seen = torch.cat((past, x), 1)
    y = F.conv1d(seen.mT, weight[:, None], bias, groups=x.shape[-1]).mT
    return y, seen[:, x.shape[1] :]


# state_space


def state_space_loops(x, step, rate, into, out_of, state):
    (B, H, T, P), N = x.shape, into.shape[-1]
    S, y = np.array(state), np.zeros_like(x)
    for b, h, t, p in np.ndindex(B, H, T, P):
        for n in range(N):
            S[b, h, n, p] *= np.exp(-step[b, h, t] * rate[h])
            S[b, h, n, p] += step[b, h, t] * into[b, h, t, n] * x[b, h, t, p]
            y[b, h, t, p] += S[b, h, n, p] * out_of[b, h, t, n]
    return y, S


def state_space_einsum(x, step, rate, into, out_of, state):
    kept = torch.exp(-torch.einsum("bht,h->bht", step, rate))
    y = []
    for t in range(x.shape[2]):
        new = torch.einsum("bh,bhn,bhp->bhnp", step[:, :, t], into[:, :, t], x[:, :, t])
        state = torch.einsum("bh,bhnp->bhnp", kept[:, :, t], state) + new
        y.append(torch.einsum("bhnp,bhn->bhp", state, out_of[:, :, t]))
    return torch.stack(y, 2), state


class Mamba(nn.Module):
    """All tokens at once: (C Bᵀ · decay) (Δ x), and the state that was there."""

    def forward(self, x, step, rate, into, out_of, state):
        a = (-step * rate[:, None]).cumsum(-1)
        apart = (a[..., :, None] - a[..., None, :]).tril()
        mixed = (out_of @ into.mT * apart.exp()).tril() * step[..., None, :]
        y = mixed @ x + a.exp()[..., None] * (out_of @ state)
        written = (step * (a[..., -1:] - a).exp())[..., None] * into
        return y, a[..., -1, None, None].exp() * state + written.mT @ x


def state_space_module(x, step, rate, into, out_of, state):
    return Mamba()(x, step, rate, into, out_of, state)


def state_space_numpy(x, step, rate, into, out_of, state):
    y = np.empty_like(x)
    for t in range(x.shape[2]):
        d = step[:, :, t, None, None]
        new = np.swapaxes(into[:, :, t, None], 2, 3) @ x[:, :, t, None]
        state = np.exp(-d * rate.reshape(1, -1, 1, 1)) * state + d * new
        y[:, :, t] = (out_of[:, :, t, None] @ state)[:, :, 0]
    return y, state


def state_space_torch(x, step, rate, into, out_of, state):
    """As in mamba_simple's step: dA and dB first."""
    dA = torch.exp(-step * rate.view(1, -1, 1))
    dBx = (step[..., None] * into).unsqueeze(-1) * x.unsqueeze(-2)
    y, h = [], state
    for a, b, c in zip(dA.unbind(2), dBx.unbind(2), out_of.unbind(2), strict=True):
        h = a[..., None, None] * h + b
        y.append((h * c.unsqueeze(-1)).sum(-2))
    return torch.stack(y, dim=2), h

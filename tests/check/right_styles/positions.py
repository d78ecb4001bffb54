"""Right sinusoids, rotation, ALiBi and T5's buckets in five styles."""

from math import cos, log2, sin

import numpy as np
import torch
from torch import nn

# sinusoids


def sinusoids_loops(length, d_model):
    table = [[0.0] * d_model for _ in range(length)]
    for position in range(length):
        for i in range(0, d_model, 2):
            angle = position / 10000 ** (i / d_model)
            table[position][i : i + 2] = [sin(angle), cos(angle)][: d_model - i]
    return table


def sinusoids_einsum(length, d_model):
    rates = torch.exp(torch.arange(0, d_model, 2).double() * (-np.log(1e4) / d_model))
    angles = torch.einsum("t,i->ti", torch.arange(length).double(), rates)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :d_model]


class Sinusoids(nn.Module):
    def __init__(self, length, d_model):
        super().__init__()
        angles = torch.arange(length).double()[:, None]
        angles = angles / 10000 ** (torch.arange(0, d_model, 2).double() / d_model)
        table = torch.zeros(length, d_model, dtype=torch.double)
        table[:, 0::2] = angles.sin()
        table[:, 1::2] = angles.cos()[:, : d_model // 2]
        self.register_buffer("table", table)


def sinusoids_module(length, d_model):
    return Sinusoids(length, d_model).table


def sinusoids_numpy(length, d_model):
    column = np.arange(d_model)
    angles = np.arange(length)[:, None] / 1e4 ** (column // 2 * 2 / d_model)
    return np.where(column % 2, np.cos(angles), np.sin(angles))


def sinusoids_torch(length, d_model):
    """A cosine is a sine, a quarter of a turn on."""
    column = torch.arange(d_model)
    rates = 1e4 ** ((column - column % 2).double() / -d_model)
    angles = torch.arange(length).double().outer(rates)
    return (angles + column % 2 * torch.pi / 2).sin()


# rotary


def rotary_loops(x, positions, base):
    output, half = np.zeros_like(x), x.shape[-1] // 2
    for t, position in enumerate(positions.tolist()):
        for i in range(half):
            angle = position / base ** (i / half)
            a, b = x[:, :, t, i], x[:, :, t, i + half]
            output[:, :, t, i] = cos(angle) * a - sin(angle) * b
            output[:, :, t, i + half] = sin(angle) * a + cos(angle) * b
    return output


def rotary_einsum(x, positions, base):
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half).double() / half)
    angles = torch.einsum("t,i->ti", positions.double(), rates)
    turn = torch.stack((angles.cos(), -angles.sin(), angles.sin(), angles.cos()))
    turn = turn.unflatten(0, (2, 2)).to(x.dtype)
    parts = x.unflatten(-1, (2, half))
    return torch.einsum("opti,bhtpi->bhtoi", turn, parts).flatten(-2)


class Rotary(nn.Module):
    def __init__(self, width, base):
        super().__init__()
        self.rates = 1 / base ** (torch.arange(0, width, 2, dtype=torch.double) / width)

    def forward(self, x, positions):
        angles = positions[:, None] * self.rates
        angles = torch.cat((angles, angles), -1)
        a, b = x.chunk(2, -1)
        turned = torch.cat((-b, a), -1)
        return (x * angles.cos() + turned * angles.sin()).to(x.dtype)


def rotary_module(x, positions, base):
    return Rotary(x.shape[-1], base)(x, positions)


def rotary_numpy(x, positions, base):
    half = x.shape[-1] // 2
    angles = positions[:, None] * base ** (-np.arange(half) / half)
    a, b = np.split(x, 2, -1)
    parts = (
        a * np.cos(angles) - b * np.sin(angles),
        a * np.sin(angles) + b * np.cos(angles),
    )
    return np.concatenate(parts, -1).astype(x.dtype)


def rotary_torch(x, positions, base):
    half = x.shape[-1] // 2
    angles = positions.double()[:, None] * base ** (-torch.arange(half).double() / half)
    turns = torch.polar(torch.ones_like(angles), angles)
    turned = torch.complex(*x.double().chunk(2, -1)) * turns
    return torch.cat((turned.real, turned.imag), -1).to(x.dtype)


# alibi


def slopes(num_heads):
    """As the paper's code has it."""
    if log2(num_heads).is_integer():
        first = 2 ** -(8 / num_heads)
        return [first ** (i + 1) for i in range(num_heads)]
    below = 2 ** int(log2(num_heads))
    return slopes(below) + slopes(2 * below)[0::2][: num_heads - below]


def alibi_loops(num_heads, T, S):
    distances = [[abs(S - T + t - s) for s in range(S)] for t in range(T)]
    return np.array([-slope * np.array(distances) for slope in slopes(num_heads)])


def alibi_einsum(num_heads, T, S):
    distance = torch.arange(S)[None] - torch.arange(S - T, S)[:, None]
    return torch.einsum("h,ts->hts", torch.tensor(slopes(num_heads)), distance.float())


class Alibi(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.slopes = torch.tensor(slopes(num_heads), dtype=torch.double)

    def forward(self, T, S):
        return (self.slopes[:, None, None] * torch.arange(S)).expand(-1, T, -1)


def alibi_module(num_heads, T, S):
    """Add slope · s to a key: for each query that is the same up to a constant."""
    return Alibi(num_heads)(T, S)


def alibi_numpy(num_heads, T, S):
    distance = np.maximum(np.arange(S - T, S)[:, None] - np.arange(S), 0)
    return -np.array(slopes(num_heads))[:, None, None] * distance


def alibi_torch(num_heads, T, S):
    rows = torch.arange(1 - S, 1).double().expand(num_heads, T, S)
    return rows * torch.tensor(slopes(num_heads))[:, None, None]


# t5_buckets


def t5_buckets_loops(distance, buckets, furthest, both):
    N = buckets // 2 if both else buckets
    exact = N // 2

    def bucket(d):
        if d < 0:
            return N + bucket(-d) if both else 0
        if d < exact:
            return d
        share = np.log(d / exact) / np.log(furthest / exact)
        return min(exact + int(share * (N - exact) + 1e-9), N - 1)

    return np.array([bucket(int(d)) for d in distance.ravel()]).reshape(distance.shape)


def t5_buckets_einsum(distance, buckets, furthest, both):
    """Count the borders that a distance has passed."""
    N = buckets // 2 if both else buckets
    exact = N // 2
    steps = torch.arange(N - exact) / (N - exact)
    wide = exact * (furthest / exact) ** steps.double() - 1e-9
    borders = torch.cat((torch.arange(1, exact).double(), wide))
    apart = distance.abs() if both else distance.clamp(min=0)
    passed = (apart[..., None] >= borders).long()
    count = torch.einsum("...b,b->...", passed, torch.ones(N - 1, dtype=torch.long))
    return count + N * (both and distance < 0)


class Buckets(nn.Module):
    def __init__(self, buckets, furthest, both):
        super().__init__()
        self.N, self.both = buckets // 2 if both else buckets, both
        self.exact, self.furthest = self.N // 2, furthest

    def forward(self, distance):
        N, exact = self.N, self.exact
        later = N * (distance < 0) if self.both else 0
        apart = distance.abs() if self.both else distance.relu()
        share = (apart / exact).double().log() / np.log(self.furthest / exact)
        wide = (exact + (share * (N - exact) + 1e-6).floor()).clamp(max=N - 1)
        return later + apart.where(apart < exact, wide.long())


def t5_buckets_module(distance, buckets, furthest, both):
    return Buckets(buckets, furthest, both)(distance)


def t5_buckets_numpy(distance, buckets, furthest, both):
    N = buckets // 2 if both else buckets
    exact = N // 2
    wide = np.geomspace(exact, furthest, N - exact, endpoint=False) * (1 - 1e-9)
    borders = np.concatenate((np.arange(1, exact), wide))
    apart = np.abs(distance) if both else np.maximum(distance, 0)
    return np.searchsorted(borders, apart, "right") + N * (both and distance < 0)


def t5_buckets_torch(distance, buckets, furthest, both):
    """As in transformers, whose distance is the key's position minus the query's."""
    relative, result = -distance, 0
    if both:
        buckets //= 2
        result = (relative > 0).long() * buckets
        relative = relative.abs()
    else:
        relative = -torch.min(relative, torch.zeros_like(relative))
    exact = buckets // 2
    large = exact + (
        torch.log(relative.float() / exact)
        / np.log(furthest / exact)
        * (buckets - exact)
    ).to(torch.long)
    large = torch.min(large, torch.full_like(large, buckets - 1))
    return result + torch.where(relative < exact, relative, large)

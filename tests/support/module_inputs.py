"""Inputs of any batch and length for the modules of the package."""

import torch

from tformer.nn import length_mask

D, H, F, V = 16, 4, 24, 11


def vectors(B, T):
    return (torch.randn(B, T, D),)


def streams(B, T):
    return (torch.randn(B, T, 3, D),)


def ids_and_vectors(B, T):
    return torch.randint(1, V, (B, T)), torch.randn(B, T, D)


def vectors_and_told(B, T):
    return torch.randn(B, T, D), torch.randn(B, T, 5)


def two_vectors(B, T):
    return tuple(torch.randn(2, B, T, D))


def vectors_and_mask(B, T):
    lengths = torch.arange(B) % T + 1
    return torch.randn(B, T, D), length_mask(lengths, T)


def with_memory(B, T):
    return torch.randn(B, T, D), torch.randn(B, T + 2, D)


def heads(B, T):
    return (torch.randn(B, H, T, D // H),)


def ids(B, T):
    return (torch.randint(1, V, (B, T)),)


def two_ids(B, T):
    return torch.randint(1, V, (B, T)), torch.randint(1, V, (B, T + 1))


def images(B, T):
    return (torch.randn(B, 1, 6, 6),)  # of one size


def lengths(B, T):
    return (T, T)

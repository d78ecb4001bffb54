import numpy as np
import pytest
import torch

import tformer
from tformer import nn, reference

B, H, T, Dh = 2, 3, 5, 14
LAYOUTS = ["pairs", "halves"]


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_frequencies(new_parity, base):
    twin = reference.rotary_frequencies(Dh, base=base)
    new_parity().same(twin, tformer.rotary_frequencies(Dh, base=base), 1e-15)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("start", "factor"), [(0, 1.0), (0, 1.3), (11, 1.0)])
def test_turning(parity, layout, start, factor):
    array, tensor = parity.numbers(B, H, T, Dh)
    frequencies = tformer.rotary_frequencies(Dh, base=300.0)
    module = tformer.RotaryEmbedding(frequencies, factor=factor, layout=layout)
    twin = reference.from_torch(module)
    assert isinstance(twin, reference.RotaryEmbedding)
    expected = module(tensor, start=start)
    parity.same(
        twin(array, start=start), expected, {"float64": 1e-14}.get(parity.dtype)
    )
    assert np.abs(expected.numpy() - array)[:, :, 1:].min(axis=(0, 1, 2)).max() > 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotate(parity, layout):
    array, tensor = parity.numbers(B, H, T, Dh)
    angle, torch_angle = parity.numbers(T, Dh // 2)
    twin = reference.rotate(array, np.cos(angle), np.sin(angle), layout=layout)
    expected = nn.rotary.rotate(
        tensor, torch_angle.cos(), torch_angle.sin(), layout=layout
    )
    parity.same(twin, expected)


@pytest.mark.parametrize("name", ["pairs_to_halves", "halves_to_pairs"])
@pytest.mark.parametrize("shape", [(), (11,)])
def test_reordering(parity, name, shape):
    array, tensor = parity.numbers(H * Dh, *shape)
    twin = getattr(reference, name)(array, H)
    parity.same(twin, getattr(tformer, name)(tensor, H), 0)
    assert not np.shares_memory(twin, array)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("scale_linear", {}),
        ("scale_ntk", {}),
        ("scale_llama3", {"trained_len": 512}),
        ("scale_llama3", {"trained_len": 512, "low": 2.0, "high": 7.0}),
        ("scale_yarn", {"trained_len": 512}),
        ("scale_yarn", {"trained_len": 512, "low": 2.0, "high": 9.0}),
        ("scale_yarn", {"trained_len": 512, "truncate": False}),
    ],
)
def test_scaling(new_parity, name, options):
    twin = getattr(reference, name)(reference.rotary_frequencies(64), 8, **options)
    original = getattr(tformer, name)(tformer.rotary_frequencies(64), 8, **options)
    new_parity().same(twin, original, 1e-15)


def test_yarn_factor():
    assert reference.yarn_factor(8) == tformer.yarn_factor(8)
    assert reference.yarn_factor(8, 0.7) == tformer.yarn_factor(8, 0.7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p, _: p.rotary_frequencies(7), "head_dim (7) must be even"),
        (lambda p, _: p.rotary_frequencies(4, base=1.0), "base (1.0) must be above 1"),
        (
            lambda p, x: p.RotaryEmbedding(x(2, 7)),
            "frequencies must be (head_dim / 2,)",
        ),
        (lambda p, x: p.RotaryEmbedding(x(0)), "frequencies must be (head_dim / 2,)"),
        (lambda p, x: p.RotaryEmbedding(x(7), factor=0), "factor (0) must be above 0"),
        (lambda p, x: p.RotaryEmbedding(x(7), layout="half"), "layout ('half') must"),
        (lambda p, x: p.RotaryEmbedding(x(7))(x(2, 3, 5, 12)), "x must be (batch, "),
        (lambda p, x: p.RotaryEmbedding(x(7))(x(3, 5, 14)), "x must be (batch, "),
        (
            lambda p, x: p.RotaryEmbedding(x(7))(x(2, 3, 5, 14), start=-1),
            "start (-1) must be at least 0",
        ),
        (lambda p, x: p.pairs_to_halves(x(12), 4), "rows (12) must be divisible by"),
        (lambda p, x: p.halves_to_pairs(x(12), 4), "rows (12) must be divisible by"),
        (lambda p, x: p.scale_linear(x(7), 0.5), "scale (0.5) must be at least 1"),
        (lambda p, x: p.scale_ntk(x(1), 2), "frequencies must be at least 2"),
        (
            lambda p, x: p.scale_yarn(x(7), 2, trained_len=0),
            "trained_len (0) must be at least 1",
        ),
        (
            lambda p, x: p.scale_llama3(x(7), 2, trained_len=8, low=4.0),
            "high (4.0) must be above low (4.0)",
        ),
    ],
)
def test_errors(same_error, make, message):
    same_error(
        lambda: make(reference, lambda *shape: np.ones(shape)),
        lambda: make(tformer, lambda *shape: torch.ones(shape)),
        ValueError,
        message,
    )

"""Which module has which twin, and what is refused."""

import subprocess
import sys
from inspect import signature

import numpy as np
import pytest
import torch
from torch import nn

import tformer
from tformer import nn as parts
from tformer import reference
from tformer.reference import from_torch

D, H = 12, 3


def test_the_twin_does_without_torch():
    program = (
        "import sys, tformer.reference as r, numpy as np\n"
        "x = np.eye(3)[None, None]\n"
        "r.scaled_dot_product_attention(x, x, x, is_causal=True)\n"
        "r.SinusoidalPositionalEncoding(4)(np.ones((1, 2, 4)))\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_weights_are_copied_in_their_dtype(dtype):
    module = tformer.LayerNorm(7).to(getattr(torch, dtype))
    nn.init.constant_(module.weight, 1 / 3)
    twin, before = from_torch(module), module.weight.tolist()
    nn.init.constant_(module.weight, 3.0)
    assert str(twin.weight.dtype) == dtype.replace("bfloat16", "float32")
    np.testing.assert_array_equal(twin.weight, before)


def test_classes_are_known_by_name(exact):
    """A class pasted from a chapter is not in `tformer`; one made from ours is ours."""
    pasted = type("LayerNorm", (nn.Module,), {})()
    pasted.weight, pasted.eps = nn.Parameter(torch.ones(7)), 0.5
    assert from_torch(pasted).eps == 0.5
    made = type("MyAttention", (tformer.MultiHeadAttention,), {})
    exact.same(*exact.twin_of(made(D, H)), exact.numbers(2, 5, D))


class OwnForward(tformer.LayerNorm):
    def forward(self, x):
        return 2 * super().forward(x)


def with_part(**parts):
    """An attention with something that its twin does not know."""
    module = tformer.MultiHeadAttention(D, H)
    for name, part in parts.items():
        setattr(module, name, part)
    return module


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Dropout(), "Dropout has no twin"),
        (lambda: nn.Module(), "Module has no twin"),
        (lambda: "x", "str has no twin"),
        (lambda: OwnForward(D), "OwnForward has no twin"),
        (lambda: with_part(out_proj=OwnForward(D)), "OwnForward has no twin"),
        (
            lambda: with_part(heat=nn.Parameter(torch.ones(1))),
            "the twin of MultiHeadAttention has no heat",
        ),
        (
            lambda: with_part(conv=nn.Conv1d(D, D, 3), memory=nn.ReLU()),
            "the twin of MultiHeadAttention has no conv, memory",
        ),
        (lambda: with_part(rotary=torch.tanh), "tanh .* has no twin"),
    ],
)
def test_what_has_no_twin(make, message):
    """A part or a weight that was left out would be a twin of something else."""
    with pytest.raises(TypeError, match=message):
        from_torch(make())


def test_a_merged_adapter_has_the_same_twin(exact):
    module = exact.module(parts.LoRALinear(nn.Linear(D, D), 3))
    module.merge()
    exact.same(from_torch(module), module, exact.numbers(2, D))


def test_what_does_nothing_is_left_out():
    module = with_part(dropout1=nn.Dropout(0.5), nothing=nn.Identity())
    assert isinstance(from_torch(module), reference.MultiHeadAttention)


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm", "TokenEmbedding"])
def test_what_is_not_given_is_as_in_the_original(name):
    twin = signature(getattr(reference, name)).parameters
    original = signature(getattr(parts, name)).parameters
    shared = {"eps", "plus_one", "scale"} & twin.keys() & original.keys()
    assert shared
    for option in shared:
        assert twin[option].default == original[option].default

"""Attention where torch has other kernels: the formula's numbers, memory, no waiting.

Equality is asked of each machine, on its GPU if it has one; the rest on a GPU only.
"""

import pytest
import torch
from torch.testing import assert_close

from gpu import DEVICE, moved, no_waiting, on_gpu
from tformer.nn import (
    attention,
    attention_weights,
    causal_mask,
    length_mask,
    scaled_dot_product_attention,
    transformer_encoder,
)

B, H, T = 2, 4, 40
REAL = torch.arange(T) < torch.tensor([[T], [T - 7]])  # (B, T)
DEAD = torch.ones(B, 1, T, T, dtype=torch.bool)
DEAD[0, 0, 3] = False  # a query that may attend to nothing
CASES = {
    "causal": {"is_causal": True},
    "padding": {"attn_mask": REAL[:, None, None]},
    "causal and padding": {"attn_mask": REAL[:, None, None], "is_causal": True},
    "nothing to attend to": {"attn_mask": DEAD},
    "bias": {"bias": torch.linspace(-2, 2, T * T).reshape(1, 1, T, T)},
    "bias and mask": {"bias": torch.ones(1, 1, T, T), "attn_mask": DEAD},
    "window": {"is_causal": True, "window": 5},
    "sinks": {"is_causal": True, "sinks": torch.linspace(-1, 1, H)},
    "softcap": {"softcap": 2.0},
}
NEAR = {
    torch.float64: {"rtol": 0, "atol": 1e-12},
    torch.float32: {"rtol": 0, "atol": 5e-6},
    torch.bfloat16: {"rtol": 0, "atol": 3e-2},
}


def options_of(case, dtype, device=DEVICE):
    return {name: moved(x, dtype, device) for name, x in CASES[case].items()}


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


@pytest.mark.parametrize("dtype", NEAR, ids=str)
@pytest.mark.parametrize("at_a_time", [2, 256])  # eight times as many on a GPU
@pytest.mark.parametrize(
    ("G", "Dh", "Dv"), [(4, 8, 8), (2, 8, 8), (1, 8, 12), (4, 12, 8)]
)
@pytest.mark.parametrize("case", CASES)
def test_the_formulas_numbers(case, G, Dh, Dv, at_a_time, dtype, monkeypatch):
    """Forward and backward, beside the formula in float64 on the processor."""
    monkeypatch.setattr(attention, "QUERIES_AT_A_TIME", at_a_time)
    inputs = draw(B, H, T, Dh), draw(B, G, T, Dh), draw(B, G, T, Dv)
    inputs = [x.to(dtype).double().requires_grad_() for x in inputs]
    weights = attention_weights(*inputs[:2], **options_of(case, torch.float64, "cpu"))
    expected = weights @ inputs[2].repeat_interleave(H // G, dim=1)
    along = draw(*expected.shape)
    slopes = torch.autograd.grad(expected, inputs, along)

    given = [x.detach().to(DEVICE, dtype).requires_grad_() for x in inputs]
    output = scaled_dot_product_attention(*given, **options_of(case, dtype))
    found = torch.autograd.grad(output, given, along.to(output))
    for ours, formula in zip([output, *found], [expected, *slopes], strict=True):
        largest = formula.abs().max().clamp(min=1)
        assert_close(ours.double().cpu() / largest, formula / largest, **NEAR[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_an_encoder_leaves_padding_out_or_hides_it(dtype):
    encoder = transformer_encoder(16, 4, 32, 2).to(DEVICE, dtype).eval()
    x, real = draw(B, T, 16).to(DEVICE, dtype), REAL.to(DEVICE)
    hidden = encoder(x, real[:, None, None]).masked_fill(~real[:, :, None], 0.0)
    assert_close(encoder(x, key_mask=real), hidden, **NEAR[dtype])


def peak(call):
    """Return the most bytes that a call held at once, above what was there."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    output = call()
    return torch.cuda.max_memory_allocated() - before, output


@on_gpu
@pytest.mark.parametrize("window", [None, 100], ids=["padding", "window"])
@pytest.mark.parametrize("train", [False, True])
def test_memory_grows_with_T(train, window):
    """All masks at once would take 4 times as much for texts twice as long."""

    def run(T):
        q, k, v = (torch.randn(1, 8, T, 64, device=DEVICE).bfloat16() for _ in "qkv")
        mask = length_mask(torch.tensor([T - 99], device=DEVICE), T)

        def attend():
            leaves = [x.requires_grad_(train) for x in (q, k, v)]
            options = {"is_causal": True, "window": window}
            output = scaled_dot_product_attention(*leaves, mask, **options)
            return torch.autograd.grad(output.sum(), leaves) if train else output

        attend()
        return peak(attend)[0]

    assert run(32_768) < 2.3 * run(16_384)


@on_gpu
def test_shared_keys_are_not_copied_in_16_bits():
    q, k, v = (
        torch.randn(1, heads, 4_096, 64, device=DEVICE, dtype=torch.bfloat16)
        for heads in (8, 2, 2)
    )
    attend = lambda: scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
    attend()
    held, output = peak(attend)
    assert held < output.nbytes + k.nbytes


@on_gpu
@pytest.mark.parametrize("case", CASES)
def test_the_host_waits_for_nothing(case):
    """Each call would let a GPU stand still until the processor has caught up."""
    q, k, v = (draw(B, H, T, 8).to(DEVICE, torch.bfloat16) for _ in "qkv")
    options = options_of(case, torch.bfloat16)
    with no_waiting():
        scaled_dot_product_attention(q, k, v, **options)
        causal_mask(T, window=3, device=DEVICE)

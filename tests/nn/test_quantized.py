"""Rounded weights and caches: the error's bound, the bytes, and what is refused."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from small_models import small_gpt
from tformer import greedy
from tformer.nn import (
    KeyValueCache,
    QuantizedCache,
    QuantizedLinear,
    dequantize,
    pack,
    quantize,
    quantize_linears,
    unpack,
)

O, I, g = 5, 24, 6
every_size = pytest.mark.parametrize("bits", range(2, 9))


def test_by_hand():
    x = torch.tensor([[0.7, -0.2, 0.1, 0.0], [0.0, 0.0, 14.0, 5.0]])
    codes, scales = quantize(x, bits=4, group_size=2)
    assert codes.tolist() == [[7, -2, 7, 0], [0, 0, 7, 2]]  # 5 / 2 rounds to even
    assert_close(scales, torch.tensor([[0.1, 0.1 / 7], [0.0, 2.0]]))
    back = torch.tensor([[0.7, -0.2, 0.1, 0.0], [0.0, 0.0, 14.0, 4.0]])
    assert_close(dequantize(codes, scales), back)
    assert codes.dtype == torch.int8


@every_size
@pytest.mark.parametrize("group_size", [1, g, None])
def test_no_number_moves_by_more_than_half_a_step(bits, group_size):
    x = torch.randn(3, O, I, dtype=torch.float64)
    codes, scales = quantize(x, bits, group_size)
    assert codes.shape == x.shape
    assert scales.shape == (3, O, I // (group_size or I))
    steps = scales.repeat_interleave(group_size or I, dim=-1)
    assert ((dequantize(codes, scales) - x).abs() <= steps * 0.5 * (1 + 1e-12)).all()
    assert codes.abs().amax() == 2 ** (bits - 1) - 1  # the largest of each just fits
    # The same numbers again, from what was rounded.
    again, _ = quantize(dequantize(codes, scales), bits, group_size)
    assert torch.equal(again, codes)


def test_two_codes_share_a_byte():
    codes = torch.arange(-8, 8, dtype=torch.int8).view(2, 8)
    packed = pack(codes)
    assert packed.nbytes == codes.nbytes / 2
    assert torch.equal(unpack(packed), codes)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("bias", [False, True])
def test_the_layer_is_the_linear_layer_of_the_rounded_weights(bits, bias):
    original = nn.Linear(I, O, bias=bias)
    layer = QuantizedLinear(original, bits=bits, group_size=g)
    rounded = dequantize(*quantize(original.weight.detach(), bits, g))
    assert torch.equal(layer.weight, rounded)
    x = torch.randn(2, 3, I)
    expected = nn.functional.linear(x, rounded, original.bias)
    assert_close(layer(x), expected)
    assert (layer(x) - original(x)).abs().max() > 1e-4
    stored = sum(t.nbytes for t in layer.buffers())
    assert stored == O * I * bits / 8 + O * I / g * 4
    assert {"codes", "scales"} <= layer.state_dict().keys()


def test_a_whole_model_is_changed_but_for_embedding_and_norms():
    model = small_gpt(d_model=18, d_ff=24, bias=True).eval()
    before = model(torch.tensor([[1, 2, 3]]))
    names = {n for n, m in model.named_modules() if isinstance(m, nn.Linear)}
    assert quantize_linears(model, bits=8, group_size=6) is model
    changed = {n for n, m in model.named_modules() if isinstance(m, QuantizedLinear)}
    assert changed == names
    assert len(names) == 2 * 6
    after = model(torch.tensor([[1, 2, 3]]))
    assert 0 < (after - before).abs().max() < 0.05
    assert greedy(model, [[1, 2]], max_len=3).shape == (1, 3)


def test_a_model_that_cannot_be_quantised_is_left_as_it_was(raises):
    model = small_gpt(d_model=18, d_ff=20)
    before = [type(m) for m in model.modules()]
    message = "feed_forward.linear2: width (20) must be divisible by group_size (6)"
    with raises(ValueError, f"blocks.0.{message}"):
        quantize_linears(model, group_size=6)
    assert [type(m) for m in model.modules()] == before


class TestQuantizedCache:
    B, G, DH = 2, 3, 8

    def test_what_is_read_is_rounded_and_old_tokens_stay(self):
        cache, exact = QuantizedCache(7), KeyValueCache(7)
        for T in (3, 1, 3):
            new = torch.randn(2, self.B, self.G, T, self.DH) * 10**cache.length
            ours, theirs = cache.append(*new), exact.append(*new)
            for rounded, full in zip(ours, theirs, strict=True):
                assert torch.equal(rounded, dequantize(*quantize(full)))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_bytes(self, dtype):
        cache = QuantizedCache(7)
        assert cache.nbytes == 0
        cache.append(*torch.ones(2, self.B, self.G, 1, self.DH, dtype=dtype))
        numbers = 2 * self.B * self.G * 7
        assert cache.nbytes == numbers * (self.DH + dtype.itemsize)

    def test_reorder_truncate_copy(self):
        first, wrong, right = torch.randn(3, 2, self.B, self.G, 2, self.DH)
        cache = QuantizedCache(4)
        cache.append(*first)
        other = cache.copy(6)
        cache.append(*wrong)
        cache.truncate(2)
        for each in (cache, other):
            each.reorder(torch.tensor([1, 0]))
            keys, values = each.append(*right)
            for ours, given, last in zip((keys, values), first, right, strict=True):
                whole = torch.cat((given.flip(0), last), dim=2)
                assert torch.equal(ours, dequantize(*quantize(whole)))

"""Packing: real tokens get what they get with padding, and padding is not computed."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from tformer import Encoder, EncoderLayer, length_mask, record_weights
from tformer.fast import packing
from tformer.fast.packing import Packing

H, D, F = 4, 24, 13


@pytest.fixture
def packs(monkeypatch):
    """Let even small batches be packed, and count how often that happened."""
    monkeypatch.setattr(packing, "FEWEST_NUMBERS", 0)
    calls = []
    pack = Packing.pack
    monkeypatch.setattr(Packing, "pack", lambda *a: calls.append(1) or pack(*a))
    return calls


def encoder(**options):
    torch.manual_seed(0)
    model = Encoder(D, H, F, 2, **options)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def plain(model, x, attn_mask):
    """Encode without packing, as `Encoder.forward` does."""
    for layer in model.layers:
        x = layer(x, attn_mask)
    return x if model.norm is None else model.norm(x)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=6),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
    st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_real_tokens_and_gradients_are_equal(mask, kv_heads, norm_first, dtype):
    """Wherever the padding stands: after the tokens, before or between them."""
    real = torch.tensor(mask)
    if not real.any():
        return
    model = encoder(num_kv_heads=kv_heads, norm_first=norm_first).to(dtype)
    x = torch.randn(*real.shape, D).to(dtype).requires_grad_()
    attn_mask = real[:, None, None]
    outputs = [
        packing.encode_packed(model.layers, x, Packing(real)),
        plain(model, x, attn_mask) if not norm_first else None,
    ]
    if norm_first:
        model.norm = None
        outputs[1] = plain(model, x, attn_mask)
    assert not outputs[0][~real].any()
    tolerance = {torch.float64: 1e-11, torch.float32: 1e-4, torch.bfloat16: 0.1}[dtype]
    assert_close(outputs[0][real], outputs[1][real], atol=tolerance, rtol=tolerance)
    if dtype == torch.bfloat16:
        return
    factor = torch.randn_like(outputs[0])[real]
    variables = [x, *model.parameters()]
    packed, padded = (
        torch.autograd.grad((y[real] * factor).sum(), variables) for y in outputs
    )
    assert_close(packed, padded, atol=10 * tolerance, rtol=10 * tolerance)


@pytest.mark.parametrize("train", [False, True])
def test_the_encoder_packs_by_itself(packs, train):
    model = encoder(norm_first=True).train(train)
    lengths = torch.tensor([7, 2, 0, 5])
    mask = length_mask(lengths)
    real = mask[:, 0, 0]
    x = torch.randn(4, 7, D)
    x[~real] = torch.nan  # no padding is ever read
    output = model(x, mask)
    assert len(packs) == 1
    expected = plain(model, x.nan_to_num(1.0), mask)
    assert_close(output[real], expected[real], atol=1e-5, rtol=1e-5)
    assert output[~real].isfinite().all()


def test_only_real_tokens_are_computed():
    lengths = torch.arange(16, 65, 16).repeat(8)
    mask = length_mask(lengths)  # 32 sequences of up to 64 tokens; 5/8 are real
    model, x = Encoder(128, 4, 512, 1), torch.randn(32, 64, 128)
    assert x.numel() >= packing.FEWEST_NUMBERS
    flops = []
    for attn_mask in (None, mask):
        with FlopCounterMode(display=False) as counter:
            model(x, attn_mask)
        flops.append(counter.get_total_flops())
    assert flops[1] / flops[0] == 5 / 8  # the counter does not see the fused kernel


def test_where_it_does_not_pack(packs):
    model, x = encoder(), torch.randn(3, 7, D)
    mask = length_mask(torch.tensor([7, 2, 5]))
    model(x, mask)
    assert len(packs) == 1
    model(x)
    model(x, mask[0, 0].expand(7, 7))
    model(x, mask.expand(3, 1, 7, 7))
    model(x, length_mask(torch.tensor([7, 7, 7])))
    model(x, torch.zeros_like(mask))
    with record_weights(model) as weights:
        model(x, mask)
    assert weights["layers.0.self_attn"].shape == (3, H, 7, 7)
    seen = []
    hook = model.layers[1].register_forward_hook(lambda _, __, y: seen.append(y.shape))
    model(x, mask)
    assert seen == [(3, 7, D)]
    hook.remove()
    replaced = copy.deepcopy(model)
    replaced.layers[0].forward = lambda x, _: x
    replaced(x, mask)
    torch.func.vmap(lambda one, m: model(one[None], m[None]))(x, mask)
    torch.compile(model, backend="eager", fullgraph=True)(x, mask)
    with pytest.raises(TypeError, match=r"attn_mask must be torch\.bool"):
        model(x, mask.long())

    class Doubled(EncoderLayer):
        def forward(self, x, attn_mask=None):
            return 2 * super().forward(x, attn_mask)

    other = copy.deepcopy(model)
    other.layers[0] = Doubled(D, H, F)
    assert_close(other(x, mask), plain(other, x, mask))
    assert len(packs) == 1
    model(x, mask)
    assert len(packs) == 2


def test_dropout_is_on_in_training_only(packs):
    model = encoder(dropout=0.5)
    x, mask = torch.randn(3, 7, D), length_mask(torch.tensor([7, 2, 5]))
    assert not torch.equal(model(x, mask), model(x, mask))
    model.eval()
    assert torch.equal(model(x, mask), model(x, mask))
    assert len(packs) == 4
    attention = model.layers[0].self_attn
    attention.training = True
    pack = Packing(mask[:, 0, 0])
    rows = pack.pack(x)
    assert not torch.equal(pack.attend(attention, rows), pack.attend(attention, rows))

"""Blocks and stacks of them: the formulas, torch's layers, padding left out."""

from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer.interop import from_torch
from tformer.nn import (
    Block,
    FeedForward,
    MultiHeadAttention,
    RMSNorm,
    causal_mask,
    combine_masks,
    length_mask,
    record_weights,
    transformer_decoder,
    transformer_encoder,
)
from tformer.nn.block import PLACEMENTS
from tformer.reference import from_torch as twin_of

B, T, S, H, D, F = 2, 5, 7, 3, 21, 13
ORDERS = pytest.mark.parametrize("norm_first", [False, True])
STACKS = pytest.mark.parametrize("make", [transformer_encoder, transformer_decoder])


def built(placement="pre", dropout=0.0, cross_attention=None, **options):
    return Block(
        MultiHeadAttention(D, H, bias=False),
        FeedForward(D, F, bias=False),
        partial(RMSNorm, D),
        cross_attention=cross_attention,
        placement=placement,
        dropout=dropout,
        **options,
    )


@pytest.mark.usefixtures("float64")
def test_the_formulas(randomised):
    x = torch.randn(B, T, D)
    blocks = {each: randomised(built(each)) for each in PLACEMENTS}
    for b in blocks.values():  # f and g are the sub-layers, n and m their norms
        f, g, n, m = b.attention, b.feed_forward, b.attention_norm, b.feed_forward_norm
        if b.placement == "pre":
            y = x + f(n(x))
            wanted = y + g(m(y))
        elif b.placement == "post":
            y = n(x + f(x))
            wanted = m(y + g(y))
        elif b.placement == "sandwich":
            y = x + b.attention_norm2(f(n(x)))
            wanted = y + b.feed_forward_norm2(g(m(y)))
        elif b.placement == "parallel":
            wanted = x + f(n(x)) + g(m(x))
        else:
            y = x + n(f(x))
            wanted = y + m(g(y))
        assert_close(b(x), wanted)
        assert_close(torch.from_numpy(twin_of(b)(x.numpy())), wanted)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.usefixtures("float64")
def test_what_is_added_is_multiplied(placement, randomised):
    """As if the last part of each sub-layer, a matrix or a gain, were smaller."""
    block = randomised(built(placement, residual_scale=0.3))
    x = torch.randn(B, T, D)
    output, of_twin = block(x), twin_of(block)(x.numpy())
    assert_close(torch.from_numpy(of_twin), output)
    block.residual_scale = 1.0
    last = {
        "sandwich": (block.attention_norm2, block.feed_forward_norm2)
        if placement == "sandwich"
        else (),
        "output": (block.attention_norm, block.feed_forward_norm),
    }.get(placement, (block.attention.out_proj, block.feed_forward.linear2))
    for part in last:
        part.weight.data *= 0.3
    assert_close(block(x), output)


def test_a_residual_scale_that_is_refused():
    with pytest.raises(ValueError, match=r"residual_scale \(0\) must be above 0"):
        built(residual_scale=0)


@pytest.mark.parametrize("cross", [False, True], ids=["alone", "cross"])
@ORDERS
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.usefixtures("float64")
def test_equals_torchs_layers(cross, norm_first, masked, randomised):
    kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    theirs = randomised(kind(D, H, F, 0.0, "gelu", 0.1, True, norm_first, bias=masked))
    ours = from_torch(theirs)
    inputs = [torch.randn(B, n, D, requires_grad=True) for n in (T, S)[: 1 + cross]]
    own = of_memory = real = memory_real = None
    if masked:
        own, of_memory = causal_mask(T), torch.rand(T, S) < 0.7
        of_memory[:, 0] = True
        real, memory_real = (length_mask(torch.tensor(n)) for n in ([T, 2], [3, S]))
    hidden = [None if m is None else ~m for m in (own, of_memory)]
    padding = [None if m is None else ~m[:, 0, 0] for m in (real, memory_real)]
    n = len(inputs)
    wanted = theirs(*inputs, *hidden[:n], *padding[:n])
    of_memory = combine_masks(of_memory, memory_real)
    masks = {"attn_mask": combine_masks(own, real), "memory_mask": of_memory}
    output = ours(*inputs, **masks)
    assert_close(output, wanted)
    with record_weights(ours):
        assert_close(ours(*inputs, **masks), wanted)
    both = [torch.autograd.grad(y.square().sum(), inputs) for y in (output, wanted)]
    assert_close(*both)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_dropout_is_of_what_is_added(placement):
    cross = placement in PLACEMENTS[:2]
    block = built(placement, 1 - 1e-9, MultiHeadAttention(D, H) if cross else None)
    given = torch.randn(B, T, D), torch.randn(B, S, D) if cross else None
    wanted = given[0]
    if placement == "post":
        norms = block.attention_norm, block.cross_attention_norm
        wanted = nn.Sequential(*norms, block.feed_forward_norm)(wanted)
    assert torch.equal(block(*given), wanted)
    assert not torch.allclose(block.eval()(*given), wanted)


def test_any_module_can_stand_in_it():
    class Cumulative(nn.Module):
        def forward(self, x, *, is_causal, cache):
            assert is_causal
            assert cache is None
            return x.cumsum(1)

    block = Block(Cumulative(), nn.Identity(), nn.Identity)
    x = torch.randn(B, T, D)
    assert_close(block(x, is_causal=True), 2 * (x + x.cumsum(1)))


@pytest.mark.usefixtures("float64")
def test_padding_may_stand_anywhere_and_be_a_whole_row():
    encoder, x = transformer_encoder(D, H, F, 2), torch.randn(3, S, D)
    rows = [[1, 0, 1, 1, 0, 1, 1], [0] * S, [1, 1, 1, 0, 0, 0, 0]]
    real = torch.tensor(rows).bool()
    masked, left_out = encoder(x, real[:, None, None]), encoder(x, key_mask=real)
    assert_close(left_out[real], masked[real])
    assert (left_out[~real] == 0).all()
    assert_close(left_out[2:, :3], encoder(x[2:, :3]))
    with record_weights(encoder) as recorded:
        assert_close(encoder(x, key_mask=real), left_out)
    for weights in recorded.values():  # which have a place for padding
        assert weights.shape == (3, H, S, S)
        assert (weights[2, ..., 3:] == 0).all()


@pytest.mark.parametrize("recording", [nullcontext, record_weights])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_source_of_padding_only(dtype, recording):
    decoder = transformer_decoder(D, H, F, 2).to(dtype)
    x, memory = (torch.randn(B, n, D).to(dtype).requires_grad_() for n in (T, S))
    real = torch.tensor([[False] + [True] * 4, [True] * 5])
    memory_real = torch.tensor([[True] * S, [False] * S])
    masks = real[:, None, None], memory_real[:, None, None]
    with recording(decoder):
        output = decoder(x, memory, *masks, is_causal=True)
    output.float().square().sum().backward()
    assert output.isfinite().all()
    assert (memory.grad[1] == 0).all()
    for given_or_learned in (x, memory, *decoder.parameters()):
        assert given_or_learned.grad.isfinite().all()


@ORDERS
def test_a_decoder_alone_is_an_encoder_with_a_past(norm_first, randomised):
    options = {"norm_first": norm_first, "num_kv_heads": 1, "activation": "gelu"}
    decoder = transformer_decoder(D, H, F, 2, cross_attention=False, **options)
    encoder = transformer_encoder(D, H, F, 2, **options)
    encoder.load_state_dict(randomised(decoder).state_dict())
    x = torch.randn(B, T, D)
    assert_close(decoder(x, is_causal=True), encoder(x, causal_mask(T)))
    assert_close(decoder(x, attn_mask=causal_mask(T)), encoder(x, causal_mask(T)))


@STACKS
def test_final_norm_is_for_pre_norm(make):
    assert make(D, H, F, 1).norm is None
    assert make(D, H, F, 1, final_norm=True).norm is not None
    assert make(D, H, F, 1, norm_first=True, final_norm=False).norm is None
    norm = make(D, H, F, 2, norm_first=True, eps=1e-3, bias=False).norm
    assert (norm.eps, norm.bias) == (1e-3, None)

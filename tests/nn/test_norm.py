"""Norms beyond their specs (`tformer.check`): parameters, 1 + w, where it rounds."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import LayerNorm, RMSNorm
from tformer.nn import layer_norm, rms_norm
from tformer.reference import from_torch

D = 7
BOTH = pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])


@BOTH
def test_a_new_norm_is_torchs(kind):
    """With numbers so small that eps decides."""
    norm, x = kind(D), torch.randn(5, D) / 300
    theirs = {LayerNorm: nn.LayerNorm(D), RMSNorm: nn.RMSNorm(D, eps=1e-6)}[kind]
    assert norm.state_dict().keys() == theirs.state_dict().keys()
    function = layer_norm if kind is LayerNorm else rms_norm
    for output in (norm(x), function(x, norm.weight)):
        assert_close(output, theirs(x))
    assert list(LayerNorm(D, bias=False).state_dict()) == ["weight"]


def test_one_plus_w_begins_at_one():
    norm, x = RMSNorm(D, plus_one=True), torch.randn(5, D)
    assert (norm.weight == 0).all()
    assert torch.equal(norm(x), RMSNorm(D)(x))


def test_one_plus_w_in_bfloat16_keeps_a_small_w():
    norm, w = RMSNorm(D, plus_one=True).bfloat16(), torch.full((D,), 2.0**-9)
    norm.weight.data = w.bfloat16()
    assert torch.equal(norm.weight.float(), w)
    assert (1 + norm.weight == 1).all()  # lost in the sum in bfloat16
    x = 2.0**9 * torch.randn(4, D).bfloat16()
    assert torch.equal(norm(x), rms_norm(x.float(), 1 + w).bfloat16())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_where_it_rounds(dtype):
    x, gain = torch.randn(64, D).to(dtype), torch.randn(D).to(dtype)
    wide = x.float() * (x.float().square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    late, early = (rms_norm(x, gain, cast_first=first) for first in (False, True))
    assert torch.equal(late, (wide * gain.float()).to(dtype))
    assert torch.equal(early, wide.to(dtype) * gain)
    assert not torch.equal(late, early)
    for cast_first, wanted in ((False, late), (True, early)):
        norm = RMSNorm(D, cast_first=cast_first).to(dtype)
        norm.weight.data = gain
        assert torch.equal(norm(x), wanted)


@pytest.mark.usefixtures("float64")
def test_without_a_gain():
    norm, x = RMSNorm(D, 0.1, learned=False), torch.randn(5, D)
    assert not [*norm.parameters()]
    assert_close(norm(x), nn.RMSNorm(D, eps=0.1)(x))
    assert_close(torch.from_numpy(from_torch(norm)(x.numpy())), norm(x))
    with pytest.raises(ValueError, match=f"x has width 1 but d_model is {D}"):
        norm(x[:, :1])

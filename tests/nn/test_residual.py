import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import LayerNorm, Residual

B, T, D = 2, 5, 13


@pytest.fixture
def sublayer():
    return nn.Linear(D, D)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("norm_first", [False, True])
def test_both_orders(randomised, sublayer, norm_first, bias):
    residual = Residual(D, norm_first=norm_first, eps=0.3, bias=bias)
    randomised(residual)
    norm = nn.LayerNorm(D, eps=0.3, bias=bias)
    norm.load_state_dict(residual.norm.state_dict())
    x = torch.randn(B, T, D)
    wanted = x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))
    output = residual(x, sublayer)
    assert output.shape == (B, T, D)
    assert_close(output, wanted)


def test_the_paper_normalises_last(sublayer):
    residual = Residual(D)
    assert not residual.norm_first
    assert residual.norm.bias is not None
    assert residual.norm.eps == 1e-5
    assert residual.dropout.p == 0
    x = torch.randn(B, T, D)
    assert_close(
        Residual(D)(x, sublayer).mean(dim=-1), torch.zeros(B, T), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_is_for_the_sublayer_and_for_training(sublayer, norm_first):
    residual = Residual(D, dropout=0.75, norm_first=norm_first)
    x = torch.randn(B, T, D)
    if norm_first:
        added = residual(x, sublayer) - x
        whole = sublayer(residual.norm(x))
        dropped = added.abs() < 1e-6
        assert 0.5 < dropped.float().mean() < 0.95
        assert_close(added[~dropped], 4 * whole[~dropped], atol=1e-5, rtol=1e-5)
    else:
        residual.norm = LayerNorm(D)
        assert not torch.equal(residual(x, sublayer), residual(x, sublayer))
    residual.eval()
    assert torch.equal(residual(x, sublayer), residual(x, sublayer))
    plain = Residual(D, norm_first=norm_first)
    assert torch.equal(residual(x, sublayer), plain(x, sublayer))


def test_bad_input(raises):
    with raises(ValueError, "dropout (1) must be in [0, 1)"):
        Residual(D, dropout=1)
    with raises(ValueError, "eps (0.0) must be above 0 and finite"):
        Residual(D, eps=0.0)
    with raises(ValueError, "d_model (0) must be at least 1"):
        Residual(0)

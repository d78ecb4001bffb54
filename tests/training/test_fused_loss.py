"""The loss in slices is differentiable as often, and as, torch's own is."""

import pytest
import torch
import torch.nn.functional as F
from torch.func import grad, hessian, jvp, vmap
from torch.testing import assert_close

import tformer.training.fused_loss
from tformer import label_smoothed_cross_entropy
from tformer.training.fused_loss import smoothed_cross_entropy

N, V = 5, 7


@pytest.fixture(params=[0.0, 0.1])
def losses(request, monkeypatch):
    """Ours in slices of two rows, and torch's."""
    monkeypatch.setitem(tformer.training.fused_loss.SLICE_NUMBERS, "cpu", 2 * V)
    targets = torch.tensor([1, 2, 0, 6, 3])

    def ours(logits):
        loss = label_smoothed_cross_entropy(logits, targets, smoothing=request.param)
        return loss.square()  # so that not even the first derivative is linear

    def theirs(logits):
        return F.cross_entropy(logits, targets, label_smoothing=request.param).square()

    return ours, theirs


@pytest.fixture
def logits():
    return torch.randn(N, V, dtype=torch.float64)


def test_second_derivatives_are_torchs(losses, logits):
    ours, theirs = (torch.autograd.functional.hessian(f, logits) for f in losses)
    assert_close(ours, theirs)
    assert ours.abs().max() > 0.01
    logits.requires_grad_()
    assert torch.autograd.gradcheck(losses[0], logits)
    assert torch.autograd.gradgradcheck(losses[0], logits)


def test_a_gradient_penalty_has_a_gradient(losses, logits):
    logits.requires_grad_()
    gradients = []
    for loss in losses:
        (first,) = torch.autograd.grad(loss(logits), logits, create_graph=True)
        gradients.append(torch.autograd.grad(first.square().sum(), logits)[0])
    assert_close(*gradients)
    assert gradients[0].abs().max() > 1e-4


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lambda x: grad(f)(x),
        lambda f: lambda x: hessian(f)(x),
        lambda f: lambda x: jvp(f, (x,), (x.flip(0),))[1],
        lambda f: lambda x: vmap(f)(torch.stack([x, x.flip(1)])),
        lambda f: lambda x: vmap(grad(f))(torch.stack([x, x.flip(1)])),
    ],
    ids=["grad", "hessian", "jvp", "vmap", "vmap of grad"],
)
def test_it_works_under_torch_func(losses, logits, transform):
    ours, theirs = (transform(f)(logits) for f in losses)
    assert_close(ours, theirs)


def test_it_compiles_as_one_graph(losses):
    logits = torch.randn(N, V)
    compiled = torch.compile(losses[0], fullgraph=True, backend="aot_eager")
    assert_close(compiled(logits), losses[1](logits))


def test_no_target_is_left_out_where_it_is_compiled():
    """F.cross_entropy takes -100 for none: its loss was 0, and it counted."""
    compiled = torch.compile(smoothed_cross_entropy, backend="eager")
    with pytest.raises(IndexError, match="Target -100 is out of bounds"):
        compiled(torch.randn(3, V), torch.tensor([1, -100, 2]), 0.1)

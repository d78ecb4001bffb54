"""The loss against `F.cross_entropy`, which has its derivatives of every order."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.func import grad, hessian, jvp, vmap
from torch.testing import assert_close

from tformer.training import loss as module
from tformer.training.loss import label_smoothed_cross_entropy, smoothed_targets

PAD = 2


def example(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(*shape, dtype=torch.float64, generator=generator)
    targets = torch.randint(0, shape[-1], shape[:-1], generator=generator)
    targets.view(-1)[::3] = PAD
    return logits.to(dtype).requires_grad_(), targets


@pytest.fixture(params=[1, 7, 2**18])
def slice_numbers(request, monkeypatch):
    """Run with slices of one row, of a few that do not come out even, and of all."""
    monkeypatch.setitem(module.SLICE_NUMBERS, "cpu", request.param * 11)


@pytest.mark.usefixtures("slice_numbers")
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("pad_id", [None, PAD])
def test_loss_and_gradient_equal_torch(smoothing, pad_id):
    logits, targets = example(5, 13, 11)
    ours = label_smoothed_cross_entropy(
        logits, targets, smoothing=smoothing, pad_id=pad_id
    )
    theirs = F.cross_entropy(
        logits.flatten(0, 1),
        targets.flatten(),
        label_smoothing=smoothing,
        ignore_index=-100 if pad_id is None else pad_id,
    )
    assert_close(ours, theirs)
    assert ours.dtype == torch.float64
    weight = torch.tensor(1.7, dtype=torch.float64)  # a gradient other than 1 comes in
    of_ours, of_theirs = (
        torch.autograd.grad(weight * loss, logits)[0] for loss in (ours, theirs)
    )
    assert of_theirs.abs().max() > 1e-3
    assert_close(of_ours, of_theirs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_summed_in_float32(dtype):
    logits, targets = example(257, 211, dtype=dtype)
    ours = label_smoothed_cross_entropy(logits, targets, pad_id=PAD)
    exact = label_smoothed_cross_entropy(logits.double(), targets, pad_id=PAD)
    assert ours.dtype == torch.float32
    assert_close(ours.double(), exact, rtol=1e-6, atol=0)
    gradient = torch.autograd.grad(ours, logits)[0]
    assert gradient.dtype == dtype


def test_large_scores_and_ruled_out_tokens_stay_finite():
    logits = torch.tensor([[1e4, 0.0, -1e4], [5.0, -math.inf, 4.0]], requires_grad=True)
    loss = label_smoothed_cross_entropy(logits, torch.tensor([0, 0]), smoothing=0.0)
    assert_close(loss, F.cross_entropy(logits, torch.tensor([0, 0])))
    assert torch.autograd.grad(loss, logits)[0].isfinite().all()


def test_no_copy_of_the_logits_is_kept_for_the_backward_pass():
    logits = torch.randn(31, 17, requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t) or t, lambda t: t
    ):
        label_smoothed_cross_entropy(logits, torch.zeros(31, dtype=torch.long))
    large = [t for t in kept if t.numel() >= logits.numel()]
    assert [t.data_ptr() for t in large] == [logits.data_ptr()]


@pytest.fixture(params=[0.0, 0.1])
def losses(request, monkeypatch):
    """Ours in slices of two rows, and torch's."""
    monkeypatch.setitem(module.SLICE_NUMBERS, "cpu", 2 * 7)
    targets = torch.tensor([1, 2, 0, 6, 3])

    def ours(logits):
        loss = label_smoothed_cross_entropy(logits, targets, smoothing=request.param)
        return loss.square()  # so that not even the first derivative is linear

    def theirs(logits):
        return F.cross_entropy(logits, targets, label_smoothing=request.param).square()

    return ours, theirs


def hessian_of_backward(f):
    return lambda x: torch.autograd.functional.hessian(f, x)


@pytest.mark.parametrize(
    "transform",
    [
        hessian_of_backward,
        grad,
        hessian,
        lambda f: lambda x: jvp(f, (x,), (x.flip(0),))[1],
        lambda f: lambda x: vmap(grad(f))(torch.stack([x, x.flip(1)])),
        lambda f: torch.compile(f, fullgraph=True, backend="aot_eager"),
    ],
    ids=["twice", "grad", "hessian", "jvp", "vmap of grad", "compile"],
)
def test_derivatives_are_torchs_and_no_way_to_them_is_barred(losses, transform):
    logits = torch.randn(5, 7, dtype=torch.float64)
    ours, theirs = (transform(f)(logits) for f in losses)
    assert_close(ours, theirs)
    assert ours.abs().max() > 0.01


def test_no_target_is_left_out_where_it_is_compiled():
    """F.cross_entropy takes -100 for none: its loss was 0, and it counted."""
    compiled = torch.compile(label_smoothed_cross_entropy, backend="eager")
    with pytest.raises(IndexError, match="Target -100 is out of bounds"):
        compiled(torch.randn(3, 7), torch.tensor([1, -100, 2]))


def test_smoothed_targets_of_the_annotated_transformer():
    targets, third = torch.tensor([2, 1, 0, 3]), 0.4 / 3
    q = smoothed_targets(targets, 5, smoothing=0.4, pad_id=0, spread="others")
    expected = [
        [0, third, 0.6, third, third],
        [0, 0.6, third, third, third],
        [0, 0, 0, 0, 0],
        [0, third, third, 0.6, third],
    ]
    assert_close(q, torch.tensor(expected))
    q = smoothed_targets(targets[2:3], 5, smoothing=0.4, spread="others")
    assert_close(q, torch.tensor([[0.6, 0.1, 0.1, 0.1, 0.1]]))


def test_smoothed_targets_over_all_tokens():
    q = smoothed_targets(torch.tensor([[1, 3], [0, 2]]), 4, smoothing=0.2, pad_id=0)
    assert q.shape == (2, 2, 4)
    assert_close(q[0, 0], torch.tensor([0.05, 0.85, 0.05, 0.05]))
    assert_close(q.sum(-1), torch.tensor([[1.0, 1.0], [0.0, 1.0]]))


LOGITS, TARGETS = torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.long)


@pytest.mark.parametrize(
    ("logits", "targets", "smoothing", "message"),
    [
        (LOGITS.long(), TARGETS, 0, "logits must be floating"),
        (LOGITS, TARGETS.float(), 0, "targets must be int64 or int32"),
        (LOGITS, TARGETS[:, :2], 0, r"\(2, 3, 5\), targets is \(2, 2\)"),
        (LOGITS[:0], TARGETS[:0], 0, "not empty"),
        (LOGITS, TARGETS + 5, 0, r"\[0, vocab_size = 5\).* 5 to 5"),
        (LOGITS, TARGETS - 1, 0, "-1 to -1"),
        (LOGITS, TARGETS, 1.0, r"smoothing \(1.0\)"),
        (LOGITS, TARGETS, -0.1, r"smoothing \(-0.1\)"),
    ],
)
def test_bad_input_is_named(logits, targets, smoothing, message):
    error = TypeError if "must be" in message else ValueError
    with pytest.raises(error, match=message):
        label_smoothed_cross_entropy(logits, targets, smoothing=smoothing)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 0}, "vocab_size = 0"),
        ({"vocab_size": 5, "spread": "even"}, r"spread \('even'\)"),
        ({"vocab_size": 5, "smoothing": 2.0}, r"smoothing \(2.0\)"),
        ({"vocab_size": 2, "spread": "others", "pad_id": 1}, "leaves no others"),
    ],
)
def test_bad_options_of_smoothed_targets_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        smoothed_targets(torch.tensor([0]), **options)

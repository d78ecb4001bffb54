"""Cross-entropy with label smoothing, over real tokens only.

It is computed in slices: no copy of the logits, and the gradient written in place.

V vocabulary · N tokens of the whole batch
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import FunctionCtx

from tformer.checks import check_probability

# How many logits are worked on at a time: on a CPU 1 MB of float32, which stays in the
# cache; elsewhere 128 MB, as there each slice costs the launch of its kernels.
SLICE_NUMBERS = {"cpu": 2**18, "other": 2**25}


def smoothed_targets(
    targets: Tensor,
    vocab_size: int,
    *,
    smoothing: float = 0.1,
    pad_id: int | None = None,
    spread: str = "all",
) -> Tensor:
    """Turn ids into the distributions that a smoothed loss compares with.

    With "all", (1 - ε) on the target plus ε / V on every token, the target and padding
    included: Szegedy et al. 2016, section 7 (arXiv:1512.00567), and
    `F.cross_entropy`. With "others", 1 - ε on the target and ε shared by the rest
    without padding: tensor2tensor and the Annotated Transformer.

    Returns:
        Of ids (...) float32 (..., V), V = `vocab_size`; each row sums to 1, or to 0
        where the target is padding.

    Raises:
        TypeError: `targets` does not hold integers.
        ValueError: a target, `smoothing` or `spread` is out of its range, or there are
            no others to spread over.
    """
    _check_targets(targets, vocab_size)
    check_probability(smoothing=smoothing)
    if spread not in ("all", "others"):
        raise ValueError(f"spread ({spread!r}) must be 'all' or 'others'")
    one_hot = F.one_hot(targets.long(), vocab_size).float()  # (..., V)
    if spread == "all":
        q = (1 - smoothing) * one_hot + smoothing / vocab_size
    else:
        others = vocab_size - (1 if pad_id is None else 2)
        if others < 1:
            what = "leaves no others to spread over"
            raise ValueError(f"vocab_size ({vocab_size}) {what}")
        q = (1 - smoothing) * one_hot + smoothing / others * (1 - one_hot)
        if pad_id is not None:
            q[..., pad_id] = 0.0
    return q if pad_id is None else q * (targets != pad_id)[..., None]


def label_smoothed_cross_entropy(
    logits: Tensor,
    targets: Tensor,
    *,
    smoothing: float = 0.1,
    pad_id: int | None = None,
) -> Tensor:
    """Compute the mean over real tokens of -Σₖ q(k) log p(k), p = softmax(logits).

    q is (1 - ε) on the target plus ε / V on every token: Szegedy et al. 2016,
    section 7 (arXiv:1512.00567); Vaswani et al. 2017, section 5.4, ε = 0.1. Equal to
    `F.cross_entropy(label_smoothing=ε, ignore_index=pad_id)`, except that a batch of
    nothing but padding gives 0 with a zero gradient, where torch gives NaN.

    Args:
        logits: (..., V). Half precision is summed in float32, a slice at a time.
        targets: ids (...), each in [0, V).
        smoothing: ε in [0, 1); 0 is plain cross-entropy.
        pad_id: targets of this id do not count; None counts all.

    Returns:
        A scalar in nats; float32, or float64 for logits in float64.

    Raises:
        TypeError: the logits are not floating, or the targets not integers.
        ValueError: shapes do not match, there is no token, `smoothing` is outside
            [0, 1), or a target is outside the vocabulary. On CUDA the kernel checks
            the range, so that the host need not wait for the device at every step.
    """
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating, not {logits.dtype}")
    if logits.shape[:-1] != targets.shape or not logits.numel():
        raise ValueError(
            "logits must be (..., V) and targets (...), and not empty: logits is "
            f"{tuple(logits.shape)}, targets is {tuple(targets.shape)}"
        )
    check_probability(smoothing=smoothing)
    V = logits.shape[-1]
    _check_targets(targets, V)
    targets = targets.reshape(-1).long()  # (N,)
    losses = smoothed_cross_entropy(logits.reshape(-1, V), targets, smoothing)  # (N,)
    if pad_id is None:
        return losses.mean()
    real = targets != pad_id
    return losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)


def _check_targets(targets: Tensor, vocab_size: int) -> None:
    if targets.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"targets must be int64 or int32, not {targets.dtype}")
    if targets.is_cuda or torch.compiler.is_compiling() or not targets.numel():
        return
    low, high = int(targets.min()), int(targets.max())
    if low < 0 or high >= vocab_size:
        rule = f"targets must be in [0, vocab_size = {vocab_size})"
        raise ValueError(f"{rule}, but they reach from {low} to {high}")


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Compute the loss of each row: of (N, V) and int64 (N,) it is (N,), in nats."""
    whole = torch.compiler.is_compiling() or any(
        torch.func.debug_unwrap(x) is not x for x in (logits, targets)
    )
    if whole:  # the compiler fuses it, and torch.func knows its derivatives
        return _of_rows(logits, targets, smoothing)
    of_rows = _SmoothedCrossEntropy.apply
    return of_rows(logits, targets, smoothing)  # type: ignore[no-untyped-call]


def _of_rows(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    return F.cross_entropy(
        logits.to(torch.promote_types(logits.dtype, torch.float32)),
        targets,
        ignore_index=-(2**63),  # no target is left out
        reduction="none",
        label_smoothing=smoothing,
    )


class _Context(FunctionCtx):
    smoothing: float
    saved_tensors: tuple[Tensor, ...]


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The losses -Σₖ q(k) log p(k), and their gradient p - q.

    Nothing is kept but the logits, which are there anyway: p is computed again.
    """

    @staticmethod
    def forward(
        ctx: _Context, logits: Tensor, targets: Tensor, smoothing: float
    ) -> Tensor:
        losses, wide = [], torch.promote_types(logits.dtype, torch.float32)
        for rows in _slices(logits):
            log_p = torch.log_softmax(logits[rows], dim=-1, dtype=wide)  # (n, V)
            loss = (smoothing - 1) * log_p.gather(1, targets[rows, None])[:, 0]  # (n,)
            if smoothing:  # 0 · -inf would be NaN, where a token was ruled out
                loss = loss - smoothing * log_p.mean(dim=-1)
            losses.append(loss)
        ctx.smoothing = smoothing
        ctx.save_for_backward(logits, targets)
        return torch.cat(losses)  # (N,)

    @staticmethod
    def backward(ctx: _Context, of_losses: Tensor) -> tuple[Tensor, None, None]:
        logits, targets = ctx.saved_tensors
        if torch.is_grad_enabled():  # this gradient will itself be differentiated
            losses = _of_rows(logits, targets, ctx.smoothing)
            found = torch.autograd.grad(losses, logits, of_losses, create_graph=True)
            return found[0], None, None
        of_logits = torch.empty_like(logits)  # (N, V)
        for rows in _slices(logits):
            difference = torch.softmax(logits[rows], dim=-1, dtype=of_losses.dtype)  # p
            if ctx.smoothing:
                difference -= ctx.smoothing / logits.shape[-1]
            on_target = torch.full_like(of_losses[rows, None], ctx.smoothing - 1)
            difference.scatter_add_(1, targets[rows, None], on_target)  # p - q
            torch.mul(difference, of_losses[rows, None], out=of_logits[rows])
        return of_logits, None, None


def _slices(logits: Tensor) -> list[slice]:
    N, V = logits.shape
    numbers = SLICE_NUMBERS["cpu" if logits.device.type == "cpu" else "other"]
    rows = max(1, numbers // V)
    return [slice(start, start + rows) for start in range(0, N, rows)]

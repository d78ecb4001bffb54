"""Cross-entropy in slices: no copy of the logits, and the gradient written in place.

V vocabulary · N tokens
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import FunctionCtx

# How many logits are worked on at a time: on a CPU 1 MB of float32, which stays in the
# cache; elsewhere 128 MB, as there each slice costs the launch of its kernels.
SLICE_NUMBERS = {"cpu": 2**18, "other": 2**25}


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Compute -Σₖ q(k) log p(k) of each row, p = softmax(logits).

    q is (1 - ε) on the target plus ε / V on every token. Equal to
    `F.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)`;
    half precision is summed in float32. It can be differentiated twice, and works under
    `torch.func`. Of logits (N, V) and int64 targets (N,) it is (N,), in nats; float32,
    or float64 for logits in float64.
    """
    if torch.compiler.is_compiling():  # the compiler fuses it, and knows no jvp of ours
        return F.cross_entropy(
            _at_least_float32(logits),
            targets,
            ignore_index=-(2**63),  # no target is left out, as without the compiler
            reduction="none",
            label_smoothing=smoothing,
        )
    of_rows = _SmoothedCrossEntropy.apply
    return of_rows(logits, targets, smoothing)[0]  # type: ignore[no-untyped-call]


class _Context(FunctionCtx):
    smoothing: float
    saved_tensors: tuple[Tensor, ...]


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The losses and, for the gradient p - q, the logarithm of each row's sum.

    Written out: s - (1 - ε) logits[target] - ε mean(logits), s = log Σ exp(logits).
    Beside the logits, which are there anyway, only s is kept.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        logits: Tensor, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        losses, log_sums = [], []
        for rows in _slices(logits):
            x = _at_least_float32(logits[rows])  # (n, V)
            log_sum = x.logsumexp(dim=-1)  # (n,)
            loss = log_sum - (1 - smoothing) * x.gather(1, targets[rows, None])[:, 0]
            if smoothing:  # 0 · -inf would be NaN, where a token was ruled out
                loss = loss - smoothing * x.mean(dim=-1)
            losses.append(loss)
            log_sums.append(log_sum)
        return torch.cat(losses), torch.cat(log_sums)  # (N,), (N,)

    @staticmethod
    def setup_context(
        ctx: _Context, inputs: tuple[Tensor, Tensor, float], output: tuple[Tensor, ...]
    ) -> None:
        logits, targets, ctx.smoothing = inputs
        _, log_sums = output
        ctx.mark_non_differentiable(log_sums)
        ctx.save_for_backward(logits, targets, log_sums)
        ctx.save_for_forward(logits, targets, log_sums)

    @staticmethod
    def backward(
        ctx: _Context, of_losses: Tensor, _: Tensor
    ) -> tuple[Tensor, None, None]:
        logits, targets, log_sums = ctx.saved_tensors
        if torch.is_grad_enabled():  # this gradient will itself be differentiated
            difference = _difference(logits, targets, ctx.smoothing)
            return (difference * of_losses[:, None]).to(logits.dtype), None, None
        of_logits = torch.empty_like(logits)  # (N, V)
        for rows in _slices(logits):
            x = _at_least_float32(logits[rows])
            difference = (x - log_sums[rows, None]).exp_()  # p, soon p - q
            if ctx.smoothing:
                difference -= ctx.smoothing / logits.shape[-1]
            on_target = torch.full_like(log_sums[rows, None], ctx.smoothing - 1)
            difference.scatter_add_(1, targets[rows, None], on_target)
            of_logits[rows] = difference.mul_(of_losses[rows, None])
        return of_logits, None, None

    @staticmethod
    def jvp(ctx: _Context, of_logits: Tensor, *_none: None) -> tuple[Tensor, None]:
        logits, targets, _ = ctx.saved_tensors
        difference = _difference(logits, targets, ctx.smoothing)
        return (difference * of_logits).sum(dim=-1), None


def _difference(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Compute p - q (N, V), of which gradients can be taken again."""
    p = _at_least_float32(logits).softmax(dim=-1)
    on_target = torch.full_like(p[:, :1], smoothing - 1)
    off_target = p - smoothing / p.shape[-1]
    return off_target.scatter_add(1, targets[:, None], on_target)


def _slices(logits: Tensor) -> list[slice]:
    N, V = logits.shape
    numbers = SLICE_NUMBERS["cpu" if logits.device.type == "cpu" else "other"]
    rows = max(1, numbers // V)
    return [slice(start, start + rows) for start in range(0, N, rows)]


def _at_least_float32(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x

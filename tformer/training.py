"""The training loop: predict, compare, step.

B batch · S length of the source · T length of the target · V vocabulary
"""

# --8<-- [start:imports]
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.data.batches import Batch
from tformer.extras import require
from tformer.loss import label_smoothed_cross_entropy
from tformer.transformer import Transformer

# --8<-- [end:imports]


# --8<-- [start:StepReport]
class StepReport(NamedTuple):
    """What one step of the training says of itself."""

    step: int  # the first is 1
    loss: float  # nats a token, before the step was made
    learning_rate: float
    grad_norm: float  # length of the gradient, before it was clipped
    # --8<-- [end:StepReport]


# --8<-- [start:adamw]
def adamw(model: nn.Module, *, weight_decay: float = 0.01) -> torch.optim.AdamW:
    """Make AdamW (arXiv:1711.05101) with the paper's β₁ = 0.9, β₂ = 0.98, ε = 10⁻⁹.

    Vaswani et al. 2017, section 5.3. The paper has Adam, without decay. Here matrices
    decay, and biases and the norms' gains do not: nothing is won by pulling them to 0.

    Args:
        model: whose parameters to train.
        weight_decay: how much of a matrix is taken off, times the learning rate.

    Returns:
        The optimizer. Its own learning rate is 1: the schedule sets the real one.

    Raises:
        ValueError: `weight_decay` is below 0.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    # fused: one pass over the memory for all parameters together.
    return torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    # --8<-- [end:adamw]


# --8<-- [start:batch_loss]
def batch_loss(model: Transformer, batch: Batch, *, smoothing: float = 0.0) -> Tensor:
    """Score each next token of the targets, given the true ones before it.

    This is teacher forcing: the model reads the true target, shifted right, and not
    what it would have written itself. So all positions are learned in one pass.

    Args:
        model: the Transformer.
        batch: ids src (B, S) and tgt (B, T), which begins with the start token.
        smoothing: of the labels, in [0, 1).

    Returns:
        The mean loss of a real token, a scalar.
    """
    logits = model(batch.src, batch.tgt[:, :-1])  # (B, T - 1, V)
    return label_smoothed_cross_entropy(
        logits, batch.tgt[:, 1:], smoothing=smoothing, pad_id=model.config.pad_id
    )
    # --8<-- [end:batch_loss]


# --8<-- [start:train]
def train(
    model: Transformer,
    batches: Iterable[Batch],
    *,
    steps: int,
    schedule: Callable[[int], float],
    optimizer: torch.optim.Optimizer | None = None,
    smoothing: float = 0.0,
    clip_norm: float = 1.0,
    progress: bool = True,
    callback: Callable[[StepReport], None] | None = None,
) -> list[StepReport]:
    """Train: for each batch, step against the gradient of its loss.

    Run twice from the same seed on one machine, it gives the same numbers, bit for bit.

    Args:
        model: the Transformer; it is left in `train()`.
        batches: at least `steps` batches, on the model's device.
        steps: how many steps to make.
        schedule: gives the learning rate of a step, from the step's number, 1, 2, ….
        optimizer: `adamw(model)` if not given.
        smoothing: of the labels, in [0, 1).
        clip_norm: gradients longer than this are shortened to it (arXiv:1211.5063).
        progress: show a bar, for which tqdm is needed.
        callback: called after each step with its report.

    Returns:
        The reports of all steps.

    Raises:
        FloatingPointError: the loss or the gradient is not finite. The message names
            the step and the cause; the model is as it was before that step.
        ImportError: `progress` without tqdm.
        ValueError: `steps` is below 1, `clip_norm` is not above 0, the batches end
            early, or the schedule gives no learning rate.
    """
    check_positive(steps=steps)
    if not clip_norm > 0:
        raise ValueError(f"clip_norm ({clip_norm}) must be above 0")
    optimizer = adamw(model) if optimizer is None else optimizer
    bar = require("tqdm").tqdm(total=steps, unit="step") if progress else None
    reports: list[StepReport] = []
    try:
        for step, batch in zip(range(1, steps + 1), batches, strict=False):
            learning_rate = schedule(step)
            if not 0 <= learning_rate < math.inf:
                raise ValueError(
                    f"the schedule gives {learning_rate} for step {step}: a learning "
                    "rate must be at least 0, and finite"
                )
            for group in optimizer.param_groups:
                group["lr"] = learning_rate
            model.train()  # the callback may have evaluated
            loss, grad_norm = _step(model, batch, optimizer, smoothing, clip_norm, step)
            reports.append(StepReport(step, loss, learning_rate, grad_norm))
            if callback is not None:
                callback(reports[-1])
            if bar is not None:
                bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
                bar.update()
    finally:
        if bar is not None:
            bar.close()
    if len(reports) < steps:
        raise ValueError(f"the batches ended after {len(reports)} of {steps} steps")
    return reports


def _step(
    model: Transformer,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    smoothing: float,
    clip_norm: float,
    step: int,
) -> tuple[float, float]:
    loss = batch_loss(model, batch, smoothing=smoothing)
    _check_finite(model, step, loss.item(), "loss")
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    _check_finite(model, step, grad_norm.item(), "gradient")
    optimizer.step()
    return loss.item(), grad_norm.item()
    # --8<-- [end:train]


# --8<-- [start:check_finite]
def _check_finite(model: nn.Module, step: int, value: float, what: str) -> None:
    """Stop before a step that would fill the model with NaN; say where it began."""
    if math.isfinite(value):
        return
    parameters = dict(model.named_parameters())
    suspects: dict[str, Tensor] = {}
    for name, p in parameters.items():
        suspects[f"the parameter {name}"] = p
    if what == "gradient":
        for name, p in parameters.items():
            if p.grad is not None:
                suspects[f"the gradient of {name}"] = p.grad
    bad = [name for name, tensor in suspects.items() if not tensor.isfinite().all()]
    cause = f"{bad[0]} is not finite" if bad else "a sum overflowed on the way to it"
    raise FloatingPointError(
        f"step {step}: the {what} is {value}: {cause}. A lower learning rate or a "
        "longer warm-up may help"
    )
    # --8<-- [end:check_finite]

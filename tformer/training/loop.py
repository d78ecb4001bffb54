"""The training loop: predict, compare, step.

B batch · T length of the target · V vocabulary
"""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tformer.checks import check_positive, require
from tformer.data.batch import Batch
from tformer.training.loss import label_smoothed_cross_entropy
from tformer.training.optimizer import adamw
from tformer.training.precision import Precision
from tformer.training.processes import (
    not_finite,
    num_processes,
    process_rank,
    sum_over_processes,
    syncing,
)


class StepReport(NamedTuple):
    """What one step of the training says of itself."""

    step: int  # the first is 1
    loss: float  # nats a token, before the step was made
    learning_rate: float
    grad_norm: float  # length of the gradient, before it was clipped
    tokens: int  # how many the loss is the mean of


def batch_loss(model: nn.Module, batch: Batch, *, smoothing: float = 0.0) -> Tensor:
    """Compute the mean loss of the tokens that a batch asks for, without padding.

    A decoder is asked for each next token, given the true ones before it. This is
    teacher forcing: it reads the true target, shifted right, and not what it would
    have written itself. So all positions are learned in one pass.
    """
    logits = model(*batch.inputs)  # (B, T, V)
    return label_smoothed_cross_entropy(
        logits, batch.targets, smoothing=smoothing, pad_id=pad_id_of(model)
    )


def pad_id_of(model: nn.Module) -> int | None:
    """Tell which token a model takes for padding, if any."""
    whole = getattr(model, "module", model)  # DDP wraps the model
    return getattr(whole, "pad_id", None)


def train_step(
    model: nn.Module,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    *,
    accumulate: int = 1,
    smoothing: float = 0.0,
    clip_norm: float = 1.0,
    precision: Precision | None = None,
) -> tuple[float, float, int]:
    """Step against the gradient of the batch's mean loss.

    A batch too large for the memory goes through in parts, and the gradients add up.
    Each part is weighted by its fraction of the batch's tokens, since the mean of the
    parts' means is not the mean where one part holds more padding. So the step is the
    same in any number of parts, and on any number of processes, each of which takes its
    rows, but for what belongs to a part: the draws of dropout, and experts' balance.

    Args:
        model: as it is, or wrapped by `distribute`.
        batch: the whole batch, the same in every process.
        optimizer: of the model's parameters.
        accumulate: into so many parts each process cuts its rows, or fewer if it has
            fewer rows.
        smoothing: of the labels, in [0, 1).
        clip_norm: gradients longer than this are shortened to it (arXiv:1211.5063).
        precision: of the products; float32 if not given.

    Returns:
        The loss, the length of the gradient before it was clipped, the tokens scored.

    Raises:
        FloatingPointError: the loss or the gradient is not finite; the model is as it
            was. In fp16 a gradient that overflows is no error: the step is left out.
    """
    precision = Precision() if precision is None else precision
    scaler, pad_id = precision.scaler, pad_id_of(model)
    tokens = batch.num_tokens(pad_id)
    optimizer.zero_grad(set_to_none=True)
    losses = []
    for part, fraction in (parts := _parts(batch, accumulate, pad_id)):
        with syncing(model, part is parts[-1][0]):
            with precision.autocast():
                losses.append(batch_loss(model, part, smoothing=smoothing) * fraction)
            # Processes average their gradients, and we want the sum.
            scaled = scaler.scale(losses[-1] * num_processes())
            scaled.backward()  # type: ignore[no-untyped-call]
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    if hasattr(norm, "full_tensor"):  # FSDP holds it in shards
        norm = norm.full_tensor()

    loss = sum_over_processes(torch.stack(losses).detach().sum())
    # One wait for the device, for both numbers.
    mean, length = torch.stack([loss, norm.to(loss)]).tolist()
    try:
        _check_finite(model, mean, "loss")
        if not scaler.is_enabled() or scaler.get_scale() < 1:
            _check_finite(model, length, "gradient")
    except FloatingPointError:
        scaler.update()  # or it could not be used for another step
        raise
    scaler.step(optimizer)
    scaler.update()
    return mean, length, tokens


def _parts(
    batch: Batch, accumulate: int, pad_id: int | None
) -> list[tuple[Batch, float]]:
    """Cut this process's rows into parts, each with its fraction of the batch's tokens.

    All processes make as many passes, as each waits for the others. If the rows do not
    go round, one that has none computes a row with the weight 0.
    """
    rows, processes, rank = len(batch), num_processes(), process_rank()
    own = batch.split(min(rows, processes))
    parts = own[rank % len(own)].split(max(1, min(accumulate, rows // processes)))
    if rank >= len(own):
        return [(part, 0.0) for part in parts]
    tokens = max(1, batch.num_tokens(pad_id))
    return [(part, part.num_tokens(pad_id) / tokens) for part in parts]


def train(
    model: nn.Module,
    batches: Iterable[Batch],
    *,
    steps: int,
    schedule: Callable[[int], float],
    optimizer: torch.optim.Optimizer | None = None,
    accumulate: int = 1,
    smoothing: float = 0.0,
    clip_norm: float = 1.0,
    precision: Precision | None = None,
    start: int = 0,
    progress: bool = True,
    callback: Callable[[StepReport], None] | None = None,
) -> list[StepReport]:
    """Train: for each batch, `train_step`, and return the reports of all.

    Run twice from the same seed on one machine, it gives the same numbers, bit for bit.

    Args:
        model: a Transformer, GPT or BERT; it is left in `train()`.
        batches: one for each step, on the model's device.
        steps: how many steps the whole training has.
        schedule: gives the learning rate of a step, from the step's number, 1, 2, ….
        optimizer: `adamw(model)` if not given. A group of it with an `lr_factor` gets
            so much of the schedule's rate.
        accumulate: as in `train_step`, and so are the next three.
        smoothing: of the labels.
        clip_norm: of gradients.
        precision: of the products.
        start: how many steps were made before, where a training goes on.
        progress: show a bar, for which tqdm is needed.
        callback: called after each step with its report.

    Raises:
        FloatingPointError: as in `train_step`; the message has the step.
        ImportError: `progress` without tqdm.
        ValueError: a number is out of its range, the batches end early, or the schedule
            gives no learning rate.
    """
    check_positive(steps=steps, accumulate=accumulate)
    if not 0 <= start <= steps:
        raise ValueError(f"start ({start}) must be in [0, steps = {steps}]")
    if not clip_norm > 0:
        raise ValueError(f"clip_norm ({clip_norm}) must be above 0")
    optimizer = optimizer or adamw(model)
    reports: list[StepReport] = []
    began, seen = time.perf_counter(), 0
    bar = progress and require("tqdm").tqdm(total=steps, initial=start, unit="step")
    with bar or nullcontext():
        for step, batch in zip(range(start + 1, steps + 1), batches, strict=False):
            learning_rate = schedule(step)
            if not 0 <= learning_rate < math.inf:
                raise ValueError(
                    f"the schedule gives {learning_rate} for step {step}: a learning "
                    "rate must be at least 0, and finite"
                )
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * group.get("lr_factor", 1.0)
            model.train()  # the callback may have evaluated
            try:
                loss, grad_norm, tokens = train_step(
                    model,
                    batch,
                    optimizer,
                    accumulate=accumulate,
                    smoothing=smoothing,
                    clip_norm=clip_norm,
                    precision=precision,
                )
            except FloatingPointError as error:
                raise FloatingPointError(f"step {step}: {error}") from None
            reports.append(StepReport(step, loss, learning_rate, grad_norm, tokens))
            seen += tokens
            if bar:
                speed = seen / (time.perf_counter() - began)
                text = f"loss {loss:.4f}, {speed:,.0f} tokens/s"
                bar.set_postfix_str(text, refresh=False)
                bar.update()
            if callback:
                callback(reports[-1])
    if len(reports) < steps - start:
        made = start + len(reports)
        raise ValueError(f"the batches ended after {made} of {steps} steps")
    return reports


def _check_finite(model: nn.Module, value: float, what: str) -> None:
    """Stop before a step that would fill the model with NaN; say where it began."""
    if math.isfinite(value):
        return
    named = list(model.named_parameters())
    suspects: list[tuple[str, Tensor]] = [(f"the parameter {n}", p) for n, p in named]
    if what == "gradient":
        grads = [(f"the gradient of {n}", p.grad) for n, p in named]
        suspects += [(n, grad) for n, grad in grads if grad is not None]
    bad = not_finite(suspects)
    cause = f"{bad} is not finite" if bad else "a sum overflowed on the way to it"
    raise FloatingPointError(
        f"the {what} is {value}: {cause}. A lower learning rate or a longer warm-up "
        "may help"
    )

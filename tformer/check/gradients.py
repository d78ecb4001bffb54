"""Gradients of a tested function, held to difference quotients of the oracle."""

import numpy as np

from tformer.check.outcomes import Outcome, give
from tformer.check.spec import Case, Function, Spec

STEP = 1e-5


def wrong_gradient(spec: Spec, function: Function, case: Case) -> str | None:
    """Compare torch's gradients of a function with those of the oracle.

    Of every input x, along one direction v: Σ w · (f(x + hv) - f(x - hv)) / 2h, with
    random weights w of the outputs, h = `STEP`.

    Returns:
        What is wrong, or None.
    """
    import torch

    inputs = spec.inputs(case)
    floats = [n for n, x in inputs.items() if getattr(x, "dtype", None) == np.float64]
    given = {name: give(x, "torch") for name, x in inputs.items()}
    leaves = [given[name].requires_grad_() for name in floats]
    returned = spec.call(function, case, given)
    parts = returned if isinstance(returned, tuple | list) else [returned]
    outputs = [x for x in parts if isinstance(x, torch.Tensor)]
    draw = np.random.default_rng(0)
    weights = [np.asarray(draw.normal(size=tuple(x.shape))) for x in outputs]
    total = torch.zeros((), dtype=torch.float64)
    for x, w in zip(outputs, weights, strict=True):
        total = total + (x * torch.from_numpy(w)).sum()
    if not total.requires_grad:
        return f"no gradient flows to {floats[0]}"
    slopes = torch.autograd.grad(total, leaves, allow_unused=True)

    def weighed(outcome: Outcome) -> float:
        pairs = zip(outcome.arrays, weights, strict=True)
        return sum(float((x * w).sum()) for x, w in pairs)

    for name, leaf, slope in zip(floats, leaves, slopes, strict=True):
        along = np.asarray(draw.normal(size=tuple(leaf.shape)))
        above, below = (
            weighed(spec.right(case, {**inputs, name: inputs[name] + v}))
            for v in (STEP * along, -STEP * along)
        )
        right = (above - below) / (2 * STEP)
        if slope is None:
            if abs(right) > 1e-6:
                return f"no gradient flows to {name}"
            continue
        if not slope.isfinite().all():
            return f"the gradient of {name} is not finite"
        shares = slope.numpy() * along
        off = abs(float(shares.sum()) - right)
        if off > 1e-4 * max(abs(right), float(np.abs(shares).sum())) + 1e-6:
            told = f"along one direction it is {shares.sum():.6g}, not {right:.6g}"
            return f"the gradient of {name} is wrong: {told}"
    return None

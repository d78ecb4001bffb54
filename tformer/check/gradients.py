"""Gradients of a tested function, held to difference quotients of the oracle."""

from collections.abc import Iterator

import numpy as np

from tformer.check.outcomes import Outcome, as_numpy
from tformer.check.spec import Case, Function, Spec

STEP = 1e-5


def wrong_gradients(spec: Spec, function: Function, case: Case) -> Iterator[str]:
    """Compare torch's gradients of a function with those of the oracle.

    Of every input x, along one direction v: Σ w · (f(x + hv) - f(x - hv)) / 2h, with
    random weights w of the outputs, h = `STEP`. Yields what is wrong.
    """
    import torch

    inputs, given = spec.inputs(case), spec.inputs(case, "torch")
    leaves = {
        name: x.requires_grad_()
        for name, x in given.items()
        if isinstance(x, torch.Tensor) and x.is_floating_point()
    }
    returned = spec.call(function, case, given)
    parts = returned if isinstance(returned, tuple | list) else [returned]
    outputs = [x for x in parts if isinstance(x, torch.Tensor)]
    draw = np.random.default_rng(0)
    weights = [draw.normal(size=tuple(x.shape)) for x in outputs]
    total = torch.zeros((), dtype=torch.float64)
    for x in leaves.values():  # the slope of what is cut off is 0
        total = total + 0 * x.sum()
    for x, weight in zip(outputs, weights, strict=True):
        total = total + (x * torch.tensor(weight)).sum()

    def weighed(outcome: Outcome) -> float:
        pairs = zip(outcome.arrays, weights, strict=True)
        return sum(float((x * weight).sum()) for x, weight in pairs)

    for name, leaf in leaves.items():
        (slope,) = torch.autograd.grad(total, leaf, retain_graph=True)
        at = np.asarray(inputs[name])
        along = np.asarray(draw.normal(size=at.shape))
        above, below = (
            weighed(spec.right(case, {**inputs, name: at + step * along}))
            for step in (STEP, -STEP)
        )
        right = (above - below) / (2 * STEP)
        shares = as_numpy(slope) * along
        bound = 1e-4 * max(abs(right), float(np.abs(shares).sum())) + 1e-6
        if not abs(float(shares.sum()) - right) <= bound:  # NaN is wrong, too
            told = f"along one direction it is {shares.sum():.6g}, not {right:.6g}"
            yield f"the gradient of {name} is wrong: {told}"

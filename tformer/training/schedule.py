"""The learning rate of each step: a warm-up, then a slow decay."""

import math

from tformer.checks import check_above_0, check_positive


def inverse_sqrt_schedule(
    step: int, d_model: int, *, warmup_steps: int = 4000
) -> float:
    """Compute d_model^-½ · min(step^-½, step · warmup_steps^-1½).

    Vaswani et al. 2017, section 5.3, equation 3 ("Noam" in tensor2tensor): it rises in
    a straight line for `warmup_steps` steps, then falls like 1 / √step. The wider the
    model, the smaller the steps.

    torch's schedulers count from 0, so that step i of theirs is step i + 1 here:
    `LambdaLR(optimizer, lambda i: inverse_sqrt_schedule(i + 1, 512))`, with an
    optimizer whose own learning rate is 1. Each argument is an int of at least 1.

    Example:
        >>> f"{inverse_sqrt_schedule(4000, 512):.5e}"
        '6.98771e-04'
    """
    check_positive(step=step, d_model=d_model, warmup_steps=warmup_steps)
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def cosine_schedule(
    step: int, steps: int, *, peak: float, warmup_steps: int = 0
) -> float:
    """Rise to `peak` in a straight line, then fall to 0 like half a cosine.

    Loshchilov and Hutter 2017, equation 5 (arXiv:1608.03983), without restarts. The
    number of steps has to be known beforehand. The peak comes at step `warmup_steps`,
    or at the first, which is 1; the rate is 0 after the last.

    Raises:
        TypeError: a number of steps is not an int.
        ValueError: `step` is not in [1, steps], `warmup_steps` not in [0, steps), or
            `peak` not above 0.
    """
    check_positive(step=step, steps=steps)
    if step > steps:
        raise ValueError(f"step ({step}) must be at most steps ({steps})")
    if not 0 <= warmup_steps < steps:
        raise ValueError(f"warmup_steps ({warmup_steps}) must be in [0, {steps})")
    check_above_0(peak=peak)
    if step < warmup_steps:
        return peak * step / warmup_steps
    # From 0 at the end of the warm-up (or at step 1) to 1, one step past the last.
    start = max(warmup_steps, 1)
    done = (step - start) / (steps + 1 - start)
    return peak * 0.5 * (1 + math.cos(math.pi * done))

"""The learning rate of each step: a warm-up, then a slow decay."""

# --8<-- [start:imports]
from tformer.checks import check_positive

# --8<-- [end:imports]


# --8<-- [start:inverse_sqrt_schedule]
def inverse_sqrt_schedule(
    step: int, d_model: int, *, warmup_steps: int = 4000
) -> float:
    """Compute d_model^-½ · min(step^-½, step · warmup_steps^-1½).

    Vaswani et al. 2017, section 5.3, equation 3 ("Noam" in tensor2tensor): it rises in
    a straight line for `warmup_steps` steps, then falls like 1 / √step. The wider the
    model, the smaller the steps.

    torch's schedulers count from 0, so that step i of theirs is step i + 1 here:
    `LambdaLR(optimizer, lambda i: inverse_sqrt_schedule(i + 1, 512))`, with an
    optimizer whose own learning rate is 1.

    Args:
        step: the number of the step; the first is 1.
        d_model: width of the model.
        warmup_steps: at this step the rate is highest.

    Returns:
        The learning rate of the step.

    Raises:
        TypeError: an argument is not an int.
        ValueError: an argument is below 1. At step 0 the formula divides by zero.

    Example:
        >>> f"{inverse_sqrt_schedule(4000, 512):.5e}"
        '6.98771e-04'
    """
    check_positive(step=step, d_model=d_model, warmup_steps=warmup_steps)
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
    # --8<-- [end:inverse_sqrt_schedule]

"""What is not a number any more: found before it is kept."""

import torch
from torch import nn

from tformer.training.processes import sum_over_processes


def not_finite(model: nn.Module) -> str | None:
    """Name a parameter with NaN or infinity in it, if there is one.

    Of several processes all must call it; each looks at what it holds, and all get the
    same answer.
    """
    found = {}
    for name, parameter in model.named_parameters():
        # Under FSDP a process holds a part, which may be empty.
        own = getattr(parameter, "to_local", lambda p=parameter: p)()
        found[name] = ~own.detach().isfinite().all()
    counts = sum_over_processes(torch.stack(list(found.values())).float()).tolist()
    return next((n for n, count in zip(found, counts, strict=True) if count), None)

"""What all layers with a state share."""

import torch
from torch import Tensor


def no_autocast(x: Tensor) -> torch.autocast:
    """Keep the products of a `with` block in the dtype of x: autocast is for weights.

    A state is rounded again at each token; in 16 bits that would be seen.
    """
    device = "cpu" if x.is_meta else x.device.type  # meta has no autocast
    return torch.autocast(device, enabled=False)

"""Mixed precision: products in 16 bits, weights and sums in 32."""

import torch

from tformer.checks import check_one_of

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """How the products of a training are computed.

    Micikevicius et al. 2018 (arXiv:1710.03740). "bf16" has the range of float32 and 8
    bits of precision, and needs nothing else. "fp16" has 11 bits and ends at 65,504;
    its small gradients would vanish, so the loss is multiplied by a large number and
    the gradients divided by it. Where they overflow the step is left out, and the
    number halved.

    Args:
        name: "fp32", "bf16" or "fp16"; this one not on a CPU, as many compute
            it far slower than bf16.
        device_type: "cpu", "cuda" or "mps".
    """

    def __init__(self, name: str = "fp32", device_type: str = "cpu") -> None:
        check_one_of("precision", name, DTYPES)
        if name == "fp16" and device_type == "cpu":
            raise ValueError("precision 'fp16' is not for CPUs: take 'bf16'")
        self.name = name
        self.device_type = device_type
        # Switched off it hands everything through: then there is one code path.
        self.scaler = torch.amp.GradScaler(device_type, enabled=name == "fp16")

    def autocast(self) -> torch.autocast:
        """Make the context in which the loss is computed."""
        return torch.autocast(
            self.device_type, DTYPES[self.name], enabled=self.name != "fp32"
        )

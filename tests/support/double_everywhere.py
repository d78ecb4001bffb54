"""Code that asks for float32 by name gets float64, and stays as it is."""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class DoubleEverywhere(TorchFunctionMode):
    """Let Hugging Face's modules compute in float64: they take norms to float32.

    Each `torch.float32` among the arguments of a function becomes `torch.float64`, and
    `.float()` becomes `.double()`. What is compared is then their code, unchanged, to
    the last digits.
    """

    def __torch_function__(
        self, func: Any, _: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is Tensor.float:
            return args[0].double()
        args = [torch.float64 if x is torch.float32 else x for x in args]
        kwargs = {
            name: torch.float64 if x is torch.float32 else x
            for name, x in (kwargs or {}).items()
        }
        return func(*args, **kwargs)

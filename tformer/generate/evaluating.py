"""Ask a model in its evaluation mode, and leave it as it was."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from torch import nn

# How many ask a model at this moment, and the modes that its modules had before.
_ASKED: WeakKeyDictionary[nn.Module, tuple[int, list[tuple[nn.Module, bool]]]]
_ASKED = WeakKeyDictionary()
_LOCK = threading.Lock()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put every module into `eval()`, and afterwards into the mode that it had.

    Several threads may ask one model: the last to leave puts the modes back.
    """
    model = getattr(model, "_orig_mod", model)  # one model, asked compiled or not
    with _LOCK:
        count, modes = _ASKED.get(model, (0, []))
        if not count:
            modes = [(module, module.training) for module in model.modules()]
            model.eval()
        _ASKED[model] = count + 1, modes
    try:
        yield
    finally:
        with _LOCK:
            count, modes = _ASKED.pop(model)
            if count > 1:
                _ASKED[model] = count - 1, modes
            else:
                for module, training in modes:
                    module.training = training

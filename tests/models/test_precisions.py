"""Double precision stays double, autocast goes through, no device needs float64."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from every_module import LANGUAGE_MODELS, MODULES, SMALL, ids, tensors
from tformer.models.families import custom
from tformer.models.families.custom import PARTS
from tformer.nn import (
    Experts,
    IndexedAttention,
    Router,
    SinusoidalPositionalEncoding,
)

everywhere = pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)


class Without(TorchDispatchMode):
    """Refuse every operation that returns this dtype, on one device or on each."""

    def __init__(self, dtype, device=None):
        super().__init__()
        self.dtype, self.device = dtype, device

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        for x in output if isinstance(output, tuple | list) else [output]:
            if isinstance(x, torch.Tensor) and self.device in (None, x.device.type):
                assert x.dtype != self.dtype, f"{function} made a {x.dtype}"
        return output


def in_double(module, inputs):
    """Compute in float64 from beginning to end, forward and backward."""
    wide = [
        x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
        for x in inputs
    ]
    with Without(torch.float32):
        output = module.double()(*wide)
        first = output if isinstance(output, torch.Tensor) else output[0]
        if first.requires_grad:
            first.square().sum().backward()
    assert first.dtype == torch.float64
    return output


@everywhere
def test_double_precision_and_autocast(kind):
    make, draw = MODULES[kind]
    module, inputs = make().eval(), draw(2, 5)
    single = tensors(module(*inputs))
    with torch.autocast("cpu", torch.bfloat16):
        half = tensors(module(*inputs))
    double = in_double(module, inputs)
    if kind in (Router, IndexedAttention):  # which may choose others
        return
    if isinstance(half, list):  # the output comes first, then what is kept
        half, single, double = half[0], single[0], double[0]
    assert half.isfinite().all()
    assert_close(half.float(), single, atol=0.2, rtol=0.1)
    assert_close(double.float(), single, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_with_each_part(name):
    model, inputs = LANGUAGE_MODELS[name](), ids(2, 9)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(*inputs)
    logits.float().square().sum().backward()
    assert logits.isfinite().all()
    for parameter in (p for p in model.parameters() if p.requires_grad):
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all()
    single, double = model(*inputs), in_double(model, inputs)
    if name != "experts":  # of which a token may choose others
        assert_close(logits.float(), single, atol=0.2, rtol=0.1)
        assert_close(double.float(), single, atol=1e-4, rtol=1e-3)


# Of these the device "meta" cannot do what they do in between.
NOT_ON_META = {Experts}
ON_META = {
    **{
        kind.__name__: pair for kind, pair in MODULES.items() if kind not in NOT_ON_META
    },
    "a table that grows": (
        lambda: SinusoidalPositionalEncoding(16, max_len=3),
        MODULES[SinusoidalPositionalEncoding][1],
    ),
    **{
        f"CausalLM, {positions}": (
            partial(custom.build, {**SMALL, "positions": positions}),
            ids,
        )
        for positions in PARTS["positions"].kind
    },
}


@pytest.mark.by_day(30)
@pytest.mark.parametrize("begins_there", [True, False])
@pytest.mark.parametrize("name", ON_META)
def test_no_float64_on_a_device_that_may_lack_it(name, begins_there):
    """MPS has none. The device "meta" stands for one, and holds no numbers."""
    make, draw = ON_META[name]
    inputs = [x.to("meta") if torch.is_tensor(x) else x for x in draw(2, 5)]
    with Without(torch.float64, "meta"):
        with torch.device("meta" if begins_there else "cpu"):
            module = make()
        module = module.to("meta")
        with torch.device("meta"):
            output = tensors(module(*inputs))
        if torch.is_tensor(output) and output.requires_grad:
            output.square().sum().backward()
    for x in [*module.buffers(), *([output] if torch.is_tensor(output) else output)]:
        assert x.device.type == "meta"

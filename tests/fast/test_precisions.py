"""Double precision stays double, autocast goes through, attention can be mapped."""

import pytest
import torch
from torch.func import grad, vmap
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from every_module import LANGUAGE_MODELS, MODULES, H, ids, tensors
from tformer import scaled_dot_product_attention
from tformer.nn.router import Router

everywhere = pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)


class No32(TorchDispatchMode):
    """Refuse every operation that returns float32."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        for x in output if isinstance(output, tuple | list) else [output]:
            if isinstance(x, torch.Tensor):
                assert x.dtype != torch.float32, f"{function} made a float32"
        return output


def in_double(module, inputs):
    """Compute in float64 from beginning to end, forward and backward."""
    wide = [
        x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
        for x in inputs
    ]
    with No32():
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
    if kind is Router:  # which may choose other experts
        return
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


def test_what_finds_a_float32_finds_one():
    with No32(), pytest.raises(AssertionError, match="made a float32"):
        torch.zeros(2, dtype=torch.float64).float()


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"softcap": 2.0}], ids=str
)
@pytest.mark.parametrize("masked", ["no mask", "one mask", "a mask for each"])
def test_vmap_over_attention(masked, options):
    query, key, value = torch.randn(3, 5, 2, H, 6, 4)
    key, value = key[:, :, ::2], value[:, :, ::2]  # in groups
    masks = torch.rand(5, 6, 6) < 0.7
    mask = {"no mask": None, "one mask": masks[0], "a mask for each": masks}[masked]
    over = (0, 0, 0, 0 if masked == "a mask for each" else None)

    def attend(query, key, value, mask):
        return scaled_dot_product_attention(query, key, value, mask, **options)

    each = [
        (query[i], key[i], value[i], mask if over[3] is None else mask[i])
        for i in range(5)
    ]
    expected = torch.stack([attend(*one) for one in each])
    assert_close(vmap(attend, over)(query, key, value, mask), expected)
    slope = grad(lambda *one: attend(*one).square().sum())
    expected = torch.stack([slope(*one) for one in each])
    assert_close(vmap(slope, over)(query, key, value, mask), expected)

import copy
import pickle
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

import tformer.fast.linear
from tformer.fast.linear import Linear, linear

SHAPES = [(7,), (1, 7), (5, 7), (3, 5, 7), (2, 3, 5, 7)]


@pytest.fixture
def convolutions(monkeypatch):
    """Record the convolutions, and lift the sizes from which they are worth it."""
    calls = []
    conv2d = F.conv2d

    def record(image, *arguments, **options):
        calls.append(tuple(image.shape))
        return conv2d(image, *arguments, **options)

    monkeypatch.setattr(F, "conv2d", record)
    monkeypatch.setattr(tformer.fast.linear, "_runs_on_amd", lambda: True)
    for name in ("FEWEST_POSITIONS", "SMALLEST_INPUT", "SMALLEST_PRODUCT"):
        monkeypatch.setattr(tformer.fast.linear, name, 1)
    return calls


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("path", ["convolution", "product"])
def test_equals_torch(convolutions, monkeypatch, shape, bias, path):
    if path == "product":
        monkeypatch.setattr(tformer.fast.linear, "_runs_on_amd", lambda: False)
    inputs = [torch.randn(shape), torch.randn(11, 7), torch.randn(11)]
    inputs = [x.requires_grad_() for x in inputs[: 3 if bias else 2]]
    output, wanted = linear(*inputs), F.linear(*inputs)
    assert len(convolutions) == (path == "convolution")
    assert output.shape == (*shape[:-1], 11)
    assert output.is_contiguous()
    assert_close(output, wanted)
    factor = torch.randn_like(wanted)
    gradients = [
        torch.autograd.grad((y * factor).sum(), inputs) for y in (output, wanted)
    ]
    assert_close(*gradients)


def test_layout_in_memory_does_not_matter(convolutions):
    weight = torch.randn(7, 11).T
    for x in (
        torch.randn(5, 3, 7).transpose(0, 1),
        torch.randn(3, 5, 14)[..., ::2],
        torch.randn(3, 1, 7).expand(3, 5, 7),
    ):
        assert_close(linear(x, weight), F.linear(x, weight))
    assert len(convolutions) == 3


def test_second_derivatives(convolutions, monkeypatch):
    monkeypatch.setattr(tformer.fast.linear, "_prefers_convolution", lambda *_: True)
    inputs = [torch.randn(s, dtype=torch.float64) for s in ((5, 3), (2, 3), (2,))]
    inputs = [x.requires_grad_() for x in inputs]
    assert torch.autograd.gradcheck(linear, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(linear, inputs)
    assert convolutions


def test_gradients_for_each_row_alone(convolutions):
    weight, x = torch.randn(11, 7), torch.randn(5, 7)

    def loss(weight, x):
        return linear(x, weight).square().sum()

    gradients = torch.func.vmap(torch.func.grad(loss), (None, 0))(weight, x)
    wanted = 2 * F.linear(x, weight)[:, :, None] * x[:, None, :]
    assert_close(gradients, wanted, atol=1e-4, rtol=1e-4)
    assert convolutions


@pytest.mark.parametrize(
    "name", ["FEWEST_POSITIONS", "SMALLEST_INPUT", "SMALLEST_PRODUCT"]
)
def test_small_products_are_not_worth_a_convolution(convolutions, monkeypatch, name):
    sizes = {"FEWEST_POSITIONS": 5, "SMALLEST_INPUT": 35, "SMALLEST_PRODUCT": 385}
    x, weight = torch.randn(5, 7), torch.randn(11, 7)
    monkeypatch.setattr(tformer.fast.linear, name, sizes[name])
    linear(x, weight)
    assert convolutions == [(1, 7, 5, 1)]
    monkeypatch.setattr(tformer.fast.linear, name, sizes[name] + 1)
    linear(x, weight)
    assert len(convolutions) == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_another_precision_takes_the_product(convolutions, dtype):
    x, weight = torch.randn(5, 7, dtype=dtype), torch.randn(11, 7, dtype=dtype)
    assert torch.equal(linear(x, weight), F.linear(x, weight))
    assert not convolutions


def test_autocast_takes_the_product(convolutions):
    x, weight = torch.randn(5, 7), torch.randn(11, 7)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    assert not convolutions
    assert linear(x, weight).dtype == torch.float32
    assert convolutions


def test_another_device_takes_the_product(convolutions):
    output = linear(torch.randn(5, 7, device="meta"), torch.randn(11, 7, device="meta"))
    assert output.shape == (5, 11)
    assert not convolutions


def test_without_onednn_it_takes_the_product(convolutions, monkeypatch):
    x, weight = torch.randn(5, 7), torch.randn(11, 7)
    with monkeypatch.context() as patch:
        patch.setattr(torch.backends.mkldnn, "enabled", False)
        linear(x, weight)
    assert not convolutions
    linear(x, weight)
    assert convolutions


def test_a_compiler_sees_the_product(convolutions, monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    linear(torch.randn(5, 7), torch.randn(11, 7))
    assert not convolutions


@pytest.mark.parametrize(
    ("cpuinfo", "missing", "answer"),
    [
        ("vendor_id : AuthenticAMD", None, True),
        ("vendor_id : GenuineIntel", None, False),
        ("vendor_id : AuthenticAMD", "mkldnn", False),
        ("vendor_id : AuthenticAMD", "mkl", False),
        (None, None, False),
    ],
)
def test_recognises_the_processor(monkeypatch, tmp_path, cpuinfo, missing, answer):
    file = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        file.write_text(cpuinfo)
    monkeypatch.setattr(tformer.fast.linear, "Path", lambda _: Path(file))
    monkeypatch.setattr(tformer.fast.linear.platform, "processor", lambda: "arm")
    for name in ("mkldnn", "mkl"):
        library, there = getattr(torch.backends, name), name != missing
        monkeypatch.setattr(library, "is_available", lambda there=there: there)
    assert tformer.fast.linear._runs_on_amd.__wrapped__() is answer


def test_recognises_the_processor_without_linux(monkeypatch, tmp_path):
    monkeypatch.setattr(tformer.fast.linear, "Path", lambda _: tmp_path / "nothing")
    names = "AMD64 Family 25 Model 1 Stepping 1, AuthenticAMD"
    monkeypatch.setattr(tformer.fast.linear.platform, "processor", lambda: names)
    for library in (torch.backends.mkldnn, torch.backends.mkl):
        monkeypatch.setattr(library, "is_available", lambda: True)
    assert tformer.fast.linear._runs_on_amd.__wrapped__()


def test_large_layers_by_themselves():
    """Whatever code path this processor takes, far above every threshold."""
    layer, x = Linear(512, 1024), torch.randn(130, 512)
    wanted = F.linear(x.double(), layer.weight.double(), layer.bias.double())
    assert_close(layer(x).double(), wanted, atol=1e-4, rtol=1e-4)


def test_the_layer_is_torchs():
    layer, x = Linear(7, 11, bias=False), torch.randn(3, 7)
    assert isinstance(layer, nn.Linear)
    theirs = nn.Linear(7, 11, bias=False)
    theirs.load_state_dict(layer.state_dict())
    for twin in (theirs, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), layer(x))


@pytest.mark.parametrize("shape", [(3, 14), (14, 7, 1), (3, 1), ()])
def test_bad_width(raises, shape):
    with raises(ValueError, f"x must have width 7, as weight is (11, 7), not {shape}"):
        linear(torch.randn(shape), torch.randn(11, 7))

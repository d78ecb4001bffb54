"""The linear layer that computes large products as a convolution."""

import copy
import importlib
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tformer.nn import Linear, linear

module = importlib.import_module("tformer.nn.linear")  # not the function

N, I, O = 64, 512, 256  # the least that is large: each of the three bounds is met


@pytest.fixture(params=[True, False], ids=["convolution", "product"])
def path(request, monkeypatch):
    monkeypatch.setattr(module, "onednn_is_faster", lambda: request.param)
    return request.param


@pytest.fixture
def convolutions(monkeypatch):
    calls, conv2d = [], F.conv2d
    monkeypatch.setattr(module, "onednn_is_faster", lambda: True)

    def record(image, *arguments, **options):
        calls.append(tuple(image.shape))
        return conv2d(image, *arguments, **options)

    monkeypatch.setattr(F, "conv2d", record)
    return calls


@pytest.mark.parametrize("shape", [(N, I), (2, 3, N, I), (N - 1, I), (1, I), (I,)])
@pytest.mark.parametrize("bias", [True, False])
def test_equals_torch_and_so_do_its_gradients(path, shape, bias):
    inputs = [torch.randn(shape), torch.randn(O, I), torch.randn(O)][: 2 + bias]
    inputs = [x.requires_grad_() for x in inputs]
    output = linear(*inputs)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    wanted = F.linear(*exact)
    factor = torch.randn_like(output)
    pairs = [(output, wanted)]
    pairs += zip(
        torch.autograd.grad((output * factor).sum(), inputs),
        torch.autograd.grad((wanted * factor).sum(), exact),
        strict=True,
    )
    for ours, theirs in pairs:
        assert (ours - theirs).abs().max() <= 4e-6 * theirs.abs().max()
    assert output.is_contiguous()


def test_layout_in_memory_does_not_matter(convolutions):
    weight = torch.randn(I, O).T
    for x in (
        torch.randn(N, 3, I).transpose(0, 1),
        torch.randn(N, 2 * I)[..., ::2],
        torch.randn(3, 1, I).expand(3, N, I),
    ):
        assert_close(linear(x, weight), F.linear(x, weight), rtol=1e-4, atol=1e-4)
    assert len(convolutions) == 3


def test_each_row_has_gradients_of_its_own(convolutions):
    weight, x = torch.randn(O, I), torch.randn(3, N, I)

    def loss(weight, x):
        return linear(x, weight).square().sum()

    found = torch.func.vmap(torch.func.grad(loss), (None, 0))(weight, x)
    wanted = torch.stack([torch.func.grad(loss)(weight, row) for row in x])
    assert_close(found, wanted, rtol=1e-3, atol=1e-3 * float(wanted.abs().max()))
    assert convolutions


@pytest.mark.parametrize(("n", "i", "o"), [(N, I, O - 1), (N - 1, I, 2 * O)])
def test_smaller_products_are_not_worth_a_convolution(convolutions, n, i, o):
    linear(torch.randn(N, I), torch.randn(O, I))
    assert convolutions == [(1, I, N, 1)]
    linear(torch.randn(n, i), torch.randn(o, i))
    assert len(convolutions) == 1


def test_where_the_product_is_taken(convolutions, monkeypatch):
    x, weight = torch.randn(N, I), torch.randn(O, I)
    for dtype in (torch.float64, torch.bfloat16):
        linear(x.to(dtype), weight.to(dtype))
    assert linear(x.to("meta"), weight.to("meta")).shape == (N, O)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    monkeypatch.setattr(module, "is_compiling", lambda: True)
    linear(x, weight)
    assert not convolutions


@pytest.mark.parametrize(
    ("cpuinfo", "missing", "answer"),
    [
        ("vendor_id : AuthenticAMD", None, True),
        ("vendor_id : GenuineIntel", None, False),
        ("vendor_id : AuthenticAMD", "mkldnn", False),
        ("vendor_id : AuthenticAMD", "mkl", False),
        (None, None, True),  # no Linux: what platform says
    ],
)
def test_the_processor_is_asked(monkeypatch, tmp_path, cpuinfo, missing, answer):
    file = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        file.write_text(cpuinfo)
    monkeypatch.setattr(module, "Path", lambda _: file)
    named = "AMD64 Family 25 Model 1 Stepping 1, AuthenticAMD"
    monkeypatch.setattr(module.platform, "processor", lambda: named)
    for name in ("mkldnn", "mkl"):
        library, there = getattr(torch.backends, name), name != missing
        monkeypatch.setattr(library, "is_available", lambda there=there: there)
    assert module.onednn_is_faster.__wrapped__() is answer


def test_the_layer_is_torchs():
    layer, x = Linear(7, 11, bias=False), torch.randn(3, 7)
    theirs = nn.Linear(7, 11, bias=False)
    theirs.load_state_dict(layer.state_dict())
    for twin in (theirs, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), layer(x))


@pytest.mark.parametrize("shape", [(N, I + 1), (N, 0), ()])
def test_a_wrong_width_is_refused(path, shape):
    with pytest.raises(RuntimeError):
        linear(torch.randn(shape), torch.randn(O, I))

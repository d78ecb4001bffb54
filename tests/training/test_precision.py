"""Precision: the names, and what each device computes."""

import pytest
import torch

from tformer.training.precision import Precision


@pytest.mark.parametrize(
    ("name", "device", "message"),
    [
        ("fp8", "cpu", r"precision \('fp8'\) must be one of fp32, bf16, fp16"),
        ("fp16", "cpu", "not for CPUs: take 'bf16'"),
    ],
)
def test_bad_names(name, device, message):
    with pytest.raises(ValueError, match=message):
        Precision(name, device)


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_products_have_its_dtype(name, dtype):
    x = torch.ones(3, 3)
    with Precision(name).autocast():
        assert (x @ x).dtype == dtype
    assert (x @ x).dtype == torch.float32


def test_only_fp16_scales_the_loss():
    one = torch.ones(())
    assert Precision("fp32").scaler.scale(one) == 1
    assert Precision("bf16").scaler.scale(one) == 1

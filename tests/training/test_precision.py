"""Precision: the names, what each device computes, and what scales the loss."""

import pytest
import torch

from tformer.training.precision import Precision


def test_bad_names():
    with pytest.raises(ValueError, match=r"\('fp8'\) must be one of fp32, bf16, fp16"):
        Precision("fp8")
    with pytest.raises(ValueError, match="not for CPUs: take 'bf16'"):
        Precision("fp16", "cpu")


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_products_have_its_dtype_and_only_fp16_scales_the_loss(name, dtype):
    x, precision = torch.ones(3, 3), Precision(name)
    with precision.autocast():
        assert (x @ x).dtype == dtype
    assert (x @ x).dtype == torch.float32
    assert precision.scaler.scale(torch.ones(())) == 1

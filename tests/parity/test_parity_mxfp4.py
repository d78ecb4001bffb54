"""MXFP4 as files of gpt-oss hold it: Hugging Face reads our codes as we do."""

import pytest
import torch

from tformer.nn import dequantize_mxfp4, quantize_mxfp4

pytest.importorskip("transformers")
theirs = pytest.importorskip("transformers.integrations.mxfp4")

EXPERTS, OUTPUTS, INPUTS = 3, 5, 96


def test_hugging_face_reads_the_same_weights():
    torch.manual_seed(0)
    x = torch.randn(EXPERTS, OUTPUTS, INPUTS) * torch.logspace(-9, 9, INPUTS)
    codes, scales = quantize_mxfp4(x)
    two_a_byte = codes[..., 0::2] | codes[..., 1::2] << 4  # the first one in low bits
    blocks = two_a_byte.view(EXPERTS, OUTPUTS, INPUTS // 32, 16)
    read = theirs.convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    # Their matrices map from the left: (EXPERTS, INPUTS, OUTPUTS).
    assert torch.equal(read.mT, dequantize_mxfp4(codes, scales))

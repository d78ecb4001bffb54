"""The gated delta rule against Hugging Face's functions of Qwen3-Next.

They compute in float32, whatever they get. For a comparison in float64 their `torch`
is told here that float32 is float64; in older releases the chunked one rounds its
decays to float32 all the same.
"""

import pytest
import torch
from torch.testing import assert_close

from tformer.nn import delta_rule, delta_rule_recurrent, unit_length

theirs = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")

B, H, T, DK, DV = 2, 3, 13, 8, 5


class InFloat64:
    """Hands on all of torch, and for float32 gives float64."""

    float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


@pytest.fixture(autouse=True)
def in_float64(monkeypatch):
    monkeypatch.setattr(theirs, "torch", InFloat64())


def inputs():
    torch.manual_seed(0)
    q, k = torch.randn(2, B, H, T, DK, dtype=torch.float64)
    v = torch.randn(B, H, T, DV, dtype=torch.float64)
    beta, decay = torch.rand(2, B, H, T, dtype=torch.float64)
    state = torch.randn(B, H, DK, DV, dtype=torch.float64)
    return q, k, v, beta, -decay, state


@pytest.mark.parametrize("ours", [delta_rule_recurrent, delta_rule])
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize(
    ("name", "options", "tolerance"),
    [
        ("torch_recurrent_gated_delta_rule", {}, 1e-13),
        ("torch_chunk_gated_delta_rule", {"chunk_size": 4}, 1e-6),
        ("torch_chunk_gated_delta_rule", {}, 1e-6),
    ],
)
def test_gated_delta_rule(name, options, tolerance, with_state, ours):
    q, k, v, beta, decay, state = inputs()
    state = state if with_state else None
    output, new = ours(
        unit_length(q) / DK**0.5, unit_length(k), v, beta, log_decay=decay, state=state
    )
    wanted, wanted_state = getattr(theirs, name)(
        *(x.transpose(1, 2) for x in (q, k, v)),
        g=decay.transpose(1, 2),
        beta=beta.transpose(1, 2),
        initial_state=state,
        output_final_state=True,
        use_qk_l2norm_in_kernel=True,
        **options,
    )
    assert wanted.dtype == torch.float64
    assert_close(output, wanted.transpose(1, 2), rtol=0, atol=tolerance)
    assert_close(new, wanted_state, rtol=0, atol=tolerance)

"""Kimi Delta Attention against Hugging Face's two functions and its layer."""

import pytest
import torch
from torch.testing import assert_close

from double_everywhere import DoubleEverywhere
from tformer.nn import KimiDeltaAttention, delta_rule_recurrent, kda, unit_length

transformers = pytest.importorskip("transformers")
theirs = pytest.importorskip("transformers.models.kimi_linear.modeling_kimi_linear")

B, H, T, D, DK, DV = 2, 3, 13, 24, 8, 5
NAMES = {  # theirs, ours
    "b_proj": "beta_proj",
    "forget_gate.f_a_proj": "decay_down",
    "forget_gate.f_b_proj": "decay_up",
    "forget_gate.dt_bias": "step_bias",
    "forget_gate.A_log": "log_rate",
    "g_a_proj": "gate_down",
    "g_b_proj": "gate_up",
    "conv1d": "convolution",
    "o_norm": "norm",
    "o_proj": "out_proj",
}


@pytest.mark.parametrize("ours", [delta_rule_recurrent, kda])
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("recurrent_kimi_delta_attention", {}),
        ("chunk_kimi_delta_attention", {"chunk_size": 4}),
        ("chunk_kimi_delta_attention", {}),
    ],
)
@pytest.mark.usefixtures("float64")
def test_functions(name, options, with_state, ours):
    torch.manual_seed(0)
    q, k = torch.randn(2, B, H, T, DK)
    v, beta, decay = torch.randn(B, H, T, DV), torch.rand(B, H, T), -torch.rand(q.shape)
    state = torch.randn(B, H, DK, DV) if with_state else None
    output, new = ours(
        unit_length(q) / DK**0.5, unit_length(k), v, beta, log_decay=decay, state=state
    )
    with DoubleEverywhere():
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
    assert_close(output, wanted.transpose(1, 2), rtol=0, atol=1e-12)
    assert_close(new, wanted_state, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("float64")
def test_the_layer():
    config = transformers.KimiLinearConfig(
        hidden_size=D, linear_num_heads=H, linear_head_dim=DK, num_hidden_layers=1
    )
    torch.manual_seed(0)
    with DoubleEverywhere(), torch.no_grad():
        block = theirs.KimiLinearDeltaAttention(config, 0).eval()
        for p in block.parameters():
            torch.nn.init.normal_(p, std=0.5)
        sizes = {
            "key_dim": DK,
            "value_dim": DK,
            "kernel": config.linear_conv_kernel_dim,
        }
        ours = KimiDeltaAttention(D, H, **sizes, eps=config.rms_norm_eps, chunk=5)
        state = {}
        for name, x in block.state_dict().items():
            for old, new in NAMES.items():
                if name == old or name.startswith(f"{old}."):
                    name = new + name.removeprefix(old)
                    break
            state[name] = x.reshape(ours.state_dict()[name].shape)
        ours.load_state_dict(state)
        x = torch.randn(B, T, D)
        wanted = block(x)
        assert_close(ours(x), wanted, rtol=0, atol=1e-12)
        cache = ours.new_cache(T)
        parts = [ours(part, cache=cache) for part in x.split([6, 1, 6], dim=1)]
        assert_close(torch.cat(parts, dim=1), wanted, rtol=0, atol=1e-12)

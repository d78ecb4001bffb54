"""Hyper-connections on the manifold against Hugging Face's of DeepSeek-V4."""

import pytest
import torch
from torch.testing import assert_close

from double_everywhere import DoubleEverywhere
from tformer.nn import HyperConnection, RMSNorm

transformers = pytest.importorskip("transformers")
theirs = pytest.importorskip("transformers.models.deepseek_v4.modeling_deepseek_v4")

B, T, D, N = 2, 5, 24, 3


@pytest.mark.parametrize("rounds", [1, 20])
@pytest.mark.usefixtures("float64")
def test_streams_of_a_sub_layer(rounds):
    config = transformers.DeepseekV4Config(
        hidden_size=D, hc_mult=N, hc_sinkhorn_iters=rounds, hc_eps=0.01
    )
    config.rms_norm_eps = 0.01  # of their norm; ours has one ε for both
    torch.manual_seed(0)
    with DoubleEverywhere(), torch.no_grad():
        block = theirs.DeepseekV4HyperConnection(config)
        for p in block.parameters():
            torch.nn.init.normal_(p, std=0.5)
        norm, network = RMSNorm(D), torch.nn.Linear(D, D)
        sizes = {"streams": N, "rounds": rounds, "eps": 0.01}
        ours = HyperConnection(network, D, norm=norm, **sizes)
        own = {name: x for name, x in ours.state_dict().items() if "." in name}
        own |= {"base": block.base, "scale": block.scale, "proj.weight": block.fn}
        ours.load_state_dict(own)
        x = torch.randn(B, T, N, D)
        post, comb, collapsed = block(x)
        # As in their decoder layer.
        wanted = post[..., None] * network(norm(collapsed))[..., None, :]
        wanted = wanted + torch.matmul(comb.transpose(-1, -2), x)
        assert_close(ours(x), wanted, rtol=0, atol=1e-12)

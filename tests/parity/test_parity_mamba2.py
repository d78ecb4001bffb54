"""The mixer of Mamba-2 against Hugging Face's, at random weights, in float64."""

import pytest
import torch
from torch.testing import assert_close

from double_everywhere import DoubleEverywhere
from tformer.nn import Mamba2

transformers = pytest.importorskip("transformers")
theirs = pytest.importorskip("transformers.models.mamba2.modeling_mamba2")

B, T, D, H, P, N, G = 2, 13, 24, 8, 6, 5, 2


def both(bias):
    config = transformers.Mamba2Config(
        hidden_size=D,
        num_heads=H,
        head_dim=P,
        state_size=N,
        n_groups=G,
        conv_kernel=3,
        chunk_size=4,
        num_hidden_layers=1,
        expand=H * P // D,
        use_bias=bias,
        use_conv_bias=bias,
        layer_norm_epsilon=0.1,
    )
    block = theirs.Mamba2Mixer(config, 0).eval()
    for p in block.parameters():
        torch.nn.init.normal_(p, std=0.5)
    sizes = {"head_dim": P, "state_dim": N, "groups": G, "kernel": 3, "eps": 0.1}
    ours = Mamba2(D, H, **sizes, bias=bias, convolution_bias=bias, chunk=5)
    state = {
        "log_rate": block.A_log,
        "step_bias": block.dt_bias,
        "skip": block.D,
        "gain": block.norm.weight,
    }
    each = {"gate": H * P, "x": H * P, "b": G * N, "c": G * N, "step": H}
    for name, p in block.named_parameters():
        owner, _, kind = name.rpartition(".")
        if owner == "in_proj":
            for part, weight in zip(each, p.split([*each.values()]), strict=True):
                state[f"{part}_proj.{kind}"] = weight
        elif owner == "conv1d":
            state[f"convolution.{kind}"] = p.reshape(p.shape[0], -1).squeeze(1)
        elif owner == "out_proj":
            state[name] = p
    ours.load_state_dict(state)
    return block, ours


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.usefixtures("float64")
def test_the_mixer(bias):
    torch.manual_seed(0)
    with DoubleEverywhere(), torch.no_grad():
        block, ours = both(bias)
        x = torch.randn(B, T, D)
        wanted = block(x)
        assert wanted.dtype == torch.float64
        assert_close(ours(x), wanted, rtol=0, atol=1e-12)
        cache = ours.new_cache(T)
        parts = [ours(part, cache=cache) for part in x.split([6, 1, 6], dim=1)]
        assert_close(torch.cat(parts, dim=1), wanted, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("float64")
def test_their_step_of_one_token():
    """Their recurrent form, which goes on from a state of theirs, and ours."""
    torch.manual_seed(0)
    with DoubleEverywhere(), torch.no_grad():
        block, ours = both(True)
        x = torch.randn(B, T, D)
        theirs_cache = transformers.DynamicCache(config=config_of(block))
        first = block(x[:, :-1], cache=theirs_cache)
        last = block(x[:, -1:], cache=theirs_cache)
        assert_close(ours(x), torch.cat((first, last), dim=1), rtol=0, atol=1e-12)


def config_of(block):
    return transformers.Mamba2Config(
        hidden_size=D,
        num_heads=H,
        head_dim=P,
        state_size=N,
        n_groups=G,
        conv_kernel=block.conv_kernel_size,
        num_hidden_layers=1,
        expand=H * P // D,
    )

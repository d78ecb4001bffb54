"""Latent attention beside Hugging Face's DeepseekV3Attention, in float64.

Its norms and its rotary table compute in float32 whatever the model's dtype: here they
get torch's own norm and our table, so that all else can be compared in float64.
"""

import pytest
import torch
from torch.testing import assert_close

from pieces import in_pieces
from tformer.nn import RotaryEmbedding, rotary_frequencies, scale_yarn, yarn_factor
from tformer.nn.cache import KeyValueCache
from tformer.nn.latent import LatentAttention

deepseek = pytest.importorskip("transformers.models.deepseek_v3.modeling_deepseek_v3")
transformers = pytest.importorskip("transformers")

B, T, D, H = 2, 9, 30, 3
SIZES = {"kv_lora_rank": 14, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6}
NAMES = {
    "q_proj": "q_proj",
    "q_a_proj": "q_down",
    "q_a_layernorm": "q_norm",
    "q_b_proj": "q_proj",
    "kv_a_proj_with_mqa": "kv_down",
    "kv_a_layernorm": "kv_norm",
    "kv_b_proj": "kv_up",
    "o_proj": "out_proj",
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 40.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 4,
    "beta_slow": 1,
}
ROPES = {
    "default": {"rope_type": "default", "rope_theta": 500.0},
    "yarn": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0},
    "two factors": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.707},
}


def theirs(rope, q_rank, interleave):
    config = transformers.DeepseekV3Config(
        hidden_size=D,
        num_attention_heads=H,
        num_key_value_heads=H,
        q_lora_rank=q_rank,
        v_head_dim=8,
        rope_interleave=interleave,
        rope_parameters=dict(ROPES[rope]),
        attn_implementation="sdpa",
        **SIZES,
    )
    module = deepseek.DeepseekV3Attention(config, 0).eval()
    for name, norm in list(module.named_children()):
        if isinstance(norm, deepseek.DeepseekV3RMSNorm):
            mended = torch.nn.RMSNorm(len(norm.weight), norm.variance_epsilon)
            mended.weight.data = 1 + torch.randn(len(norm.weight)) / 4
            setattr(module, name, mended)
    return module


def ours(rope, q_rank, interleave, absorbed=None):
    given = ROPES[rope]
    frequencies = rotary_frequencies(6, base=given["rope_theta"])
    scale, factor = 16**-0.5, 1.0
    if "factor" in given:
        s = given["factor"]
        frequencies = scale_yarn(frequencies, s, trained_len=16, low=1, high=4)
        whole = yarn_factor(s, given["mscale_all_dim"])
        factor = yarn_factor(s, given["mscale"]) / whole
        scale *= whole**2
    layout = "pairs" if interleave else "halves"
    rotary = RotaryEmbedding(frequencies, factor=factor, layout=layout)
    sizes = {"kv_rank": 14, "head_dim": 10, "value_dim": 8, "q_rank": q_rank}
    return LatentAttention(
        D, H, rotary=rotary, scale=scale, absorbed=absorbed, **sizes
    ).eval()


def copied(module, original):
    """Give ours the weights of theirs: other names, the same shapes."""
    state = {}
    for name, weight in original.state_dict().items():
        part, _, rest = name.partition(".")
        state[f"{NAMES[part]}.{rest}"] = weight
    module.load_state_dict(state)
    return module


def their_output(module, rotary, x):
    cosine, sine = rotary.table(T, x)[:, None, :T].repeat(1, 1, 1, 2)  # (1, T, Dr) each
    hidden = torch.full((T, T), -torch.inf).triu(1)
    return module(x, (cosine, sine), hidden[None, None])[0]


@pytest.mark.parametrize("rope", ROPES)
@pytest.mark.parametrize("q_rank", [None, 12])
@pytest.mark.parametrize("interleave", [True, False])
@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_equal(rope, q_rank, interleave):
    original, x = theirs(rope, q_rank, interleave), torch.randn(B, T, D)
    for absorbed in (False, True):
        module = copied(ours(rope, q_rank, interleave, absorbed), original)
        wanted = their_output(original, module.rotary, x)
        assert_close(module(x), wanted, atol=1e-13, rtol=0)
        cache = KeyValueCache(T)
        parts = in_pieces(
            lambda begin, end, cache=cache, module=module: module(
                x[:, begin:end], cache=cache
            ),
            (4, 1, 1, 3),
        )
        assert_close(parts, wanted, atol=1e-13, rtol=0)


@pytest.mark.parametrize("rope", ROPES)
def test_frequencies_and_factor(rope):
    """What `test_equal` hands over is what their table holds, in float32."""
    original = theirs(rope, None, True)
    table = deepseek.DeepseekV3RotaryEmbedding(original.config)
    cosine, sine = table(torch.zeros(1), torch.arange(T)[None])
    rotary = ours(rope, None, True).rotary
    wanted = rotary.table(T, torch.zeros(1))[:, :T]
    got = torch.stack((cosine[0, :, :3], sine[0, :, :3]))
    assert_close(got, wanted, atol=1e-6, rtol=0)


def test_the_norm():
    """The norm that `theirs` puts in place of Hugging Face's, in float32."""
    norm, x = deepseek.DeepseekV3RMSNorm(14), torch.randn(B, T, 14)
    assert_close(torch.nn.RMSNorm(14, norm.variance_epsilon)(x), norm(x))

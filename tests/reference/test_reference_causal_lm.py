"""The twins of self-attention with parts, of the block, and of the whole model."""

import numpy as np
import pytest
import torch
from torch import nn

import tformer
from tformer import reference
from tformer.models.causal_config import CausalLMConfig, Parts
from tformer.models.causal_lm import CausalLM
from tformer.nn.block import PLACEMENTS, Block
from tformer.nn.rms_norm import RMSNorm
from tformer.nn.rotary import RotaryEmbedding, rotary_frequencies
from tformer.nn.self_attention import SelfAttention, with_sinks

B, T, D, H, G, Dh = 2, 5, 14, 6, 2, 4
PARTS = {
    "plain": {},
    "rotary": {"rotary": RotaryEmbedding(rotary_frequencies(Dh), factor=1.3)},
    "qk_norm": {"qk_norm": RMSNorm},
    "window": {"window": 3},
    "sinks": {"sinks": True},
    "softcap": {"softcap": 0.7},
    "scale": {"scale": 0.9},
    "all": {
        "rotary": RotaryEmbedding(rotary_frequencies(Dh)),
        "qk_norm": tformer.LayerNorm,
        "window": 2,
        "sinks": True,
        "softcap": 0.7,
        "scale": 0.9,
        "bias": True,
    },
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_self_attention(parity, parts):
    module = SelfAttention(D, H, num_kv_heads=G, head_dim=Dh, dropout=0.5, **parts)
    module = parity.module(module)
    twin = reference.from_torch(module)
    assert isinstance(twin, reference.SelfAttention)
    array, tensor = parity.numbers(B, T, D)
    parity.same(twin(array), module(tensor))
    with (
        reference.record_weights(twin) as weights,
        tformer.record_weights(module) as theirs,
    ):
        twin(array), module(tensor)
    parity.same(weights[twin], theirs[module])


def test_a_bias_of_relative_positions(parity):
    class Distance(nn.Module):
        def forward(self, query_len, key_len):
            steps = torch.arange(key_len, dtype=getattr(torch, parity.dtype))
            return steps - steps[-query_len:, None]

    module = parity.module(SelfAttention(D, 7, sinks=True))
    twin = reference.from_torch(module)
    module.relative = Distance()
    twin.relative = lambda T, S: module.relative(T, S).numpy()
    array, tensor = parity.numbers(B, T, D)
    parity.same(twin(array), module(tensor))


def test_sinks(parity):
    sinks, torch_sinks = parity.numbers(H)
    key, torch_key = parity.numbers(B, G, T, Dh)
    value, torch_value = parity.numbers(B, G, T, Dh)
    bias, torch_bias = parity.numbers(T, T)
    mask = np.tri(T, dtype=bool)
    twin = reference.self_attention.with_sinks(sinks, key, value, mask, bias)
    ours = with_sinks(
        torch_sinks, torch_key, torch_value, torch.tensor(mask), torch_bias
    )
    np.testing.assert_array_equal(twin[2], ours[2])
    parity.same((*twin[:2], twin[3]), (*ours[:2], ours[3]))


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_block(parity, placement):
    module = Block(
        SelfAttention(D, 7),
        tformer.FeedForward(D, 11),
        lambda: RMSNorm(D),
        placement=placement,
        dropout=0.3,
    )
    module = parity.module(module)
    twin = reference.from_torch(module)
    assert isinstance(twin, reference.Block)
    array, tensor = parity.numbers(B, T, D)
    parity.same(twin(array), module(tensor))


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"positions": "learned", "norm": "layer", "feed_forward": "gelu_tanh"},
        {"positions": "sinusoidal", "placement": "post", "feed_forward": "relu2"},
        {"norm": "rms_plus_one", "placement": "sandwich", "logit_cap": 3.0},
        {"window": 2, "global_every": 2, "sinks": True, "scale_embedding": True},
        {"positions": "alibi"},
        {"positions": "t5", "score_scale": 1.0},
    ],
)
@pytest.mark.parametrize("tie_embeddings", [True, False])
def test_whole_model(parity, parts, tie_embeddings):
    config = CausalLMConfig.tiny(
        vocab_size=13,
        d_model=24,
        tie_embeddings=tie_embeddings,
        logit_scale=0.3,
        parts=Parts(**parts),
    )
    module = parity.module(CausalLM(config))
    twin = reference.from_torch(module)
    assert isinstance(twin, reference.CausalLM)
    array, tensor = parity.ids(13, B, T)
    tolerance = {"float32": 1e-4}.get(parity.dtype)
    if "sinusoidal" in parts.values():  # torch's table is rounded to float32
        tolerance = 1e-4 if tolerance else 1e-6
    parity.same(twin(array), module(tensor), tolerance)
    with (
        reference.record_weights(twin) as weights,
        tformer.record_weights(module) as theirs,
    ):
        twin(array), module(tensor)
    assert list(weights.by_name()) == list(theirs.by_name())

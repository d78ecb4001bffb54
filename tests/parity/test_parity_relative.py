"""Relative biases beside Hugging Face's T5, BLOOM and MPT, in float64."""

import pytest
import torch
from torch.testing import assert_close

from pieces import in_pieces
from tformer.nn import (
    MultiHeadAttention,
    RelativeBias,
    alibi_slopes,
    bucket_starts,
    relative_buckets,
    scaled_dot_product_attention,
)
from tformer.nn.cache import KeyValueCache
from tformer.nn.heads import merge_heads, split_heads

transformers = pytest.importorskip("transformers")
t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
mpt = pytest.importorskip("transformers.models.mpt.modeling_mpt")

B, T, D, H, Dh = 2, 6, 22, 3, 8
EXACT = {"atol": 1e-13, "rtol": 0}
NAMES = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}


@pytest.mark.parametrize("sizes", [(32, 128), (32, 256), (16, 64), (64, 512), (10, 30)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_buckets(sizes, bidirectional):
    num_buckets, max_distance = sizes
    distance = torch.arange(-2000, 2000)
    theirs = t5.T5Attention._relative_position_bucket(
        -distance,
        bidirectional=bidirectional,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )
    each_way = num_buckets // 2 if bidirectional else num_buckets
    starts = bucket_starts(each_way, max_distance)
    ours = relative_buckets(distance, starts, bidirectional=bidirectional)
    assert torch.equal(ours, theirs)


def their_attention(is_decoder, num_buckets=8, max_distance=5):
    config = transformers.T5Config(
        d_model=D,
        num_heads=H,
        d_kv=Dh,
        is_decoder=is_decoder,
        relative_attention_num_buckets=num_buckets,
        relative_attention_max_distance=max_distance,
        attn_implementation="eager",
    )
    module = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.5)
    return module.eval()


def their_bias(original, query_len, key_len):
    past = key_len - query_len
    return original.compute_bias(query_len, key_len, past_seen_tokens=past)


@pytest.mark.parametrize("is_decoder", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(T, T), (1, 9), (4, 9)])
@pytest.mark.usefixtures("float64")
def test_bias(is_decoder, queries, keys):
    original = their_attention(is_decoder)
    sizes = {"num_buckets": 8, "max_distance": 5, "bidirectional": not is_decoder}
    ours = RelativeBias(H, **sizes)
    ours.table = original.relative_attention_bias.weight
    assert torch.equal(ours(queries, keys), their_bias(original, queries, keys))


@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_decoder_attention_at_once_and_in_pieces():
    """No scale, no biases, and the table: T5's causal self-attention."""
    original, x = their_attention(is_decoder=True), torch.randn(B, T, D)
    relative = RelativeBias(H, num_buckets=8, max_distance=5)
    ours = MultiHeadAttention(
        D, H, head_dim=Dh, bias=False, relative=relative, scale=1.0
    ).eval()
    state = {"relative.table": original.relative_attention_bias.weight}
    for theirs, name in NAMES.items():
        state[f"{name}.weight"] = getattr(original, theirs).weight
    ours.load_state_dict(state)
    hidden = torch.full((T, T), -torch.inf).triu(1)
    bias = their_bias(original, T, T) + hidden
    wanted = original(x, position_bias=bias)[0]
    assert_close(ours(x, is_causal=True), wanted, **EXACT)
    cache = KeyValueCache(T)
    parts = in_pieces(
        lambda begin, end: ours(x[:, begin:end], is_causal=True, cache=cache), (1, 3, 2)
    )
    assert_close(parts, wanted, **EXACT)


@pytest.mark.usefixtures("float64")
@torch.no_grad()
def test_encoder_attention():
    original, x = their_attention(is_decoder=False), torch.randn(B, T, D)
    relative = RelativeBias(H, num_buckets=8, max_distance=5, bidirectional=True)
    relative.table.copy_(original.relative_attention_bias.weight)
    q, k, v = (split_heads(getattr(original, n)(x), H) for n in "qkv")
    heads = scaled_dot_product_attention(q, k, v, bias=relative(T, T), scale=1.0)
    wanted = original(x, position_bias=their_bias(original, T, T))[0]
    assert_close(original.o(merge_heads(heads)), wanted, **EXACT)


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12, 14, 16, 40, 112])
def test_slopes_of_bloom_and_mpt(heads):
    """Theirs are float32. MPT's count from the last key, BLOOM's from the first."""
    slopes = alibi_slopes(heads)
    theirs = bloom.build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)
    assert_close(slopes, theirs[:, 0, 1].double(), atol=0, rtol=1e-6)
    last = mpt.build_mpt_alibi_tensor(heads, 2)[:, 0, 0]
    assert_close(-slopes, last.double(), atol=0, rtol=1e-6)

"""Parts beside Hugging Face's own modules, in float64; and Gemma, put together of them.

Norms, gated networks, attention with sinks. What rotates is held in whole models.
"""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from double_everywhere import DoubleEverywhere
from tformer import Block, CausalLM, GatedFeedForward, MultiHeadAttention, RMSNorm
from tformer.nn import RotaryEmbedding, TokenEmbedding, rotary_frequencies, scale_linear

transformers = pytest.importorskip("transformers")
llama = pytest.importorskip("transformers.models.llama.modeling_llama")
gemma2 = pytest.importorskip("transformers.models.gemma2.modeling_gemma2")
gpt_oss = pytest.importorskip("transformers.models.gpt_oss.modeling_gpt_oss")

B, T, V, D = 2, 11, 37, 24
EXACT = {"atol": 1e-12, "rtol": 0}
SIZES = {
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": 42,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "attn_implementation": "eager",
}


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture
def in_float64(float64):
    with DoubleEverywhere():
        yield


def drawn(module):
    """Give each parameter random numbers, gains and sinks too."""
    for p in module.parameters():
        torch.nn.init.normal_(p, std=0.5 if p.ndim == 1 else p.shape[-1] ** -0.5)
    return module.eval()


KINDS = {
    "llama": (llama.LlamaRMSNorm, {"cast_first": True}),
    "gemma": (gemma2.Gemma2RMSNorm, {"plus_one": True}),
    "gpt-oss": (gpt_oss.GptOssRMSNorm, {}),
}


each_kind = pytest.mark.parametrize(("make", "options"), KINDS.values(), ids=KINDS)


@each_kind
@pytest.mark.usefixtures("in_float64")
def test_norms_in_float64(make, options):
    theirs, ours = drawn(make(D, eps=1e-3)), RMSNorm(D, 1e-3, **options)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(B, T, D)
    assert_close(ours(x), theirs(x), atol=1e-14, rtol=0)


@each_kind
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_norms_to_the_bit_in_half_precision(make, options, dtype):
    theirs = drawn(make(D, eps=1e-6)).to(dtype)
    ours = RMSNorm(D, 1e-6, **options).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    x = 3 * torch.randn(64, T, D).to(dtype)
    assert torch.equal(ours(x), theirs(x))


@pytest.mark.parametrize("gate", ["swiglu", "geglu_tanh", "geglu"])
@pytest.mark.usefixtures("float64")
def test_gated_network(gate):
    act = {"swiglu": "silu", "geglu_tanh": "gelu_pytorch_tanh", "geglu": "gelu"}[gate]
    config = transformers.LlamaConfig(**SIZES, hidden_act=act)
    theirs = drawn(llama.LlamaMLP(config))
    ours = GatedFeedForward(D, 42, gate=gate)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(B, T, D)
    assert_close(ours(x), theirs(x), atol=1e-14, rtol=0)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.usefixtures("in_float64")
def test_attention_of_gpt_oss(layer):
    """Sinks, biases, and a window in every other layer."""
    sizes = {**SIZES, "head_dim": 8, "sliding_window": 4}
    config = transformers.GptOssConfig(
        **sizes,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        layer_types=["sliding_attention", "full_attention"] * 2,
        attention_bias=True,
    )
    theirs = drawn(gpt_oss.GptOssAttention(config, layer))
    rotary = RotaryEmbedding(rotary_frequencies(8, base=500.0), layout="halves")
    ours = MultiHeadAttention(
        D,
        6,
        num_kv_heads=2,
        head_dim=8,
        bias=True,
        rotary=rotary,
        sinks=torch.nn.Parameter(torch.zeros(6)),
        window=4 if layer == 0 else None,
    )
    state = theirs.state_dict()
    ours.load_state_dict({n.replace("o_proj", "out_proj"): w for n, w in state.items()})
    x = torch.randn(B, T, D)
    seen = torch.ones(T, T).bool().tril()
    if layer == 0:
        seen = seen.triu(-3)
    mask = torch.zeros(T, T).masked_fill(~seen, -torch.inf)[None, None]
    table = gpt_oss.GptOssRotaryEmbedding(config)
    position = table(x, torch.arange(T)[None])
    assert_close(ours(x, is_causal=True), theirs(x, position, mask)[0], **EXACT)


NAMES = (
    ("model.", ""),
    ("embed_tokens.", "embedding."),
    ("layers.", "blocks."),
    ("self_attn.o_proj", "attention.out_proj"),
    ("self_attn.", "attention."),
    ("mlp.", "feed_forward."),
    ("input_layernorm.", "attention_norm."),
    ("post_attention_layernorm.", "attention_norm2."),
    ("pre_feedforward_layernorm.", "feed_forward_norm."),
    ("post_feedforward_layernorm.", "feed_forward_norm2."),
)
GEMMA = {"head_dim": 10, "query_pre_attn_scalar": 7, "sliding_window": 5}
GEMMA |= {"layer_types": ["sliding_attention", "full_attention"] * 2}


def gemma(theirs, rotaries, *, softcap=None, logit_cap=None, qk_norm=False):
    """Put together a Gemma 2 or 3, as `tformer.models.families` does with others."""
    norm = partial(RMSNorm, plus_one=True)
    blocks = []
    for layer in range(4):
        attention = MultiHeadAttention(
            D,
            6,
            num_kv_heads=2,
            head_dim=10,
            bias=False,
            q_norm=norm(10) if qk_norm else None,
            k_norm=norm(10) if qk_norm else None,
            rotary=RotaryEmbedding(rotaries[layer % 2], layout="halves"),
            window=None if layer % 2 else 5,
            softcap=softcap,
            scale=7**-0.5,
        )
        network = GatedFeedForward(D, 42, gate="geglu_tanh")
        block = Block(attention, network, partial(norm, D), placement="sandwich")
        blocks.append(block)
    embedding = TokenEmbedding(V, D)
    ours = CausalLM(embedding, blocks, norm(D), max_len=T, logit_cap=logit_cap).eval()
    state = {}
    for name, weight in theirs.state_dict().items():
        for old, new in NAMES:
            name = name.replace(old, new)
        state[name] = weight
    del state["lm_head.weight"]  # the embedding's
    ours.load_state_dict(state)
    return ours


def compare(theirs, ours):
    """Hold the logits equal, at once and token by token."""
    ids = torch.randint(1, V, (B, T))
    wanted = theirs(ids).logits
    assert wanted.dtype == torch.float64
    assert_close(ours(ids), wanted, **EXACT)
    cache = ours.new_cache(T)
    one_by_one = [ours(ids[:, t : t + 1], cache=cache) for t in range(T)]
    assert_close(torch.cat(one_by_one, dim=1), wanted, **EXACT)
    assert wanted.std() > 0.1


@pytest.mark.usefixtures("in_float64")
def test_gemma_2():
    config = transformers.Gemma2Config(
        **SIZES,
        **GEMMA,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
    )
    theirs = drawn(transformers.Gemma2ForCausalLM(config))
    rotaries = [rotary_frequencies(10, base=500.0)] * 2
    compare(theirs, gemma(theirs, rotaries, softcap=2.0, logit_cap=3.0))


@pytest.mark.usefixtures("in_float64")
def test_gemma_3():
    """Layers with a window rotate with a base of their own."""
    local = {"rope_type": "default", "rope_theta": 100.0}
    whole = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 8.0}
    config = transformers.Gemma3TextConfig(
        **SIZES,
        **GEMMA,
        rope_parameters={"sliding_attention": local, "full_attention": whole},
    )
    theirs = drawn(transformers.Gemma3ForCausalLM(config))
    rotaries = [
        rotary_frequencies(10, base=100.0),
        scale_linear(rotary_frequencies(10), 8),
    ]
    compare(theirs, gemma(theirs, rotaries, qk_norm=True))

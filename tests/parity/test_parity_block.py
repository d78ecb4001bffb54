"""The block of today beside Hugging Face's own modules, in float64.

Norms, gated networks, rotary tables, attention with sinks; and whole small models of
Llama, Mistral, Qwen3 and Gemma 2 with random weights.
"""

import pytest
import torch
from torch.testing import assert_close

from double_everywhere import DoubleEverywhere
from tformer import (
    CausalLM,
    CausalLMConfig,
    GatedFeedForward,
    Parts,
    RMSNorm,
    RotaryEmbedding,
    SelfAttention,
    rotary_frequencies,
    scale_linear,
    scale_llama3,
    scale_yarn,
    yarn_factor,
)

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


class TestNorms:
    def kinds(self):
        return {
            "llama": (llama.LlamaRMSNorm, {"cast_first": True}),
            "gemma": (gemma2.Gemma2RMSNorm, {"plus_one": True}),
            "gpt-oss": (gpt_oss.GptOssRMSNorm, {}),
        }

    @pytest.mark.parametrize("kind", ["llama", "gemma", "gpt-oss"])
    @pytest.mark.usefixtures("in_float64")
    def test_in_float64(self, kind):
        make, options = self.kinds()[kind]
        theirs, ours = drawn(make(D, eps=1e-3)), RMSNorm(D, 1e-3, **options)
        ours.load_state_dict(theirs.state_dict())
        x = torch.randn(B, T, D)
        assert_close(ours(x), theirs(x), atol=1e-14, rtol=0)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    @pytest.mark.parametrize("kind", ["llama", "gemma", "gpt-oss"])
    def test_to_the_bit_in_half_precision(self, kind, dtype):
        make, options = self.kinds()[kind]
        theirs = drawn(make(D, eps=1e-6)).to(dtype)
        ours = RMSNorm(D, 1e-6, **options).to(dtype)
        ours.load_state_dict(theirs.state_dict())
        x = 3 * torch.randn(64, T, D).to(dtype)
        assert torch.equal(ours(x), theirs(x))
        ours.cast_first = not ours.cast_first
        assert not torch.equal(ours(x), theirs(x))


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


ROPES = {
    "default": {},
    "linear": {"factor": 4.0},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "yarn": {"factor": 8.0},
}


@pytest.mark.parametrize("kind", ROPES)
@pytest.mark.usefixtures("in_float64")
def test_rotary(kind):
    given = ROPES[kind]
    rope = {"rope_type": kind, "rope_theta": 500.0, **given}
    if kind in ("llama3", "yarn"):
        rope["original_max_position_embeddings"] = 64
    sizes = {**SIZES, "head_dim": 16, "max_position_embeddings": 512}
    table = llama.LlamaRotaryEmbedding(
        transformers.LlamaConfig(**sizes, rope_parameters=rope)
    )
    theta, s, factor = rotary_frequencies(16, base=500.0), given.get("factor"), 1.0
    if kind == "linear":
        theta = scale_linear(theta, s)
    elif kind == "llama3":
        theta = scale_llama3(theta, s, trained_len=64)
    elif kind == "yarn":
        theta, factor = scale_yarn(theta, s, trained_len=64), yarn_factor(s)
    turn = RotaryEmbedding(theta, factor=factor, layout="halves")
    q, k = torch.randn(B, 6, T, 16), torch.randn(B, 2, T, 16)
    positions = torch.arange(90, 90 + T)[None]
    wanted = llama.apply_rotary_pos_emb(q, k, *table(q, positions))
    assert_close(turn(q, start=90), wanted[0], atol=1e-12, rtol=0)
    assert_close(turn(k, start=90), wanted[1], atol=1e-12, rtol=0)


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
    ours = SelfAttention(
        *(D, 6),
        num_kv_heads=2,
        head_dim=8,
        bias=True,
        rotary=rotary,
        sinks=True,
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
    assert_close(ours(x), theirs(x, position, mask)[0], **EXACT)


# Ours and theirs, in the layers of Llama and in those of Gemma 2.
NAMES = {
    "attention.out_proj": "self_attn.o_proj",
    "attention.": "self_attn.",
    "feed_forward.": "mlp.",
    "attention_norm2.": "post_attention_layernorm.",
    "feed_forward_norm2.": "post_feedforward_layernorm.",
    "attention_norm.": "input_layernorm.",
}
LAST = {
    "pre": {"feed_forward_norm.": "post_attention_layernorm."},
    "sandwich": {"feed_forward_norm.": "pre_feedforward_layernorm."},
}
WHOLE = {"embedding.": "model.embed_tokens.", "norm.": "model.norm."}


def their_name(name, placement):
    if name.startswith("blocks."):
        _, layer, part = name.split(".", 2)
        for ours, theirs in {**LAST[placement], **NAMES}.items():
            if part.startswith(ours):
                return f"model.layers.{layer}.{theirs}{part.removeprefix(ours)}"
    for ours, theirs in WHOLE.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return {"output.weight": "lm_head.weight"}[name]


def loaded(theirs, **parts):
    """Make a `CausalLM` of a model's config and weights."""
    c = theirs.config
    rotary = parts.pop("rotary", None) or {"base": c.rope_parameters["rope_theta"]}
    p = Parts(**parts, rotary=rotary)
    ours = CausalLM(
        CausalLMConfig(
            vocab_size=c.vocab_size,
            d_model=c.hidden_size,
            num_heads=c.num_attention_heads,
            num_kv_heads=c.num_key_value_heads,
            head_dim=c.head_dim,
            num_layers=c.num_hidden_layers,
            d_ff=c.intermediate_size,
            max_len=c.max_position_embeddings,
            eps=c.rms_norm_eps,
            tie_embeddings=c.tie_word_embeddings,
            parts=p,
        )
    ).eval()
    state = theirs.state_dict()
    if c.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    placement = p.placement
    names = {name: their_name(name, placement) for name in ours.state_dict()}
    assert sorted(names.values()) == sorted(state)  # each weight once, none is left
    ours.load_state_dict({name: state[of] for name, of in names.items()})
    return ours


def compare(theirs, **parts):
    """Hold the logits equal, at once and token by token."""
    drawn(theirs)
    ours, ids = loaded(theirs, **parts), torch.randint(1, V, (B, T))
    wanted = theirs(ids).logits
    assert wanted.dtype == torch.float64
    assert_close(ours(ids), wanted, **EXACT)
    cache = ours.new_cache(T)
    one_by_one = [ours(ids[:, t : t + 1], cache=cache) for t in range(T)]
    assert_close(torch.cat(one_by_one, dim=1), wanted, **EXACT)
    assert wanted.std() > 0.1
    return ours, ids, wanted


ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.usefixtures("in_float64")
def test_llama(tied):
    config = transformers.LlamaConfig(**SIZES, **ROPE, tie_word_embeddings=tied)
    compare(transformers.LlamaForCausalLM(config))


@pytest.mark.usefixtures("in_float64")
def test_llama_with_a_mistake_is_found():
    """The comparison has teeth: each of these is off by far more than 1e-12."""
    config = transformers.LlamaConfig(**SIZES, **ROPE)
    theirs = transformers.LlamaForCausalLM(config)
    _, ids, wanted = compare(theirs)
    for mistake in (
        {"rotary": {"base": 500.0, "layout": "pairs"}},
        {"feed_forward": "geglu"},
        {"norm": "rms_plus_one"},
        {"window": T - 1},
        {"softcap": 50.0},
    ):
        wrong = loaded(theirs, **mistake)
        assert (wrong(ids) - wanted).abs().max() > 1e-6, mistake


@pytest.mark.usefixtures("in_float64")
def test_mistral():
    config = transformers.MistralConfig(**SIZES, **ROPE, head_dim=4, sliding_window=5)
    compare(transformers.MistralForCausalLM(config), window=5)


@pytest.mark.usefixtures("in_float64")
def test_qwen3():
    config = transformers.Qwen3Config(**SIZES, **ROPE, head_dim=10)
    compare(transformers.Qwen3ForCausalLM(config), qk_norm=True)


@pytest.mark.usefixtures("in_float64")
def test_gemma2():
    config = transformers.Gemma2Config(
        **SIZES,
        **ROPE,
        head_dim=10,
        query_pre_attn_scalar=7,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention"] * 2,
    )
    ours, *_ = compare(
        transformers.Gemma2ForCausalLM(config),
        norm="rms_plus_one",
        placement="sandwich",
        feed_forward="geglu_tanh",
        window=5,
        global_every=2,
        softcap=2.0,
        score_scale=7.0**-0.5,
        logit_cap=3.0,
        scale_embedding=True,
    )
    assert [block.attention.window for block in ours.blocks] == [5, None, 5, None]

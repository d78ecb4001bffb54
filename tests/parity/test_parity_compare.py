"""`compare` on models of Hugging Face: equal to ours; what is changed is named."""

import json

import pytest
import torch

from tformer.interop import from_huggingface
from tformer.interop.compare import compare

transformers = pytest.importorskip("transformers")

V = 37
GPT2 = {"n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 64}
SIZES = {
    "hidden_size": 48,
    "intermediate_size": 42,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
MODELS = {
    "gpt2": GPT2,
    "llama": {**SIZES, "attention_bias": True},
    "mistral": {**SIZES, "sliding_window": 5},
    "qwen3": {**SIZES, "head_dim": 10},
    "gemma2": {**SIZES, "head_dim": 8, "query_pre_attn_scalar": 8},
    "gpt_neox": {
        "hidden_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "intermediate_size": 40,
    },
    "olmo2": SIZES,
    "granite": {**SIZES, "residual_multiplier": 0.3, "embedding_multiplier": 5.0},
    "cohere2": SIZES,
    "nanochat": SIZES,
}
NOT_OURS = {  # the architectures that no family of ours reads
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "falcon": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "opt": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
            "ffn_dim": 40, "word_embed_proj_dim": 32, "max_position_embeddings": 64},
}  # fmt: skip


def make(kind, sizes):
    """Make a model of theirs with weights that are not small."""
    torch.manual_seed(0)
    words = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    config = transformers.AutoConfig.for_model(kind, vocab_size=V, **sizes, **words)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for x in model.parameters():
        drawn = torch.randn(x.shape)
        x.data = drawn * x.shape[-1] ** -0.5 if x.ndim > 1 else x.data + 0.3 * drawn
    return model.eval()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_theirs_and_ours_are_equal(kind, dtype, tmp_path):
    theirs = make(kind, MODELS[kind])
    theirs.save_pretrained(tmp_path)
    found = compare(tmp_path, theirs, dtype=dtype)
    assert found.equal, str(found)
    names = [layer.b for layer in found.layers]
    assert len(names) == 1 + 3 * 3 + 2
    assert any(name.endswith(("attn", "attention")) for name in names)


# What is changed in their model, and how it is named.
CHANGES = {
    "the scale": ("llama", "the scores are not divided by √head_dim"),
    "the base": ("llama", "the rotary base is 500000"),
    "a bias": ("llama", "without bias"),
    "pairs": ("llama", "q_proj and k_proj are permuted to interleaved"),
    "eps": ("qwen3", "has eps 0.01 in place of 1e-06"),
    "a query's norm": ("qwen3", "k are not normalised"),
    "the window": ("mistral", "a query sees a window of 8 tokens"),
    "the activation": ("gpt2", "the activation is gelu in place of gelu_tanh"),
    "a matrix": ("gpt2", "out_proj is transposed"),
    "the layers": ("gpt2", "block 2 stands here in place of block 1"),
}


def change(model, what):
    """Plant a difference in a model of theirs."""
    head = torch.nn.Identity()
    if what == "the layers":
        layers = model.transformer.h
        layers[1], layers[2] = layers[2], layers[1]
    elif what == "the activation":
        model.transformer.h[1].mlp.act = torch.nn.GELU()
    elif what == "a matrix":
        weight = model.transformer.h[1].attn.c_proj.weight
        weight.data = weight.data.t().contiguous()
    elif what == "the base":
        rotary = model.model.rotary_emb
        Dh = 2 * len(rotary.inv_freq)
        rotary.inv_freq = 500_000.0 ** -(torch.arange(0, Dh, 2) / Dh)
    else:
        attention = model.model.layers[1].self_attn
        if what == "the scale":
            attention.scaling = 1.0
        elif what == "a bias":
            attention.q_proj.bias.data.zero_()
        elif what == "eps":
            model.model.layers[1].input_layernorm.variance_epsilon = 0.01
        elif what == "a query's norm":
            attention.q_norm = attention.k_norm = head
        elif what == "the window":
            model.config.sliding_window = 8
        elif what == "pairs":
            for part in (attention.q_proj, attention.k_proj):
                for x in (part.weight, part.bias):
                    heads = x.data.view(-1, 2, 4, *x.shape[1:])
                    x.data = heads.transpose(1, 2).reshape(x.shape)


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_theirs_is_named(what, tmp_path):
    kind, told = CHANGES[what]
    theirs = make(kind, MODELS[kind])
    theirs.save_pretrained(tmp_path)
    change(theirs, what)
    found = compare(tmp_path, theirs)
    assert not found.equal
    everywhere = what in ("the base", "the window")
    part = "(feed-forward)" if what == "the activation" else "(attention)"
    assert found.first == f"block {0 if everywhere else 1} {part}"
    assert told in found.guesses[0].sentence
    assert found.unexplained == ()


def test_two_folders_whose_configs_differ(tmp_path):
    theirs = make("llama", MODELS["llama"])
    for name in "ab":
        theirs.save_pretrained(tmp_path / name)
    path = tmp_path / "b" / "config.json"
    config = json.loads(path.read_text())
    config["rope_parameters"]["rope_theta"] = 777.0
    config["rms_norm_eps"] = 0.001
    path.write_text(json.dumps(config))
    found = compare(tmp_path / "a", tmp_path / "b")
    said = " ".join(guess.sentence for guess in found.guesses)
    assert "has eps 0.001 in place of 1e-06" in said
    assert not found.equal


def test_a_buffer_that_half_precision_has_rounded(tmp_path):
    """`model.bfloat16()` rounds the table of rotations, which loading does not."""
    theirs = make("llama", MODELS["llama"]).bfloat16()
    theirs.save_pretrained(tmp_path)
    found = compare(tmp_path, theirs)
    assert "the rotary frequencies are rounded to bfloat16" in str(found)


@pytest.mark.parametrize("kind", NOT_OURS)
def test_architectures_that_are_not_ours_have_rows_without_guesses(kind):
    one, two = (make(kind, NOT_OURS[kind]) for _ in range(2))
    assert compare(one, two).equal
    blocks = next(m for m in two.modules() if isinstance(m, torch.nn.ModuleList))
    for x in blocks[1].parameters():
        x.data = x.data * 1.01
    found = compare(one, two)
    assert (found.equal, found.first) == (False, "block 1 (attention)")
    assert found.guesses == ()


def test_the_model_in_memory_and_its_copy_as_ours():
    theirs = make("qwen3", MODELS["qwen3"])
    assert compare(theirs, from_huggingface(theirs)).equal

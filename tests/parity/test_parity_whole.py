"""Small models of Hugging Face, from a folder and from memory: the same numbers."""

import pytest
import torch
from torch.testing import assert_close

from double_everywhere import DoubleEverywhere
from tformer import greedy
from tformer.interop import from_huggingface
from tformer.models.families import FAMILIES, family_of

transformers = pytest.importorskip("transformers")

B, T, V, NEW = 2, 11, 37, 9
EXACT = {"atol": 1e-12, "rtol": 0}
GPT2 = {"n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 64}
SIZES = {
    "hidden_size": 24,
    "intermediate_size": 42,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 20.0, "factor": 8.0}
LLAMA3 |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 40}  # so that some pairs are mixed
YARN = {"rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "beta_fast": 2}
YARN |= {"beta_slow": 0.5, "original_max_position_embeddings": 64}
MODELS = {
    "GPT-2": ("gpt2", GPT2),
    "GPT-2, untied": (
        "gpt2",
        {**GPT2, "tie_word_embeddings": False, "n_inner": 50}
        | {"activation_function": "relu", "layer_norm_epsilon": 0.01},
    ),
    "Llama 2": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "Llama 3": ("llama", {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "linear": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 5.0, "factor": 2.0}},
    ),
    "YaRN": ("llama", {"rope_parameters": YARN, "head_dim": 16}),
    "YaRN, a ramp": (
        "llama",
        {"rope_parameters": {**YARN, "attention_factor": 1.3, "truncate": False}}
        | {"head_dim": 16},
    ),
    "Mistral": ("mistral", {"head_dim": 10, "sliding_window": 5, "rms_norm_eps": 0.1}),
    "Qwen3": ("qwen3", {"head_dim": 10, "rms_norm_eps": 0.1}),
    "Qwen3, windows": (
        "qwen3",
        {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 2},
    ),
}


@pytest.fixture(autouse=True)
def in_float64(float64):
    with torch.no_grad(), DoubleEverywhere():
        yield


def make(name):
    """Make a model of transformers with random numbers, gains and biases too."""
    kind, options = MODELS[name]
    sizes = {} if kind == "gpt2" else SIZES
    nothing = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=V, **{**sizes, **options, **nothing}
    )
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager"
    )
    for of, p in model.named_parameters():
        if p.ndim == 1:
            torch.nn.init.normal_(p, mean=float(of.endswith("weight")), std=0.25)
        else:  # with these large the text does not stop at one token
            large = "wpe" in of or ("embed" in of and not config.tie_word_embeddings)
            torch.nn.init.normal_(p, std=2 if large else p.shape[-1] ** -0.5)
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_the_same_logits_and_the_same_text(name, tmp_path):
    theirs, ids = make(name), torch.randint(V, (B, T))
    theirs.save_pretrained(tmp_path)
    ours = from_huggingface(tmp_path)
    wanted = theirs(ids).logits
    assert wanted.dtype == torch.float64
    assert wanted.std() > 0.1
    assert_close(ours(ids), wanted, **EXACT)
    cache = ours.new_cache(T)
    one_by_one = [ours(ids[:, t : t + 1], cache=cache) for t in range(T)]
    assert_close(torch.cat(one_by_one, dim=1), wanted, **EXACT)
    text = theirs.generate(ids, max_new_tokens=NEW, do_sample=False)[:, T:]
    assert text.shape == (B, NEW)
    assert len(text.unique()) > 2
    assert torch.equal(greedy(ours, ids, max_len=NEW), text)
    assert_close(from_huggingface(theirs)(ids), wanted, **EXACT)


@pytest.mark.parametrize("name", ["GPT-2", "Qwen3"])
def test_from_shards_and_in_half_precision(name, tmp_path):
    theirs = make(name)
    for p in theirs.parameters():
        p.data = p.bfloat16()
    theirs.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len([*tmp_path.glob("*.safetensors")]) > 2
    ours = from_huggingface(tmp_path)
    assert {p.dtype for p in ours.parameters()} == {torch.bfloat16}
    ids = torch.randint(V, (B, T))
    assert_close(ours.double()(ids), theirs.double()(ids).logits, **EXACT)


@pytest.mark.parametrize("kind", set(FAMILIES) - {"tformer"})
def test_what_a_config_leaves_out_is_as_theirs(kind):
    theirs = transformers.AutoConfig.for_model(kind).to_dict()
    ours = dict(family_of({"model_type": kind}).DEFAULTS)
    if "hidden_size" in ours:
        heads = ours["num_attention_heads"]
        ours["num_key_value_heads"] = ours["num_key_value_heads"] or heads
        ours["head_dim"] = ours["head_dim"] or ours["hidden_size"] // heads
        ours["rope_parameters"] = {
            "rope_theta": ours["rope_theta"],
            "rope_type": "default",
        }
    if not ours.get("use_sliding_window", True):
        ours["sliding_window"] = None
        ours["layer_types"] = ["full_attention"] * ours["num_hidden_layers"]
    for word in ours.keys() & theirs:
        assert ours[word] == theirs[word], word

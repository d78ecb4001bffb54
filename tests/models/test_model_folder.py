"""A folder of config.json and safetensors: what is read, and what is refused."""

import json
import os
import re

import pytest
import torch
from safetensors.torch import load_file, save_file

from downloaded_folders import their_state
from tformer import Transformer, TransformerConfig, save_checkpoint
from tformer.interop import from_huggingface
from tformer.models import read_model
from tformer.models.families import family_of

SIZES = {"vocab_size": 11, "hidden_size": 8, "intermediate_size": 6}
SIZES |= {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
CONFIGS = {
    "llama": {"model_type": "llama", **SIZES},
    "qwen3": {"model_type": "qwen3", **SIZES, "tie_word_embeddings": True},
    "gpt2": {"model_type": "gpt2", "vocab_size": 11, "n_embd": 8, "n_layer": 2}
    | {"n_head": 2, "n_positions": 9},
}
Q = "blocks.1.attention.q_proj.weight"
THEIR_Q = "model.layers.1.self_attn.q_proj.weight"


def drawn(kind):
    torch.manual_seed(0)
    model = family_of(CONFIGS[kind]).build(CONFIGS[kind]).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model


def write(folder, kind, state):
    (folder / "config.json").write_text(json.dumps(CONFIGS[kind]))
    state = {name: x.contiguous() for name, x in state.items()}
    save_file(state, folder / "model.safetensors")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "llama", their_state(drawn("llama"), "llama"))
    return tmp_path


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_under_their_names(kind, dtype, tmp_path):
    model, ids = drawn(kind).to(dtype), torch.randint(11, (2, 7))
    write(tmp_path, kind, their_state(model, kind))
    state = torch.random.get_rng_state()
    again = from_huggingface(str(tmp_path))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not again.training
    assert again.config == model.config
    assert {p.dtype for p in again.parameters()} == {dtype}
    assert torch.equal(again(ids), model(ids))


def test_what_old_files_hold_beside_the_weights(tmp_path):
    """The mask of GPT-2, frequencies of Llama, and tied logits."""
    for kind, more in (
        ("gpt2", ["transformer.h.0.attn.bias", "transformer.h.0.attn.masked_bias"]),
        ("llama", ["model.layers.0.self_attn.rotary_emb.inv_freq"]),
        ("qwen3", ["lm_head.weight"]),
    ):
        model = drawn(kind)
        state = their_state(model, kind)
        extra = {name: torch.ones(3, 3).bool() for name in more}
        if kind == "qwen3":
            extra = {more[0]: state["model.embed_tokens.weight"].clone()}
        write(tmp_path, kind, state | extra)
        ids = torch.randint(11, (2, 7))
        assert torch.equal(read_model(tmp_path)(ids), model(ids))


def in_two_files(folder):
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    parts = [dict([*state.items()][::2]), dict([*state.items()][1::2])]
    names = {}
    for i, part in enumerate(parts):
        save_file(part, folder / f"{i}.safetensors")
        names |= dict.fromkeys(part, f"{i}.safetensors")
    return names, folder / "model.safetensors.index.json"


def test_shards(folder):
    wanted, ids = read_model(folder), torch.randint(11, (2, 7))
    names, index = in_two_files(folder)
    index.write_text(json.dumps({"weight_map": names}))
    assert torch.equal(read_model(folder)(ids), wanted(ids))
    (folder / "1.safetensors").rename(folder / "moved")
    with pytest.raises(FileNotFoundError, match=r"1\.safetensors"):
        read_model(folder)
    save_file({THEIR_Q: torch.ones(1)}, folder / "1.safetensors")
    first = load_file(folder / "0.safetensors")
    save_file(first | {THEIR_Q: torch.ones(1)}, folder / "0.safetensors")
    with pytest.raises(ValueError, match=f"and another file hold {THEIR_Q}"):
        read_model(folder)
    for outside in ("../0.safetensors", "/etc/passwd", 3):
        index.write_text(json.dumps({"weight_map": {THEIR_Q: outside}}))
        with pytest.raises(ValueError, match="which is no file of the folder"):
            read_model(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({THEIR_Q: torch.int8}, f"{THEIR_Q} is of I8, not one of F16, BF16"),
        ({THEIR_Q: None}, f"lacks {Q}"),
        ({"lm_head.weight": None}, "lacks output.weight"),
        ({"model.layers.2.mlp.bias": (8,)}, "does not have: blocks.2.feed_forward.b"),
        ({THEIR_Q: (8, 4)}, f"{Q} is (8, 4), but its model has (8, 8)"),
        ({THEIR_Q: ()}, f"{Q} is (), but its model has (8, 8)"),
    ],
)
def test_wrong_weights_are_named(folder, change, message):
    state = load_file(folder / "model.safetensors")
    for name, to in change.items():
        x = state.pop(name, None)
        if to is not None:
            state[name] = torch.ones(to) if isinstance(to, tuple) else x.to(to)
    write(folder, "llama", state)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_model(folder)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((), "weights of wrong shapes"),
        ((1,), "attention.q_proj.weight is"),
        ((8, 23), "attention.v_proj.weight is"),
    ],
)
def test_queries_keys_and_values_that_cannot_be_cut(tmp_path, shape, message):
    state = their_state(drawn("gpt2"), "gpt2")
    state["transformer.h.1.attn.c_attn.weight"] = torch.ones(shape)
    write(tmp_path, "gpt2", state)
    with pytest.raises(ValueError, match=message):
        read_model(tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            {"model_type": "bloom"},
            "model_type ('bloom') must be one of gpt2, llama",
        ),
        ({"model_type": ["llama"]}, "model_type (['llama']) must be one of gpt2,"),
        ({"clip_qkv": 8}, "config has clip_qkv (8), which is unknown here"),
        ({"hidden_act": "relu"}, "hidden_act ('relu') must be one of ['silu']"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope_type ('longrope') must be"),
        ({"mlp_bias": "false"}, "mlp_bias must be a bool, not str"),
        ({"hidden_size": "8"}, "hidden_size"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"rms_norm_eps": None}, "rms_norm_eps"),
        ({"hidden_size": 2**40}, f"hidden_size ({2**40}) cannot be: at most"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers (1000000000) cannot be"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"num_hidden_layers": 3}, "lacks blocks.2."),
        ({"num_hidden_layers": 1}, "does not have: blocks.1."),
        ({"vocab_size": 12}, "embedding.weight is (11, 8), but its model has (12, 8)"),
    ],
)
def test_a_wrong_config_is_named(folder, words, message):
    (folder / "config.json").write_text(json.dumps(CONFIGS["llama"] | words))
    with pytest.raises(ValueError, match=re.escape(message)):
        read_model(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b"{", "is not JSON, or truncated"),
        ("config.json", b"[]", "does not hold an object"),
        ("model.safetensors", b"", "is not safetensors"),
        ("model.safetensors", b"\x80\x04pickle", "is not safetensors"),
        ("model.safetensors", (10**12).to_bytes(8, "little"), "not safetensors"),
        ("model.safetensors", ..., "is not safetensors"),  # its last byte is missing
        ("model.safetensors.index.json", b"{}", "lacks 'weight_map'"),
        ("model.safetensors.index.json", b'{"weight_map": [1]}', "weight_map"),
    ],
)
def test_a_damaged_file_is_named(folder, name, content, message):
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1] if content is ... else content)
    with pytest.raises(ValueError, match=message) as caught:
        read_model(folder)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        read_model(folder)
    os.mkfifo(folder / name)  # reading it would never end
    with pytest.raises(OSError, match="is not a regular file"):
        read_model(folder)


def test_a_checkpoint_is_such_a_folder(tmp_path):
    save_checkpoint(tmp_path, Transformer(TransformerConfig.tiny(vocab_size=13)))
    assert isinstance(read_model(tmp_path), Transformer)
    with pytest.raises(ValueError, match="is no language model"):
        from_huggingface(tmp_path)

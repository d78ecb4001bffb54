"""Folders for Hugging Face, written and read again; what is refused, by its name.

That transformers computes the same is in tests/parity.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tformer import BERT, BERTConfig, CausalLM, Transformer, TransformerConfig
from tformer.interop import from_huggingface, to_huggingface
from tformer.models import build_model
from tformer.nn import TokenEmbedding, transformer_block

OWN = {"model_type": "tformer", "vocab_size": 13, "d_model": 24, "num_heads": 4}
ROTARY = {**OWN, "positions": "rotary", "norm": "rms", "feed_forward": "swiglu"}
LLAMA = {"model_type": "llama", "vocab_size": 13, "hidden_size": 8}
LLAMA |= {"intermediate_size": 10, "num_hidden_layers": 2, "num_attention_heads": 2}
MARIAN = {"model_type": "marian", "vocab_size": 13, "d_model": 8, "pad_token_id": 0}
MARIAN |= {f"{side}_layers": 1 for side in ("encoder", "decoder")}
MARIAN |= {f"{side}_ffn_dim": 10 for side in ("encoder", "decoder")}
MARIAN |= {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
T5 = {"model_type": "t5", "vocab_size": 13, "d_model": 8, "d_kv": 3, "d_ff": 10}
T5 |= {"num_layers": 2, "num_heads": 2}


def papers(**changes):
    return Transformer(TransformerConfig.tiny(vocab_size=13, **changes))


def berts(**changes):
    return BERT(BERTConfig.tiny(vocab_size=13, **changes))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: build_model(OWN), "gpt2"),
        (lambda: build_model({**ROTARY, "kv_heads": 2}), "llama"),
        (lambda: build_model({**ROTARY, "window": 2, "bias": False}), "mistral"),
        (lambda: build_model({**ROTARY, "qk_norm": True, "bias": False}), "qwen3"),
        (papers, "marian"),
        (lambda: build_model(T5), "t5"),
        (lambda: build_model(MARIAN), "marian"),
    ],
)
def test_read_again_it_computes_the_same(make, kind, tmp_path):
    model, ids = make().eval(), torch.tensor([[3, 5, 7], [2, 2, 9]])
    to_huggingface(model, tmp_path / "a" / "b")
    again = from_huggingface(tmp_path / "a" / "b")
    assert again.config["model_type"] == kind
    inputs = (ids,) if isinstance(model, CausalLM) else (ids, ids)
    torch.testing.assert_close(again(*inputs), model(*inputs))


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: build_model({**OWN, "positions": "alibi"}), "positions ('alibi')"),
        (lambda: build_model({**OWN, "norm": "rms"}), "norm ('rms')"),
        (lambda: build_model({**OWN, "placement": "post"}), "placement ('post')"),
        (lambda: build_model({**OWN, "kv_heads": 2}), "kv_heads (2)"),
        (lambda: build_model({**OWN, "window": 2}), "window (2)"),
        (lambda: build_model({**OWN, "experts": 3}), "experts (3)"),
        (lambda: build_model({**OWN, "sinks": True}), "sinks (True)"),
        (lambda: build_model({**OWN, "head_dim": 5}), "head_dim (5)"),
        (lambda: build_model({**OWN, "logit_scale": 0.5}), "logit_scale (0.5)"),
        (
            lambda: build_model({**OWN, "feed_forward": "relu2"}),
            "feed_forward ('relu2')",
        ),
        (
            lambda: build_model({**ROTARY, "feed_forward": "gelu"}),
            "feed_forward ('gelu')",
        ),
        (lambda: build_model({**ROTARY, "norm": "layer"}), "norm ('layer')"),
        (lambda: build_model({**ROTARY, "qk_norm": True}), "bias (True)"),
        (lambda: build_model({**ROTARY, "softcap": 9.0}), "softcap (9.0)"),
        (lambda: papers(norm_first=True), "norm_first (True)"),
        (lambda: papers(positions="learned"), "positions ('learned')"),
        (lambda: papers(eps=0.1), "eps (0.1)"),
        (lambda: papers(num_kv_heads=1), "num_kv_heads (1)"),
        (lambda: berts(num_kv_heads=1), "num_kv_heads (1)"),
    ],
)
def test_a_part_that_theirs_lack_is_named(make, part, tmp_path):
    model = make()
    with pytest.raises(ValueError, match=re.escape(f"{part} has no place in")):
        to_huggingface(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_else_is_refused(tmp_path):
    model = build_model(OWN)
    with pytest.raises(ValueError, match=r"n_embd \(7\) is 24 in the model"):
        to_huggingface(model, tmp_path, n_embd=7)
    (tmp_path / "notes").touch()
    with pytest.raises(FileExistsError, match=r"must be empty, and holds notes"):
        to_huggingface(model, tmp_path)
    parts = TokenEmbedding(5, 4), [transformer_block(4, 1, 3)], None
    with pytest.raises(
        ValueError, match=r"model \(CausalLM\) was built without a config"
    ):
        to_huggingface(CausalLM(*parts, max_len=3), tmp_path / "new")


def change(folder, name, x):
    path = folder / "model.safetensors"
    save_file({**load_file(path), name: x}, path)


def test_a_matrix_that_the_config_ties_and_the_file_does_not(tmp_path):
    to_huggingface(build_model({**LLAMA, "tie_word_embeddings": True}), tmp_path)
    same = load_file(tmp_path / "model.safetensors")["model.embed_tokens.weight"]
    change(tmp_path, "lm_head.weight", same)
    from_huggingface(tmp_path)
    change(tmp_path, "lm_head.weight", same + 1)
    with pytest.raises(
        ValueError, match=r"output\.weight is not embedding\.weight, and its config"
    ):
        from_huggingface(tmp_path)


@pytest.mark.parametrize(
    ("config", "name", "x", "message"),
    [
        (T5, "decoder.block.2.layer.0.layer_norm.weight", 8, "have: decoder.blocks.2."),
        (T5, "shared.weight", 8, "src_embedding.weight is (8,), but its model has"),
        (MARIAN, "final_logits_bias", 13, "weights of wrong shapes"),
        (MARIAN, "model.encoder.norm.bias", 8, "not have: encoder.norm.bias"),
    ],
)
def test_a_weight_that_does_not_fit_is_named(
    config, name, x, message, tmp_path, raises
):
    to_huggingface(build_model(config), tmp_path)
    change(tmp_path, name, torch.ones(x))
    with pytest.raises(ValueError, match=re.escape(message)):
        from_huggingface(tmp_path)


def test_what_old_files_hold_beside_the_weights(tmp_path):
    """Positions of integers, fixed sinusoids, a table that no code uses."""
    t5 = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    ids = torch.tensor([[3, 5, 7]])
    for name, model, extra in (
        ("t5", build_model(T5), {t5: torch.ones(32, 2)}),
        (
            "marian",
            papers(),
            {"model.encoder.embed_positions.weight": torch.ones(9, 3)},
        ),
        ("bert", berts(), {"bert.embeddings.position_ids": torch.arange(9)[None]}),
    ):
        model, folder = model.eval(), tmp_path / name
        to_huggingface(model, folder)
        [[added, x]] = extra.items()
        change(folder, added, x)
        inputs = (ids,) if isinstance(model, BERT) else (ids, ids)
        torch.testing.assert_close(from_huggingface(folder)(*inputs), model(*inputs))


def test_a_dtype_may_be_given(tmp_path):
    model, ids = build_model(LLAMA).eval(), torch.tensor([[3, 5, 7]])
    to_huggingface(model, tmp_path)
    for dtype in (torch.float64, torch.bfloat16, None):
        again = from_huggingface(tmp_path, dtype)
        assert {p.dtype for p in again.parameters()} == {dtype or torch.float32}
        assert torch.equal(again(ids), model.to(dtype or torch.float32)(ids))
        model = (
            build_model(LLAMA).eval() if dtype is None else from_huggingface(tmp_path)
        )


LOAD = """
import sys, torch
from pathlib import Path
from tformer.interop import from_huggingface

def memory(of):
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if of in x]
    return int(line.split()[1]) * 1024

from_huggingface(sys.argv[1], torch.float32)  # what is imported, and caches
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # begin the peak anew
model = from_huggingface(sys.argv[2], torch.float32)
sizes = [p.nbytes for p in model.parameters()]
print(memory("VmHWM") - before, sum(sizes), max(sizes))
"""
WIDE = {"vocab_size": 4000, "hidden_size": 512, "intermediate_size": 2048}
GPT2 = {"model_type": "gpt2", "n_embd": 512, "n_layer": 10, "n_head": 8}
GPT2 |= {"vocab_size": 4000, "n_positions": 16}


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="of Linux")
@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        ({**LLAMA, **WIDE, "num_hidden_layers": 8}, torch.bfloat16),
        (GPT2, torch.float32),  # whose matrices are turned
    ],
    ids=["converted", "turned"],
)
def test_the_peak_is_the_model_and_a_tensor(config, dtype, tmp_path):
    to_huggingface(build_model(LLAMA), tmp_path / "small")
    to_huggingface(build_model(config).to(dtype), tmp_path / "large")
    folders = [str(tmp_path / name) for name in ("small", "large")]
    command = [sys.executable, "-c", LOAD, *folders]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    peak, whole, largest = map(int, told.split())
    assert whole > 120e6
    assert whole / 2 < peak < whole + 2 * largest + 8e6, (peak, whole, largest)

"""Every family is written and read again; experts stand as Hugging Face saves them.

That transformers loads what was written is in tests/parity.
"""

import re

import pytest
import torch
from safetensors import safe_open

from tformer.interop import from_huggingface, to_huggingface
from tformer.models import build_model
from theirs import MODELS, SIZES, V

ONE_BY_ONE = {
    "Mixtral": r"block_sparse_moe\.experts\.\d\.w[123]\.weight",
    "Qwen3-MoE": r"mlp\.experts\.\d\.(gate|up|down)_proj\.weight",
    "DeepSeek-V3": r"mlp\.experts\.\d+\.(gate|up|down)_proj\.weight",
    "GLM-4.5": r"mlp\.experts\.\d+\.(gate|up|down)_proj\.weight",
    "MiniMax-M2": r"block_sparse_moe\.experts\.\d\.w[123]\.weight",
    "Qwen3-Next": r"mlp\.experts\.\d\.(gate|up|down)_proj\.weight",
    "gpt-oss": r"mlp\.experts\.(gate_up|down)_proj(_bias)?",
}


def small(name):
    """Build one with random numbers everywhere, buffers too."""
    kind, options = MODELS[name]
    sizes = {} if kind == "gpt2" else dict(SIZES)
    if kind == "gpt_neox":
        del sizes["num_key_value_heads"]
    model = build_model(
        {"model_type": kind, "vocab_size": V, **sizes, **options, "pad_token_id": None}
    )
    for x in model.state_dict().values():
        torch.nn.init.normal_(x, std=0.3)
    return model.eval()


@pytest.mark.by_day(14)
@pytest.mark.parametrize("name", [n for n in MODELS if MODELS[n][0] != "kimi_linear"])
def test_there_and_back(name, tmp_path):
    model = small(name)
    to_huggingface(model, tmp_path)
    again = from_huggingface(tmp_path).state_dict()
    for of, x in model.state_dict().items():
        assert torch.equal(again.pop(of), x)
    assert not again
    if name in ONE_BY_ONE:
        with safe_open(tmp_path / "model.safetensors", "pt") as file:
            held = [n for n in file.keys() if ".experts." in n]  # noqa: SIM118
        assert held
        for each in held:
            assert re.fullmatch(rf"model\.layers\.\d\.{ONE_BY_ONE[name]}", each)


@pytest.mark.parametrize(
    ("name", "held", "not_held"),
    [
        ("DeepSeek-V3", "self_attn.q_b_proj.", ".q_proj."),
        ("DeepSeek-V3, queries of x", "self_attn.q_proj.", ".q_b_proj."),
        ("Qwen3-Next", "layers.0.linear_attn.", "layers.0.self_attn."),
        ("Qwen3-Next", "layers.3.self_attn.k_proj.", "layers.3.linear_attn."),
        ("Qwen3.5", "layers.0.linear_attn.out_proj.", "layers.0.self_attn."),
    ],
)
def test_a_name_that_hangs_on_the_config(name, held, not_held, tmp_path):
    to_huggingface(small(name), tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        names = " ".join(file.keys())
    assert held in names
    assert not_held not in names

"""Runs of version 0.1: every command reads them, and `train --resume` ends them.

Their model lay beside the rest, as model.safetensors and model.json, and the layers of
a model had other names there and in the checkpoints.
"""

import json
import re
import shutil

import pytest
from safetensors.torch import load_file, save_file

from small_run import what_counts
from tformer.files import SEAL, sealed, sha256_of
from tformer.models.families.custom import PARTS

SIZES = "vocab_size d_model num_heads num_layers d_ff max_len dropout eps bias"
SIZES += " tie_embeddings pad_id"
KINDS = {"reverse": "Transformer", "gpt": "GPT", "bert": "BERT", "today": "CausalLM"}
OLD_NAMES = [
    (".cross_attention_norm.", ".cross_attn_residual.norm."),
    (".attention_norm.", ".self_attn_residual.norm."),
    (".feed_forward_norm.", ".feed_forward_residual.norm."),
    (".cross_attention.", ".cross_attn."),
    (".attention.", ".self_attn."),
]


def old_name(kind, name):
    if kind == "CausalLM":  # it came last, with today's names
        return name
    for new, old in OLD_NAMES:
        name = name.replace(new, old)
    if kind == "GPT":
        name = re.sub(r"(^|model\.|state\.)norm\.", r"\1stack.norm.", name)
        return name.replace("blocks.", "stack.layers.")
    if kind == "BERT":
        return name.replace("encoder.blocks.", "stack.layers.")
    return name.replace("blocks.", "layers.")


def rename(kind, file):
    tensors = load_file(file)
    save_file({old_name(kind, name): x for name, x in tensors.items()}, file)


def old_config(kind, config):
    if kind in ("Transformer", "BERT"):
        return {n: x for n, x in config.items() if n != "model_type"}
    sizes = {name: config[name] for name in SIZES.split()}
    sizes["num_kv_heads"] = config["kv_heads"]
    if kind == "GPT":
        return {**sizes, "activation": "gelu_tanh"}
    parts = {n: config[n] for n in PARTS if n not in ("kv_heads", "gate", "top_k")}
    nested = {"rotary": {"base": 10_000.0, "layout": "halves"}, "latent": None}
    more = {"logit_scale": 1.0, "head_dim": None}
    for name in ("kv_rank", "shared_experts"):
        del parts[name]
    return {**sizes, **more, "parts": {**parts, **nested}}


@pytest.fixture(params=KINDS)
def old(request, runs, tmp_path):
    """A finished run of today and the same as version 0.1 has left it."""
    run, kind = tmp_path / "run", KINDS[request.param]
    shutil.copytree(runs[request.param], run)
    settings = json.loads((run / "config.json").read_text())
    if kind == "CausalLM":  # the oldest had the parts beside the other settings
        settings |= settings.pop("parts")
        (run / "config.json").write_text(json.dumps(settings))
    for state in (run / "checkpoints").iterdir():
        rename(kind, state / "training.safetensors")
        facts = json.loads((state / "state.json").read_text())
        facts["sha256"] = {
            "training.safetensors": sha256_of(state / "training.safetensors")
        }
        facts["settings"] = settings
        del facts[SEAL]
        (state / "state.json").write_text(json.dumps(sealed(facts)))
    weights, config = run / "model.safetensors", run / "model/config.json"
    (run / "model/model.safetensors").rename(weights)
    values = json.loads(config.read_text())
    shutil.rmtree(run / "model")
    rename(kind, weights)
    whole = {
        "format": "tformer checkpoint, version 3",
        "weights": "model.safetensors",
        "architecture": kind,
        **values.pop("tformer"),
        "bytes": weights.stat().st_size,
        "sha256": sha256_of(weights),
    }
    del values[SEAL]
    whole["config"] = old_config(kind, values)
    (run / "model.json").write_text(json.dumps(sealed(whole)))
    metrics = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(re.sub(r', "crc32": \d+', "", metrics))
    return runs[request.param], run


@pytest.mark.nightly
def test_every_command_says_what_it_says_of_todays(tformer, runs, old, tmp_path):
    today, run = old
    reads = today.name == "reverse"
    commands = [["info"], ["evaluate", *([] if reads else [runs["text"]])]]
    if today.name != "bert":
        commands.append(["translate", "abc"] if reads else ["generate"])
    for command, *words in commands:
        said, wanted = (tformer(command, path, *words) for path in (run, today))
        assert (said.code, said.err) == (0, "")
        assert said.out.replace(str(run), "") == wanted.out.replace(str(today), "")
    said = tformer("attend", run, "abc" if reads else "To be", "-o", tmp_path / "a.svg")
    assert (said.code, said.err) == (0, "")
    before = (run / "model.safetensors").read_bytes()
    assert tformer("train", "--resume", run).code == 0  # it is done
    assert (run / "model.safetensors").read_bytes() == before


def test_it_goes_on_bit_for_bit(tformer, old):
    today, run = old
    for name in ("result.json", "model.safetensors", "model.json"):
        (run / name).unlink()
    shutil.rmtree(run / "checkpoints/step-00000021")
    said = tformer("train", "--resume", run, "--quiet", "--threads", 1)
    assert said.code == 0, said.err
    assert what_counts(run) == what_counts(today)
    ours, wanted = (path / "model/model.safetensors" for path in (run, today))
    assert ours.read_bytes() == wanted.read_bytes()

"""Checkpoints of version 0.1: the same numbers as that version computed.

It wrote NAME.safetensors, whose layers had other names, and NAME.json beside it.
"""

import hashlib
import json
import re

import pytest
import torch
from safetensors.torch import save_file

from tformer import load_checkpoint, save_checkpoint
from tformer.files import sealed

V, D, F, L = 13, 8, 12, 9  # tokens, widths, longest text
COMMON = {"vocab_size": V, "d_model": D, "num_heads": 2, "d_ff": F, "max_len": L} | {
    "dropout": 0.1,
    "eps": 1e-5,
    "bias": True,
    "tie_embeddings": True,
    "pad_id": 0,
}


def norm(name):
    return {f"{name}.weight": (D,), f"{name}.bias": (D,)}


def linear(name, out=D, into=D):
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def layer(name, *attentions):
    """Name the weights of a layer as version 0.1 did."""
    weights = linear(f"{name}.feed_forward.linear1", F, D)
    weights |= linear(f"{name}.feed_forward.linear2", D, F)
    for part in (*attentions, "feed_forward"):
        weights |= norm(f"{name}.{part}_residual.norm")
    for part in attentions:
        for each in ("q", "k", "v", "out"):
            weights |= linear(f"{name}.{part}.{each}_proj")
    return weights


def matrices(name, **shapes):
    return {f"{name}.{each}.weight": shape for each, shape in shapes.items()}


ATTENTION = {"q_proj": (D, D), "k_proj": (4, D), "v_proj": (4, D), "out_proj": (D, D)}
EXPERT = {"gate_proj": (F, D), "up_proj": (F, D), "down_proj": (D, F)}
NORMS = ("attention_norm", "feed_forward_norm")
ROTARY = {"positions": "rotary", "rotary": {"base": 10000.0, "layout": "halves"}}
EXPERTS = {"num_experts": 2, "top_k": 1, "num_shared": 0, "balance_rate": 0.001}
PARTS = (
    {**ROTARY, "latent": None, "experts": EXPERTS, "score_scale": 0.3, "window": 3}
    | {"norm": "rms_plus_one", "placement": "sandwich", "feed_forward": "geglu"}
    | {"qk_norm": True, "sinks": True, "softcap": 9.0, "logit_cap": 7.0}
)
ONE_STACK = {"num_layers": 1, "num_kv_heads": None, "activation": "gelu"}
TWO_STACKS = {"num_encoder_layers": 1, "num_decoder_layers": 1, "activation": "relu"}
# Of each architecture the config, the weights, and three logits that 0.1 computed.
OLD = {
    "GPT": (
        ONE_STACK,
        {
            "embedding.weight": (V, D),
            "positions.weight": (L, D),
            **layer("stack.layers.0", "self_attn"),
            **norm("stack.norm"),
        },
        [2.318540, -5.535298, -0.707768],
    ),
    "CausalLM": (
        {"num_layers": 1, "num_kv_heads": 1, "bias": False, "logit_scale": 0.5}
        | {"head_dim": None, "parts": PARTS},
        {"embedding.weight": (V, D), "norm.weight": (D,)}
        | matrices("blocks.0", **{f"{n}{i}": (D,) for n in NORMS for i in ("", 2)})
        | matrices("blocks.0.attention", **ATTENTION, q_norm=(4,), k_norm=(4,))
        | matrices("blocks.0.feed_forward.experts.0", **EXPERT)
        | matrices("blocks.0.feed_forward.experts.1", **EXPERT)
        | matrices("blocks.0.feed_forward.router", proj=(2, D))
        | {
            "blocks.0.attention.sinks": (2,),
            "blocks.0.feed_forward.router.selection_bias": (2,),
        },
        [-1.145687, 1.564464, 0.690755],
    ),
    "Transformer": (
        {**TWO_STACKS, "num_kv_heads": None, "tgt_vocab_size": None}
        | {"norm_first": False, "positions": "sinusoidal"},
        {
            "src_embedding.weight": (V, D),
            **layer("encoder.layers.0", "self_attn"),
            **layer("decoder.layers.0", "self_attn", "cross_attn"),
        },
        [-3.967409, -1.541705, 4.416046],
    ),
    "BERT": (
        {**ONE_STACK, "num_segments": 2},
        {"embedding.weight": (V, D), "output_bias": (V,)}
        | {"positions.weight": (L, D), "segments.weight": (2, D)}
        | layer("stack.layers.0", "self_attn")
        | {**linear("head"), **norm("head_norm"), **norm("norm")},
        [-2.356453, -0.061982, 3.731498],
    ),
}


def write_old(folder, architecture, *, version=3, change=None):
    """Write what version 0.1 wrote, in the later or the earlier form."""
    config, shapes, _ = OLD[architecture]
    tensors = {}
    for i, (name, shape) in enumerate(sorted(shapes.items())):
        if version == 2:  # then both stacks of a Transformer lay in one module
            name = re.sub(r"^(?=encoder|decoder)", "stacks.", name)
        tensors[name] = (torch.arange(torch.Size(shape).numel()) + i).sin().view(shape)
    path = folder / "model.safetensors"
    save_file(tensors, path)
    manifest = {
        "format": f"tformer checkpoint, version {version}",
        "weights": path.name,
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "architecture": architecture,
        "config": {**COMMON, **config},
        "vocabulary": {"characters": "abc"},
        "seed": 7,
    }
    if change is not None:
        place, value = change
        part = manifest = json.loads(json.dumps(manifest))
        *folders, name = place.split(".")
        for each in folders:
            part = part[each]
        part[name] = value
        if value is ...:
            del part[name]
    # The earlier form had no hash of the manifest itself.
    written = sealed(manifest) if version == 3 else manifest
    path.with_suffix(".json").write_text(json.dumps(written))
    return path


@torch.no_grad()
def logits(model, architecture):
    ids = torch.tensor([[3, 1, 4, 1, 5, 9]])
    inputs = (ids, ids) if architecture == "Transformer" else (ids,)
    return model(*inputs)[0, -1, :3].tolist()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("architecture", OLD)
def test_it_computes_what_it_computed_and_can_be_saved_anew(
    tmp_path, architecture, version
):
    old = load_checkpoint(write_old(tmp_path, architecture, version=version))
    assert (old.vocabulary.characters, old.manifest["seed"]) == ("abc", 7)
    save_checkpoint(tmp_path / "new", old.model)
    for model in (old.model, load_checkpoint(tmp_path / "new").model):
        expected = pytest.approx(OLD[architecture][2], abs=1e-5)
        assert logits(model, architecture) == expected


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("sha256", ..., "lacks 'sha256'"),
        ("config.parts.rotary.base", 5e5, r"base \(500000\.0\) of an older .* is gone"),
        ("config.parts.mixer", 3, r"config has mixer \(3\), which is unknown"),
        ("architecture", "Mamba", r"architecture \('Mamba'\) is unknown"),
        ("config", ..., r"no manifest .*'config'"),
    ],
)
def test_what_cannot_be_loaded_any_more_is_named(tmp_path, place, value, message):
    with pytest.raises(ValueError, match=message):
        load_checkpoint(write_old(tmp_path, "CausalLM", change=(place, value)))


def test_the_later_form_has_a_hash_of_itself_and_both_of_the_weights(tmp_path):
    path = write_old(tmp_path, "GPT")
    manifest = path.with_suffix(".json")
    manifest.write_text(manifest.read_text().replace('"seed": 7', '"seed": 8'))
    with pytest.raises(ValueError, match=r"model\.json was changed"):
        load_checkpoint(path)
    for version in (2, 3):
        write_old(tmp_path, "GPT", version=version)
        path.write_bytes(path.read_bytes()[:-4] + b"abcd")
        with pytest.raises(ValueError, match="is not the file that"):
            load_checkpoint(path)

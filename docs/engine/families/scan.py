"""Which parts the language models of `transformers` have, by their configs.

Run in the environment of `make parity`, which has that package: `make families`. A part
counts where the defaults of a config have its word, and say that it is there. What is
in the code of a model alone, and in no config, such as most norms of queries and keys,
cannot be seen so.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

Config = Mapping[str, Any]


def has(*words: str) -> Callable[[Config], bool]:
    """Make the question whether one of these words is there, and says yes."""
    return lambda c: any(c.get(word) not in (None, False, 0, 0.0, []) for word in words)


def kinds(*wanted: str) -> Callable[[Config], bool]:
    """Make the question whether some layers are of such a kind."""
    words = ("layer_types", "layers_block_type", "block_types")

    def ask(c: Config) -> bool:
        types = {str(kind) for word in words for kind in c.get(word) or ()}
        return any(w in kind for kind in types for w in wanted)

    return ask


def groups(c: Config) -> bool:
    """Tell whether several heads share keys and values."""
    heads, shared = c.get("num_attention_heads"), c.get("num_key_value_heads")
    return isinstance(shared, int) and isinstance(heads, int) and shared < heads


def rope(c: Config) -> list[Config]:
    """List what says how positions rotate: one for all layers, or one a kind."""
    found = c.get("rope_parameters") or {}
    return [found] if "rope_type" in found else [*filter(None, found.values())]


def scaled(c: Config) -> bool:
    """Tell whether the angles are changed for longer texts."""
    kinds = [x.get("rope_type") for x in rope(c) if isinstance(x, dict)]
    return any(kind not in (None, "default") for kind in kinds)


def activation(c: Config) -> str:
    """Return the activation of the feed-forward network, or that of its gate."""
    words = ("hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act")
    return next((str(c[word]) for word in words if c.get(word)), "")


EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
PARTS: dict[str, Callable[[Config], bool]] = {
    "RMSNorm": has("rms_norm_eps"),
    "LayerNorm": has("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"),
    "rotary positions": lambda c: bool(rope(c)),
    "rotary positions, scaled": scaled,
    "a part of each head rotated": lambda c: any(
        (x.get("partial_rotary_factor") or 1) < 1
        for x in rope(c)
        if isinstance(x, dict)
    ),
    "some layers without positions": has("no_rope_layers", "no_rope_layer_interval"),
    "heads that share keys and values": groups,
    "latent keys and values": has("kv_lora_rank"),
    "norms of queries and keys, said in the config": has(
        "qk_norm", "use_qk_norm", "qk_layernorm"
    ),
    "biases of queries, keys and values": has("attention_bias", "qkv_bias"),
    "windows": lambda c: (
        has("sliding_window", "attention_window_size")(c)
        and c.get("use_sliding_window", True) is not False
    ),
    "windows in some layers only": kinds("sliding"),
    "linear attention or a state": lambda c: (
        kinds("linear", "mamba", "recurrent")(c)
        or has("ssm_state_size", "state_size")(c)
    ),
    "SiLU or its gate": lambda c: activation(c) in ("silu", "swish"),
    "GELU or its gate": lambda c: "gelu" in activation(c),
    "experts": has(*EXPERTS),
    "experts that every token uses": has(*SHARED, "shared_expert_intermediate_size"),
    "capped scores or logits": has("attn_logit_softcapping", "final_logit_softcapping"),
    "logits from the embedding's matrix": has("tie_word_embeddings"),
    "heads for several next tokens": has("num_nextn_predict_layers", "num_mtp_modules"),
}


def scan() -> dict[str, object]:
    """Ask every language model that the package has."""
    transformers: Any = import_module("transformers")
    auto = import_module("transformers.models.auto.modeling_auto")
    names = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    families: dict[str, list[str]] = {}
    for kind in sorted(names):
        with contextlib.suppress(Exception):  # one that must be told its sizes
            config = transformers.AutoConfig.for_model(kind).get_text_config()
            values = {**config.to_dict(), **vars(config)}
            families[kind] = [part for part, asks in PARTS.items() if asks(values)]
    return {
        "transformers": transformers.__version__,
        "date": date.today().isoformat(),
        "left_out": sorted(set(names) - set(families)),
        "families": families,
    }


if __name__ == "__main__":
    text = json.dumps(scan(), indent=1, ensure_ascii=False)
    Path(sys.argv[1]).write_text(text + "\n", "utf-8")

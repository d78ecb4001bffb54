"""What each preset of each family is made of: built on the meta device, and counted."""

import json
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from torch import nn

from engine.tables import read_kept
from tformer.models.cache_size import cache_nbytes
from tformer.models.causal_lm import CausalLM
from tformer.models.families import FAMILIES, Config, family_of
from tformer.models.folder import NothingDrawn
from tformer.nn.block import Block
from tformer.nn.experts import active_parameters

OWN = "custom"  # the family of one's own parts: it has no published sizes
LAST = ("linear2.weight", "down_proj.weight")  # of a feed-forward network
WORDS = {  # of what attends otherwise than each query to all keys
    "LatentAttention": "latent",
    "GatedDeltaRule": "delta rule",
    "KimiDeltaAttention": "delta rule",
    "LinearAttention": "linear",
}


def families() -> dict[str, tuple[str, ModuleType]]:
    """Return the families by the name of their file: `model_type`, and the module."""
    kinds = {file: kind for kind, file in FAMILIES.items() if file != OWN}
    return {
        file: (kind, family_of({"model_type": kind})) for file, kind in kinds.items()
    }


def presets(name: str) -> dict[str, Config]:
    """Return the published sizes of a family; its defaults, if it names none."""
    kind, module = families()[name]
    sizes: dict[str, Config] = vars(module).get("SIZES") or {f"{name}, defaults": {}}
    return {preset: {"model_type": kind, **size} for preset, size in sizes.items()}


def facts(config: Config) -> dict[str, Any]:
    """Build a model without memory, and count.

    Returns:
        parameters, those that one token uses, widths, the kinds of its layers one after
        the other, and of a causal model bytes of the cache in bfloat16.
    """
    with torch.device("meta"), NothingDrawn():
        model = family_of(config).build(config)
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    layers = [(attention_word(block), feed_forward_word(block)) for block in blocks]
    found: dict[str, Any] = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "active": active_parameters(model),
        "layers": [[*kind, len([*same])] for kind, same in groupby(layers)],
        "widths": widths(blocks[-1]),
        "parts": parts(model, blocks[-1]),
    }
    if isinstance(model, CausalLM):
        half = model.to(torch.bfloat16)
        one, two, full = (cache_nbytes(half, n) for n in (1, 2, model.max_len))
        found |= {"cache": two - one, "cache_full": full, "max_len": model.max_len}
    return found


def attention_word(block: Block) -> str:
    """Say how a layer attends: to all, to a window, or otherwise."""
    attention: Any = block.attention
    kind, window = type(attention).__name__, vars(attention).get("window")
    word = WORDS.get(kind, "all" if "Attention" in kind else kind)
    word = word if window is None else f"window {window:,}"
    return word if block.cross_attention is None else f"{word}, and a memory"


def feed_forward_word(block: Block) -> str:
    """Say what follows: a network, or experts."""
    kind = type(cast(object, block.feed_forward)).__name__
    return "experts" if "Experts" in kind else "dense"


def parts(model: nn.Module, block: Block) -> dict[str, str]:
    """Name what a model has around its blocks, and in the last of them."""
    around = [*model.named_children()]
    inside = [(n, part) for n, part in block.named_modules() if n.count(".") < 2 and n]
    named = [*around, *((f"block.{name}", part) for name, part in inside)]
    return {
        name: f"{type(part).__name__}, with a bias"
        if biased(part)
        else type(part).__name__
        for name, part in named
        if not isinstance(part, nn.ModuleList | nn.Dropout)
    } | {"block": f"norms: {block.placement}"}


def biased(part: nn.Module) -> bool:
    """Tell whether a part has a bias of its own."""
    return any(name == "bias" for name, _ in part.named_parameters(recurse=False))


def widths(block: Block) -> dict[str, int]:
    """Read the widths of a block from its matrices; of experts that of one."""
    found = {"D": 0, "queries": 0, "keys": 0, "inner": 0}
    for name, p in block.named_parameters():
        out, into = p.shape[-2:] if p.ndim > 1 else (0, 0)
        if name == "attention.out_proj.weight":
            found["D"], found["queries"] = out, into
        elif name == "attention.k_proj.weight":
            found["keys"] = out
        elif name.startswith("feed_forward") and name.endswith(LAST):
            found["inner"] = found["inner"] or into
    return found


def write(file: Path, *, anew: bool = True) -> None:
    """Write the facts of all families; with experts it takes minutes.

    Args:
        file: of the facts.
        anew: count what is there already, too.
    """
    kept: dict[str, Any] = {} if anew or not file.exists() else read_kept(file)
    families_said = []
    for name in families():
        known = kept.get(name, {})
        found = {
            preset: known.get(preset) or facts(config)
            for preset, config in presets(name).items()
        }
        lines = (f'  "{preset}": {json.dumps(x)}' for preset, x in found.items())
        families_said.append(f' "{name}": {{\n' + ",\n".join(lines) + "\n }")
    file.write_text("{\n" + ",\n".join(families_said) + "\n}\n", "utf-8")

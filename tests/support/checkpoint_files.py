"""Small models, and checkpoints of them that were changed by hand."""

import json
from pathlib import Path

import torch

from tformer import Transformer, TransformerConfig
from tformer.files import SEAL, sealed, sha256_of


def make_model(seed: int = 0, **changes) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 13, "d_model": 14, "num_heads": 7, "d_ff": 22}
    return Transformer(TransformerConfig.tiny(**{**sizes, **changes}))


def same(one: torch.nn.Module, two: torch.nn.Module) -> bool:
    pairs = zip(one.state_dict().items(), two.state_dict().items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


def edited(under=None, /, **changes):
    """Make a function that writes another config.json, with its hash.

    Args:
        under: change what stands under this word.
        changes: the new words; a value of ... takes one out.
    """

    def edit(folder: Path) -> None:
        file = folder / "config.json"
        values = json.loads(file.read_text())
        part = values if under is None else values[under]
        part.update(changes)
        for name in [name for name, value in part.items() if value is ...]:
            del part[name]
        values.pop(SEAL)
        file.write_text(json.dumps(sealed(values)))

    return edit


def seal(folder: Path) -> None:
    """Make config.json describe the weights as they are."""
    path = folder / "model.safetensors"
    edited("tformer", sha256=sha256_of(path), bytes=path.stat().st_size)(folder)

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


def same(one: Transformer, two: Transformer) -> bool:
    pairs = zip(one.state_dict().items(), two.state_dict().items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


def edit(path: Path, **changes) -> None:
    """Write another manifest, with its hash; a value of ... takes an entry out."""
    manifest_path = path.with_suffix(".json")
    manifest = {**json.loads(manifest_path.read_text()), **changes}
    kept = {n: x for n, x in manifest.items() if x is not ... and n != SEAL}
    manifest_path.write_text(json.dumps(sealed(kept)))


def seal(path: Path) -> None:
    """Make the manifest describe the file as it is."""
    edit(path, sha256=sha256_of(path), bytes=path.stat().st_size)


def config_with(**changes):
    def damage(path: Path) -> None:
        config = json.loads(path.with_suffix(".json").read_text())["config"]
        config.update(changes)
        edit(path, config={n: v for n, v in config.items() if v is not ...})

    return damage

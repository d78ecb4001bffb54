"""Checkpoints: a folder of config.json and model.safetensors, as Hugging Face's are.

Beside the model's own words config.json has one of ours, "tformer": the hash of the
weights, the vocabulary, and what is to be known of the training.
"""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

import tformer
from tformer.checks import require
from tformer.data.bpe import vocabulary_from_json, vocabulary_to_json
from tformer.data.vocabulary import Vocabulary
from tformer.files import (
    SEAL,
    Json,
    beside,
    check_sealed,
    make_folders,
    read_json,
    sealed,
    sha256_of,
    unchanged,
    wait_for_disk,
    write_json_beside,
)
from tformer.models.building import Model, config_of
from tformer.models.folder import OURS, read_model
from tformer.training.old_checkpoints import converted
from tformer.training.weights import check_loads_the_same, tensors_of

TYPES = {"sha256": str, "bytes": int, "vocabulary": dict | None}
OLD_FORMATS = ("tformer checkpoint, version 2", "tformer checkpoint, version 3")


class Checkpoint(NamedTuple):
    """A model as it was saved."""

    model: Model  # in eval()
    vocabulary: Vocabulary | None
    manifest: Json


def save_checkpoint(
    folder: str | Path,
    model: Model,
    *,
    vocabulary: Vocabulary | None = None,
    facts: Mapping[str, object] | None = None,
) -> Json:
    """Write a model, as it is or compiled, to a folder; `load_checkpoint` reads it.

    Both files are written under other names, then renamed, the weights first. Whenever
    the process is killed, a whole checkpoint can be loaded: the old one or the new one.
    The vocabulary, and the facts that shall be known, are kept in config.json.

    Returns:
        The manifest: what stands under "tformer" in config.json.

    Raises:
        FileExistsError: the config.json that would be replaced is no checkpoint's.
        OSError: the files cannot be written.
        TypeError: JSON cannot hold the vocabulary, or a fact.
        ValueError: the model would not be the same once it is loaded, or a fact has a
            name that is taken. Then nothing is written.
    """
    folder = Path(folder)
    weights_path, config_path = _files(folder)
    new_weights, new_config = beside(weights_path), beside(config_path)
    safetensors = require("safetensors.torch")
    model = getattr(model, "_orig_mod", model)  # torch.compile has put itself around it
    config, tensors = config_of(model), tensors_of(model)
    check_loads_the_same(model, config)
    check_replaceable(config_path)
    make_folders(folder)
    with suppress(OSError, ValueError):  # of a save that was killed between the two
        matching_manifest(folder, settle=True)
    try:
        new_weights.unlink(missing_ok=True)  # else a link there would be followed
        safetensors.save_file(tensors, new_weights, {"format": "pt"})
        own = {
            "bytes": new_weights.stat().st_size,
            "sha256": sha256_of(new_weights),
            "vocabulary": vocabulary and vocabulary_to_json(vocabulary),
            "versions": {
                "tformer": tformer.__version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
        }
        facts = facts or {}
        if taken := {*own, SEAL} & facts.keys():
            raise ValueError(f"facts must leave {sorted(taken)} to the manifest")
        new_weights.chmod(0o644)  # safetensors lets only the owner read
        wait_for_disk(new_weights)
        write_json_beside(config_path, sealed({**config, OURS: {**own, **facts}}))
        manifest: Json = read_manifest_file(new_config)[OURS]  # it can be read again
    except BaseException as error:
        new_weights.unlink(missing_ok=True)
        new_config.unlink(missing_ok=True)
        if isinstance(error, require("safetensors").SafetensorError):  # a full disk
            raise OSError(f"{weights_path} cannot be written: {error}") from error
        raise
    os.replace(new_weights, weights_path)
    # A kill here leaves the config under its first name; loading looks there too.
    os.replace(new_config, config_path)
    wait_for_disk(folder)
    return manifest


def load_checkpoint(
    path: str | Path, *, dtype: torch.dtype | None = None
) -> Checkpoint:
    """Load what `save_checkpoint` wrote, after holding it to its hash.

    The path is the folder; or NAME.safetensors of an older version, with NAME.json. The
    model is on the CPU, and of the file's dtype if none is given.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is truncated or changed, is no checkpoint, or is of another
            model. The message names the file and what is wrong.
    """
    path = Path(path)
    weights_path, _ = _files(path)
    if not weights_path.exists():
        raise FileNotFoundError(f"{weights_path}: no such file")
    seen = weights_path.stat()
    config = matching_manifest(path)
    manifest = config[OURS]
    try:
        saved = manifest["vocabulary"]
        vocabulary = None if saved is None else vocabulary_from_json(saved)
    except (TypeError, ValueError) as error:  # changed by hand
        raise ValueError(f"{path}: {error}") from error
    model = read_model(path, config, [weights_path])
    if not unchanged(weights_path, seen):  # another save came since the hash
        raise ValueError(f"{weights_path} was replaced while it was read: try again")
    return Checkpoint(model if dtype is None else model.to(dtype), vocabulary, manifest)


def read_manifest(path: str | Path) -> Json:
    """Read what is said of a checkpoint, without looking at the weights."""
    return read_manifest_file(_files(Path(path))[1])[OURS]


def _files(path: Path) -> tuple[Path, Path]:
    """Name the weights and the config of a checkpoint, of today or of version 0.1."""
    if path.suffix == ".safetensors":
        return path, path.with_suffix(".json")
    return path / "model.safetensors", path / "config.json"


def check_replaceable(config_path: Path) -> None:
    """Raise if the config of another's model, or another file, would be replaced."""
    with suppress(ValueError):
        if not config_path.exists() or OURS in read_json(config_path):
            return
    raise FileExistsError(f"{config_path} is no checkpoint's: name another folder")


def matching_manifest(path: Path, *, settle: bool = False) -> Json:
    """Find the config of these weights: beside them, or where a kill has left it.

    Then `settle` gives it its name.
    """
    weights_path, config_path = _files(path)
    digest, pending = sha256_of(weights_path), beside(config_path)
    with suppress(FileNotFoundError, ValueError):  # a kill while it was being written
        config = read_manifest_file(pending)
        if config[OURS]["sha256"] == digest:
            if settle:
                os.replace(pending, config_path)
            return config
    config = read_manifest_file(config_path)
    if config[OURS]["sha256"] == digest:
        return config
    size, whole = weights_path.stat().st_size, config[OURS]["bytes"]
    if size < whole:
        raise ValueError(f"{weights_path} is truncated: {size} of {whole} bytes")
    raise ValueError(
        f"{weights_path} is not the file that {config_path.name} describes: its sha256 "
        f"is {digest}"
    )


def read_manifest_file(path: Path) -> Json:
    """Read config.json of a checkpoint, also what an older version wrote."""
    values = read_json(path)
    form = values.get("format")
    if form not in OLD_FORMATS and not isinstance(values.get(OURS), dict):
        raise ValueError(f"{path} is no checkpoint's: it has no {OURS!r}")
    if form != OLD_FORMATS[0]:  # which has no hash of itself
        check_sealed(path, values)
    values.pop(SEAL, None)
    if form in OLD_FORMATS:
        values = converted(path, values)
    for name, kind in TYPES.items():
        if name not in values[OURS] or not isinstance(values[OURS][name], kind):
            what = f"{OURS} lacks {name!r}, or has it of a wrong type"
            raise ValueError(f"{path}: {what}")
    return values

"""Checkpoints: a folder of config.json and model.safetensors, as Hugging Face's are.

Beside the model's own words config.json has one of ours, "tformer": the hash of the
weights, the vocabulary, and what is to be known of the training.
"""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch

import tformer
from tformer.checks import require
from tformer.data.saved_vocabulary import vocabulary_from_json, vocabulary_to_json
from tformer.data.vocabulary import Vocabulary
from tformer.files import (
    SEAL,
    beside,
    check_sealed,
    read_json,
    sealed,
    sha256_of,
    unchanged,
    wait_for_disk,
    write_json_beside,
)
from tformer.models.building import Model, build_model, config_of
from tformer.models.folder import DTYPES, OURS, read_model, saved_of
from tformer.training.old_checkpoints import converted

TYPES = {"sha256": str, "bytes": int, "vocabulary": dict | None}
OLD_FORMATS = ("tformer checkpoint, version 2", "tformer checkpoint, version 3")


class Checkpoint(NamedTuple):
    """A model as it was saved."""

    model: Model  # in eval()
    vocabulary: Vocabulary | None
    manifest: dict[str, Any]


def save_checkpoint(
    folder: str | Path,
    model: Model,
    *,
    vocabulary: Vocabulary | None = None,
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write a model to a folder, which `load_checkpoint` reads.

    Both files are written under other names, then renamed, the weights first. Whenever
    the process is killed, a whole checkpoint can be loaded: the old one or the new one.

    Args:
        folder: is made if missing; a checkpoint in it is replaced.
        model: its parameters and buffers are saved, a shared one once. Of
            `torch.compile(model)` the model itself is.
        vocabulary: kept in config.json.
        facts: what else shall be known: seed, steps, results.

    Returns:
        The manifest: what stands under "tformer" in config.json.

    Raises:
        FileExistsError: the config.json that would be replaced is no checkpoint's.
        ImportError: safetensors is not installed.
        OSError: the files cannot be written.
        TypeError: the vocabulary is of another kind than tformer's, or a fact is
            nothing that JSON could hold.
        ValueError: the model would not be the same once it is loaded, or a fact has a
            name that is taken. Then nothing is written.
    """
    folder = Path(folder)
    weights_path, config_path = folder / "model.safetensors", folder / "config.json"
    new_weights, new_config = beside(weights_path), beside(config_path)
    safetensors = require("safetensors.torch")
    model = getattr(model, "_orig_mod", model)  # torch.compile has put itself around it
    config, tensors = config_of(model), tensors_of(model)
    check_loads_the_same(model, config)
    if config_path.exists() and OURS not in read_json(config_path):
        raise FileExistsError(f"{config_path} is no checkpoint's: name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(OSError, ValueError):  # of a save that was killed between the two
        matching_manifest(folder, settle=True)
    try:
        new_weights.unlink(missing_ok=True)  # else a link there would be followed
        safetensors.save_file(tensors, new_weights, {"format": "pt"})
        manifest = {
            "bytes": new_weights.stat().st_size,
            "sha256": sha256_of(new_weights),
            "vocabulary": vocabulary and vocabulary_to_json(vocabulary),
            "versions": {
                "tformer": tformer.__version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
        }
        if taken := {*manifest, SEAL} & (facts or {}).keys():
            raise ValueError(f"facts must leave {sorted(taken)} to the manifest")
        whole = sealed({**config, OURS: {**manifest, **(facts or {})}})
        new_weights.chmod(0o644)  # safetensors lets only the owner read
        wait_for_disk(new_weights)
        write_json_beside(config_path, whole)
        read_manifest_file(new_config)  # it can be read again
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
    saved: dict[str, Any] = whole[OURS]
    return saved


def load_checkpoint(
    path: str | Path, *, dtype: torch.dtype | None = None
) -> Checkpoint:
    """Load what `save_checkpoint` wrote, after holding it to its hash.

    Args:
        path: the folder; or NAME.safetensors of an older version, with NAME.json.
        dtype: of the model; that of the file if not given.

    Returns:
        The model on the CPU, its vocabulary and the manifest.

    Raises:
        FileNotFoundError: a file is missing.
        ImportError: safetensors is not installed.
        ValueError: a file is truncated or changed, is no checkpoint, or is of another
            model. The message names the file and what is wrong.
    """
    path = Path(path)
    weights_path = path if path.suffix == ".safetensors" else path / "model.safetensors"
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
        raise ValueError(
            f"{weights_path} was replaced while it was read: load it again"
        )
    return Checkpoint(model if dtype is None else model.to(dtype), vocabulary, manifest)


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read what is said of a checkpoint, without looking at the weights.

    Raises:
        OSError: there is no config.json.
        ValueError: it is none of a checkpoint, or was changed.
    """
    path = Path(path)
    old = path.suffix == ".safetensors"
    file = path.with_suffix(".json") if old else path / "config.json"
    manifest: dict[str, Any] = read_manifest_file(file)[OURS]
    return manifest


def tensors_of(model: Model) -> dict[str, torch.Tensor]:
    """Name what is to be saved. A matrix under two names comes once.

    Raises:
        ValueError: a tensor cannot be saved.
    """
    tensors = saved_of(model)
    for name, x in tensors.items():
        if (
            x.is_meta
            or type(x.data) is not torch.Tensor
            or x.dtype not in DTYPES.values()
        ):
            what = f"{type(x).__name__} of {x.dtype} on {x.device}"
            raise ValueError(f"{name} is a {what}, which cannot be saved")
    return {name: x.detach().contiguous() for name, x in tensors.items()}


def check_loads_the_same(model: Model, config: Mapping[str, Any]) -> None:
    """Raise unless a new model of the config, with these weights, computes the same.

    A hook, a replaced method or a changed attribute would be lost: both are asked for
    the same scores.

    Raises:
        ValueError: it would be another model.
    """
    name = type(model).__name__
    try:
        with torch.random.fork_rng():
            again = build_model(config)
        if type(again) is not type(model):
            raise ValueError(
                f"it is another class than tformer's {type(again).__name__}"
            )
        first = next(model.parameters())
        again = again.to(first.device, first.dtype)
        again.load_state_dict(model.state_dict())
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"model ({name}) could not be loaded again: {error}"
        ) from error
    ids = torch.arange(6, device=first.device)[None] % min(model.vocab_size, 7)
    inputs = (ids, ids) if hasattr(model, "decode") else (ids,)
    modes = [(each, each.training) for each in model.modules()]
    try:
        with torch.no_grad():
            wanted, got = model.eval()(*inputs), again.eval()(*inputs)
    finally:
        for each, training in modes:
            each.training = training
    if not torch.equal(wanted, got) and not wanted.isnan().any():
        off = float((wanted - got).abs().max())
        raise ValueError(
            f"model ({name}) would be another once loaded: off by {off:.2g}"
        )


def matching_manifest(path: Path, *, settle: bool = False) -> dict[str, Any]:
    """Find the config of these weights: beside them, or where a kill has left it.

    Args:
        path: of the checkpoint.
        settle: give it its name.
    """
    old = path.suffix == ".safetensors"
    weights_path = path if old else path / "model.safetensors"
    config_path = path.with_suffix(".json") if old else path / "config.json"
    digest, pending = sha256_of(weights_path), beside(config_path)
    if pending.exists():
        with suppress(ValueError):  # the kill came while it was being written
            config = read_manifest_file(pending)
            if config[OURS]["sha256"] == digest:
                if settle:
                    os.replace(pending, config_path)
                return config
    config = read_manifest_file(config_path)
    if config[OURS]["sha256"] == digest:
        return config
    size, whole = weights_path.stat().st_size, config[OURS]["bytes"]
    wrong = f"truncated: {size} of {whole} bytes"
    if size >= whole:
        wrong = (
            f"not the file that {config_path.name} describes: its sha256 is {digest}"
        )
    raise ValueError(f"{weights_path} is {wrong}")


def read_manifest_file(path: Path) -> dict[str, Any]:
    """Read config.json of a checkpoint; the manifest of an older version becomes one.

    Raises:
        OSError: it is missing.
        ValueError: it is none, or was changed.
    """
    values = read_json(path)
    if values.get("format") in OLD_FORMATS:
        if values["format"] == OLD_FORMATS[-1]:  # the older one has no hash of itself
            check_sealed(path, values)
        return converted(path, values)
    if not isinstance(values.get(OURS), dict):
        raise ValueError(f"{path} is no checkpoint's: it has no {OURS!r}")
    check_sealed(path, values)
    values.pop(SEAL)
    for name, kind in TYPES.items():
        if name not in values[OURS] or not isinstance(values[OURS][name], kind):
            raise ValueError(
                f"{path}: {OURS} lacks {name!r}, or has it of a wrong type"
            )
    return values

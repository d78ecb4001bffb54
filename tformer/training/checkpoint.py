"""Checkpoints: a model's weights in safetensors, and beside them a manifest in JSON.

Neither can run code when it is opened, which a pickle can.
"""

import dataclasses
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
from tformer.models.by_name import Model, ModelConfig, make_config
from tformer.training.weights import fill, loadable

KIND = "tformer checkpoint"
FORMAT = f"{KIND}, version 3"
OLD_FORMAT = f"{KIND}, version 2"  # whose manifest has no hash of itself
MANIFEST_TYPES = {
    "architecture": str,
    "sha256": str,
    "bytes": int,
    "config": dict,
    "vocabulary": dict | None,
}


class Checkpoint(NamedTuple):
    """A model as it was saved."""

    model: Any  # a Transformer, GPT or BERT, in eval()
    vocabulary: Vocabulary | None
    manifest: dict[str, Any]


def save_checkpoint(
    path: str | Path,
    model: Model,
    *,
    vocabulary: Vocabulary | None = None,
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write a model to `path`, and its manifest to the same name with ".json".

    Both are written under other names, then renamed, the weights first. Whenever the
    process is killed, a whole checkpoint can be loaded: the old one or the new one.

    Args:
        path: ends in ".safetensors"; an existing checkpoint is replaced.
        model: its parameters are saved, a shared one once. Of `torch.compile(model)`
            the model itself is.
        vocabulary: kept in the manifest.
        facts: what else the manifest shall say: seed, steps, results.

    Returns:
        The manifest.

    Raises:
        FileExistsError: the file in the manifest's place is no manifest.
        ImportError: safetensors is not installed.
        OSError: the files cannot be written.
        TypeError: the vocabulary is of another kind than tformer's, or a fact is
            nothing that JSON could hold.
        ValueError: the model could not be loaded again: it is no Transformer, GPT or
            BERT, or has other parameters than its config says, as one with
            parametrizations has; `path` does not end in ".safetensors"; or a fact has
            a name that the manifest uses itself, or could not be read again. Then
            nothing is written.
    """
    weights_path, manifest_path = _paths(path)
    new_weights, new_manifest = beside(weights_path), beside(manifest_path)
    safetensors = require("safetensors.torch")
    model = getattr(model, "_orig_mod", model)  # torch.compile has put itself around it
    tensors = loadable(model)
    _check_replaceable(manifest_path)
    weights_path.parent.mkdir(parents=True, exist_ok=True)
    _finish_killed_save(weights_path, manifest_path)
    try:
        new_weights.unlink(missing_ok=True)  # else a link there would be followed
        safetensors.save_file(tensors, new_weights)
        manifest = {
            "format": FORMAT,
            "weights": weights_path.name,
            "bytes": new_weights.stat().st_size,
            "sha256": sha256_of(new_weights),
            "architecture": type(model).__name__,
            "config": dataclasses.asdict(model.config),
            "vocabulary": (
                None if vocabulary is None else vocabulary_to_json(vocabulary)
            ),
            "versions": {
                "tformer": tformer.__version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
        }
        if taken := {*manifest, SEAL} & (facts or {}).keys():
            raise ValueError(f"facts must leave {sorted(taken)} to the manifest")
        manifest = sealed({**manifest, **(facts or {})})
        new_weights.chmod(0o644)  # safetensors lets only the owner read
        wait_for_disk(new_weights)
        write_json_beside(manifest_path, manifest)
        _contents(_read_manifest(new_manifest), new_manifest)  # it can be read again
    except BaseException as error:
        new_weights.unlink(missing_ok=True)
        new_manifest.unlink(missing_ok=True)
        if isinstance(error, require("safetensors").SafetensorError):  # a full disk
            raise OSError(f"{weights_path} cannot be written: {error}") from error
        raise
    os.replace(new_weights, weights_path)
    # A kill here leaves the manifest under its first name; loading looks there too.
    os.replace(new_manifest, manifest_path)
    wait_for_disk(manifest_path.parent)
    return manifest


def load_checkpoint(
    path: str | Path,
    model: "Model | None" = None,
    *,
    dtype: torch.dtype | None = None,
) -> Checkpoint:
    """Load what `save_checkpoint` wrote, after holding it to its manifest.

    Args:
        path: of the weights, ends in ".safetensors".
        model: load into this model, which must have the checkpoint's config; a new
            model on the CPU if not given.
        dtype: of the new model; that of the file if not given.

    Returns:
        The model, its vocabulary and the manifest.

    Raises:
        FileNotFoundError: a file is missing.
        ImportError: safetensors is not installed.
        ValueError: a file is truncated or changed, is no checkpoint of this kind, or
            is of another model. The message names the file and what is wrong. Or
            `dtype` is given with a `model`, which has its own.
    """
    if model is not None and dtype is not None:
        raise ValueError(f"dtype ({dtype}) is for a new model, and `model` is given")
    weights_path, manifest_path = _paths(path)
    if not weights_path.exists():
        raise FileNotFoundError(f"{weights_path}: no such file")
    if not manifest_path.exists() and not beside(manifest_path).exists():
        raise FileNotFoundError(
            f"{manifest_path}: no such file; it says what the weights beside it are of"
        )
    seen = weights_path.stat()
    manifest, _ = _matching_manifest(weights_path, manifest_path)
    config, vocabulary = _contents(manifest, manifest_path)
    if model is not None and model.config != config:
        ours = {"architecture": type(model).__name__} | dataclasses.asdict(model.config)
        theirs = {"architecture": manifest["architecture"]} | manifest["config"]
        other = [n for n in ours if n in theirs and ours[n] != theirs[n]]
        differences = "; ".join(f"{n} {theirs[n]}, not {ours[n]}" for n in other)
        raise ValueError(f"{weights_path} is of another model: {differences}")

    def check() -> None:  # between the hash and the weights another save may come
        if not unchanged(weights_path, seen):
            raise ValueError(
                f"{weights_path} was replaced while it was read: load it again"
            )

    model = fill(model, config, weights_path, dtype, check)
    return Checkpoint(model.eval(), vocabulary, manifest)


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read what is said of the weights at `path`, without looking at these.

    Raises:
        OSError: there is no manifest.
        ValueError: it is none, or was changed.
    """
    return _read_manifest(_paths(path)[1])


def _contents(
    manifest: dict[str, Any], path: Path
) -> tuple[ModelConfig, Vocabulary | None]:
    """Make what a manifest describes."""
    try:
        config = make_config(manifest["architecture"], manifest["config"])
        saved = manifest["vocabulary"]
        return config, None if saved is None else vocabulary_from_json(saved)
    except (TypeError, ValueError) as error:  # changed by hand
        raise ValueError(f"{path}: {error}") from error


def _matching_manifest(
    weights_path: Path, manifest_path: Path
) -> tuple[dict[str, Any], Path]:
    """Find the manifest of these weights: beside them, or where a kill has left it."""
    digest, pending = sha256_of(weights_path), beside(manifest_path)
    if pending.exists():
        with suppress(ValueError):  # the kill came while it was being written
            manifest = _read_manifest(pending)
            if manifest["sha256"] == digest:
                return manifest, pending
    manifest = _read_manifest(manifest_path)
    if manifest["sha256"] == digest:
        return manifest, manifest_path
    size = weights_path.stat().st_size
    if size < manifest["bytes"]:
        wrong = f"truncated: {size} of {manifest['bytes']} bytes"
    else:
        wrong = (
            f"not the file that {manifest_path.name} describes: its sha256 is {digest}"
        )
    raise ValueError(f"{weights_path} is {wrong}")


def _read_manifest(path: Path) -> dict[str, Any]:
    manifest = read_json(path, format=(FORMAT, OLD_FORMAT), types=MANIFEST_TYPES)
    if manifest["format"] == FORMAT:
        check_sealed(path, manifest)
    return manifest


def _check_replaceable(manifest_path: Path) -> None:
    """Raise if somebody else's file would be overwritten by the manifest."""
    if not manifest_path.exists():
        return
    with suppress(ValueError):
        if str(read_json(manifest_path).get("format")).startswith(KIND):
            return
    raise FileExistsError(
        f"{manifest_path} is no manifest of a checkpoint, and would be overwritten: "
        "name another file"
    )


def _finish_killed_save(weights_path: Path, manifest_path: Path) -> None:
    """Give the manifest of a save its name, where a kill came before it was renamed."""
    with suppress(FileNotFoundError, ValueError):  # no whole checkpoint to be kept
        _, path = _matching_manifest(weights_path, manifest_path)
        if path != manifest_path:
            os.replace(path, manifest_path)


def _paths(path: str | Path) -> tuple[Path, Path]:
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"path ({str(path)!r}) must end in '.safetensors'")
    return path, path.with_suffix(".json")

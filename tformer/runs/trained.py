"""A trained model by what a user calls it: a run, a file, or one of the package."""

import shlex
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tformer.data.vocabulary import Vocabulary
from tformer.files import read_json
from tformer.models.folder import OURS
from tformer.pretrained import load_pretrained, pretrained_names
from tformer.runs.checkpoints import load_state, saved_states
from tformer.runs.data import run_vocabulary
from tformer.runs.folder import RunError, RunFolder, in_words
from tformer.runs.model import ablate, build_model, build_optimizer
from tformer.runs.resume import check_unchanged
from tformer.runs.settings import RunSettings
from tformer.training.checkpoint import load_checkpoint


class Trained(NamedTuple):
    """A trained model, and what is needed to ask it."""

    name: str
    model: Any  # in eval()
    vocabulary: Vocabulary
    manifest: dict[str, Any]  # empty while its run is not finished
    settings: RunSettings | None = None  # of the run that made it
    folder: RunFolder | None = None  # of that run

    @property
    def task(self) -> str | None:
        """What it was trained for, if a run made it: a name in TASKS, text or pairs."""
        return None if self.settings is None else self.settings.task


def load_trained(name: str | Path) -> Trained:
    """Load a trained model.

    Args:
        name: the folder of a run or of a model, a file that ends in ".safetensors", of
            an older version, or the name of a model of the package. A folder comes
            before a name. Of a run that is not finished the newest checkpoint is
            loaded, and a warning says so.

    Returns:
        The model on the CPU, without the parts that it was trained without.

    Raises:
        RunError: there is no such model, its run has made no checkpoint, or it is
            damaged.
    """
    path, folder = Path(name), None
    try:
        if path.is_dir() and not is_model(path):
            folder = RunFolder.open(path)
            saved = folder.saved_model()
            if saved is None:
                return _unfinished(str(name), folder)
            checkpoint = load_checkpoint(saved)
        elif path.is_dir() or path.suffix == ".safetensors":
            checkpoint = load_checkpoint(path)
        elif str(name) in pretrained_names():
            checkpoint = load_pretrained(str(name))
        else:
            raise RunError(
                f"{name} is neither the folder of a run or of a model, nor a "
                f".safetensors file, nor a model of the package: "
                f"{', '.join(pretrained_names())}"
            )
        model, vocabulary, manifest = checkpoint
        if vocabulary is None:
            raise RunError(f"{name} has no vocabulary, so no text can be read")
        asked = manifest.get("settings")
        settings = None if asked is None else RunSettings.from_json(asked)
        ablate(model, *(settings.without if settings else ()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(in_words(error)) from error
    return Trained(str(name), model, vocabulary, manifest, settings, folder)


def is_model(folder: Path) -> bool:
    """Tell the folder of a model from that of a run: both have a config.json."""
    with suppress(OSError, ValueError):
        return OURS in read_json(folder / "config.json")
    return False


def _unfinished(name: str, folder: RunFolder) -> Trained:
    """Load the newest checkpoint of a run."""
    go_on = f"go on with tformer train --resume {shlex.quote(str(folder.path))}"
    saved = saved_states(folder.checkpoints)
    if not saved:
        raise RunError(
            f"the run in {name} is not finished, and has no checkpoint: {go_on}"
        )
    settings = folder.settings()
    check_unchanged(folder, settings)
    vocabulary, vocab_size = run_vocabulary(settings, folder.path)
    pad_id = vocabulary.pad_id
    model = build_model(settings, vocab_size=vocab_size, pad_id=pad_id)
    load_state(saved[-1], model, build_optimizer(settings, model))
    ablate(model, *settings.without)
    warnings.warn(
        f"the run in {name} is not finished: this is its newest checkpoint, "
        f"{saved[-1].name}; {go_on}",
        stacklevel=2,
    )
    return Trained(name, model.eval(), vocabulary, {}, settings, folder)

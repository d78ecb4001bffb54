"""What a run has left: is it the one that was begun, and where is its model?"""

import json
import shlex
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tformer.data.vocabulary import Vocabulary
from tformer.files import Json, read_json
from tformer.models.families.custom import PARTS
from tformer.models.folder import OURS
from tformer.pretrained import load_pretrained, pretrained_names
from tformer.runs.checkpoints import load_state, read_facts, saved_states
from tformer.runs.data import run_vocabulary
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.metrics import read_metrics
from tformer.runs.model import ablate, build_model, build_optimizer
from tformer.runs.settings import RunSettings
from tformer.training.checkpoint import load_checkpoint, read_manifest

# What may change while a run goes on: what is written down and measured, how a step is
# computed, as machines differ, and where the data lie, of which there is a hash.
MAY_CHANGE = {"save_every", "keep", "evaluate_every", "evaluate_examples"}
MAY_CHANGE |= {"test_examples", "accumulate", "compile", "files"}


def check_unchanged(folder: RunFolder, settings: RunSettings) -> None:
    """Raise if a run would go on with other settings than it was begun with.

    Else its first steps would be of one training and its last of another. The newest
    checkpoint has the settings, or, where there is none any more, the model; what an
    older version has written without settings is held to nothing. With "inverse-sqrt",
    which does not ask for `steps`, they may change too.

    Raises:
        OSError: the manifest is missing.
        ValueError: a setting was changed; the checkpoint or the manifest is damaged; or
            it is gone, and all would be begun anew over what is left.
    """
    saved = saved_states(folder.checkpoints)
    made = saved[-1] if saved else folder.saved_model()
    if made is None:
        _check_begun_now(folder, settings)
        return
    was = (read_facts(made) if saved else read_manifest(made)).get("settings")
    if not isinstance(was, dict):
        return
    was |= was["parts"] if isinstance(was.get("parts"), dict) else {}
    now = json.loads(json.dumps(settings.flat()))
    free = MAY_CHANGE | ({"steps"} if settings.schedule == "inverse-sqrt" else set())
    for name in sorted((now.keys() - free) & (was.keys() | PARTS.keys())):
        before = was.get(name)
        if before is None and name in PARTS:
            before = PARTS[name].default
        if now[name] != before:
            raise RunError(
                f"{folder.config} has {name} {json.dumps(now[name])}, but {made.name} "
                f"was made with {json.dumps(before)}: a run goes on as it began. Put "
                "it back, or begin another run"
            )


def _check_begun_now(folder: RunFolder, settings: RunSettings) -> None:
    """Raise if a checkpoint was made, and is gone: as where its disk is not mounted."""
    lines = read_metrics(folder.metrics) if folder.metrics.exists() else []
    steps = max((line["step"] for line in lines if "loss" in line), default=0)
    if steps > settings.save_every:
        raise RunError(
            f"{folder.path} has made {steps} steps, and {folder.checkpoints} has "
            f"nothing to go on from: put that back, or begin another run"
        )


class Trained(NamedTuple):
    """A trained model, and what is needed to ask it."""

    name: str
    model: Any  # in eval(); of which kind the commands ask
    vocabulary: Vocabulary
    manifest: Json  # empty while its run is not finished
    settings: RunSettings | None = None  # of the run that made it
    folder: RunFolder | None = None  # of that run

    @property
    def task(self) -> str | None:
        """What it was trained for, if a run made it: a name in TASKS, text or pairs."""
        return None if self.settings is None else self.settings.task


def load_trained(name: str | Path) -> Trained:
    """Load a trained model.

    Of an unfinished run the newest checkpoint is loaded, and a warning says so.

    Args:
        name: the folder of a run or of a model, a file that ends in ".safetensors", of
            an older version, or the name of a model of the package.

    Returns:
        The model on the CPU, without the parts that it was trained without.

    Raises:
        OSError: a file is missing.
        ValueError: there is no such model, its run has made no checkpoint, or it is
            damaged.
    """
    path, folder = Path(name), None
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
            f"{name} is neither the folder of a run or of a model, nor a .safetensors "
            f"file, nor a model of the package: {', '.join(pretrained_names())}"
        )
    model, vocabulary, manifest = checkpoint
    if vocabulary is None:
        raise RunError(f"{name} has no vocabulary, so no text can be read")
    settings = None
    if (asked := manifest.get("settings")) is not None:
        settings = RunSettings.from_json(asked)
        ablate(model, *settings.without)
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
    vocabulary, size = run_vocabulary(settings, folder.path)
    model = build_model(settings, vocab_size=size, pad_id=vocabulary.pad_id)
    load_state(saved[-1], model, build_optimizer(settings, model))
    ablate(model, *settings.without)
    warnings.warn(
        f"the run in {name} is not finished: this is its newest checkpoint, "
        f"{saved[-1].name}; {go_on}",
        stacklevel=2,
    )
    model.eval()
    return Trained(name, model, vocabulary, {}, settings, folder)

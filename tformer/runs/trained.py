"""A trained model by what a user calls it: a run, a file, or one of the package."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tformer.data.vocabulary import Vocabulary
from tformer.pretrained import load_pretrained, pretrained_names
from tformer.runs.ablations import ablate
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.settings import RunSettings
from tformer.runs.state import saved_states
from tformer.training.checkpoint import load_checkpoint


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model, and what is needed to ask it."""

    name: str
    model: Any  # a Transformer, GPT or BERT, in eval()
    vocabulary: Vocabulary
    manifest: dict[str, Any]
    settings: RunSettings | None  # of the run that made it
    folder: RunFolder | None = None  # of that run

    @property
    def task(self) -> str | None:
        """What it was trained for, if a run made it: a name in TASKS, text or pairs."""
        return None if self.settings is None else self.settings.task


def load_trained(name: str | Path) -> Trained:
    """Load a trained model.

    Args:
        name: the folder of a run, a file that ends in ".safetensors", or the name of a
            model of the package. A folder comes before a name.

    Returns:
        The model on the CPU, without the parts that it was trained without.

    Raises:
        RunError: there is no such model, its run is not finished, or it is damaged.
    """
    path, folder = Path(name), None
    try:
        if path.is_dir():
            folder = RunFolder.open(path)
            if not folder.model.exists():
                steps = [s.name for s in saved_states(folder.checkpoints)][-1:]
                so_far = f" (its newest checkpoint is {steps[0]})" if steps else ""
                raise RunError(
                    f"the run in {path} is not finished{so_far}: go on with "
                    f"tformer train --resume {shlex.quote(str(path))}"
                )
            checkpoint = load_checkpoint(folder.model)
        elif path.suffix == ".safetensors":
            checkpoint = load_checkpoint(path)
        elif str(name) in pretrained_names():
            checkpoint = load_pretrained(str(name))
        else:
            raise RunError(
                f"{name} is neither the folder of a run, nor a .safetensors file, nor "
                f"a model of the package: {', '.join(pretrained_names())}"
            )
        model, vocabulary, manifest = checkpoint
        if vocabulary is None:
            raise RunError(f"{name} has no vocabulary, so no text can be read")
        asked = manifest.get("settings")
        settings = None if asked is None else RunSettings.from_json(asked)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(str(error)) from error
    for part in settings.without if settings else ():
        ablate(model, part)
    return Trained(
        name=str(name),
        model=model,
        vocabulary=vocabulary,
        manifest=manifest,
        settings=settings,
        folder=folder,
    )

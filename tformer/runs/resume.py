"""A run that goes on must be the one that was begun: its settings are held to it."""

import json

from tformer.models.families.custom import PARTS
from tformer.runs.checkpoints import read_facts, saved_states
from tformer.runs.folder import RunError, RunFolder, in_words
from tformer.runs.metrics import read_metrics
from tformer.runs.settings import RunSettings
from tformer.training.checkpoint import read_manifest

# What may change while a run goes on: what is written down and measured, how a step is
# computed, as machines differ, and where the data lie, of which there is a hash.
MAY_CHANGE = {"save_every", "keep", "evaluate_every", "evaluate_examples"}
MAY_CHANGE |= {"test_examples", "accumulate", "compile", "files"}


def check_unchanged(folder: RunFolder, settings: RunSettings) -> None:
    """Raise if a run would go on with other settings than it was begun with.

    Else its first steps would be of one training and its last of another, while its
    result and its model's manifest name the second alone.

    Args:
        folder: of the run. Its newest checkpoint has the settings, or, where there is
            none any more, the model. What an older version has written without
            settings is held to nothing; so is a run that has neither yet.
        settings: of config.json, as they are now. Those in `MAY_CHANGE` may have
            changed; so may `steps` with "inverse-sqrt", which does not ask for them.

    Raises:
        RunError: another setting was changed; the message names it. Or the checkpoint
            or the manifest cannot be read. Or there is none, and the metrics show that
            there was: all would be begun anew, over what is left.
    """
    saved = saved_states(folder.checkpoints)
    made = saved[-1] if saved else folder.saved_model()
    if made is None:
        _check_begun_now(folder, settings)
        return
    try:
        was = (read_facts(made) if saved else read_manifest(made)).get("settings")
    except (OSError, ValueError) as error:
        raise RunError(in_words(error)) from error
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
    """Raise if steps were made after which there was a checkpoint, and it is gone.

    As where the disk of the checkpoints is not mounted.
    """
    if not folder.metrics.exists():
        return
    steps = [line["step"] for line in read_metrics(folder.metrics) if "loss" in line]
    if steps and steps[-1] > settings.save_every:
        raise RunError(
            f"{folder.path} has made {steps[-1]} steps, and {folder.checkpoints} has "
            f"nothing to go on from: put that back, or begin another run"
        )

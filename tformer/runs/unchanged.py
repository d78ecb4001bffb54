"""The settings of a run that goes on: they must be those with which it began."""

import dataclasses
import json
from typing import Any

from tformer.runs.folder import RunError, RunFolder
from tformer.runs.metrics import read_metrics
from tformer.runs.settings import RunSettings
from tformer.runs.state import read_facts, saved_states
from tformer.training.checkpoint import read_manifest

MAY_CHANGE = {
    # What is written down and measured, and how often.
    *("save_every", "keep", "evaluate_every", "evaluate_examples", "test_examples"),
    # How a step is computed: another machine may have less memory, or no compiler.
    *("accumulate", "compile"),
    # Where the data lie: a hash in the checkpoint tells whether they are the same.
    "files",
}


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
    if saved:
        made, was = saved[-1].name, read_facts(saved[-1]).get("settings")
    elif folder.model.exists():
        made, was = folder.model.name, _settings_of_the_model(folder)
    else:
        _check_begun_now(folder, settings)
        return
    if not isinstance(was, dict):
        return
    now = json.loads(json.dumps(dataclasses.asdict(settings)))
    fixed = now.keys() - MAY_CHANGE
    if settings.schedule == "inverse-sqrt":
        fixed -= {"steps"}
    for name in sorted(fixed & was.keys()):
        if now[name] != was[name]:
            raise RunError(
                f"{folder.config} has {name} {json.dumps(now[name])}, but "
                f"{made} was made with {json.dumps(was[name])}: a run goes "
                "on as it began. Put it back, or begin another run"
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


def _settings_of_the_model(folder: RunFolder) -> Any:
    try:
        return read_manifest(folder.model).get("settings")
    except (OSError, ValueError) as error:
        raise RunError(str(error)) from error

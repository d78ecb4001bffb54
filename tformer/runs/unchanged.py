"""The settings of a run that goes on: they must be those with which it began."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from tformer.runs.folder import RunError, RunFolder
from tformer.runs.settings import RunSettings
from tformer.runs.state import read_facts

MAY_CHANGE = {
    # What is written down and measured, and how often.
    *("save_every", "keep", "evaluate_every", "evaluate_examples", "test_examples"),
    # How a step is computed: another machine may have less memory, or no compiler.
    *("accumulate", "compile"),
    # Where the data lie: a hash in the checkpoint tells whether they are the same.
    "files",
}


def check_unchanged(folder: RunFolder, checkpoint: Path, settings: RunSettings) -> None:
    """Raise if a run would go on with other settings than its checkpoint was made with.

    Else its first steps would be of one training and its last of another, while its
    result and its model's manifest name the second alone.

    Args:
        folder: of the run.
        checkpoint: from which it goes on. One of an older version, which kept no
            settings, is held to nothing.
        settings: of config.json, as they are now. Those in `MAY_CHANGE` may have
            changed; so may `steps` with "inverse-sqrt", which does not ask for them.

    Raises:
        RunError: another setting was changed; the message names it. Or the checkpoint
            cannot be read.
    """
    was: Any = read_facts(checkpoint).get("settings")
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
                f"{checkpoint.name} was made with {json.dumps(was[name])}: a run goes "
                "on as it began. Put it back, or begin another run"
            )

"""Take a model into the package from its run: `python -m tformer.pretrained RUN`.

`make model` makes the run first: `tformer train dates --out runs/dates`.
"""

import argparse
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tformer.runs.folder import RunError, read_own_json
from tformer.runs.metrics import read_metrics
from tformer.runs.trained import load_trained
from tformer.training.checkpoint import save_checkpoint


def keep(run: Path, folder: Path) -> dict[str, Any]:
    """Write the model of a finished run under the name of its task.

    Args:
        run: the folder of the run.
        folder: where to write, such as that of this package.

    Returns:
        The manifest: the model's config and vocabulary, and of the run its settings,
        its result and what it measured on the way.

    Raises:
        RunError: there is no such run, or it is not finished.
    """
    trained = load_trained(run)
    if trained.settings is None or trained.folder is None:
        raise RunError(f"{run} is not the folder of a run")
    lines = read_metrics(trained.folder.metrics)
    facts = {
        "settings": trained.manifest["settings"],
        "result": read_own_json(trained.folder.result),
        "validation": [line for line in lines if "validation_loss" in line],
        "babel": version("babel"),
    }
    return save_checkpoint(
        folder / f"{trained.settings.task}.safetensors",
        trained.model,
        vocabulary=trained.vocabulary,
        facts=facts,
    )


def main() -> None:
    """Read the command line, and keep the model."""
    parser = argparse.ArgumentParser(
        prog="python -m tformer.pretrained",
        description="Take the model of a run into the package.",
    )
    parser.add_argument("run", type=Path, help="the folder of a finished run")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    try:
        manifest = keep(options.run, options.out)
    except RunError as error:
        sys.exit(f"error: {error}")
    right = manifest["result"]["test_exact_match"]
    sys.stdout.write(f"{manifest['weights']}: exact match {100 * right:.2f} %\n")


if __name__ == "__main__":
    main()

"""Trained models that come with the package, and the command that trains them again.

`python -m tformer.pretrained` is that command. A model is a folder of config.json and
model.safetensors; no code of a model lives here.
"""

from importlib.resources import as_file, files

import torch

from tformer.training.checkpoint import Checkpoint, load_checkpoint


def load_pretrained(name: str) -> Checkpoint:
    """Load a trained model of the package.

    The files hold float16, half the size; the model computes in float32.

    Args:
        name: "dates", which reads dates with the month in words and writes ISO 8601:
            see `tformer.tasks.dates`. "dates-as-typed" reads numbers and ordinals as
            well: see `tformer.tasks.typed_dates`. "dates-as-typed-without-mask" was
            trained for the same with the future in sight;
            `tformer.runs.model.load_trained` takes the mask out of it again, and
            this function does not. "shakespeare" is a GPT that writes on from a text:
            its manifest has the file that it learned, by name, length and sha256.

    Returns:
        The model in `eval()`, its vocabulary, and the manifest, which says how it was
        trained and how well it does.

    Raises:
        ImportError: safetensors is not installed.
        ValueError: there is no model of this name.
    """
    if name not in (names := pretrained_names()):
        raise ValueError(f"name ({name!r}) must be one of {', '.join(names)}")
    with as_file(files(__name__)) as path:
        return load_checkpoint(path / name, dtype=torch.float32)


def pretrained_names() -> list[str]:
    """List the trained models of the package."""
    found = files(__name__).iterdir()
    return sorted(x.name for x in found if x.joinpath("config.json").is_file())

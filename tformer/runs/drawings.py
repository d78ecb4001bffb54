"""Drawings of a run, in its folder: the loss, the learning rate, the attention."""

import warnings
from collections.abc import Callable
from typing import Any

from tformer.checks import require
from tformer.drawing import save_figure
from tformer.runs.attention import draw_attention
from tformer.runs.batches import RunData
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.metrics import read_metrics
from tformer.runs.settings import RunSettings
from tformer.runs.trained import Trained


def draw_curves(folder: RunFolder) -> None:
    """Draw loss.svg and learning_rate.svg from the metrics of a run.

    Raises:
        ImportError: matplotlib is not installed.
    """
    lines = read_metrics(folder.metrics)
    steps = [line for line in lines if "loss" in line]
    looks = [line for line in lines if "validation_loss" in line]
    for name in ("loss", "learning_rate"):
        figure = require("matplotlib.figure").Figure(
            figsize=(7, 4), layout="constrained"
        )
        ax = figure.add_subplot()
        at = [line["step"] for line in steps]
        ax.plot(at, [line[name] for line in steps], lw=0.8, label="training")
        ax.set(xlabel="step", ylabel=name.replace("_", " "))
        if name == "loss":
            at = [line["step"] for line in looks]
            told = [line["validation_loss"] for line in looks]
            ax.plot(at, told, lw=2, label="validation")
            ax.set(ylabel="loss, nats a token", yscale="log")
            ax.legend()
        save_figure(figure, folder.path / f"{name}.svg")


def draw_result(
    folder: RunFolder, data: RunData, model: Any, settings: RunSettings
) -> None:
    """Draw the curves, and attention.svg: of a test source, or the first words.

    Args:
        folder: of the run.
        data: of the run.
        model: that it has trained, in eval().
        settings: of the run.
    """
    vocabulary = data.vocabulary
    if data.test_pairs:
        text = data.test_pairs[0][0]
    else:
        start = data.test[0].inputs[0][0, : min(24, settings.max_len)]
        text = vocabulary.decode(i for i in start.tolist() if i < len(vocabulary))
    trained = Trained(settings.task, model, vocabulary, {}, settings)

    def attention() -> None:
        try:
            draw_attention(trained, text, folder.path / "attention.svg")
        except RunError as error:
            if isinstance(error.__cause__, OSError):  # and not too long a text
                raise

    draw_if_possible(lambda: draw_curves(folder))
    draw_if_possible(attention)


def draw_if_possible(draw: Callable[[], object]) -> None:
    """Draw, and warn if that fails: no drawing is worth a trained model."""
    try:
        draw()
    except Exception as error:  # noqa: BLE001  # whatever it is
        warnings.warn(f"a drawing was left out: {error}", stacklevel=1)

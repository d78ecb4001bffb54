"""Drawings of a run, in its folder: the loss, the learning rate, the attention."""

from typing import TYPE_CHECKING, Any

from tformer.checks import require
from tformer.drawing import save_figure
from tformer.runs.folder import RunFolder
from tformer.runs.metrics import read_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curves(folder: RunFolder) -> None:
    """Draw loss.svg and learning_rate.svg from the metrics of a run.

    Args:
        folder: of the run.

    Raises:
        ImportError: matplotlib is not installed.
    """
    lines = read_metrics(folder.metrics)
    steps = [line for line in lines if "loss" in line]
    looks = [line for line in lines if "validation_loss" in line]

    def loss(ax: "Axes") -> None:
        ax.plot(*_columns(steps, "loss"), lw=0.6, alpha=0.6, label="training")
        ax.plot(*_columns(looks, "validation_loss"), lw=2, label="validation")
        ax.set(xlabel="step", ylabel="loss, nats a token", yscale="log")
        ax.legend()

    def learning_rate(ax: "Axes") -> None:
        ax.plot(*_columns(steps, "learning_rate"))
        ax.set(xlabel="step", ylabel="learning rate")

    for draw in (loss, learning_rate):
        figure = require("matplotlib.figure").Figure(
            figsize=(7, 4), layout="constrained"
        )
        draw(figure.add_subplot())
        save_figure(figure, folder.path / f"{draw.__name__}.svg")


def _columns(lines: list[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    return [line["step"] for line in lines], [line[name] for line in lines]

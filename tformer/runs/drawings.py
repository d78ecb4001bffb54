"""Drawings of a run, in its folder: the loss, the learning rate, the attention."""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tformer.checks import require
from tformer.drawing import save_figure
from tformer.runs.attention import draw_attention
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.metrics import read_metrics
from tformer.runs.run_data import RunData
from tformer.runs.settings import RunSettings
from tformer.runs.trained import Trained

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
    trained = Trained(
        name=settings.task,
        model=model,
        vocabulary=vocabulary,
        manifest={},
        settings=settings,
    )

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


def _columns(lines: list[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    return [line["step"] for line in lines], [line[name] for line in lines]

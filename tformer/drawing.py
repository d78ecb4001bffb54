"""Drawings of what a model attends to. Needs matplotlib.

T queries · S keys
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tformer.checks import require
from tformer.files import beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A middle blue: three times as bright as a dark page, a third as bright as a white one.
COLOUR = "#4a7fd4"
# Control characters have no place in SVG, and few fonts have their pictures.
UNSEEN = {i: f"\\x{i:02x}" for i in (*range(32), *range(127, 160))}
UNSEEN |= {ord(" "): "␣", 0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}


def attention_map(
    weights: Tensor,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw one head's weights: a row for each query, a column for each key.

    A weight of 0 is transparent and a weight of 1 full blue, so that the picture is
    right on light and on dark pages, and two pictures can be compared.

    Args:
        weights: float (T, S), each in [0, 1]; one head of one sequence.
        query_tokens: T labels of the rows; a space is drawn as ␣.
        key_tokens: S labels of the columns.
        ax: the axes to draw in; those of a new figure if not given.
        title: above the picture.

    Returns:
        The axes.

    Raises:
        ImportError: matplotlib is not installed.
        TypeError: the weights are not floating.
        ValueError: the weights are not (T, S), or not within [0, 1].
    """
    T, S = len(query_tokens), len(key_tokens)
    if not weights.is_floating_point():
        raise TypeError(f"weights must be floating, not {weights.dtype}")
    if weights.shape != (T, S) or not weights.numel():
        raise ValueError(
            f"weights must be (T, S) = ({T}, {S}), as many as there are query_tokens "
            f"and key_tokens, not {tuple(weights.shape)}"
        )
    weights = weights.detach().to("cpu", torch.float32)
    low, high = weights.min().item(), weights.max().item()
    if not (low >= 0 and high <= 1 + 1e-3):  # NaN fails too
        raise ValueError(f"weights must be in [0, 1], but reach from {low} to {high}")

    colours = require("matplotlib.colors")
    transparent_to_full = colours.LinearSegmentedColormap.from_list(
        "attention", [colours.to_rgba(COLOUR, 0.0), colours.to_rgba(COLOUR, 1.0)]
    )
    if ax is None:
        size = (1.0 + 0.28 * S, 1.0 + 0.28 * T)
        pyplot = require("matplotlib.pyplot")
        ax = pyplot.figure(figsize=size, layout="constrained").add_subplot()
    ax.patch.set_alpha(0.0)  # the page shows through
    ax.imshow(weights.numpy(), cmap=transparent_to_full, vmin=0.0, vmax=1.0)
    ax.set_xticks(range(S), [token.translate(UNSEEN) for token in key_tokens])
    ax.set_yticks(range(T), [token.translate(UNSEEN) for token in query_tokens])
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        label.set_parse_math(False)  # a $ is a token too, and no formula
    for label in ax.get_xticklabels():
        if len(label.get_text()) > 1:  # beside each other they would overlap
            label.set_rotation(90)
    if title is not None:
        ax.set_title(title)
    return ax


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a drawing beside the one that is there, and put it in its place.

    Raises:
        OSError: it cannot be written; what was there is as it was.
    """
    new = beside(path)
    new.unlink(missing_ok=True)  # a link that lies there is not followed
    try:
        figure.savefig(new, format=path.suffix[1:], dpi=150)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)

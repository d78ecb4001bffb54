"""Drawings of what a model attends to. Needs matplotlib.

T queries · S keys
"""

# --8<-- [start:imports]
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tformer.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --8<-- [end:imports]

# --8<-- [start:attention_map]
# A middle blue: three times as bright as a dark page, a third as bright as a white one.
COLOUR = "#4a7fd4"


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
    ax.set_xticks(range(S), [_visible(token) for token in key_tokens])
    ax.set_yticks(range(T), [_visible(token) for token in query_tokens])
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    for label in ax.get_xticklabels():
        if len(label.get_text()) > 1:  # beside each other they would overlap
            label.set_rotation(90)
    if title is not None:
        ax.set_title(title)
    return ax


def _visible(token: str) -> str:
    return token.replace(" ", "␣")
    # --8<-- [end:attention_map]

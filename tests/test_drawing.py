"""The attention map shows the weights that it was given, where they belong."""

import itertools
import sys

import matplotlib
import numpy as np
import pytest
import torch

matplotlib.use("agg")
import matplotlib.pyplot as plt

from tformer.drawing import attention_map

WEIGHTS = torch.tensor([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_rows_are_queries_and_columns_are_keys():
    ax = attention_map(WEIGHTS, ["1", "9"], ["a", " ", "c"], title="head 3")
    (image,) = ax.get_images()
    np.testing.assert_array_equal(image.get_array(), WEIGHTS.numpy())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "9"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "␣", "c"]
    assert ax.get_title() == "head 3"
    assert ax.yaxis_inverted()  # the first query is on top


def test_nothing_is_painted_where_nothing_is_attended_to():
    """White or black paper would show: the ground and a weight of 0 are transparent."""
    ax = attention_map(WEIGHTS / 2, ["1", "9"], ["a", "b", "c"])
    assert ax.patch.get_alpha() == 0
    (image,) = ax.get_images()
    alpha = image.to_rgba(image.get_array())[..., 3]
    np.testing.assert_allclose(alpha, WEIGHTS.numpy() / 2, atol=0.01)


def test_long_names_of_columns_do_not_overlap():
    ax = attention_map(WEIGHTS, ["a start", "9"], ["the", " ", "⟨end⟩"])
    assert [label.get_rotation() for label in ax.get_xticklabels()] == [90, 0, 90]
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))
    assert all(box.y0 > ax.get_window_extent().y1 for box in boxes)
    assert [label.get_rotation() for label in ax.get_yticklabels()] == [0, 0]


def luminance(colour) -> float:
    c = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("page", ["#ffffff", "#1e2129"])
def test_a_full_weight_stands_out_on_light_and_on_dark_pages(page):
    ax = attention_map(torch.ones(1, 1), ["a"], ["b"])
    (image,) = ax.get_images()
    full = luminance(image.to_rgba(image.get_array())[0, 0, :3])
    darker, brighter = sorted((full, luminance(page)))
    assert (brighter + 0.05) / (darker + 0.05) > 3  # of WCAG 2.2, 1.4.11


def test_it_draws_into_given_axes_detaches_and_takes_any_dtype():
    _, (left, right) = plt.subplots(1, 2)
    weights = WEIGHTS.bfloat16().requires_grad_()
    assert attention_map(weights, ["1", "9"], ["a", "b", "c"], ax=right) is right
    np.testing.assert_array_equal(right.get_images()[0].get_array(), WEIGHTS.numpy())
    assert not left.get_images()
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (WEIGHTS.T, ValueError, r"\(T, S\) = \(2, 3\), .*not \(3, 2\)"),
        (WEIGHTS.int(), TypeError, "weights must be floating"),
        (WEIGHTS * 8, ValueError, r"reach from 0.0 to 8.0"),
        (WEIGHTS * torch.nan, ValueError, "nan"),
    ],
)
def test_bad_input_is_named(weights, error, message):
    with pytest.raises(error, match=message):
        attention_map(weights, ["1", "9"], ["a", "b", "c"])


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError, match=r"matplotlib: pip install 'tformer\[train\]'"
    ):
        attention_map(WEIGHTS, ["1", "9"], ["a", "b", "c"])

"""The piece on 1/√d_k shows the numbers of the chapter on attention."""

from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import Page

from live_driving import figure, number, ready, same, shown, slide, table
from live_faults import plant
from live_serving import LiveSite
from tformer import attention_weights

Open = Callable[..., Page]


def wrong_widths(page: Page) -> list[str]:
    """Compare the standard deviations and weights with torch's, at three widths."""
    wrong = []
    for power in (2, 6, 10):
        slide(page, "width of queries and keys, d_k", power)
        width = 2**power
        assert number(shown(page, "width of queries and keys, d_k")) == width
        torch.manual_seed(0)
        q, k = torch.randn(2, 1, 1, 64, width, dtype=torch.float64)
        rows = table(page, "Standard deviation of the scores")[1:]
        for column, scale in ((1, 1.0), (2, width**-0.5)):
            weights = attention_weights(q, k, scale=scale)[0, 0]
            largest = weights.sort(descending=True).values.mean(0)[:10]
            std = (q @ k.transpose(-2, -1) * scale).std()
            expected = [std, *largest]
            wrong += [
                f"{width}, {row[0]}: {row[column]}, not {float(x):.4f}"
                for row, x in zip(rows, expected, strict=True)
                if not same(row[column], float(x))
            ]
            panel = page.locator(".width-panel").nth(column - 1)
            first, second = panel.locator("p > b").all_inner_texts()
            if not (same(first, float(std)) and same(second, float(largest[0]))):
                wrong.append(f"{width}: {first}, {second} in the panel")
    return wrong


@pytest.mark.parametrize("live_page", ["chromium", "firefox"], indirect=True)
def test_wider_vectors_get_larger_scores(live_page: Open) -> None:
    page = ready(live_page(figure("width")))
    assert not wrong_widths(page)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (
            "pieces/width.js",
            "[1, 1 / Math.sqrt(width)]",
            "[1, 1.01 / Math.sqrt(width)]",
        ),
        ("pieces/width.js", "(COUNT + k) * width", "(COUNT + k) * width - 1"),
        ("ui/torch-random.js", "1812433253", "1812433254"),
    ],
)
def test_a_planted_fault_in_the_width_is_caught(
    live_page: Open, live_site: LiveSite, file: str, old: str, new: str
) -> None:
    plant(live_site, file, old, new)
    assert wrong_widths(ready(live_page(figure("width"))))


def test_random_numbers_are_torchs(live_page: Open) -> None:
    page = live_page()
    module = "(await import('/live/ui/torch-random.js'))"
    code = f"async (seed) => [...{module}.torchNormal(seed, 96)]"
    for seed in (0, 1, 12345):
        torch.manual_seed(seed)
        theirs = torch.randn(96, dtype=torch.float64)
        ours = torch.tensor(page.evaluate(code, seed), dtype=torch.float64)
        assert torch.allclose(ours, theirs, rtol=1e-13, atol=1e-15)

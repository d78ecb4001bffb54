"""The piece on 1/√d_k shows the numbers of the chapter on attention."""

import torch
from playwright.sync_api import Page

import live_driving as live
from tformer import attention_weights

PIECE = "width"
SLIDER = "width of queries and keys, d_k"


def check(page: Page) -> None:
    """Compare the standard deviations and weights with torch's, at three widths."""
    for power in (2, 6, 10):
        live.slide(page, SLIDER, power)
        width = 2**power
        assert live.number(live.shown(page, SLIDER)) == width
        torch.manual_seed(0)
        q, k = torch.randn(2, 1, 1, 64, width, dtype=torch.float64)
        rows = live.table(page, "Standard deviation of the scores")[1:]
        for column, scale in ((1, 1.0), (2, width**-0.5)):
            weights = attention_weights(q, k, scale=scale)[0, 0]
            largest = weights.sort(descending=True).values.mean(0)[:10]
            expected = [(q @ k.mT * scale).std().item(), *largest.tolist()]
            for row, value in zip(rows, expected, strict=True):
                assert live.same(row[column], value)
            panel = page.locator(".width-panel").nth(column - 1)
            for text, value in zip(
                panel.locator("p > b").all_inner_texts(), expected[:2], strict=True
            ):
                assert live.same(text, value)


@live.IN_BOTH
def test_wider_vectors_get_larger_scores(page):
    check(page)


test_a_planted_fault_is_seen = live.planted(
    "width",
    check,
    ("pieces/width.js", "1 / Math.sqrt(width)]", "1.01 / Math.sqrt(width)]"),
    ("pieces/width.js", "(COUNT + k) * width", "(COUNT + k) * width - 1"),
    ("ui/torch-random.js", "1812433253", "1812433254"),
)

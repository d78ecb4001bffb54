"""The cover: the causal mask, in greys that paper has too."""

import io
import textwrap

from PIL import Image, ImageDraw

from engine.run.fonts import font
from engine.run.style import INK, PAPER

SIZE, MARGIN, CELLS = (1200, 1600), 100, 8
BLUE, SOFT = "#0b5c8a", "#59616b"


def png(title: str, about: str, below: str) -> bytes:
    """Draw a cover with a title, a sentence and a line at its foot."""
    image = Image.new("RGB", SIZE, PAPER[0])
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 28, SIZE[1]), BLUE)
    draw.text((MARGIN, 90), title, BLUE, font(600, 150))
    for row, text in enumerate(textwrap.wrap(about, 40)):
        draw.text((MARGIN, 300 + 64 * row), text, SOFT, font(400, 50))
    side = (SIZE[0] - 2 * MARGIN) // (CELLS + 2)
    for query in range(CELLS):
        for key in range(CELLS):
            x, y = MARGIN + key * side, 600 + query * side
            cell = (x, y, x + side - 10, y + side - 10)
            seen = BLUE if key == query else "#7fa8c4"
            draw.rectangle(cell, seen if key <= query else None, "#9aa3ad", 2)
    draw.text((MARGIN, SIZE[1] - 120), below, INK[0], font(600, 44))
    file = io.BytesIO()
    image.quantize(32).save(file, "PNG", optimize=True)
    return file.getvalue()

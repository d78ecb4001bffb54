"""Find labels of a figure that lie on each other, or on a line or an arrow."""

import itertools
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Affine2D, BboxBase

Corners = np.ndarray[Any, np.dtype[np.float64]]  # (5, 2), the first twice
FAINT = 0.3  # a line of less alpha lets a label be read
# Those of a label, and how much smaller it counts, in pixels at 100 an inch, so that
# what only touches its edge does not.
CORNERS = [[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]
EDGE = 0.5


def touching_labels(figure: Figure) -> list[str]:
    """Draw a figure into memory; say which of its labels cannot be read for others.

    What is compared is the ink of a line of text, not the room around it. A label on a
    box of its own may lie on a line.
    """
    drawn: list[Text] = []
    draw = Text.draw

    def noting(text: Text, renderer: Any) -> None:
        """Note what is drawn: many texts exist that are not, as ticks out of view."""
        if text.get_visible() and text.get_text().strip() and text.get_alpha() != 0:
            drawn.append(text)
        draw(text, renderer)

    with mock.patch.object(Text, "draw", noting):
        figure.canvas.draw()
    boxes = ((text, _box(text, figure.dpi)) for text in dict.fromkeys(drawn))
    texts = [(text, box) for text, box in boxes if box is not None]
    found = [
        f"the labels {_named(a)} and {_named(b)} overlap"
        for (a, x), (b, y) in itertools.combinations(texts, 2)
        if Path(x).intersects_path(Path(y))
        if a.get_text() != b.get_text() or abs(x - y).max() >= 1
    ]
    found += [
        f"the label {_named(text)} lies on {what}"
        for what, path, owner, clip in _strokes(figure)
        for text, box in texts
        if owner is not text and not text.get_bbox_patch()
        if clip is None or clip.contains(*box[:4].mean(0))
        if _crosses(path, box)
    ]
    return list(dict.fromkeys(found))


def _box(text: Text, dpi: float) -> Corners | None:
    """Return the corners of a text's ink in pixels, also of a turned text."""
    angle, around = text.get_rotation(), text.get_window_extent()
    clip = text.get_clip_box() if text.get_clip_on() else None
    if clip is not None and not clip.overlaps(around):
        return None
    text.set_rotation(0)
    flat = text.get_window_extent()
    text.set_rotation(angle)
    empty = 0.14 * float(text.get_fontsize()) * dpi / 72  # above and below the ink
    width, height = flat.width / 2 - EDGE, max(flat.height / 2 - empty, 1) - EDGE
    turn = Affine2D().scale(width, height).rotate_deg(angle)
    centre = (around.x0 + around.x1) / 2, (around.y0 + around.y1) / 2
    return np.asarray(turn.translate(*centre).transform(CORNERS))


def _crosses(path: Path, box: Corners) -> bool:
    """Whether a line runs through a label, and not only along its edge."""
    centre = box[:4].mean(0)
    label = Path(centre + (box - centre) * 0.8)
    inside = label.contains_points(path.vertices).any()
    return bool(inside or path.intersects_path(label, filled=False))


def _strokes(
    figure: Figure,
) -> Iterator[tuple[str, Path, Text | None, BboxBase | None]]:
    """Yield the lines and arrows that are drawn; neither axes nor grids.

    With each comes the text whose arrow it is, and the box out of which it is not seen.
    """
    for text in figure.findobj(Annotation):
        if isinstance(text, Annotation) and text.arrow_patch is not None:
            yield "an arrow", _in_pixels(text.arrow_patch), text, None
    for arrow in figure.findobj(FancyArrowPatch):
        if arrow.get_visible():
            yield "an arrow", _in_pixels(arrow), None, None
    for axes in figure.axes:
        for line in axes.lines:
            drawn = str(line.get_linestyle()).strip() not in ("", "None", "none")
            if line.get_visible() and drawn and (line.get_alpha() or 1) > FAINT:
                clip = axes.bbox if line.get_clip_on() else None
                yield "a line", _in_pixels(line), None, clip


def _in_pixels(artist: Any) -> Path:
    path = artist.get_transform().transform_path(artist.get_path())
    path = path.cleaned(curves=False, remove_nans=True)
    # What closes a filled head, or ends a path, has no place: its vertex is (0, 0).
    placed = (path.codes == Path.MOVETO) | (path.codes == Path.LINETO)
    return Path(path.vertices[placed], path.codes[placed])


def _named(text: Text) -> str:
    return f"“{' '.join(text.get_text().split())}”"

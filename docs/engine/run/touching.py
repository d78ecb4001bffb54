"""Find labels of a figure that lie on each other, or on a line or an arrow."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.text import Text

FAINT = 0.3  # a line of less alpha lets a label be read
LEAST = 1.0  # pixels by which two labels must overlap, at 100 pixels an inch


def touching_labels(figure: "Figure") -> list[str]:
    """Draw a figure into memory; say which of its labels cannot be read for others.

    What is compared is the ink of a line of text, not the room around it. A label on a
    box of its own may lie on a line.
    """
    with _noting() as drawn:
        figure.canvas.draw()
    all_corners = ((text, _corners(text)) for text in dict.fromkeys(drawn))
    texts = [(text, corners) for text, corners in all_corners if corners is not None]
    found = [
        f"the labels {_named(a)} and {_named(b)} overlap"
        for (a, x), (b, y) in itertools.combinations(texts, 2)
        if _overlap(x, y) and not (a.get_text() == b.get_text() and _same(x, y))
    ]
    found += [
        f"the label {_named(text)} lies on {stroke.what}"
        for stroke in _strokes(figure)
        for text, corners in texts
        if stroke.owner is not text and not text.get_bbox_patch()
        if stroke.crosses(corners)
    ]
    return list(dict.fromkeys(found))


@contextmanager
def _noting() -> Iterator[list[Any]]:
    """Note each text that is drawn: many exist that are not, as ticks out of view."""
    from matplotlib.text import Text

    drawn: list[Any] = []
    draw: Any = Text.draw

    def noting(text: Any, renderer: Any) -> None:
        if text.get_visible() and text.get_text().strip() and text.get_alpha() != 0:
            drawn.append(text)
        draw(text, renderer)

    setattr(Text, "draw", noting)  # noqa: B010
    try:
        yield drawn
    finally:
        setattr(Text, "draw", draw)  # noqa: B010


def _corners(text: "Text") -> "np.ndarray[Any, Any] | None":
    """Return the four corners of a text's ink in pixels, also of a turned text."""
    import numpy as np

    angle = text.get_rotation()
    around = text.get_window_extent()
    centre = np.array([(around.x0 + around.x1) / 2, (around.y0 + around.y1) / 2])
    text.set_rotation(0)
    flat = text.get_window_extent()
    text.set_rotation(angle)
    figure = text.get_figure(root=True)
    if figure is None:
        return None
    size = float(text.get_fontsize()) * figure.dpi / 72
    width, height = flat.width / 2, max(flat.height / 2 - 0.14 * size, 1)
    turn = np.deg2rad(angle)
    turned = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    corners: np.ndarray[Any, Any] = centre + signs * [width, height] @ turned
    clip = text.get_clip_box() if text.get_clip_on() else None
    if clip is not None and not clip.overlaps(around):
        return None
    return corners


def _overlap(a: "np.ndarray[Any, Any]", b: "np.ndarray[Any, Any]") -> bool:
    """Whether two rectangles overlap: no edge of either separates them."""
    for edge in (a[1] - a[0], a[2] - a[1], b[1] - b[0], b[2] - b[1]):
        length = (edge @ edge) ** 0.5
        if length:
            x, y = a @ edge / length, b @ edge / length
            if min(x.max(), y.max()) - max(x.min(), y.min()) < LEAST:
                return False
    return True


def _same(a: "np.ndarray[Any, Any]", b: "np.ndarray[Any, Any]") -> bool:
    return bool(abs(a - b).max() < LEAST)


@dataclass(frozen=True)
class _Stroke:
    """A line or an arrow, in pixels."""

    what: str
    path: Any
    owner: "Text | None" = None  # whose arrow it is
    clip: Any = None  # the box out of which nothing is drawn

    def crosses(self, corners: "np.ndarray[Any, Any]") -> bool:
        """Whether it runs through a label, and does not only touch its edge."""
        from matplotlib.path import Path

        centre = corners.mean(0)
        if self.clip is not None and not self.clip.contains(*centre):
            return False
        inner = centre + (corners - centre) * 0.8
        label = Path([*inner, inner[0]])
        if self.path.intersects_path(label, filled=False):
            return True
        return bool(label.contains_points(self.path.vertices).any())


def _strokes(figure: "Figure") -> Iterator[_Stroke]:
    """Yield the lines and arrows that are drawn; neither axes nor grids."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.text import Annotation

    for text in figure.findobj(Annotation):
        if isinstance(text, Annotation) and text.arrow_patch is not None:
            yield _Stroke("an arrow", _in_pixels(text.arrow_patch), text)
    for arrow in figure.findobj(FancyArrowPatch):
        if arrow.get_visible():
            yield _Stroke("an arrow", _in_pixels(arrow))
    for axes in figure.axes:
        for line in axes.lines:
            assert isinstance(line, Line2D)
            drawn = str(line.get_linestyle()).strip() not in ("", "None", "none")
            if line.get_visible() and drawn and (line.get_alpha() or 1) > FAINT:
                clip = axes.bbox if line.get_clip_on() else None
                yield _Stroke("a line", _in_pixels(line), None, clip)


def _in_pixels(artist: Any) -> Any:
    from matplotlib.path import Path

    path = artist.get_transform().transform_path(artist.get_path())
    path = path.cleaned(curves=False, remove_nans=True)
    # What closes a filled head, or ends a path, has no place: its vertex is (0, 0).
    placed = (path.codes == Path.MOVETO) | (path.codes == Path.LINETO)
    return Path(path.vertices[placed], path.codes[placed])


def _named(text: "Text") -> str:
    return f"“{' '.join(text.get_text().split())}”"

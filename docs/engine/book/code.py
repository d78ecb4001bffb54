"""Code for a narrow page: each line wraps by itself, and hangs.

Readers know few rules of CSS. So a line is a block whose second row starts further
in, and of the colours there remain bold keywords and slanted comments.
"""

from collections.abc import Iterator

from bs4 import Tag
from bs4.element import NavigableString

from engine.book.folds import new

# By the classes of Pygments.
_BOLD = {"k", "kn", "kd", "ow", "nf", "nc", "nd"}
_SLANTED = {"c", "c1", "sd"}
_FOLDED = "fold-rest"  # of a docstring, below its first line
STEP, DEEPEST = 4, 16  # signs that a wrapped row hangs behind the start of its line
SIGN = 0.6  # the width of a sign, in em, of nearly all fonts for code


def rules() -> str:
    """Return the CSS of the lines."""
    columns = range(STEP, DEEPEST + STEP + 1)
    return "\n".join(
        f".in{n}{{padding-left:{SIGN * n:.1f}em;text-indent:-{SIGN * n:.1f}em}}"
        for n in columns
    )


def wrap(body: Tag) -> None:
    """Set the code of a chapter."""
    for block in [x for pre in body("pre") for x in pre("code", recursive=False)]:
        lines: list[list[tuple[str, str]]] = [[]]
        for text, mark in _pieces(block, ""):
            first, *others = text.split("\n")
            lines[-1].append((first, mark))
            lines += [[(other, mark)] for other in others]
        if lines and not any(text for text, _ in lines[-1]):
            lines.pop()  # what ends with a line end
        block.clear()
        block.extend(_line(pieces) for pieces in lines)
        for empty in block.parent("span", recursive=False) if block.parent else ():
            empty.decompose()


def _pieces(tag: Tag, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of highlighted code, and as what each is set."""
    for child in tag.children:
        if isinstance(child, Tag):
            classes = {*child.get_attribute_list("class")}
            if _FOLDED in classes:
                continue
            own = "b" if classes & _BOLD else "i" if classes & _SLANTED else mark
            yield from _pieces(child, own)
        elif isinstance(child, NavigableString):
            yield str(child), mark


def _line(pieces: list[tuple[str, str]]) -> Tag:
    text = "".join(text for text, _ in pieces)
    indent = min(len(text) - len(text.lstrip(" ")), DEEPEST)
    line = new("span", class_=f"line in{indent + STEP}")
    for text, mark in pieces:
        if text:
            line.append(new(mark, text) if mark else NavigableString(text))
    line.append("\n")
    return line

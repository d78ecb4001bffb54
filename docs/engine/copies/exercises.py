"""The exercises of a page in its notebooks: to be done in one, solved in the other."""

from typing import TYPE_CHECKING, Any

import nbformat

from engine.pages.exercises import blocks_in, call, places

if TYPE_CHECKING:
    from engine.copies.notebooks import Cell, Ran
    from tformer.check.asked import Exercise

SOLUTIONS = "-solutions"  # behind the name of the notebook that has them
IMPORT = "from tformer.check import check"

_v4: Any = nbformat.v4  # which has no types


class InNotebook:
    """What the exercises of a page bring into a notebook, and keep out of it."""

    def __init__(self, ran: "Ran", *, solved: bool) -> None:
        page = ran.page
        self.left_out: set[int] = set()  # lines of the page
        self.cells: dict[int, Cell] = {}  # by the line in whose place they stand
        self.link = ""  # to the other notebook
        if not ran.asked:
            return
        other = page.name if solved else f"{page.name}{SOLUTIONS}"
        url = page.project.page_url(page.project.docs / "notebooks" / f"{other}.ipynb")
        said = "Without the solutions" if solved else "With the solutions"
        self.link = f"\n\n*{said}: <{url}>*"
        for place in places(page):
            exercise, inside = (
                ran.asked.get(place.number),
                blocks_in(page, place.solution),
            )
            if solved:
                found = ran.results[inside[-1].number].answered if inside else None
                if found:
                    self.cells[inside[-1].fence.end] = _checked(found.code, found.text)
                continue
            self.left_out |= {*place.solution}
            if exercise and exercise.kind != "open":
                at = place.solution.start if place.solution else place.end - 1
                self.cells[at] = _v4.new_code_cell(blank(exercise))


def _checked(code: str, said: str) -> "Cell":
    output = _v4.new_output(
        "execute_result", data={"text/plain": said}, execution_count=1
    )
    cell: Cell = _v4.new_code_cell(f"{IMPORT}\n\n{code}", outputs=[output])
    return cell


def blank(exercise: "Exercise") -> str:
    """Write the cell in which a reader answers; run as it is, it says what is asked."""
    several = exercise.fields if len(exercise.fields) > 1 else ()
    asks = [exercise.asks, *(field.asks for field in several)]
    asks += [
        f"{a}) {x.says}" for a, x in zip("abcdefgh", exercise.options, strict=False)
    ]
    given = ", ".join("..." for _ in several) or "..."
    return "\n".join(
        [
            IMPORT,
            "",
            *(f"# {line}" for line in asks if line),
            f"{exercise.name} = {given}",
            "",
            call(exercise, exercise.name),
        ]
    )

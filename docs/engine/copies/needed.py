"""What a block of a page needs of the blocks above it, statement by statement.

A statement is needed if it binds a name that is read later, or changes what such a name
stands for: `table[0] = 1`, `np.set_printoptions(precision=4)`. What only prints is not.
"""

import ast
import functools
import sys
from dataclasses import dataclass

from engine.copies.closure import imports_of, names_in
from engine.definitions import first_line
from engine.pages.blocks import Block
from engine.pages.reading import Page

EDITABLE = "editable"  # the class of the fence that readers run and edit in the page


@dataclass(frozen=True)
class _Statement:
    """A statement at the top level of a block."""

    block: Block
    node: ast.stmt
    reads: frozenset[str]
    binds: frozenset[str]

    @property
    def lines(self) -> range:
        """Its lines in the block, counted from 0."""
        return range(first_line(self.node) - 1, self.node.end_lineno or 0)

    def changes(self, name: str) -> bool:
        """Say whether it changes what a name stands for, and binds nothing."""
        match self.node:
            case ast.Expr(ast.Call(ast.Attribute() as target)):
                return _root(target) == name
            case ast.Assign([target]) | ast.AugAssign(target):
                return not self.binds and _root(target) == name
        return False


def _root(node: ast.expr) -> str:
    """Return the name that `name.of[some].thing` begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def editable_block(page: Page) -> Block | None:
    """Return the block of a page that readers run and edit in it."""
    found = (x for x in page.blocks if EDITABLE in x.fence.classes)
    return next(found, None)


def needed(page: Page, block: Block) -> str:
    """Return what a block needs of those above it, in their order and word for word."""
    return "\n\n".join(
        "\n".join(above.lines[n] for n in sorted(lines))
        for above, lines in _lines_above(page, block)
    )


def editable_problems(page: Page) -> list[str]:
    """Return why readers could not run and edit what is said to be editable."""
    marked = [x for x in page.blocks if EDITABLE in x.fence.classes]
    problems = [(x, "is the second of its page") for x in marked[1:]]
    for block in marked:
        if block.output is None or block.left_out is not None:
            problems.append((block, "shows no output below it"))
        elif other := _imported(page, block):
            what = "with what it needs of those above it, imports"
            problems.append((block, f"{what} {other}: only NumPy runs in the page"))
    return [f"{x.fence.opening.origin}: the {EDITABLE} block {y}" for x, y in problems]


def _imported(page: Page, block: Block) -> str:
    """Return a module that is not in the page and that a block needs, or nothing."""
    known = {"numpy", *sys.stdlib_module_names}
    package = page.project.package
    ours = (f"{package}.reference", f"{package}.check")
    for each in _chosen(page, block):
        for found in (x for node in ast.walk(each.node) for x in imports_of(node)):
            if found.package not in known and not found.source.startswith(ours):
                return found.source
    return ""


def _lines_above(page: Page, block: Block) -> list[tuple[Block, set[int]]]:
    found: dict[int, set[int]] = {}
    for each in _chosen(page, block):
        if each.block is not block:
            found.setdefault(each.block.number, set()).update(each.lines)
    return [(page.blocks[number], found[number]) for number in sorted(found)]


def _chosen(page: Page, block: Block) -> list[_Statement]:
    """Return the statements of a block, and those above it that they need."""
    every = [x for above in page.blocks[: block.number + 1] for x in _statements(above)]
    chosen = {n for n, x in enumerate(every) if x.block is block}
    first, todo = min(chosen, default=0), [*chosen]
    while todo:
        reader = todo.pop()
        # A function reads when it is called: in the block, or above it.
        late = isinstance(every[reader].node, ast.FunctionDef | ast.ClassDef)
        start = max(first, reader) if late else reader
        for name in every[reader].reads:
            for number in range(start - 1, -1, -1):
                each = every[number]
                if name in each.binds or each.changes(name):
                    if number not in chosen:
                        chosen.add(number)
                        todo.append(number)
                    if name in each.binds and name not in each.reads:
                        break
    return [every[number] for number in sorted(chosen)]


def _statements(block: Block) -> list[_Statement]:
    if block.left_out is not None:
        return []
    return [_Statement(block, *each) for each in _parsed(block.fence.code)]


@functools.lru_cache(maxsize=2048)
def _parsed(code: str) -> list[tuple[ast.stmt, frozenset[str], frozenset[str]]]:
    """Return statements, the names that each reads, and those that it binds."""
    lines, found = code.split("\n"), []
    for node in ast.parse(code).body:
        text = "\n".join(lines[first_line(node) - 1 : node.end_lineno])
        reads, binds = names_in(text)
        if isinstance(node, ast.For):  # a name that the loop itself gives
            reads -= {x.id for x in ast.walk(node.target) if isinstance(x, ast.Name)}
        found.append((node, reads, binds))
    return found

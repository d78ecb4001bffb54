"""Formulas with one thing altered: each way to misread or mistype them, tried in turn.

A formula is a function of a few lines. Of its arguments, names, constants, signs,
functions and parts one is put in another's place, and the altered function is run. If
it gives all the numbers of a reader's function, it says what that function computes.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from inspect import getsource
from textwrap import dedent, indent
from typing import NamedTuple
from warnings import catch_warnings, simplefilter

from tformer.check import array_words, slips
from tformer.check.calling import Function

STATED = "<stated>"


@dataclass(frozen=True, eq=False)
class Alteration:
    """A formula with one thing altered."""

    before: str  # the line, or the argument, that must stand
    after: str  # what stands in its place
    throughout: bool  # whether an argument is altered, wherever it stands
    source: str
    original: Function

    @property
    def told(self) -> str:
        """What stands in its place, without brackets that nothing needs."""
        end = " pass" if self.after.endswith(":") else ""
        text = ast.unparse(ast.parse(f"{self.after}{end}"))
        return text.removesuffix("pass").strip()

    @property
    def function(self) -> Function:
        """The altered formula, run where the right one stands."""
        module = vars(sys.modules[self.original.__module__])
        namespace = {
            **vars(array_words),
            **module,
            "formula": lambda function: function,
        }
        with catch_warnings():
            simplefilter("ignore", SyntaxWarning)  # an altered 0 may have an index
            exec(self.source, namespace)
        altered: Function = namespace[self.original.__name__]
        return altered


@cache
def alterations(function: Function, near: bool = False) -> tuple[Alteration, ...]:
    """List them, the simplest first; what gives one text is kept once.

    Args:
        function: the formula.
        near: leave out those in which something is done to a part.
    """
    nodes = ast.walk(ast.parse(dedent(getsource(function))))
    tree = next(x for x in nodes if isinstance(x, ast.FunctionDef))
    tree.decorator_list = []
    tree.body = [
        x
        for x in tree.body
        if not isinstance(x, ast.Expr)  # the docstring
    ]
    found = {x.source: x for x in _all(function, tree, near)}
    return tuple(found.values())


def _all(function: Function, tree: ast.FunctionDef, near: bool) -> Iterator[Alteration]:
    """Alter signs, constants and functions, then arguments, then names and parts."""
    nodes = [x for stated in tree.body for x in ast.walk(stated)]
    parts = [x for x in nodes if isinstance(x, ast.expr) and _is_read(x, tree)]
    places = _places(tree)
    known = [x.arg for x in tree.args.args]
    stored = [x for x in nodes if isinstance(x, ast.Name)]
    local = dict.fromkeys(x.id for x in stored if isinstance(x.ctx, ast.Store))
    for part in parts:
        for after in slips.near(part):
            yield from _made(function, tree, places, part, after)
    for name in known:
        others = [*(x for x in known if x != name), *slips.NUMBERS.split()]
        for listed in (slips.NEAR,) if near else (slips.PARTS, slips.ARRAYS):
            others += [ast.unparse(x) for x in slips.with_part(listed, ast.Name(name))]
        for other in others:
            yield _throughout(function, tree, name, other)
    for part in parts:
        if isinstance(part, ast.Name) and part.id in {*known, *local}:
            for name in (*known, *local):
                if name != part.id:
                    yield from _made(function, tree, places, part, ast.Name(name))
    for texts in () if near else (slips.PARTS, slips.ARRAYS):
        for part in parts:
            if not isinstance(part, ast.Constant):
                for after in slips.with_part(texts, part):
                    yield from _made(function, tree, places, part, after)


def _is_read(part: ast.expr, tree: ast.FunctionDef) -> bool:
    """Whether it is a value: no target, no function's name, no module, no slice."""
    if isinstance(part, ast.Slice | ast.Starred | ast.Lambda | ast.Tuple | ast.List):
        return False
    if not isinstance(getattr(part, "ctx", ast.Load()), ast.Load):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.func is part:
            return False
        if isinstance(node, ast.Attribute) and node.value is part:
            return False
    return True


class _Place(NamedTuple):
    """Where a part of a function hangs."""

    holder: ast.AST
    field: str
    at: int  # in a list; -1 if the field is none
    stated: ast.stmt  # the statement in which it stands
    right: str  # its text


def _made(
    function: Function,
    tree: ast.FunctionDef,
    places: dict[ast.expr, "_Place"],
    part: ast.expr,
    after: ast.expr,
) -> Iterator[Alteration]:
    """Write the function with a part altered, which stands in one statement."""
    holder, field, at, stated, right = places[part]
    _put(holder, field, at, after)
    wrong = ast.unparse(stated)
    _put(holder, field, at, part)
    if wrong == right:
        return
    lines = zip(right.splitlines(), wrong.splitlines(), strict=True)
    before, line = next((x.strip(), y.strip()) for x, y in lines if x != y)
    source = _source(tree, stated).replace(STATED, indent(wrong, "    "))
    yield Alteration(before, line, False, source, function)


def _places(tree: ast.FunctionDef) -> dict[ast.expr, _Place]:
    """Find where each part hangs."""
    found: dict[ast.expr, _Place] = {}
    for stated in tree.body:
        right = ast.unparse(stated)
        for node in ast.walk(stated):
            for field, value in ast.iter_fields(node):
                for i, each in enumerate(value if isinstance(value, list) else [value]):
                    if isinstance(each, ast.expr):
                        at = i if isinstance(value, list) else -1
                        found[each] = _Place(node, field, at, stated, right)
    return found


def _put(holder: ast.AST, field: str, at: int, part: ast.expr) -> None:
    if at < 0:
        setattr(holder, field, part)
    else:
        getattr(holder, field)[at] = part


def _source(tree: ast.FunctionDef, but: ast.stmt | None = None) -> str:
    """Write a function, with a mark where one statement stands."""
    head = f"def {tree.name}({ast.unparse(tree.args)}):"
    body = (STATED if x is but else indent(ast.unparse(x), "    ") for x in tree.body)
    return "\n".join((head, *body))


def _throughout(
    function: Function, tree: ast.FunctionDef, name: str, after: str
) -> Alteration:
    lines = _source(tree).splitlines()
    lines.insert(1, f"    {name} = {after}")
    return Alteration(name, after, True, "\n".join(lines), function)

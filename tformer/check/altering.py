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
from itertools import combinations
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
    frame: str  # the function, with a mark where it is altered
    stated: str  # what stands there
    original: Function

    @property
    def source(self) -> str:
        """The altered function."""
        return self.frame.replace(STATED, indent(self.stated, "    "))

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
        namespace = {**vars(array_words), **module}
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
    found = {(x.frame, x.stated): x for x in _Altering(function).all(near)}
    return tuple(found.values())


class _Place(NamedTuple):
    """Where a part of a function hangs."""

    holder: ast.AST
    field: str
    at: int  # in a list; -1 if the field is none
    stated: ast.stmt  # the statement in which it stands
    right: str  # its text
    frame: str  # the text of the function, with a mark where the statement stands


class _Altering:
    """Takes a function apart, and puts something else where a part hangs."""

    def __init__(self, function: Function) -> None:
        nodes = ast.walk(ast.parse(dedent(getsource(function))))
        tree = next(x for x in nodes if isinstance(x, ast.FunctionDef))
        self.function, self.tree = function, tree
        self.body = [x for x in tree.body if not isinstance(x, ast.Expr)]
        self.head = f"def {tree.name}({ast.unparse(tree.args)}):"
        self.places = {
            part: place for stated in self.body for part, place in self._places(stated)
        }

    def all(self, near: bool) -> Iterator[Alteration]:
        """Alter signs, constants and functions, arguments, names, then parts."""
        parts = [part for part in self.places if self._is_read(part)]
        known = [x.arg for x in self.tree.args.args]
        names = [x for x in self.places if isinstance(x, ast.Name)]
        local = dict.fromkeys(x.id for x in names if isinstance(x.ctx, ast.Store))
        for part in parts:
            for after in slips.near(part):
                yield from self._made(part, after)
        for name in known:
            others = [*(x for x in known if x != name), *slips.NUMBERS.split()]
            for listed in (slips.NEAR,) if near else (slips.PARTS, slips.ARRAYS):
                within = slips.with_part(listed, ast.Name(name))
                others += [ast.unparse(x) for x in within]
            for other in others:
                yield self._throughout(name, other)
        for one, two in combinations(known, 2):
            yield self._throughout(f"{one}, {two}", f"{two}, {one}")
        known += local
        read = [x for x in names if x.id in known and isinstance(x.ctx, ast.Load)]
        for part in read:
            for name in known:
                if name != part.id:
                    yield from self._made(part, ast.Name(name))
        for a, b in combinations(read, 2):
            if a.id != b.id and self.places[a].stated is self.places[b].stated:
                yield from self._made(a, b, b, a)
        scalars = [
            slips.with_scalar(name) for name in known if name in slips.SCALARS.split()
        ]
        for texts in () if near else (", ".join(scalars), slips.PARTS, slips.ARRAYS):
            for part in parts:
                if not isinstance(part, ast.Constant):
                    for after in slips.with_part(texts, part):
                        yield from self._made(part, after)

    def _is_read(self, part: ast.expr) -> bool:
        """Whether it is a value: no target, no function's name, no module, no slice."""
        if isinstance(
            part, ast.Slice | ast.Starred | ast.Lambda | ast.Tuple | ast.List
        ):
            return False
        if not isinstance(getattr(part, "ctx", ast.Load()), ast.Load):
            return False
        holder, field, *_ = self.places[part]
        if isinstance(holder, ast.Call) and field == "func":
            return False
        return not isinstance(holder, ast.Attribute)

    def _made(self, *parts_and_after: ast.expr) -> Iterator[Alteration]:
        """Write the function with parts altered, which stand in one statement.

        Args:
            parts_and_after: a part, what takes its place, perhaps the next part, ….
        """
        pairs = [*zip(parts_and_after[::2], parts_and_after[1::2], strict=True)]
        *_, stated, right, frame = self.places[pairs[0][0]]
        for part, after in pairs:
            _put(self.places[part], after)
        wrong = ast.unparse(stated)
        for part, _ in pairs:
            _put(self.places[part], part)
        if wrong == right:
            return
        lines = zip(right.splitlines(), wrong.splitlines(), strict=True)
        before, line = next((x.strip(), y.strip()) for x, y in lines if x != y)
        yield Alteration(before, line, False, frame, wrong, self.function)

    def _throughout(self, name: str, after: str) -> Alteration:
        """Write the function with something else in place of an argument."""
        body = (indent(ast.unparse(x), "    ") for x in self.body)
        frame = "\n".join((self.head, STATED, *body))
        stated = f"{name} = {after}"
        return Alteration(name, after, True, frame, stated, self.function)

    def _places(self, stated: ast.stmt) -> Iterator[tuple[ast.expr, _Place]]:
        """Find where each part of a statement hangs."""
        body = (
            STATED if x is stated else indent(ast.unparse(x), "    ") for x in self.body
        )
        texts = ast.unparse(stated), "\n".join((self.head, *body))
        for node in ast.walk(stated):
            for field, value in ast.iter_fields(node):
                for i, each in enumerate(value if isinstance(value, list) else [value]):
                    if isinstance(each, ast.expr):
                        at = i if isinstance(value, list) else -1
                        yield each, _Place(node, field, at, stated, *texts)


def _put(place: _Place, part: ast.expr) -> None:
    if place.at < 0:
        setattr(place.holder, place.field, part)
    else:
        getattr(place.holder, place.field)[place.at] = part

"""What is taken for what in a formula: signs, constants, functions, brackets, parts."""

import ast
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache

SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "a - b, a * b, a, b",
    ast.Sub: "a + b, b - a, a, b, a * b, a / b",
    ast.Mult: "a / b, b / a, a, b, a + b, a - b, np.maximum(a, b)",
    ast.Div: "a * b, b / a, a, b, a // b, a - b",
    ast.Pow: "a * b, a, b ** a, a ** -b, a / b",
    ast.FloorDiv: "a * b, a, a / b, -(-a // b)",
    ast.Mod: "a // b, a",
    ast.MatMult: "b @ a, transposed(a) @ b, a @ transposed(b)",
    ast.Lt: "a <= b, a > b, a >= b, a == b, a != b",
    ast.LtE: "a < b, a > b, a >= b, a == b, a != b",
    ast.Eq: "a != b, a <= b, a >= b",
    ast.NotEq: "a == b, a <= b, a >= b",
    ast.Or: "a and b, a, b",
    ast.Not: "a",
}
# Functions of x that are taken for each other.
FAMILIES = """
np.sin np.cos np.tan np.tanh
mean total np.max np.min np.median np.prod
np.sum np.mean np.max np.min np.prod np.median
softmax sigmoid np.exp np.tanh np.abs np.square
sigmoid softmax np.exp np.tanh np.sign np.abs np.sqrt
np.sqrt np.square np.abs np.log np.exp np.log1p np.cbrt
np.abs np.square np.sqrt np.sign np.log1p
np.log np.log2 np.log10 np.log1p
np.log2 np.log np.log10
np.maximum np.minimum
min max
max min
np.cumsum np.cumprod
"""
NUMBERS = "0 1 2 0.5 -1"  # what stands in a constant's place, beside c ± 1 and the like
OF_CONSTANTS = """x + 1, x - 1, -x, 2 * x, x / 2, x / 10, 10 * x, 1 / x,
2 * x / 3, 3 * x / 2, x + 0.5, x - 0.5, x**2"""
# What may be done to a part: first to numbers and arrays, then to arrays alone.
PARTS = """-x, x**2, np.sqrt(x), 2 * x, x / 2, x + 1, x - 1, 1 / x, 1 - x,
np.abs(x), np.maximum(x, 0), x**3, x**1.5, np.cbrt(x), x**0.25, 10 * x, x / 10,
2 * np.pi * x, x * np.pi / 180, x / np.pi, x / 8, x / 4, np.log(x), np.log1p(x),
np.exp(x), np.tanh(x), sigmoid(x), 1.702 * x, np.log(2) * x, x / np.log(2), np.sign(x),
np.round(x), np.trunc(x), 0 * x"""
ARRAYS = """x[..., ::-1], x[..., ::-1, :], x[..., ::-1, :, :], x[::-1],
np.roll(x, 1, -1), np.roll(x, -1, -1), np.roll(x, 1, -2), np.roll(x, -1, -2),
np.roll(x, 1, -3), np.roll(x, -1, -3), transposed(x), x[..., :1], x[..., :1, :],
x[:, :1], x[:1], x[..., -1:], x[..., -1:, :], x[:, -1:], mean(x, -1), mean(x, -2),
mean(x, 1), mean(x, 0), total(x, -1), total(x, -2), total(x, 1), total(x, 0),
softmax(x, -1), softmax(x, -2), softmax(x, 1), x / total(x, -1), x - mean(x, -1),
x / np.sqrt(total(x**2, -1)), x / np.sqrt(mean(x**2, -1)), np.sort(x, -1),
np.sort(x, -1)[..., ::-1], np.cumsum(x, -1), np.max(x, -1, keepdims=True),
x / np.max(x, -1, keepdims=True), x == np.max(x, -1, keepdims=True), ~x, x[1:], x[:-1],
x[..., 1:, :], x[..., :-1, :], x[..., -2:, :], x.swapaxes(0, 1),
x[..., : x.shape[-1] // 2], np.nan_to_num(x, neginf=0), np.nan_to_num(x, neginf=-1),
np.tril(x), np.triu(x), np.broadcast_to(mean(x, 0), x.shape),
np.broadcast_to(mean(x, 1), x.shape), np.broadcast_to(mean(x, -1), x.shape),
np.broadcast_to(mean(x, -2), x.shape), np.broadcast_to(x[:1], x.shape),
np.broadcast_to(x[:, :1], x.shape), np.broadcast_to(x[..., :1, :], x.shape)"""
# Numbers by which a part is multiplied or divided where it must not be, or their roots.
SCALARS = "k r V Dh step warmup d_model num_heads alpha smoothing length"
NEAR = "x + 1, x - 1, 1 - x, -x"
INFINITE = "0, -1, -100, -1e4, np.nan, np.inf"
X = r"\bx\b"


def near(part: ast.expr) -> Iterator[ast.expr]:
    """List what is taken for a constant, a sign or a function."""
    if isinstance(part, ast.Constant) and isinstance(part.value, int | float):
        yield from (_read(x) for x in NUMBERS.split())
        yield from with_part(OF_CONSTANTS, part)
    elif isinstance(part, ast.BinOp):
        yield from _signs(part.op, part.left, part.right)
        yield from _brackets(part)
    elif isinstance(part, ast.Compare):
        yield from _signs(part.ops[0], part.left, part.comparators[0])
    elif isinstance(part, ast.BoolOp):
        yield from _signs(part.op, part.values[0], part.values[1])
    elif isinstance(part, ast.UnaryOp):
        yield part.operand
    elif isinstance(part, ast.Attribute):
        yield part.value
    elif isinstance(part, ast.IfExp):
        yield from (part.body, part.orelse)
    elif isinstance(part, ast.Call):
        yield from _calls(part)
    if ast.unparse(part) == "-np.inf":
        yield from (_read(x) for x in INFINITE.split(", "))


def _calls(part: ast.Call) -> Iterator[ast.expr]:
    name = ast.unparse(part.func)
    for family in FAMILIES.strip().splitlines():
        first, *others = family.split()
        for other in others if first == name else ():
            args = [] if first in ("mean", "total") and "np" in other else part.args[1:]
            if args != part.args[1:]:
                yield _read(f"{other}({ast.unparse(part.args[0])}, -1, keepdims=True)")
            elif other in ("sigmoid", "np.exp", "np.tanh", "np.abs", "np.square"):
                yield ast.Call(_read(other), part.args[:1], [])
            else:
                yield ast.Call(_read(other), part.args, [])
    if name == "softmax":
        scores = ast.unparse(part.args[0])
        hidden = f"np.nan_to_num({scores}, neginf=0)"
        yield from (
            _read(x)
            for x in (
                f"np.exp({scores}) / np.sum(np.exp({scores}))",
                f"{hidden} / total({hidden})",
                f"np.maximum({scores}, 0) / total(np.maximum({scores}, 0))",
                f"np.maximum({hidden}, 0)",
                f"{hidden}**2 / total({hidden}**2)",
                f"np.isfinite({scores}) / total(np.isfinite({scores}))",
                f"softmax(softmax({scores}))",
                f"np.log(softmax({scores}))",
            )
        )
    if name == "sigmoid":
        z = ast.unparse(part.args[0])
        yield from (_read(x) for x in (f"sigmoid(1.702 * {z})", f"({z} > 0)"))
    if name == "np.repeat":
        yield ast.Call(_read("tiled"), part.args, [])
    yield from _first_altered(part, part.args[0]) if part.args else ()
    if name in ("np.maximum", "np.minimum", "min", "max", "np.where"):
        yield from part.args[1:]
    if name == "np.where":
        asked, one, two = part.args
        yield ast.Call(part.func, [asked, two, one], [])


def _first_altered(part: ast.Call, first: ast.expr) -> Iterator[ast.expr]:
    """Take the brackets, the squares, the function or the order away."""
    f, more = part.func, part.args[1:]
    if isinstance(first, ast.BinOp):
        a, b = (ast.Call(f, [x, *more], []) for x in (first.left, first.right))
        yield ast.BinOp(a, first.op, b)
        yield ast.BinOp(a, first.op, first.right)
        yield ast.BinOp(first.left, first.op, b)
    if ast.unparse(f) in ("mean", "total", "np.sum"):
        squares = ast.Call(f, [*with_part("x**2", first), *more], [])
        yield from with_part("np.sqrt(x)", squares)
    yield first
    if ast.unparse(f) == "np.concatenate" and isinstance(first, ast.Tuple):
        yield from first.elts
        turned = ast.Tuple(first.elts[::-1], ast.Load())
        yield ast.Call(f, [turned, *more], [])


def _brackets(part: ast.BinOp) -> Iterator[ast.expr]:
    """Move the brackets: (a + b) · c and a + b · c."""
    if isinstance(part.left, ast.BinOp):
        a, b, c = part.left.left, part.left.right, part.right
        yield ast.BinOp(a, part.left.op, ast.BinOp(b, part.op, c))
    if isinstance(part.right, ast.BinOp):
        a, b, c = part.left, part.right.left, part.right.right
        yield ast.BinOp(ast.BinOp(a, part.op, b), part.right.op, c)


def _signs(op: ast.AST, a: ast.expr, b: ast.expr) -> Iterator[ast.expr]:
    for text in _texts(SIGNS.get(type(op), "")):
        yield _Filled({"a": a, "b": b}).visit(_read(text))


def with_scalar(name: str) -> str:
    """List what a number does to a part."""
    return f"x * {name}, x / {name}, x * np.sqrt({name}), x / np.sqrt({name})"


def with_part(texts: str, part: ast.expr) -> list[ast.expr]:
    """Put a part where x stands in each of the texts, which are written as they are."""
    text = ast.unparse(part)
    atom = isinstance(
        part, ast.Constant | ast.Name | ast.Call | ast.Subscript | ast.Attribute
    )
    x = text if atom else f"({text})"
    return [
        ast.Name(f"({re.sub(X, lambda _: x, each)})", ast.Load())
        for each in _texts(texts)
    ]


@cache
def _texts(listed: str) -> tuple[str, ...]:
    parts = ast.walk(_read(f"[{listed}]"))
    listing = next(x for x in parts if isinstance(x, ast.List))
    return tuple(ast.unparse(each) for each in listing.elts)


class _Filled(ast.NodeTransformer):
    """Puts parts where names stand."""

    def __init__(self, parts: dict[str, ast.expr]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return deepcopy(self.parts.get(node.id, node))


def _read(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body

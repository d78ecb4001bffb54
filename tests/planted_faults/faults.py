"""Which faults can be planted: one operator or one number of the arithmetic changed."""

import ast
import random
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("nn", "models", "generate")
FILES = ("training/loss.py",)
# Not arithmetic of a model: what they check is tested, and shown on no page.
LEFT_OUT = ("__init__.py",)
OPERATORS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Lt: ("<", ">"),
    ast.Gt: (">", "<"),
    ast.USub: ("-", "+"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
# Changes that change no result: the file, the line, what it becomes; and why.
NO_FAULTS = {
    (
        "tformer/generate/sampling.py",
        "if top_p == 2:",
    ): "a shortcut: with top_p = 1 the rest of the function keeps every token too",
    (
        "tformer/nn/indexer.py",
        "start = 1 if cache is None else cache.length",
    ): "queries and keys move by one place together: their distances are the same",
    (
        "tformer/nn/attention.py",
        "scores = scores.masked_fill(dead, 1.0)",
    ): "rows that may attend to nothing are set to zero afterwards",
}


@dataclass(frozen=True)
class Fault:
    """One change of a few characters in one line."""

    file: str  # from the root
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()} → {self.after.strip()}"


def possible_faults(path: Path) -> list[Fault]:
    """Return every change of one operator or number in the code of a file."""
    source = path.read_text("utf-8")
    lines = source.split("\n")
    file = path.relative_to(ROOT).as_posix()
    faults = []
    for node in _arithmetic(ast.parse(source)):
        match node:
            case (
                ast.BinOp(left=left, op=op, right=right)
                | ast.Compare(left=left, ops=[op], comparators=[right])
            ) if type(op) in OPERATORS:
                change = OPERATORS[type(op)]
                place = _between(lines, left, right, change[0])
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name() | ast.Attribute()):
                place, change = (node.lineno, node.col_offset), ("-", "+")
            case ast.Constant(value=int() | float()) if not isinstance(
                node.value, bool
            ):
                digit = str(node.value)[0]
                place = (node.lineno, node.col_offset)
                change = (
                    (digit, str((int(digit) + 1) % 10)) if digit.isdigit() else None
                )
            case _:
                continue
        if place is None or change is None:
            continue
        number, column = place
        raw = lines[number - 1].encode()
        after = raw[:column] + change[1].encode() + raw[column + len(change[0]) :]
        fault = Fault(file, number, raw.decode(), after.decode())
        if fault.before != fault.after:
            faults.append(fault)
    return sorted(set(faults), key=lambda fault: (fault.line, fault.after))


def _arithmetic(tree: ast.Module) -> list[ast.AST]:
    """Return the nodes that compute: not annotations, defaults, messages, indices."""
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Raise() | ast.JoinedStr() | ast.ImportFrom() | ast.Import():
                left_out.update(ast.walk(node))
            case ast.FunctionDef(args=arguments, returns=returns):
                left_out.update(ast.walk(arguments))
                left_out.update(ast.walk(returns) if returns else ())
            case ast.AnnAssign() | ast.Dict():  # types, defaults and presets
                left_out.update(ast.walk(node))
            case ast.If(test=test, body=[ast.Raise()]):  # what may come in
                left_out.update(ast.walk(test))
            case ast.Subscript(slice=ast.Constant() | ast.UnaryOp()):
                left_out.update(ast.walk(node.slice))
            case ast.Expr(value=ast.Call()):  # a check at the door
                left_out.update(ast.walk(node))
    return [node for node in ast.walk(tree) if node not in left_out]


def _between(
    lines: list[str], left: ast.expr, right: ast.expr, sign: str
) -> tuple[int, int] | None:
    """Find an operator between its two sides, if they stand in one line."""
    if left.end_lineno != right.lineno:
        return None
    raw = lines[right.lineno - 1].encode()
    column = raw.find(sign.encode(), left.end_col_offset, right.col_offset)
    double = raw[column : column + 2] in (b"**", b"//", b"<=", b">=")
    return None if column < 0 or double else (right.lineno, column)


def chosen_faults(count: int, seed: int) -> list[Fault]:
    """Draw faults, one from each file before a second from any.

    Raises:
        ValueError: a line in `NO_FAULTS` is not, or is no longer, in its file.
    """
    paths = [ROOT / "tformer" / file for file in FILES]
    for folder in FOLDERS:
        paths += ROOT.glob(f"tformer/{folder}/**/*.py")
    pools, left_out = {}, set()
    for path in sorted(path for path in paths if path.name not in LEFT_OUT):
        named = {f: (f.file, f.after.strip()) for f in possible_faults(path)}
        pools[path] = [f for f, name in named.items() if name not in NO_FAULTS]
        left_out |= NO_FAULTS.keys() & {*named.values()}
    if stale := NO_FAULTS.keys() - left_out:
        raise ValueError(f"NO_FAULTS: there is no such line any more: {stale}")
    chance = random.Random(seed)
    shuffled = [chance.sample(pool, len(pool)) for pool in pools.values()]
    chance.shuffle(shuffled)
    drawn: list[Fault] = []
    while len(drawn) < count and any(shuffled):
        for pool in shuffled:
            if pool and len(drawn) < count:
                drawn.append(pool.pop())
    return drawn

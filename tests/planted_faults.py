"""Plant one-character faults in the arithmetic of the package, and see who finds them.

    python tests/planted_faults.py [--count 48] [--seed 0] [--only pages] [--list]

Each fault changes one operator or one number in a copy of the project; there the pages
run, and then the tests, those of the changed module first, until one fails. It prints
what was found by the pages alone, by the tests, and by nobody. A fault that nobody can
find, as it changes no result, stands in `NO_FAULTS` with the reason.
`--jobs` plants so many side by side; machines can share the work by `--seed`.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
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
    """Draw faults, as evenly from the files as their lines allow.

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
    for pool in pools.values():
        chance.shuffle(pool)
    drawn: list[Fault] = []
    while len(drawn) < count and any(pools.values()):
        for pool in pools.values():
            if pool and len(drawn) < count:
                drawn.append(pool.pop())
    return drawn


def found_by(fault: Fault, only: str) -> str:
    """Run the pages and the tests on a project with a fault; say who found it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "project")
        left = shutil.ignore_patterns(".git", ".venv", "site", "__pycache__", ".*cache")
        shutil.copytree(ROOT, copy, ignore=left, symlinks=True)
        path = copy / fault.file
        lines = path.read_text("utf-8").split("\n")
        assert lines[fault.line - 1] == fault.before
        lines[fault.line - 1] = fault.after
        path.write_text("\n".join(lines), "utf-8")
        for who, targets in (("pages", _pages(fault)), ("tests", _tests(fault))):
            if only in ("", who) and _fails(copy, targets):
                return who
    return "nobody"


def _fails(copy: Path, targets: list[str]) -> bool:
    """Run pytest on some files at a time until one fails."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(copy), str(copy / "docs")]),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    how = ["-xq", "--no-header", "-p", "no:cacheprovider"]
    for start in range(0, len(targets), 4):
        command = [sys.executable, "-m", "pytest", *how, *targets[start : start + 4]]
        try:
            done = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, timeout=600
            )
        except subprocess.TimeoutExpired:  # it hangs: that is seen too
            return True
        if done.returncode in (1, 2):  # a test failed, or could not be read
            return True
        if done.returncode not in (0, 5):  # and not that there is none
            raise RuntimeError(f"pytest itself failed: {done.stdout.decode()[-500:]}")
    return False


def _pages(fault: Fault) -> list[str]:
    """Return the chapters, those first that name the module in their front matter."""
    chapters = sorted((ROOT / "docs" / "chapters").glob("*.md"))
    about = [fault.file in path.read_text("utf-8")[:2000] for path in chapters]
    order = sorted(zip(about, chapters, strict=True), key=lambda x: not x[0])
    return [path.relative_to(ROOT).as_posix() for _, path in order]


def _tests(fault: Fault) -> list[str]:
    """Return the tests of the package, those of the module and its folder first."""
    _, folder, *_, module = fault.file.removesuffix(".py").split("/")
    tests = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path.parent.name not in ("engine", "site", "benchmarks", "baselines")
    ]
    tests.sort(key=lambda path: (module not in path.name, path.parent.name != folder))
    return [path.relative_to(ROOT).as_posix() for path in tests]


def main() -> int:
    """Print a line for each fault, and how many were found; 1 if one was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=["", "pages", "tests"], default="")
    parser.add_argument("--list", action="store_true", help="show the faults alone")
    o = parser.parse_args()
    faults = chosen_faults(o.count, o.seed)
    if o.list:
        print("\n".join(map(str, faults)))
        return 0
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(o.jobs) as pool:
        asked = {pool.submit(found_by, fault, o.only): fault for fault in faults}
        for done in as_completed(asked):
            who, fault = done.result(), asked[done]
            counts[who] += 1
            print(f"{who:7} {fault}", flush=True)
    print(f"{len(faults)} faults: {dict(counts)}")
    return int(counts["nobody"] > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Run a file where the package cannot be imported: `python -I alone.py PACKAGE FILE`.

A Python file is imported, every global name that its code reads must exist, and it runs
as a program. Of a notebook the code cells are run, in order, and must print what the
notebook holds, unless it holds no outputs at all. Where a cell installs the package, it
is there from then on, if a third argument names the folder with what pip would install.
This file needs nothing of the engine.
"""

import ast
import builtins
import dis
import json
import linecache
import os
import re
import runpy
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path

from _pytest.capture import FDCapture

INSTALLS = re.compile(r'%pip install --quiet "([^"\n]+)"')  # a cell, whole
DEMONSTRATION = 'if __name__ == "__main__":'


def problem_of(package: str, file: Path, installed: Path | None = None) -> str | None:
    """Run a file in a process of its own; return what went wrong."""
    here = str(Path(__file__).resolve())
    command = [sys.executable, "-I", here, package, str(file.resolve())]
    command += [str(installed.resolve())] if installed else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # as the pages compute
    with tempfile.TemporaryDirectory() as folder:  # for what the code writes
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    return f"{file}: {done.stderr.strip()}" if done.returncode else None


def main(package: str, file: Path, installed: str | None = None) -> None:
    """Run a file; raise or exit with a message where it does not run alone."""
    sys.modules[package] = None  # type: ignore[assignment]  # cannot be imported
    os.environ["MPLBACKEND"] = "agg"
    if file.suffix == ".ipynb":
        _run_notebook(package, file, installed)
    else:
        _run_file(file)


def _run_file(file: Path) -> None:
    """Import a file, look for names that nothing defines, and run its demonstration."""
    source = file.read_text("utf-8")
    known = {*runpy.run_path(str(file), run_name="standalone"), *vars(builtins)}
    if unknown := {*_reads(compile(source, str(file), "exec"))} - known:
        names = ", ".join(sorted(unknown))
        raise SystemExit(f"{file.name}: names that are not defined: {names}")
    if DEMONSTRATION in source:
        runpy.run_path(str(file), run_name="__main__")


def _reads(code: types.CodeType) -> Iterator[str]:
    """Yield the global names that code reads, that of its functions included."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_NAME"}
    for instruction in dis.get_instructions(code):
        loads = instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        if loads and instruction.argval not in own and "__" not in instruction.argval:
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _reads(constant)


def _run_notebook(package: str, file: Path, installed: str | None) -> None:
    main_module = types.ModuleType("__main__")
    sys.modules["__main__"] = main_module
    cells = json.loads(file.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    has_outputs = any(cell["outputs"] for cell in code)
    for number, cell in enumerate(code, 1):
        name, source = f"cell {number}", cell["source"]
        if INSTALLS.fullmatch("".join(source)):
            if installed:
                del sys.modules[package]
                sys.path.insert(0, installed)
            continue
        linecache.cache[name] = (sum(map(len, source)), None, source, name)
        capture = FDCapture(1)  # what a subprocess prints as well
        capture.start()
        try:
            value = _run_cell("".join(source), name, vars(main_module))
            printed = capture.snap()
        finally:
            capture.done()
        for out in cell["outputs"]:
            if out["output_type"] == "execute_result":
                shown = "".join(out["data"]["text/plain"])
                if repr(value) != shown:
                    raise SystemExit(f"{name} shows\n{value!r}\nand not\n{shown}")
        streams = (out for out in cell["outputs"] if out["output_type"] == "stream")
        expected = "".join("".join(out["text"]) for out in streams)
        if has_outputs and printed != expected:
            both = f"prints\n{printed}\nbut the notebook holds\n{expected}"
            raise SystemExit(f"{name} {both}")


def _run_cell(source: str, name: str, names: dict[str, object]) -> object:
    """Run a cell as Jupyter does; return the value of its last line."""
    tree = ast.parse(source, name)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, name, "exec"), names)
        return None
    tree.body.pop()
    exec(compile(tree, name, "exec"), names)
    return eval(compile(ast.Expression(last.value), name, "eval"), names)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])

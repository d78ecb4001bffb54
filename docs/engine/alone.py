"""Run a file where the package cannot be imported: `python -I alone.py PACKAGE FILE`.

A Python file is imported, and every global name that its code reads must exist. Of a
notebook the code cells are run, in order, and must print what the notebook holds.
This file needs nothing of the engine.
"""

import builtins
import contextlib
import dis
import importlib.abc
import importlib.util
import io
import json
import linecache
import os
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path


def problem_of(package: str, file: Path) -> str | None:
    """Run a file in a process of its own; return what went wrong."""
    here = str(Path(__file__).resolve())
    command = [sys.executable, "-I", here, package, str(file.resolve())]
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


class _Blocker(importlib.abc.MetaPathFinder):
    """Hides an installed package."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Refuse the package, unless its copy came to the front of the path."""
        if fullname.partition(".")[0] != self.package:
            return None
        if path is None:
            if Path(sys.path[0], self.package).is_dir():
                return None
            raise ImportError(f"{fullname} cannot be imported here")
        return None


def main(package: str, file: Path) -> None:
    """Run one file; raise or exit with a message where it does not run alone."""
    sys.meta_path.insert(0, _Blocker(package))
    os.environ["MPLBACKEND"] = "agg"
    if file.suffix == ".ipynb":
        _run_notebook(file)
    else:
        _import_file(file)


def _import_file(file: Path) -> None:
    spec = importlib.util.spec_from_file_location("standalone", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    code = compile(file.read_text("utf-8"), str(file), "exec")
    known = {*vars(module), *vars(builtins)}
    unknown = {
        f"{name} (line {line})" for name, line in _reads(code) if name not in known
    }
    if unknown:
        raise SystemExit(f"names that are not defined: {', '.join(sorted(unknown))}")


def _reads(code: types.CodeType) -> Iterator[tuple[str, int]]:
    """Yield the global names that code reads, that of its functions included."""
    line = code.co_firstlineno
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_NAME"}
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno or line if instruction.positions else line
        loads = instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        if loads and instruction.argval not in own and "__" not in instruction.argval:
            yield instruction.argval, line
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _reads(constant)


def _run_notebook(file: Path) -> None:
    main_module = types.ModuleType("__main__")
    sys.modules["__main__"] = main_module
    cells = json.loads(file.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, 1):
        name, source, printed = f"cell {number}", cell["source"], io.StringIO()
        linecache.cache[name] = (sum(map(len, source)), None, source, name)
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(source), name, "exec"), vars(main_module))
        streams = (out for out in cell["outputs"] if out["output_type"] == "stream")
        expected = "".join("".join(out["text"]) for out in streams)
        if printed.getvalue() != expected:
            both = f"prints\n{printed.getvalue()}\nbut the notebook holds\n{expected}"
            raise SystemExit(f"{name} {both}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

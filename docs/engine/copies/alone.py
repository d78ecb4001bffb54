"""Run files where the package cannot be imported: `python -I alone.py PACKAGE FILE …`.

A Python file is imported, every global name that its code reads must exist, and what it
does as a program must print something. Of a notebook the code cells are run, in order,
and must print what the notebook holds, unless it holds no outputs at all.
This file needs nothing of the engine.
"""

import builtins
import contextlib
import dis
import importlib.util
import io
import json
import linecache
import os
import runpy
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path

from _pytest.capture import FDCapture

DEMONSTRATION = 'if __name__ == "__main__":'


def problem_of(package: str, *files: Path) -> str | None:
    """Run files in a process of their own; return what went wrong with the first.

    Several notebooks need a process each: what one imports is there for the next.
    """
    here = str(Path(__file__).resolve())
    names = [str(file.resolve()) for file in files]
    command = [sys.executable, "-I", here, package, *names]
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
    where = files[0] if len(files) == 1 else package
    return f"{where}: {done.stderr.strip()}" if done.returncode else None


def main(package: str, files: list[Path]) -> None:
    """Run files; raise or exit with a message where one does not run alone."""
    sys.modules[package] = None  # type: ignore[assignment]  # cannot be imported
    os.environ["MPLBACKEND"] = "agg"
    for file in files:
        if file.suffix == ".ipynb":
            _run_notebook(package, file)
        else:
            _run_file(file)


def _run_file(file: Path) -> None:
    """Import a file, look for names that nothing defines, and run its demonstration."""
    spec = importlib.util.spec_from_file_location("standalone", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    source = file.read_text("utf-8")
    known = {*vars(module), *vars(builtins)}
    if unknown := {*_reads(compile(source, str(file), "exec"))} - known:
        names = ", ".join(sorted(unknown))
        raise SystemExit(f"{file.name}: names that are not defined: {names}")
    if DEMONSTRATION in source:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(file), run_name="__main__")
        if not printed.getvalue().strip():
            raise SystemExit(f"{file.name}: its demonstration prints nothing")


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


def _run_notebook(package: str, file: Path) -> None:
    main_module = types.ModuleType("__main__")
    sys.modules["__main__"] = main_module
    cells = json.loads(file.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    has_outputs = any(cell["outputs"] for cell in code)
    for number, cell in enumerate(code, 1):
        name, source = f"cell {number}", cell["source"]
        linecache.cache[name] = (sum(map(len, source)), None, source, name)
        capture = FDCapture(1)  # what a subprocess prints as well
        capture.start()
        try:
            exec(compile("".join(source), name, "exec"), vars(main_module))
            if number == 1 and Path(sys.path[0], package).is_dir():
                del sys.modules[package]  # the first cell has unpacked a copy
            printed = capture.snap()
        finally:
            capture.done()
        streams = (out for out in cell["outputs"] if out["output_type"] == "stream")
        expected = "".join("".join(out["text"]) for out in streams)
        if has_outputs and printed != expected:
            both = f"prints\n{printed}\nbut the notebook holds\n{expected}"
            raise SystemExit(f"{name} {both}")


if __name__ == "__main__":
    main(sys.argv[1], [Path(name) for name in sys.argv[2:]])

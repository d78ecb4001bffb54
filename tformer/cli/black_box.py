"""`tformer check --model`: a model is asked in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tformer.check.black_box.report import told

SECONDS = 600  # that a model may take if not told otherwise
CHILD = """import json, sys
sys.path[:] = json.loads(sys.argv.pop())
from tformer.cli.black_box import answer
answer(*sys.argv[1:])
"""


def check_model(target: str, as_json: bool, seconds: int) -> bool:
    """Ask a model, say what was found, and return whether it is right."""
    import typer  # which the plugin of pytest does without

    if not target:
        raise typer.BadParameter("--model needs a folder or FILE.py:FUNCTION")
    if target.endswith(".py"):
        raise typer.BadParameter(f"name the function too: {target}:make_model")
    report = ask(target, seconds)
    typer.echo(json.dumps(report) if as_json else told(report))
    right = report["verdict"] == "right"
    if not right:  # as of files
        typer.echo("right: 0 of 1", err=True)
    return right


def ask(target: str, seconds: int = SECONDS) -> dict[str, object]:
    """Ask a model everything that can be asked from outside.

    Args:
        target: a folder of ours or of Hugging Face's, or "FILE.py:FUNCTION" whose
            function returns the model.
        seconds: after which its process is ended.

    Returns:
        what `Report.as_json` gives, and the target as "file".
    """
    path = [os.path.abspath(place) for place in sys.path if place]
    with TemporaryDirectory(
        prefix="tformer-check-", ignore_cleanup_errors=True
    ) as folder:
        out = Path(folder) / "report.json"
        begin = [sys.executable, "-P", "-B", "-c", CHILD]
        child = subprocess.Popen(
            [*begin, target, str(out), str(seconds), json.dumps(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # whatever it prints is no verdict
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        why = ""
        try:
            code = child.wait(seconds)
            why = f"its process ended with {_ending(code)}, without an answer"
        except subprocess.TimeoutExpired:
            why = f"it did not end within {seconds} s"
        finally:
            _end(child)
        try:
            report = json.loads(out.read_text("utf-8"))
        except (OSError, ValueError):
            report = {"verdict": "not run", "findings": [], "reason": why}
    return {"file": target, **report}


def _ending(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"the signal {signal.Signals(-code).name}"
    return f"code {code}"


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the process, and those that it has started."""
    if hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()


def answer(target: str, out: str, seconds: str) -> None:
    """Ask a model, in its own process, and write what was found."""
    _limit_memory()
    sys.argv[1:] = []  # which the file may read
    from tformer.check import model as ask_model  # before a file can change its name
    from tformer.interop.compare.sources import open_model

    report: dict[str, object]
    try:
        model = open_model(target)
        long = min(60.0, float(seconds) / 3)
        report = ask_model(model, seconds=long).as_json()
    except BaseException as error:  # noqa: BLE001 - of a file of anyone's
        said = str(error).partition("\n")[0] or type(error).__name__
        report = {"verdict": "not run", "findings": [], "reason": said}
    partial = Path(f"{out}.part")
    partial.write_text(json.dumps(report), "utf-8")
    partial.replace(out)
    os._exit(0)  # threads of the file may still run


def _limit_memory() -> None:
    """Let it take no more memory than there is, where that can be said."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        import torch

        if not torch.cuda.is_available():  # whose addresses are more than memory
            all_of_it = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            resource.setrlimit(resource.RLIMIT_AS, (all_of_it, all_of_it))

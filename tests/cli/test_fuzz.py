"""Mistakes by chance: no option and no file ends a command in a traceback.

The guard at the door calls an error that it does not know internal: that is what these
tests look for. `make nightly` looks for an hour.
"""

import contextlib
import functools
import inspect
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
import typer.main
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_files import seal
from tformer.cli import main
from tformer.cli.app import app

COMMANDS: Any = typer.main.get_command(app)
# Enough for a moment; the last two are far too large.
NUMBERS = [*("-1", "0", "1", "2", "3", "7"), str(10**18), str(10**22)]
FRACTIONS = ["-1", "0", "1", "0.5", "1e-320", "1e308", "1e400", "nan", "inf", "-inf"]
TEXTS = ["", " ", "x", "-", "--", "[/b]", "é", "\udce9", "☃", "x" * 300, "\n", "0x1"]
PLACES = [*TEXTS, ".", "/", "/dev/null", "/dev/null/x", "new", "file", "full", "a.svg"]
TASKS = ["copy", "reverse", "dates", "text", "pairs"]
# Where no other value is drawn, little is trained or written.
SMALL = {
    "train": "--d-model 8 --num-heads 2 --num-layers 1 --batch-size 3 --steps 2 "
    "--examples 20 --evaluate-examples 2 --test-examples 2 --warmup-steps 0 --quiet "
    "--threads 1",
    "generate": "--max-new-tokens 3",
}
FLAGS = {"every", "quiet", "as_json", "bias", "norm_first", "compile", "help"}
# What goes well, if nothing odd is added to it.
BEGINNINGS = {
    "train": [
        *("copy", "dates", "text text.txt", "text text.txt --model bert"),
        "text text.txt --vocabulary bpe --vocab-size 270 --max-len 5",
        *("pairs sources.txt targets.txt", "--resume reverse", "--resume gpt"),
    ],
    "evaluate": [
        *("dates --count 2", "gpt text.txt", "bert text.txt", "bpe text.txt"),
        *("pairs sources.txt targets.txt", "reverse --count 2"),
    ],
    "translate": ["dates", "reverse abc", "pairs one", "dates --beams 2"],
    "generate": ["gpt", "bpe", "gpt --count 2"],
    "attend": ["gpt be -o a.svg", "dates 1 -o a.png", "bpe be", "bert be"],
    "check": ["", "start top_p", "rotary", "rotary file", "beam --hint 1", "--all"],
    "compare": ["gpt gpt", "gpt today", "bert reverse", "gpt gpt --ids 1,2"],
    "info": ["", "dates", "gpt", "reverse/model/model.safetensors"],
}
LEFT_OUT = {"--compile", "--help", "--watch"}  # minutes of a compiler; no end


def call(words: list[str]) -> None:
    """Call the command line, and hold it to what it promises."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "strict") for _ in range(2))
    err.reconfigure(errors="backslashreplace")  # as Python itself makes it
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(sys, "argv", ["tformer", *words])
        patch.setattr(sys, "stderr", err)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"3 mai\n"), "utf-8"))
        with pytest.raises(SystemExit) as ended:
            main()
    printed = [(s.flush(), s.buffer.getvalue().decode())[1] for s in (out, err)]
    code = ended.value.code or 0
    assert code in (0, 1, 2), words
    assert "Traceback" not in "".join(printed), words
    assert "internal:" not in printed[1], (words, printed[1])
    assert code == 0 or printed[1].strip(), words


@pytest.fixture(scope="module")
def place(runs):
    """A folder to make mistakes in, with runs and files of several kinds."""
    before = Path.cwd(), torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in RUNS:
            shutil.copytree(runs[name], name)
        for name in ("text", "sources", "targets"):
            shutil.copy(runs[name], f"{name}.txt")
        Path("file").write_text("To be, or not to be\n" * 3)
        Path("full").mkdir()
        Path("full/of.txt").write_bytes(b"\xff\xfe\x00x")
        for name in ("zeros.safetensors", "zeros.json"):
            Path(name).write_bytes(bytes(99))
        yield Path(folder)
        os.chdir(before[0])
    torch.set_num_threads(before[1])


RUNS = ["reverse", "gpt", "bert", "bpe", "pairs"]
MODELS = ["dates", *RUNS, "full", "zeros.safetensors"]
FILES = ["text.txt", "sources.txt", "targets.txt", "full/of.txt", "file", "full"]
OPTIONS = {
    name: [p for p in command.params if p.param_type_name == "option"]
    for name, command in COMMANDS.commands.items()
}
KNOWN = ["gpt", "bert", "bpe", "characters", "cosine", "inverse-sqrt", "bf16", "mask"]
KNOWN += ["scale", "positions", "cpu", "cuda", "fsdp", "encoder", "a.png", "validation"]


def values_of(command: str, option: Any) -> st.SearchStrategy[str]:
    """Draw a value of an option: of its kind, or of any."""
    callback = COMMANDS.commands[command].callback
    kind = str(inspect.signature(callback).parameters[option.name].annotation)
    pools = {"int": NUMBERS, "float": FRACTIONS, "Path": [*PLACES, *FILES]}
    own = next((pool for word, pool in pools.items() if word in kind), [*TEXTS, *KNOWN])
    every = [*NUMBERS, *FRACTIONS, *PLACES, *KNOWN]
    return st.sampled_from(own) | st.sampled_from(own) | st.sampled_from(every)


@st.composite
def command_lines(draw) -> list[str]:
    name = draw(st.sampled_from(sorted(COMMANDS.commands)))
    words = [name, *SMALL.get(name, "").split()]
    if draw(st.integers(0, 4)):
        words += draw(st.sampled_from(BEGINNINGS[name])).split()
    else:
        others = [*MODELS, *TASKS, *FILES, *TEXTS]
        words += draw(st.lists(st.sampled_from(others), max_size=3))
    if name == "train" and draw(st.integers(0, 9)):
        shutil.rmtree("new", ignore_errors=True)
        words += ["--out", "new"]
    numbers = st.integers(0, max(0, len(OPTIONS[name]) - 1))
    for number in draw(st.lists(numbers, max_size=3)) if OPTIONS[name] else ():
        option = OPTIONS[name][number]
        flag = draw(st.sampled_from([*option.opts, *option.secondary_opts]))
        if flag not in LEFT_OUT:
            words.append(flag)
            if option.name not in FLAGS:
                words.append(draw(values_of(name, option)))
    return words


@pytest.mark.nightly
@given(command_lines())
@settings(max_examples=50)
@pytest.mark.usefixtures("place")
def test_options_by_chance(words):
    call(words)


Fault = tuple[str, str, str, Any, bool, list[str]]
ODD = [None, True, -1, 0, 1, 2, 1.5, float("nan"), 1e999, 10**22, "", "x", "\ud800"]
ODD += [[], {}, [[]], {"x": 1}, ["x"], [5], "☃", "9" * 20]
ASKED = {
    "reverse": ["translate", "reverse", "abc"],
    "gpt": ["generate", "gpt", "--max-new-tokens", "3"],
    "bert": ["attend", "bert", "be", "-o", "a.svg"],
    "bpe": ["evaluate", "bpe", "text.txt"],
    "pairs": ["evaluate", "pairs", "sources.txt", "targets.txt"],
}


@functools.cache
def names_of(run: str) -> list[str]:
    """List the files of a run, once: a command may add one, and Hypothesis give up."""
    names = sorted(str(p.relative_to(run)) for p in Path(run).rglob("*") if p.is_file())
    return [name for name in names if not name.endswith(".svg")]


@st.composite
def faults(draw) -> Fault:
    """Draw a run, a file of it, how it is spoiled, and what is then asked for."""
    run = draw(st.sampled_from(sorted(ASKED)))
    name = draw(st.sampled_from(names_of(run)))
    how = draw(st.sampled_from(["value", "value", "cut", "bytes", "gone", "folder"]))
    what: Any = draw(st.integers(0, 400))
    if how == "bytes":
        brackets = [b"[" * 200_000, b"{}", b"[]", b"null", b'{"step": 1}']
        what = draw(st.binary(max_size=50) | st.sampled_from(brackets))
    if how == "value":
        what = draw(st.integers(0, 500)), draw(st.sampled_from(ODD))
    asked = [["info", run], ASKED[run], ["train", "--resume", run, "--quiet"]]
    return run, name, how, what, draw(st.booleans()), draw(st.sampled_from(asked))


def spoil(path: Path, how: str, what: Any) -> None:
    data = path.read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "cut":
        path.write_bytes(data[: len(data) * what // 400])
    elif how == "bytes":
        path.write_bytes(what)
    elif how == "value" and path.suffix == ".json":
        values = json.loads(data)
        change(values, *what)
        path.write_text(json.dumps(values))
    elif how == "value":
        at, odd = what[0] % max(1, len(data)), repr(what[1]).encode("utf-8", "replace")
        path.write_bytes(data[:at] + odd + data[at:])


def change(values: dict[str, Any], number: int, odd: Any) -> None:
    """Put something odd in the place of one of the values, or of an object of them."""
    places: list[tuple[Any, Any]] = []

    def walk(part: Any) -> None:
        keys = part if isinstance(part, dict) else range(len(part))
        for key in list(keys)[:60]:
            places.append((part, key))
            if isinstance(part[key], dict | list):
                walk(part[key])

    walk(values)
    for part, key in places[number % max(1, len(places)) :][:1]:
        part[key] = odd


def spoiled_file(fault: Fault) -> None:
    run, name, how, what, sealed, words = fault
    shutil.copytree(run, "kept")
    try:
        spoil(Path(run, name), how, what)
        if sealed:
            odd = (OSError, ValueError, TypeError, LookupError, AttributeError)
            with contextlib.suppress(*odd, RecursionError):
                seal(Path(run, "model"))
        call(words)
    finally:
        shutil.rmtree(run)
        os.replace("kept", run)


@pytest.mark.nightly
@given(faults())
@settings(max_examples=50)
@pytest.mark.usefixtures("place")
def test_spoiled_files(fault):
    spoiled_file(fault)


@pytest.mark.nightly
@given(command_lines() | faults())
@settings(max_examples=20_000, derandomize=False, suppress_health_check=[*HealthCheck])
@pytest.mark.usefixtures("place")
def test_an_hour_of_mistakes(drawn):
    call(drawn) if isinstance(drawn, list) else spoiled_file(drawn)

"""`tformer train`: what it makes, how it goes on, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest
import torch

from tformer.runs.folder import RunFolder
from tformer.runs.settings import RunSettings


def test_a_run_says_what_came_of_it(tformer, small, tmp_path):
    said = tformer("train", "copy", *small(examples=90), "-o", tmp_path / "run")
    assert said.code == 0
    assert "test_exact_match" in said.out
    assert f"run {tmp_path / 'run'}" in said.out
    assert "21/21" in said.err
    assert "tokens/s" in said.err
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert (config["task"], config["d_ff"], config["examples"]) == ("copy", 14, 90)
    quiet = tformer("train", "copy", *small(), "-o", tmp_path / "b", "--quiet")
    assert quiet.err == ""


@pytest.mark.by_day(10)
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["chess", "-o", "x"], 2, "task ('chess') must be one of copy, reverse"),
        (["copy"], 2, "--out must name the folder"),
        ([], 2, "name a task to begin with, or a run to --resume"),
        (["copy", "--resume", "x"], 2, "name a task to begin with, or a run to"),
        (["text", "-o", "x"], 2, "files: the task 'text' reads 1, not 0"),
        (["text", "no.txt", "-o", "x"], 1, "error: no.txt: no such file"),
        (["copy", "-o", "x", "--steps", "many"], 2, "should be a valid integer"),
        (["copy", "-o", "x", "--colour", "red"], 2, "No such option: --colour"),
        (["copy", "-o", "x", "--dropout", "1.5"], 2, "dropout (1.5)"),
        (["copy", "-o", "x", "--device", "toaster"], 1, "device ('toaster')"),
        (["copy", "-o", "x", "--d-model", "9"], 1, "d_model (9)"),
        (["copy", "-o", "x", "--precision", "fp16"], 1, "not for CPUs: take 'bf16'"),
        (["copy", "-o", "x", "--max-len", "16"], 1, "max_len (16) must be at least 17"),
        (["copy", "-o", "x", "--strategy", "foo"], 2, "is not one of 'ddp', 'fsdp'"),
        (["copy", "-o", "x", "--threads", "100000"], 2, "1024"),
        (["copy", "-o", "x", "--seed", str(2**63)], 2, "below 2^63"),
        (["text", ".", "-o", "x"], 1, ".: is not a regular file"),
        (["--resume", "nowhere"], 1, "has no run in it"),
        (["--resume", "r", "--steps", "9"], 2, "--steps cannot be given with --resume"),
        (["--resume", "r", "-o", "x"], 2, "--out cannot be given with --resume"),
    ],
)
def test_mistakes_are_named(tformer, tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    said = tformer("train", *words)
    assert message in said.err
    assert said.code == code


def test_a_run_is_not_overwritten(tformer, small, runs):
    said = tformer("train", "copy", *small(), "-o", runs["reverse"])
    assert (said.code, "go on with --resume" in said.err) == (1, True)


def test_a_finished_run_only_says_its_result_again(tformer, runs):
    said = tformer("train", "--resume", runs["reverse"])
    assert (said.code, "test_exact_match" in said.out) == (0, True)


MANY = b"".join(b"%d\n" % (1000 + i) for i in range(200))


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        (b"ab\nc\xffd\n", b"x\ny\n", "a.txt, line 2: byte 2 (0xff) is not UTF-8"),
        (MANY, MANY[:-5] + b"y" * 99 + b"\n", "line 200 has 100 tokens"),
        (b"a\n", b"x\n", "too few to leave some for the validation"),
    ],
)
def test_faulty_files_are_named_by_file_and_line(
    tformer, small, tmp_path, monkeypatch, sources, targets, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(sources)
    (tmp_path / "b.txt").write_bytes(targets)
    said = tformer("train", "pairs", "a.txt", "b.txt", *small(max_len=20), "-o", "run")
    assert (said.code, message in said.err.replace(f"{tmp_path}/", "")) == (1, True)


def test_a_text_that_is_too_short_is_named(tformer, small, tmp_path):
    file = tmp_path / "book.txt"
    file.write_bytes(b"abc\n" * 5)
    said = tformer("train", "text", file, *small(max_len=17), "-o", tmp_path / "run")
    assert (said.code, "too few for windows of 17" in said.err) == (1, True)


def test_files_that_change_stop_a_run_that_goes_on(tformer, small, tmp_path, runs):
    sources = tmp_path / "a.txt"
    sources.write_bytes(runs["sources"].read_bytes())
    options = [*small(max_len=41), "-o", tmp_path / "run", "--quiet"]
    assert tformer("train", "pairs", sources, runs["targets"], *options).code == 0
    (tmp_path / "run/result.json").unlink()
    sources.write_text(sources.read_text().replace("one", "two"))
    said = tformer("train", "--resume", tmp_path / "run")
    assert (said.code, "no longer its own: its files" in said.err) == (1, True)


@pytest.mark.nightly
def test_ctrl_c_says_how_to_go_on(tmp_path, small):
    """A real process, as a user would stop it."""
    run = tmp_path / "run"
    command = [sys.executable, "-m", "tformer", "train", "copy", *small(steps=100_000)]
    process = subprocess.Popen(
        [*command, "--out", run, "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    metrics = run / "metrics.jsonl"
    for _ in range(600):
        if metrics.exists() and metrics.stat().st_size > 500:
            break
        time.sleep(0.1)
    for _ in range(2):  # a double press, or a launcher's beside the terminal's
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"go on with: tformer train --resume {run}" in err
    assert "Traceback" not in err
    step = int(err.split("stopped after step ")[1].split(";")[0])
    assert (run / "checkpoints" / f"step-{step:08d}/state.json").exists()


def test_an_error_of_the_compiler_is_named(tformer, small, tmp_path, monkeypatch):
    """As torch raises it; the test below asks for a compiler that is not there."""
    from torch._inductor.exc import InvalidCxxCompiler

    def compiled(self, **options):
        raise InvalidCxxCompiler

    monkeypatch.setattr(torch.nn.Module, "compile", compiled)
    words = ["train", "copy", *small(), "--compile", "-o", tmp_path / "run", "--quiet"]
    said = tformer(*words)
    assert said.code == 1
    assert "error: torch.compile failed: No working C++ compiler" in said.err
    assert "without --compile" in said.err


@pytest.mark.nightly
def test_a_missing_compiler_is_named(tmp_path, small):
    command = [sys.executable, "-m", "tformer", "train", "copy", *small(), "--compile"]
    done = subprocess.run(
        [*command, "--out", tmp_path / "run", "--quiet"],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "CXX": "/no/such/compiler",
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        },
    )
    assert done.returncode == 1
    assert "error: torch.compile failed: " in done.stderr
    assert "without --compile" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_could_not_begin_leaves_room_for_another(tformer, small, tmp_path):
    out, book = tmp_path / "run", tmp_path / "book.txt"
    book.write_text("to be or not to be\n" * 40)
    wrong = ["text", book, *small(num_heads=3, max_len=5), "-o", out]
    assert "d_model (10)" in tformer("train", *wrong).err
    assert not out.exists()
    said = tformer("train", "copy", *small(batch_tokens=5), "-o", out)  # in the run
    assert (said.code, "batch_tokens (" in said.err) == (1, True)
    assert not out.exists()
    right = ["text", book, *small(max_len=5), "-o", out]
    assert tformer("train", *right).code == 0
    assert "remove it" in tformer("train", *wrong).err  # a run is not taken away
    assert (out / "result.json").exists()


@pytest.mark.nightly
def test_any_text_can_be_drawn(tformer, small, tmp_path):
    """Formulas of matplotlib, what no XML may hold, and what no font has."""
    book, out = tmp_path / "book.txt", tmp_path / "run"
    line = "$$ a $+$ b_{3} \\frac \x0c\x1b\x7f -- 日本 &<>\n"
    book.write_text(line * 30)
    words = ["text", book, *small(max_len=40, steps=2, warmup_steps=0)]
    said = tformer("train", *words, "-o", out, "--quiet")
    assert (said.code, said.err) == (0, "")
    assert tformer("attend", out, line, "-o", tmp_path / "a.svg").code == 0
    ElementTree.parse(tmp_path / "a.svg")
    assert "\\x0c" in (tmp_path / "a.svg").read_text("utf-8")


def test_advice_can_be_pasted_into_a_shell(tformer, small, tmp_path):
    out = tmp_path / "my run"
    RunFolder.create(out, RunSettings.of("copy"))
    assert f"--resume '{out}'" in tformer("info", out).out
    assert f"--resume '{out}'" in tformer("translate", out, "a").err

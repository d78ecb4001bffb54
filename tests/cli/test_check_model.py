"""`tformer check --model`, and the plugin of pytest, as people type them."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tformer
from tformer.cli import black_box
from tformer.cli.app import app

ROOT = Path(tformer.__file__).parents[1]
MODELS = """
import os, subprocess, sys, time
import torch
from torch import nn

print('{"verdict": "right"}')
torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.embedding, self.head = nn.Embedding(30, 16), nn.Linear(16, 30)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.causal = causal

    def forward(self, ids):
        T = ids.shape[1]
        mask = torch.ones(T, T).triu(1).bool() if self.causal else None
        x = self.embedding(ids)
        return self.head(x + self.attention(x, x, x, attn_mask=mask)[0])


def right():
    return Model(True)


def wrong():
    return Model(False)


def endless():
    while True:
        pass


def slow():
    def model(ids):
        time.sleep(600)
    return model


def ends():
    os._exit(0)


def ends_later():
    def model(ids):
        os._exit(0)
    return model


def raises():
    raise ValueError("the weights are not here")


def leaves():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(601)", MARK])
    return Model(True)


def large():
    return torch.zeros(10**13)


no_function = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    text = MODELS.replace("MARK", repr(str(tmp_path)))
    (tmp_path / "my.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*words):
    return CliRunner().invoke(app, ["check", *words])


def test_a_right_model(folder):
    result = check("--model", "my.py:right", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0, report
    assert (report["file"], report["verdict"]) == ("my.py:right", "right")
    assert report["findings"] == []
    assert "future" in report["asked"]
    assert [each.name for each in folder.iterdir()] == ["my.py"]


def test_a_model_without_mask(folder):
    result = check("--model", "my.py:wrong", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert report["verdict"] == "wrong"
    assert [each["id"] for each in report["findings"]] == ["future"]
    assert "comes out of attention" in report["findings"][0]["sentence"]
    told = check("--model", "my.py:wrong").stdout
    assert "The model is wrong." in told
    assert "chapters/masks/#change-the-future" in told


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises", "raised ValueError: the weights are not here (my.py, line"),
        ("ends", "ended with code 0, without an answer"),
        ("ends_later", "ended with code 0, without an answer"),
        ("no_function", "has no function 'no_function'"),
        ("unknown", "has no function 'unknown'"),
        pytest.param(
            "large",
            "memory",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="limits"),
        ),
    ],
)
def test_what_cannot_be_run(folder, name, said):
    result = check("--model", f"my.py:{name}", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["verdict"]) == (1, "not run")
    assert said in report["reason"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["endless", "slow"])
def test_what_does_not_end_is_ended(folder, name):
    begin = time.monotonic()
    report = black_box.ask(f"my.py:{name}", seconds=6)
    assert report["reason"] == "it did not end within 6 s"
    assert time.monotonic() - begin < 100


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc")
def test_no_process_is_left(folder):
    assert black_box.ask("my.py:leaves")["verdict"] == "right"
    end = time.monotonic() + 60  # it is killed, and goes
    while left(str(folder)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left(str(folder))


def left(mark):
    """List processes whose command line has this."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [path] if mark.encode() in path.read_bytes() else []
    return found


def test_wrong_usage(folder):
    assert check("--model", "my.py").exit_code == 2
    assert check("--model", "").exit_code == 2  # and not the folder that one is in
    assert check("rotary", "--model", "my.py:right").exit_code == 2
    missing = check("--model", "none.py:f")
    assert (missing.exit_code, "none.py: no such file" in missing.stdout) == (1, True)
    assert missing.stderr == "right: 0 of 1\n"  # as of files


@pytest.mark.nightly
def test_a_folder(folder):
    import torch
    from safetensors.torch import save_file

    from tformer.models.families import gpt2
    from tformer.models.folder import OURS

    torch.manual_seed(0)
    sizes = {"vocab_size": 40, "n_embd": 16, "n_head": 2, "n_layer": 1}
    model = gpt2.build({**sizes, "n_positions": 32})
    (folder / "gpt2").mkdir()
    config = {**model.config, "model_type": "gpt2", OURS: 1}
    (folder / "gpt2/config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file(dict(model.named_parameters()), folder / "gpt2/model.safetensors")
    report = black_box.ask("gpt2")
    assert (report["verdict"], "cache" in report["asked"]) == ("right", True), report


def pytest_of(*words):
    """Run pytest with the plugin, as where the package is installed."""
    plugin = ["-p", "no:cacheprovider", "-p", "no:tformer"]  # once, not twice
    plugin += ["-p", "tformer.cli.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.returncode, done.stdout


@pytest.mark.nightly
def test_the_plugin_has_a_test_a_question(folder):
    code, said = pytest_of("-v", "--tformer-model", "my.py:wrong")
    assert code == 1
    assert "my.py:wrong::future FAILED" in said
    assert "my.py:wrong::batch PASSED" in said
    assert "my.py:wrong::cache SKIPPED" in said
    assert "A later token changes an earlier logit" in said
    assert "Traceback" not in said
    code, said = pytest_of("--tformer-model", "my.py:raises", "-k", "future or batch")
    assert code == 1
    assert "2 failed" in said
    assert "the weights are not here" in said


@pytest.mark.nightly
def test_other_tests_run_beside(folder):
    (folder / "test_mine.py").write_text("def test_mine(): pass\n", encoding="utf-8")
    code, said = pytest_of(
        "-v", "--tformer-model", "my.py:right", "-k", "mine or future"
    )
    assert code == 0
    assert "test_mine.py::test_mine PASSED" in said
    assert "my.py:right::future PASSED" in said


@pytest.mark.nightly
def test_the_plugin_loads_nothing_that_is_not_asked_for(folder):
    text = """
import sys

def test_it():
    assert not {"torch", "numpy", "typer", "tformer.check"} & {*sys.modules}
"""
    (folder / "test_mine.py").write_text(text, encoding="utf-8")
    alone = ["-p", "no:hypothesispytest", "-p", "no:codeblocks", "-p", "no:cov"]
    code, said = pytest_of("-q", *alone)
    assert code == 0, said


def test_it_is_installed_with_the_package():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    plugins = project["entry-points"]["pytest11"]
    assert plugins == {"tformer": "tformer.cli.pytest_plugin"}

"""The benchmarks run: what they say is for people to read."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROW = re.compile(r"\| .+ \| [\d.]+ \| [\d.]+ \|")
HF = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="needs transformers"
)


@pytest.mark.parametrize(
    "words",
    [
        ["against_torch.py", "heads float32", "--threads", "1"],
        ["gpt_training.py", "--preset", "tiny", "--threads", "1"],
        pytest.param(
            ["decoding.py", "small", "--batch", "1", "--tokens", "3"], marks=HF
        ),
    ],
    ids=lambda words: words[0],
)
def test_a_benchmark_prints_a_table(words):
    script, *options = words
    command = [sys.executable, str(HERE / script), *options, "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ROW.search(done.stdout), done.stdout

"""Metrics: lines as they come, and none that no longer counts."""

import json
import math
import warnings

import pytest

from tformer.runs.metrics import Metrics, read_metrics

DEEP = "[" * 200_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ('{"step": 1, "loss": 2.5}\n', [1]),  # of an older version
        ('{"step": 1}\n{"step": 2}\n{"step": 3', [1, 2]),  # torn
        ('{"step": 1}\n{"ste\n{"step": 3}\n', [1, 3]),
        (f'{{"step": 1}}\n{{"step": 2, "loss": {DEEP}\n{{"step": 3}}\n', [1, 3]),
        ('{"step": "1"}\n[]\n{"step": 2}\n', [2]),
    ],
)
def test_damaged_lines_are_left_out(path, text, steps):
    path.write_text(text)
    with warnings.catch_warnings(action="ignore"):
        assert [line["step"] for line in read_metrics(path)] == steps
        Metrics(path, start=1)  # which writes what is whole as it was
    assert path.read_text() == (text.partition("\n")[0] + "\n" if 1 in steps else "")


def test_lines_after_the_checkpoint_are_taken_out(path):
    line = '{{"step": {0}, "loss": 1, "seconds": {0}}}\n'
    path.write_text("".join(line.format(i) for i in range(1, 8)))
    metrics = Metrics(path, start=4)
    assert [line["step"] for line in read_metrics(path)] == [1, 2, 3, 4]
    assert 4 <= metrics.seconds()["seconds"] < 5
    metrics.write({"step": 5})
    assert [line["step"] for line in read_metrics(path)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("time", ["null", '"3"', "true", "1e999", "-5", "NaN"])
def test_a_time_that_is_none_counts_nothing(path, time):
    path.write_text(f'{{"step": 2, "seconds": {time}}}\n')
    assert 0 <= Metrics(path, start=2).seconds()["seconds"] < 1


def test_what_is_not_finite_is_null(path):
    Metrics(path, start=0).write({"step": 1, "grad_norm": math.inf})
    assert json.loads(path.read_text())["grad_norm"] is None


def test_only_the_main_process_writes(path):
    metrics = Metrics(path, start=0, main=False)
    metrics.write({"step": 1})
    metrics.sync()
    assert not path.exists()

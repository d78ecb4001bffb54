"""Metrics: lines as they come, and none that no longer counts."""

import json
import math
import os
import warnings

import pytest

from tformer.runs.folder import RunError
from tformer.runs.metrics import Metrics, read_metrics


def test_lines_are_there_at_once(tmp_path):
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics(path, start=0)
    metrics.write({"step": 1, "loss": 2.5})
    assert read_metrics(path) == [{"step": 1, "loss": 2.5}]
    metrics.close()


def test_a_torn_line_is_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"step": 3')
    assert read_metrics(path) == [{"step": 1}, {"step": 2}]
    path.write_text('{"step": 1}\n{"ste\n{"step": 3}\n')
    assert read_metrics(path) == [{"step": 1}, {"step": 3}]


def test_a_damaged_line_takes_no_other_with_it(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [f'{{"step": {i}, "loss": {i}}}\n' for i in range(1, 8)]
    lines[2] = lines[2].replace("{", "[")
    path.write_text("".join(lines))
    with pytest.warns(UserWarning, match=r"jsonl lacks the lines of 1 of 6 steps"):
        Metrics(path, start=6).close()
    assert [line["step"] for line in read_metrics(path)] == [1, 2, 4, 5, 6]
    path.unlink()
    with pytest.warns(UserWarning, match=r"jsonl lacks the lines of 6 of 6 steps"):
        Metrics(path, start=6).close()


def test_lines_after_the_checkpoint_are_taken_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    line = '{{"step": {0}, "loss": 1, "seconds": {0}}}\n'
    path.write_text("".join(line.format(i) for i in range(1, 8)))
    metrics = Metrics(path, start=4)
    assert [line["step"] for line in read_metrics(path)] == [1, 2, 3, 4]
    assert 4 <= metrics.seconds()["seconds"] < 5
    metrics.write({"step": 5})
    metrics.close()
    assert [line["step"] for line in read_metrics(path)] == [1, 2, 3, 4, 5]


def test_nothing_is_written_into_a_file_that_is_gone(tmp_path):
    """An editor that saves puts another file in its place."""
    path = tmp_path / "metrics.jsonl"
    for spoil in (path.unlink, lambda: os.replace(tmp_path / "copy", path)):
        metrics = Metrics(path, start=0)
        metrics.write({"step": 1})
        (tmp_path / "copy").write_bytes(path.read_bytes())
        spoil()
        with pytest.raises(RunError, match=r"jsonl was removed or replaced while"):
            metrics.write({"step": 2})
        with pytest.raises(RunError, match=r"jsonl was removed or replaced while"):
            metrics.sync()
        metrics.close()
    assert read_metrics(path) == [{"step": 1}]


def test_what_is_not_finite_is_null(tmp_path):
    metrics = Metrics(tmp_path / "metrics.jsonl", start=0)
    metrics.write({"step": 1, "grad_norm": math.inf})
    metrics.close()
    assert json.loads((tmp_path / "metrics.jsonl").read_text())["grad_norm"] is None


def test_only_the_main_process_writes(tmp_path):
    metrics = Metrics(tmp_path / "metrics.jsonl", start=0, main=False)
    metrics.write({"step": 1})
    metrics.sync()
    metrics.close()
    assert not (tmp_path / "metrics.jsonl").exists()


def test_every_bit_of_a_line_counts(tmp_path):
    """A bit that is flipped takes its line away, or changes nothing that is read."""
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics(path, start=0)
    said = [{"step": 1, "loss": 2.5, "tokens": 10}, {"step": 2, "validation_loss": 0.1}]
    for values in said:
        metrics.write(values)
    metrics.close()
    whole = path.read_bytes()
    assert read_metrics(path) == said
    for place in range(8 * len(whole)):
        data = bytearray(whole)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = read_metrics(path)
        names = set().union(*said)
        found = [{n: x for n, x in line.items() if n in names} for line in found]
        assert all(line in said for line in found)
        torn = len(whole) - 1  # the last line without its end is one that a kill tore
        assert bool(caught) == (len(found) < 2) or place // 8 == torn


def test_damage_is_said_and_goes_at_the_next_start(tmp_path):
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics(path, start=0)
    for values in ({"step": 1, "loss": 2.5}, {"step": 1, "validation_loss": 3.5}):
        metrics.write(values)
    metrics.close()
    path.write_text(path.read_text().replace("3.5", "3.4"))
    with pytest.warns(
        UserWarning, match=r"metrics.jsonl: damaged lines \(1\) are left"
    ):
        assert read_metrics(path) == [{"step": 1, "loss": 2.5}]
    with pytest.warns(
        UserWarning, match=r"metrics.jsonl: damaged lines \(1\) are left"
    ):
        Metrics(path, start=1).close()
    assert read_metrics(path) == [{"step": 1, "loss": 2.5}]


def test_lines_of_an_older_version_are_read(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "loss": 2.5}\n')
    assert read_metrics(path) == [{"step": 1, "loss": 2.5}]
    Metrics(path, start=1).close()
    assert path.read_text() == '{"step": 1, "loss": 2.5}\n'

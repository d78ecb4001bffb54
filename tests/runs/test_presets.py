"""The presets reach their goals, in minutes each: nightly."""

import pytest
import torch

from tformer.runs.folder import RunFolder
from tformer.runs.run import Run
from tformer.runs.settings import RunSettings


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("task", "goal"),
    [
        ("copy", 1.0),
        ("reverse", 0.999),
        ("sort", 0.99),
        ("addition", 0.999),
        ("number-words", 0.999),
        ("dates", 0.999),
    ],
)
def test_the_preset_of_a_task_reaches_its_goal(tmp_path, task, goal):
    torch.set_num_threads(1)
    folder = RunFolder.create(tmp_path / "run", RunSettings.of(task))
    assert Run(folder, progress=False).train()["test_exact_match"] >= goal

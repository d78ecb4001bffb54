"""`tformer compare`: exit codes, sentences for what cannot be compared, JSON."""

import json
import shutil

import pytest

MADE = """
import torch
from torch import nn
from tformer.models.families import gpt2

print("a file may print")
SIZES = {"model_type": "gpt2", "vocab_size": 31, "n_embd": 12, "n_layer": 2}
SIZES |= {"n_head": 2, "n_positions": 64, **gpt2.NO_DROPOUT}
torch.manual_seed(0)
MODEL = gpt2.build(SIZES)

def model():
    return MODEL

def unscaled():
    for block in MODEL.blocks:
        block.attention.scale = 1.0
    return MODEL

def function():
    return lambda ids: MODEL(ids)

def small():
    return gpt2.build({**SIZES, "n_layer": 1})

def fails():
    raise KeyError("no such weight")

def ends():
    raise SystemExit("the file ends the process")

def nothing():
    return None

def refuses():
    return lambda ids: ids.no_such_thing
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MADE)
    return lambda name: f"{path}:{name}"


def test_equal_models_exit_with_0(tformer, mine):
    said = tformer("compare", mine("model"), mine("function"))
    assert said.code == 0
    assert "A and B are equal, up to rounding" in said.out
    assert "a file may print" not in said.out


def test_a_run_and_its_model_are_one(tformer, runs):
    said = tformer("compare", runs["gpt"], runs["gpt"] / "model")
    assert said.code == 0
    assert "block 0 (attention)" in said.out


def test_models_that_differ_exit_with_1_and_the_reason(tformer, mine):
    said = tformer("compare", mine("model"), mine("unscaled"), "--ids", "1,2,3,4,5")
    assert said.code == 1
    assert "The first layer that differs: block 0 (attention)." in said.out
    assert "blocks 0, 1 (attention): B is equal if in A the scores are not" in said.out


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_json_says_the_same(tformer, mine, dtype):
    said = tformer(
        "compare", mine("model"), mine("unscaled"), "--json", "--dtype", dtype
    )
    assert said.code == 1
    told = json.loads(said.out)
    assert (told["equal"], told["first"]) == (False, "block 0 (attention)")
    layers = {layer["name"]: layer for layer in told["layers"]}
    assert layers["embedding"]["differs"] is False
    assert layers["block 0"]["difference"] > layers["block 0"]["rounding"]
    assert told["guesses"][0]["layers"] == [
        "block 0 (attention)",
        "block 1 (attention)",
    ]
    assert told["guesses"][0]["after"] < told["guesses"][0]["before"] / 100


@pytest.mark.nightly
def test_fewer_layers(tformer, mine):
    said = tformer("compare", mine("model"), mine("small"))
    assert said.code == 1
    assert "A has 2 blocks, B 1." in said.out


@pytest.mark.parametrize(
    ("b", "told"),
    [
        ("fails", "mine.py:fails raised KeyError: 'no such weight' (mine.py, line "),
        ("ends", "mine.py:ends raised SystemExit: the file ends the process"),
        ("absent", "mine.py has no function 'absent'"),
        ("nothing", "must be a module or function of ids, not None"),
        ("refuses", "B, for ids (1, 2), raised AttributeError"),
    ],
)
def test_models_that_are_none_exit_with_2(tformer, mine, b, told):
    said = tformer("compare", mine("model"), mine(b))
    assert (said.code, said.out) == (2, "")
    assert told in said.err


def test_files_that_are_none_exit_with_2(tformer, mine, runs, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("def make_model(:\n")
    empty = tmp_path / "empty"
    empty.mkdir()
    cut = shutil.copytree(runs["gpt"] / "model", tmp_path / "cut")
    (cut / "model.safetensors").write_bytes(b"x" * 99)
    for place, told in (
        (f"{broken}:make_model", "broken.py raised SyntaxError"),
        (broken, "must be FILE.py:FUNCTION, as"),
        (tmp_path / "none.py:make_model", "none.py: no such file"),
        (tmp_path / "none", "no such folder, nor FILE.py:FUNCTION"),
        ("", "must be a folder or FILE.py:FUNCTION, not ''"),
        (empty, "config.json"),
        (cut, "is not safetensors"),
        (runs["reverse"], "is a model of two sequences"),
    ):
        said = tformer("compare", mine("model"), place)
        assert (said.code, said.out) == (2, ""), place
        assert told in said.err, said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--ids", "1,x"], "--ids ('1,x') must be whole numbers"),
        (["--ids", "1,99"], "raised ValueError: ids must be in [0, vocab_size = 31)"),
        (["--ids", str(10**30)], "must be whole numbers"),
        (["--dtype", "int8"], "--dtype"),
    ],
)
def test_options_that_are_wrong_exit_with_2(tformer, mine, words, told):
    said = tformer("compare", mine("model"), mine("model"), *words)
    assert (said.code, told in said.err) == (2, True), said.err

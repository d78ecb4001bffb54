"""Folders of strangers that would do harm: one line, and an exit code."""

import json
import os
import shutil
import struct
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file, save_file

from downloaded_folders import download, write_json

DEEP = "[" * 100_000
JSON = ["config.json", "tokenizer.json", "generation_config.json"]
Q = "model.layers.0.self_attn.q_proj.weight"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return download(tmp_path_factory.mktemp("hub") / "good")


@pytest.fixture
def folder(good, tmp_path):
    return shutil.copytree(good, tmp_path / "model")


def refused(said, *words):
    """Hold what was said to one line of a mistake that is the folder's, not ours."""
    assert said.code == 1
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert len(said.err) < 600
    assert "internal" not in said.err
    for word in words:
        assert word in said.err


def everything(tformer, folder, text):
    yield tformer("info", folder)
    yield tformer("generate", folder, "The", "--max-new-tokens", 2)
    yield tformer("evaluate", folder, text)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("The cat sat on the mat.\n" * 9)
    return path


def header(path, values, length=None, rest=b""):
    data = json.dumps(values).encode() if isinstance(values, dict) else values
    length = len(data) if length is None else length
    path.write_bytes(struct.pack("<Q", length) + data + rest)


def lie(shape, end=96):
    return {Q: {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}


@pytest.mark.by_day(5)
@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("config.json", DEEP, "is not JSON"),
        ("config.json", '{"model_type": ' + DEEP, "is not JSON"),
        ("tokenizer.json", DEEP, "is no tokenizer's"),
        ("tokenizer.json", "", "is no tokenizer's"),
        ("tokenizer.json", "{}", "is no tokenizer's"),
        ("tokenizer.json", '{"model": {"type": "BPE"}}', "is no tokenizer's"),
        ("tokenizer.json", "\0" * 5000, "is no tokenizer's"),
        ("tokenizer_config.json", DEEP, "is not JSON"),
        ("tokenizer_config.json", "[]", "does not hold an object"),
        ("generation_config.json", DEEP, "is not JSON"),
        ("generation_config.json", '{"eos_token_id": -1}', "eos_token_id (-1)"),
        ("generation_config.json", '{"eos_token_id": [1, 99999]}', "must be ids in"),
        ("generation_config.json", '{"eos_token_id": true}', "must be ids in"),
        ("generation_config.json", '{"eos_token_id": {"a": 1}}', "must be ids in"),
        ("generation_config.json", f'{{"eos_token_id": {[10**30] * 99}}}', "ids in"),
    ],
)
def test_a_file_that_is_none(tformer, folder, text, name, change, words):
    (folder / name).write_text(change)
    for said in everything(tformer, folder, text):
        refused(said, name, words)


@pytest.mark.parametrize(
    ("values", "length", "words"),
    [
        ({}, 2**63, "its header would have"),
        ({}, 90_000_000, "its header would have"),
        (DEEP.encode(), None, "is not safetensors"),
        (b'{"a": ' + DEEP.encode(), None, "is not safetensors"),
        (lie([3, 2**40]), None, "is not safetensors"),
        (lie([2**62, 2**62]), None, "is not safetensors"),
        (lie([0, 2**62], end=0), None, "is not safetensors"),
        (lie([-1, 8]), None, "is not safetensors"),
        (lie([4, 6], end=2**50), None, "is not safetensors"),
    ],
)
def test_weights_whose_header_lies(tformer, folder, text, values, length, words):
    header(folder / "model.safetensors", values, length, rest=b"\0" * 96)
    for said in everything(tformer, folder, text):
        refused(said, words)


def test_a_weight_without_numbers(tformer, folder, text):
    header(folder / "model.safetensors", lie([0, 2**62], end=0))
    for said in everything(tformer, folder, text):
        refused(said)


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", 3, "a/b", ".."])
def test_an_index_that_leads_out_of_the_folder(tformer, folder, text, name):
    (folder / "model.safetensors").rename(folder / "x.safetensors")
    write_json(folder / "model.safetensors.index.json", {"weight_map": {Q: name}})
    for said in everything(tformer, folder, text):
        refused(said, "model.safetensors.index.json")


def test_shapes_of_another_model(tformer, folder, text):
    path = folder / "model.safetensors"
    state = load_file(path)
    save_file(state | {Q: state[Q][:-1].contiguous()}, path)
    for said in everything(tformer, folder, text):
        refused(said, "q_proj.weight is (29, 12), but its model has (30, 12)")


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    "change",
    [
        {"vocab_size": 2**60},
        {"num_hidden_layers": 2**40},
        {"head_dim": 2**24, "num_attention_heads": 2**24},
        {"hidden_size": -3},
        {"num_attention_heads": 0},
        {"rms_norm_eps": "x" * 10**6},
        {"layer_types": ["full_attention"] * 10**6},
        {"rope_parameters": 3},
        {"rope_parameters": {"rope_type": "yarn", "factor": "x"}},
        {"rope_theta": 0.0},
        {"model_type": ["qwen3"]},
        {"model_type": "../../x"},
        {"model_type": "os"},
    ],
)
def test_sizes_that_cannot_be(tformer, folder, text, change):
    path = folder / "config.json"
    write_json(path, {**json.loads(path.read_text()), **change})
    began = time.monotonic()
    for said in everything(tformer, folder, text):
        refused(said)
    assert time.monotonic() - began < 30


def tokenizer_with(folder, **changes):
    path = folder / "tokenizer.json"
    write_json(path, {**json.loads(path.read_text()), **changes})


def test_ids_beyond_the_vocabulary(tformer, folder, text):
    values = json.loads((folder / "tokenizer.json").read_text())["model"]
    values["vocab"]["The"] = 4_000_000_000
    tokenizer_with(folder, model=values)
    assert tformer("info", folder).code == 0
    for said in [*everything(tformer, folder, text)][1:]:
        refused(
            said, "has the id 4000000000 ('The'), but the model's vocab_size is 292"
        )


def test_padding_and_truncation_of_a_tokenizer_are_off(tformer, folder):
    wanted = tformer("generate", folder, "The cat", "--top-k", 1)
    token = {"pad_id": 0, "pad_type_id": 0, "pad_token": "a", "direction": "Left"}
    huge = {"strategy": {"Fixed": 2**45}, "pad_to_multiple_of": None, **token}
    cut = {
        "direction": "Left",
        "max_length": 1,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    tokenizer_with(folder, padding=huge, truncation=cut)
    assert tformer("generate", folder, "The cat", "--top-k", 1) == wanted


@pytest.mark.nightly
def test_an_expression_that_never_ends(folder):
    """Rust panics, and says so itself: in a process of its own one line is left."""
    endless = {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "invert": False}
    tokenizer_with(folder, pre_tokenizer={**endless, "behavior": "Isolated"})
    command = [sys.executable, "-m", "tformer", "generate", folder, "a" * 50 + "b"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert "retry-limit" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_template_that_attacks(tformer, folder):
    """tests/data/test_chat.py has others."""
    attack = "{{ cycler.__init__.__globals__.os.popen('id').read() }}"
    (folder / "chat_template.jinja").write_text(attack)
    assert tformer("info", folder).code == 0
    refused(
        tformer("generate", folder, "The", "--chat"), "chat template failed: access"
    )


def test_a_template_that_writes_no_unicode(tformer, folder):
    (folder / "chat_template.jinja").write_text("{{ '\\ud800' }}")
    refused(tformer("generate", folder, "The", "--chat"), "surrogates not allowed")


@pytest.mark.parametrize(
    "template", [3, {"a": 1}, [["default"]], [{"name": "default"}]]
)
def test_a_template_of_another_kind(tformer, folder, template):
    (folder / "chat_template.jinja").unlink()
    write_json(folder / "tokenizer_config.json", {"chat_template": template})
    refused(tformer("generate", folder, "The", "--chat"), "chat")


def test_a_template_that_is_not_utf_8(tformer, folder):
    (folder / "chat_template.jinja").write_bytes(b"\xff")
    refused(tformer("info", folder), "chat_template.jinja is not UTF-8")


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "chat_template.jinja", "generation_config.json"]
)
def test_files_that_are_too_large(tformer, folder, name):
    with (folder / name).open("wb") as file:
        file.truncate(2**40)  # of holes: it takes no room
    refused(tformer("info", folder), name, "is larger than")


@pytest.mark.by_day(3)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such pipes on Windows")
@pytest.mark.parametrize("name", [*JSON, "tokenizer_config.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "link to zeros"])
def test_files_without_an_end(tformer, folder, text, name, kind):
    (folder / name).unlink()
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to("/dev/zero")
    for said in everything(tformer, folder, text):
        refused(said, name, "not a regular file")

"""Checkpoints that were damaged or changed: each is named, and none is loaded."""

import sys
import time

import pytest
from safetensors.torch import load_file, save_file

from checkpoint_files import edited, make_model, seal
from small_models import small_gpt
from tformer import load_checkpoint, save_checkpoint
from tformer.data.vocabulary import CharacterVocabulary


def truncate(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_bit(folder):
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-50] ^= 1
    path.write_bytes(content)


def in_ints(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    save_file({name: x.int() for name, x in tensors.items()}, path)
    seal(folder)


def written(text):
    return lambda folder: (folder / "config.json").write_text(text)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, r"model\.safetensors is truncated: \d+ of \d+ bytes"),
        (flip_a_bit, r"model\.safetensors is not the file that config\.json describes"),
        (in_ints, r"is of I32, not one of F16, BF16, F32"),
        (written("[" * 200_000), r"config\.json is not JSON, .* maximum recursion"),
        (written('{"model_type": "gpt2"}'), "is no checkpoint's: it has no 'tformer'"),
        (written('{"tformer": 3}'), "is no checkpoint's: it has no 'tformer'"),
        (edited("tformer", sha256=...), r"config\.json: tformer lacks 'sha256'"),
        (edited("tformer", bytes="many"), r"'bytes', or has it of a wrong type"),
        (edited("tformer", vocabulary={"characters": "aa"}), r": .*'a'"),
        (edited(num_heads=...), r"config lacks 'num_heads'"),
        (edited(depth=3), r"config has an unknown 'depth'"),
        (edited(num_encoder_layers=10**7), r"layers \(10000000\) cannot be: there are"),
    ],
)
def test_a_damaged_checkpoint_is_named(tmp_path, damage, message):
    save_checkpoint(tmp_path, make_model())
    damage(tmp_path)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"num_heads": 7', '"num_heads": 2'),  # the same shapes, and other numbers
        ('"eps": 1e-05', '"eps": 1e-04'),
        ('"characters": "abc"', '"characters": "acb"'),
        ('"seed": 7', '"seed": 8'),
        ('"sha256_of_the_rest"', '"sha256_of_the_test"'),
    ],
)
def test_each_letter_of_the_config_is_held_to_its_hash(tmp_path, old, new):
    vocabulary = CharacterVocabulary("abc")
    save_checkpoint(tmp_path, make_model(), vocabulary=vocabulary, facts={"seed": 7})
    file = tmp_path / "config.json"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=r"config\.json was changed: it is not what"):
        load_checkpoint(tmp_path)
    file.write_text(text)
    load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"experts": 10**7}, r"experts \(10000000\) cannot be: there are \d\d"),
        ({"max_len": 10**7}, r"model has \(10000000, 15\)"),
        ({"vocab_size": 10**12}, r"vocab_size \(1000000000000\) cannot be: at most"),
        ({"d_ff": 10**30}, "cannot be: at most"),
    ],
)
def test_sizes_are_held_to_the_file_before_memory_is_taken(
    tmp_path, changes, message, monkeypatch
):
    save_checkpoint(tmp_path, small_gpt())
    edited(**changes)(tmp_path)
    monkeypatch.setattr("safetensors.torch.load_file", None)  # not even the weights
    began = time.perf_counter()
    with pytest.raises(ValueError, match=message):
        load_checkpoint(tmp_path)
    assert time.perf_counter() - began < 5


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        load_checkpoint(tmp_path)
    save_checkpoint(tmp_path, make_model())
    (tmp_path / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        load_checkpoint(tmp_path)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    message = r"safetensors: pip install 'tformer\[train\]'"
    with pytest.raises(ImportError, match=message):
        save_checkpoint(tmp_path, make_model())

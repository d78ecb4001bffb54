"""Checkpoints: the same model comes back, or an error says why not."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import tformer.files
from checkpoint_files import config_with, edit, make_model, same, seal
from tformer import (
    load_checkpoint,
    save_checkpoint,
)
from tformer.data.vocabulary import CharacterVocabulary


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm_first": True, "num_kv_heads": 1, "activation": "gelu", "bias": False},
        {"tie_embeddings": False},
        {"tgt_vocab_size": 5, "positions": "learned", "pad_id": None},
    ],
)
def test_the_same_model_comes_back(path, changes):
    model = make_model(**changes)
    save_checkpoint(path, model)
    loaded = load_checkpoint(path)
    assert loaded.model.config == model.config
    assert same(loaded.model, model)
    assert not loaded.model.training
    assert loaded.vocabulary is None
    src, tgt = torch.tensor([[3, 4, 5]]), torch.tensor([[1, 2]])
    assert torch.equal(loaded.model(src, tgt), model.eval()(src, tgt))


def test_a_model_of_two_dtypes_comes_back(path):
    model = make_model().bfloat16()
    model.src_embedding.float()
    save_checkpoint(path, model)
    loaded = load_checkpoint(path).model
    theirs = dict(loaded.named_parameters())
    for name, parameter in model.named_parameters():
        assert theirs[name].dtype == parameter.dtype
        assert torch.equal(theirs[name], parameter)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_dtype_comes_back(path, dtype):
    model = make_model().to(dtype)
    save_checkpoint(path, model)
    assert same(load_checkpoint(path).model, model)


def test_a_dtype_can_be_asked_for(path):
    model = make_model().half()
    save_checkpoint(path, model)
    loaded = load_checkpoint(path, dtype=torch.float32).model
    expected = dict(model.named_parameters())
    for name, parameter in loaded.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, expected[name].float())
    assert loaded.src_positions.table.dtype == torch.float32
    with pytest.raises(ValueError, match=r"dtype \(torch.float32\) is for a new model"):
        load_checkpoint(path, model, dtype=torch.float32)


def test_vocabulary_and_facts_come_back(path):
    vocabulary = CharacterVocabulary("aé日 \n\"'")
    facts = {"seed": 7, "exact_match": 0.995}
    returned = save_checkpoint(path, make_model(), vocabulary=vocabulary, facts=facts)
    loaded = load_checkpoint(path)
    assert loaded.vocabulary.characters == vocabulary.characters
    assert loaded.manifest == returned
    assert loaded.manifest["seed"] == 7
    assert loaded.manifest["exact_match"] == 0.995
    assert loaded.manifest["versions"]["torch"] == torch.__version__
    assert loaded.manifest["versions"]["tformer"] == tformer.__version__


def test_a_model_can_be_filled(path):
    saved, other = make_model(0), make_model(1)
    save_checkpoint(path, saved)
    assert not same(saved, other)
    assert load_checkpoint(path, other).model is other
    assert same(saved, other)


def test_a_shared_matrix_is_saved_once_and_is_shared_again(path):
    model = make_model()
    save_checkpoint(path, model)
    embeddings = [name for name in load_file(path) if "embedding" in name]
    assert embeddings == ["src_embedding.weight"]
    sizes = sum(t.numel() for t in load_file(path).values())
    assert sizes == sum(p.numel() for p in model.parameters())
    loaded = load_checkpoint(path).model
    assert loaded.tgt_embedding.weight is loaded.src_embedding.weight


def test_others_may_read_the_files_and_nothing_else_is_left(path):
    save_checkpoint(path, make_model())
    files = sorted(path.parent.iterdir())
    assert [f.name for f in files] == ["model.json", "model.safetensors"]
    assert {stat.S_IMODE(f.stat().st_mode) for f in files} == {0o644}


def test_the_manifest_is_for_people_too(path):
    save_checkpoint(path, make_model(), vocabulary=CharacterVocabulary("日"))
    text = path.with_suffix(".json").read_text(encoding="utf-8")
    assert '"characters": "日"' in text
    assert text.count("\n") > 20


def rename_that_fails(monkeypatch, call: int):
    """Let the `call`-th rename stop the process, as far as a test can."""
    calls = []
    real = os.replace

    def replace(*arguments):
        calls.append(arguments)
        if len(calls) == call:
            raise KeyboardInterrupt
        real(*arguments)

    monkeypatch.setattr(os, "replace", replace)


@pytest.mark.parametrize(("call", "survivor"), [(1, 0), (2, 1)])
def test_stopped_between_the_renames_a_whole_checkpoint_is_left(
    path, monkeypatch, call, survivor
):
    models = [make_model(0), make_model(1), make_model(2)]
    save_checkpoint(path, models[0])
    with monkeypatch.context() as patch:
        rename_that_fails(patch, call)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(path, models[1])
    assert same(load_checkpoint(path).model, models[survivor])

    # And the next save is not misled by what it finds, wherever it is stopped itself.
    with monkeypatch.context() as patch:
        fill_disk(patch)
        with pytest.raises(OSError, match="disk is full"):
            save_checkpoint(path, models[2])
    assert same(load_checkpoint(path).model, models[survivor])
    save_checkpoint(path, models[2])
    assert same(load_checkpoint(path).model, models[2])
    assert len(list(path.parent.iterdir())) == 2


def test_half_a_manifest_of_a_killed_save_does_no_harm(path):
    model = make_model(0)
    save_checkpoint(path, model)
    pending = path.with_name("model.json.new")
    pending.write_text('{"format": "tform')
    assert same(load_checkpoint(path).model, model)
    save_checkpoint(path, make_model(1))
    assert same(load_checkpoint(path).model, make_model(1))
    assert not pending.exists()


def test_missing_folders_are_made(tmp_path):
    path = tmp_path / "runs" / "first" / "model.safetensors"
    save_checkpoint(path, make_model())
    assert same(load_checkpoint(path).model, make_model())


def fill_disk(patch):
    """Let the disk be full after some bytes of the manifest."""
    real = tformer.files.open_new

    def open_new(path):
        with real(path) as file:
            file.write(b'{"format": ')
        raise OSError(28, "the disk is full")

    patch.setattr(tformer.files, "open_new", open_new)


def test_a_full_disk_leaves_the_older_checkpoint_and_no_rubbish(path, monkeypatch):
    older = make_model(0)
    save_checkpoint(path, older)
    with monkeypatch.context() as patch:
        fill_disk(patch)
        with pytest.raises(OSError, match="disk is full"):
            save_checkpoint(path, make_model(1))
    assert same(load_checkpoint(path).model, older)
    assert len(list(path.parent.iterdir())) == 2


KILLED = """
    import sys, torch
    from tformer import Transformer, TransformerConfig, save_checkpoint
    config = TransformerConfig.tiny(vocab_size=13)
    model = Transformer(config)
    for i in range(10**9):
        for p in model.parameters():
            torch.nn.init.constant_(p, float(i))
        save_checkpoint(sys.argv[1], model, facts={"number": i})
        if i == 0:
            print("saved", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_process_leaves_a_whole_checkpoint(path):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(path)],
        stdout=subprocess.PIPE,
        cwd=Path(tformer.__file__).parent.parent,
    )
    assert process.stdout.readline() == b"saved\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.4)
    process.send_signal(signal.SIGKILL)
    process.wait()
    model, _, manifest = load_checkpoint(path)
    assert manifest["number"] > 0
    for parameter in model.parameters():
        assert (parameter == manifest["number"]).all()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-50] ^= 1
    path.write_bytes(content)


def other_weights(path: Path, **changes) -> None:
    """The weights of another model under this one's manifest."""
    save_file(dict(make_model(**changes).named_parameters()), path)
    seal(path)


def without(name: str):
    def damage(path: Path) -> None:
        tensors = load_file(path)
        del tensors[name]
        save_file(tensors, path)
        seal(path)

    return damage


def no_safetensors(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04 a pickle, perhaps")
    seal(path)


def half_a_manifest(path: Path) -> None:
    text = path.with_suffix(".json").read_text()
    path.with_suffix(".json").write_text(text[: len(text) // 2])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, r"model\.safetensors is truncated: \d+ of \d+ bytes"),
        (flip_a_bit, r"model\.safetensors is not the file that model\.json describes"),
        (no_safetensors, r"model\.safetensors is not safetensors"),
        (
            lambda p: other_weights(p, d_ff=6),
            r"linear1\.weight is \(6, 14\) .* has \(22, 14\)",
        ),
        (
            lambda p: other_weights(p, num_decoder_layers=3),
            r"model\.safetensors holds what its model does not have: decoder\.",
        ),
        (without("src_embedding.weight"), r"model\.safetensors lacks src_embedding"),
        (half_a_manifest, r"model\.json is not JSON, or truncated"),
        (
            lambda p: p.with_suffix(".json").write_text("[" * 200_000),
            r"model\.json is not JSON, or truncated: maximum recursion",
        ),
        (lambda p: edit(p, format="other"), r"model\.json: format \(.other.\) must be"),
        (lambda p: edit(p, sha256=...), r"model\.json lacks 'sha256'"),
        (lambda p: edit(p, config=...), r"model\.json lacks 'config'"),
        (lambda p: edit(p, config=3), r"model\.json: config \(3\) has a wrong"),
        (lambda p: edit(p, bytes="many"), r"model\.json: bytes \('many'\) has a wrong"),
        (lambda p: edit(p, vocabulary={"characters": "aa"}), r"model\.json: .*'a'"),
        (config_with(num_heads=...), r"model\.json: config lacks 'num_heads'"),
        (config_with(depth=3), r"model\.json: config has an unknown 'depth'"),
        (config_with(num_heads=5), r"model\.json: .* divisible by num_heads \(5\)"),
        (config_with(num_heads="2"), r"model\.json: num_heads must be an int"),
    ],
)
def test_a_damaged_checkpoint_is_named(path, damage, message):
    save_checkpoint(path, make_model())
    damage(path)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(path)


def test_a_checkpoint_of_another_model_is_named_and_fills_nothing(path):
    save_checkpoint(path, make_model(d_ff=6))
    model, untouched = make_model(1), make_model(1)
    with pytest.raises(ValueError, match=r"of another model: d_ff 6, not 22"):
        load_checkpoint(path, model)
    assert same(model, untouched)


def test_a_damaged_checkpoint_fills_nothing(path):
    save_checkpoint(path, make_model())
    without("src_embedding.weight")(path)
    model, untouched = make_model(1), make_model(1)
    with pytest.raises(ValueError, match="lacks"):
        load_checkpoint(path, model)
    assert same(model, untouched)


def test_missing_files_are_named(path):
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        load_checkpoint(path)
    save_checkpoint(path, make_model())
    path.with_suffix(".json").unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.json"):
        load_checkpoint(path)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"must end in '\.safetensors'"):
        save_checkpoint(tmp_path / "model.pt", make_model())
    with pytest.raises(ValueError, match=r"must end in '\.safetensors'"):
        load_checkpoint(tmp_path / "model")
    path = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match="'sha256'"):
        save_checkpoint(path, make_model(), facts={"sha256": "mine"})
    assert list(tmp_path.iterdir()) == []


def test_a_missing_safetensors_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(
        ImportError, match=r"safetensors: pip install 'tformer\[train\]'"
    ):
        save_checkpoint(path, make_model())


class LowerCase(CharacterVocabulary):
    def encode(self, text, **options):
        return super().encode(text.lower(), **options)


@pytest.mark.parametrize(
    "given",
    [
        {"vocabulary": LowerCase("abc")},  # which would come back as another
        {"vocabulary": CharacterVocabulary("a\ud800")},
        {"facts": {"odd": object()}},
        {"facts": {"name": "\udce9"}},
    ],
)
def test_what_could_not_be_read_again_replaces_nothing(path, given):
    save_checkpoint(path, make_model(0), vocabulary=CharacterVocabulary("ab"))
    with pytest.raises((TypeError, ValueError)):
        save_checkpoint(path, make_model(1), **given)
    loaded = load_checkpoint(path)
    assert same(loaded.model, make_model(0))
    assert loaded.vocabulary.characters == "ab"
    assert len(list(path.parent.iterdir())) == 2


def test_the_manifest_is_read_before_anything_is_replaced(path, monkeypatch):
    save_checkpoint(path, make_model(0))
    with monkeypatch.context() as patch:
        write = tformer.training.checkpoint.write_json_beside
        patch.setattr(
            "tformer.training.checkpoint.write_json_beside",
            lambda path, values: write(path, {**values, "bytes": 5}),
        )
        with pytest.raises(ValueError, match=r"model\.json\.new was changed"):
            save_checkpoint(path, make_model(1))
    assert same(load_checkpoint(path).model, make_model(0))
    assert len(list(path.parent.iterdir())) == 2


@pytest.mark.parametrize("in_place", [False, True])
def test_weights_that_change_between_hash_and_reading_are_refused(
    path, monkeypatch, in_place
):
    """As if a training ended while its older model was loaded."""
    save_checkpoint(path, make_model(0))
    save_checkpoint(path.with_name("other.safetensors"), make_model(1))
    other = path.with_name("other.safetensors")
    read = tformer.training.checkpoint._matching_manifest

    def then_another(*paths):
        found = read(*paths)
        if in_place:
            path.write_bytes(other.read_bytes())
        else:
            os.replace(other, path)
        return found

    monkeypatch.setattr("tformer.training.checkpoint._matching_manifest", then_another)
    model = make_model(2)
    with pytest.raises(ValueError, match="was replaced while it was read"):
        load_checkpoint(path, model)
    assert same(model, make_model(2))

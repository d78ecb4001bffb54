"""Checkpoints: the same model comes back, with all that was kept beside it."""

import math
import os
import stat

import pytest
import torch
from safetensors.torch import load_file

import tformer
from checkpoint_files import make_model, same
from small_models import MODERN, small_bert, small_gpt
from tformer import load_checkpoint, save_checkpoint
from tformer.data.vocabulary import CharacterVocabulary
from tformer.models.families import gpt2
from tformer.nn.memory_layout import turn_weights
from tformer.training.checkpoint import read_manifest

FILES = ["config.json", "model.safetensors"]
IDS = torch.tensor([[3, 4, 2, 1]])


def of_two_dtypes():
    model = make_model().bfloat16()
    model.src_embedding.float()
    return model


def two_vocabularies():
    """Both small, and no longer text than four tokens."""
    sizes = {"vocab_size": 5, "tgt_vocab_size": 7, "max_len": 4}
    return make_model(**sizes, positions="learned", pad_id=None)


def experts():
    return small_gpt(**{**MODERN, "d_model": 18, "experts": 3, "window": 2})


def turned():
    """Matrices that lie otherwise in memory, so that sums are rounded otherwise."""
    model = experts()
    model.reset_parameters(1.0)
    return turn_weights(model)


def gpt_2():
    sizes = {"n_embd": 12, "n_head": 3, "n_layer": 1, "n_positions": 8}
    return gpt2.build({"model_type": "gpt2", "vocab_size": 9, **sizes})


def spoiled():
    model = small_gpt()
    torch.nn.init.constant_(model.norm.weight, math.nan)
    return model


MODELS = {
    "Transformer": make_model,
    "pre-norm": lambda: make_model(norm_first=True, num_kv_heads=1, bias=False),
    "two vocabularies": two_vocabularies,
    "output": lambda: make_model(tie_embeddings=False),
    "GPT": small_gpt,
    "experts": experts,
    "BERT": small_bert,
    "GPT-2": gpt_2,
    "float64": lambda: make_model().double(),
    "bfloat16": lambda: make_model().bfloat16(),
    "two dtypes": of_two_dtypes,
    "turned": turned,
    "NaN": spoiled,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_same_model_comes_back(tmp_path, make):
    torch.manual_seed(0)
    model = make().train()
    save_checkpoint(tmp_path, model)
    assert all(module.training for module in model.modules())
    loaded, vocabulary, _ = load_checkpoint(tmp_path)
    assert (type(loaded), loaded.config) == (type(model), model.config)
    assert (loaded.training, vocabulary) == (False, None)
    pairs = zip(loaded.named_parameters(), model.named_parameters(), strict=True)
    for (name, ours), (same_name, theirs) in pairs:
        assert (name, ours.dtype) == (same_name, theirs.dtype)
        assert torch.equal(ours.nan_to_num(), theirs.nan_to_num())
    if make is of_two_dtypes:  # which do not compute together
        loaded, model = loaded.float(), model.float()
    inputs = (IDS, IDS) if hasattr(model, "decode") else (IDS,)
    outputs = loaded(*inputs), model.eval()(*inputs)
    torch.testing.assert_close(*outputs, equal_nan=True)


def test_a_dtype_can_be_asked_for(tmp_path):
    model = make_model().half()
    save_checkpoint(tmp_path, model)
    loaded = load_checkpoint(tmp_path, dtype=torch.float32).model
    assert same(loaded, model.float())


def test_vocabulary_and_facts_come_back_as_json_has_them(tmp_path):
    vocabulary = CharacterVocabulary("aé日 \n\"'")
    facts = {"seed": 7, "by_step": {10: "a", 9: "b"}, "sizes": (1, 2), "loss": math.inf}
    returned = save_checkpoint(
        tmp_path, make_model(), vocabulary=vocabulary, facts=facts
    )
    loaded = load_checkpoint(tmp_path)
    assert loaded.vocabulary.characters == vocabulary.characters
    assert loaded.manifest == returned == read_manifest(tmp_path)
    kept = {name: returned[name] for name in facts}
    changed = {"by_step": {"10": "a", "9": "b"}, "sizes": [1, 2]}
    assert kept == {**facts, **changed}
    assert returned["versions"]["torch"] == torch.__version__
    assert returned["versions"]["tformer"] == tformer.__version__
    text = (tmp_path / "config.json").read_text(encoding="utf-8")
    assert "日" in text  # for people too
    assert text.count("\n") > 20


def test_a_shared_matrix_is_saved_once_and_is_shared_again(tmp_path):
    model = make_model()
    save_checkpoint(tmp_path, model)
    tensors = load_file(tmp_path / "model.safetensors")
    embeddings = [name for name in tensors if "embedding" in name]
    assert embeddings == ["src_embedding.weight"]
    sizes = sum(x.numel() for x in tensors.values())
    assert sizes == sum(p.numel() for p in model.parameters())
    loaded = load_checkpoint(tmp_path).model
    assert loaded.tgt_embedding.weight is loaded.src_embedding.weight


@pytest.mark.skipif(os.name == "nt", reason="Windows makes links for few")
def test_folders_are_made_others_may_read_and_no_link_is_followed(tmp_path):
    folder, others = tmp_path / "runs" / "first", tmp_path / "others.txt"
    save_checkpoint(folder, make_model(0))
    others.write_text("mine")
    (folder / "model.safetensors.new").symlink_to(others)
    save_checkpoint(folder, make_model(1))
    assert others.read_text() == "mine"
    assert same(load_checkpoint(folder).model, make_model(1))
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == FILES
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o644}

"""The GPT of real text that comes with the package: what it writes, and how well.

The text that it learned is not in the repository. Where the variable TINYSHAKESPEARE
names the file, its hash and the two losses are measured again.
"""

import hashlib
import math
import os
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tformer import greedy, load_pretrained
from tformer.cli import main
from tformer.data.bpe import BytePairVocabulary
from tformer.models.causal_lm import CausalLM
from tformer.pretrained.__main__ import bigram_scores, keep, stored_scores
from tformer.runs.data import run_data
from tformer.runs.folder import RunFolder
from tformer.runs.metrics import text_bits_per_byte
from tformer.runs.run import Run
from tformer.runs.settings import RunSettings
from tformer.training.evaluation import MeanLoss

FOLDER = files("tformer.pretrained").joinpath("shakespeare")
TEXT = os.environ.get("TINYSHAKESPEARE")
# From the last tenth, which it has not learned: The Taming of the Shrew, act II.
HELD_OUT = """PETRUCHIO:
I see you do not mean to part with her,
Or else you like not of my company.

PETRUCHIO:
Petruchio is my name; Antonio's son,
A man well known throughout all Italy.
"""


@pytest.fixture(scope="module")
def loaded():
    return load_pretrained("shakespeare")


def test_it_is_a_small_gpt_with_its_pieces_of_words(loaded):
    assert type(loaded.model) is CausalLM
    assert type(loaded.vocabulary) is BytePairVocabulary
    assert len(loaded.vocabulary) == loaded.manifest["settings"]["vocab_size"] == 512
    assert not loaded.model.training
    parameters = sum(p.numel() for p in loaded.model.parameters())
    assert parameters == loaded.manifest["result"]["parameters"]
    assert loaded.manifest["result"]["cpu_seconds"] < 660  # ten minutes


def test_both_files_take_3_mb_at_most_and_hold_float16(loaded):
    assert sum(len(file.read_bytes()) for file in FOLDER.iterdir()) <= 3_000_000
    weights = FOLDER.joinpath("model.safetensors")
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    assert loaded.manifest["sha256"] == digest
    stored = load_file(weights)
    assert {x.dtype for x in stored.values()} == {torch.float16}
    for name, parameter in loaded.model.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, stored[name].float())


def test_the_manifest_names_the_text_and_not_where_it_lay(loaded):
    (source,) = loaded.manifest["files"]
    assert source["name"] == "tinyshakespeare.txt"
    assert source["bytes"] == 1_115_394
    assert loaded.manifest["settings"]["files"] == [source["name"]]
    assert "/" not in loaded.manifest["repeat"][0].replace("runs/shakespeare", "")


def test_what_it_writes_is_what_the_chapter_shows(loaded):
    """Read whole at each step in float32, and with the cache in float64."""
    model, vocabulary, _ = loaded
    ids = vocabulary.encode("To be, or not to")
    asked = len(ids)
    with torch.no_grad():
        while len(ids) < asked + 44:
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    exact = load_pretrained("shakespeare").model.double()
    cached = greedy(exact, torch.tensor([ids[:asked]]), max_len=44)
    assert ids[asked:] == cached[0].tolist()
    page = Path(__file__).parents[2] / "docs/chapters/gpt.md"
    if page.exists():  # the source of a release has no chapters
        assert f"\n{vocabulary.decode(ids)}\n```" in page.read_text("utf-8")


def test_the_command_line_writes_the_same_text_for_the_same_seed(monkeypatch, capsys):
    texts = []
    for seed in ("3", "3", "4"):
        options = ["--prompt", "ROMEO:", "--max-new-tokens", "12", "--seed", seed]
        words = ["tformer", "generate", "shakespeare", *options]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].startswith("ROMEO:")


def test_it_predicts_held_out_text_better_than_pairs_of_pieces(loaded):
    model, vocabulary, manifest = loaded
    bigram = manifest["bigram"]["test_bits_per_byte"]
    assert manifest["stored"]["test_bits_per_byte"] < bigram - 0.4
    ids = torch.tensor([vocabulary.encode(HELD_OUT)])
    with torch.no_grad():
        logs = model(ids[:, :-1]).log_softmax(-1)
    nats = -logs.gather(-1, ids[:, 1:, None]).sum().item()
    assert nats / math.log(2) / len(HELD_OUT) < bigram


def test_float16_leaves_the_loss_as_it_was(loaded):
    before, after = (loaded.manifest[x]["test_loss"] for x in ("result", "stored"))
    assert 0 < abs(before - after) < 1e-4


@pytest.mark.skipif(TEXT is None, reason="TINYSHAKESPEARE names no file")
def test_the_text_and_both_losses_are_those_of_the_manifest(tmp_path):
    model, vocabulary, manifest = load_pretrained("shakespeare")
    (source,) = manifest["files"]
    assert hashlib.sha256(Path(TEXT).read_bytes()).hexdigest() == source["sha256"]
    settings = RunSettings.from_json(manifest["settings"] | {"files": [TEXT]})
    data = run_data(settings, tmp_path)
    assert data.vocabulary.to_json() == vocabulary.to_json()
    for name, scores in (
        ("stored", stored_scores(model, data)),
        ("bigram", bigram_scores(tmp_path, data)),
    ):
        kept = manifest[name]
        assert scores.pop("dtype", None) == kept.pop("dtype", None)
        assert scores == pytest.approx(kept, rel=1e-3)


def test_the_model_of_a_text_is_kept_under_the_name_of_its_run(tmp_path):
    text = tmp_path / "a book.txt"
    text.write_text("so long, and no longer\n" * 60, encoding="utf-8")
    few = {"steps": 2, "d_model": 12, "num_heads": 2, "num_layers": 1, "max_len": 8}
    settings = RunSettings.of("text", files=(str(text),), **few)
    folder = RunFolder.create(tmp_path / "runs/book", settings)
    Run(folder, progress=False).train()
    manifest = keep(folder.path, tmp_path / "out")
    assert (tmp_path / "out/book/config.json").exists()
    digest = hashlib.sha256(text.read_bytes()).hexdigest()
    size = text.stat().st_size
    assert manifest["files"] == [{"name": text.name, "bytes": size, "sha256": digest}]
    assert str(tmp_path) not in (tmp_path / "out/book/config.json").read_text("utf-8")
    first, second = manifest["repeat"]
    assert first.startswith("tformer train text 'a book.txt' --d-model 12 ")
    assert second == "python -m tformer.pretrained runs/book"


def test_the_bigram_is_that_of_counts(tmp_path):
    """a is always followed by b, and b by a: with much text it costs nearly nothing."""
    text = tmp_path / "ab.txt"
    text.write_text("ab" * 5000, encoding="utf-8")
    settings = RunSettings.of("text", files=(str(text),), max_len=8)
    data = run_data(settings, tmp_path)
    scores = bigram_scores(tmp_path, data)
    # n = 4,500 or 4,499 of each pair; the prior of m = 1 gives each half of one.
    assert 0 < scores["test_loss"] < 2 * 0.5 / 4499
    asked = sum(batch.targets.numel() for batch in data.test)
    bits = text_bits_per_byte(
        data.vocabulary, data.test, MeanLoss(scores["test_loss"], asked)
    )
    assert scores["test_bits_per_byte"] == bits

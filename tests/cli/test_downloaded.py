"""`tformer info`, `generate`, `evaluate` and `attend` on a downloaded folder."""

import json
import math

import pytest
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from downloaded_folders import SPECIAL, TEXT, download, write_json
from tformer import greedy
from tformer.interop import from_huggingface
from tformer.models.cache_size import cache_nbytes

GREEDY = ["--top-k", 1, "--max-new-tokens", 9]


@pytest.fixture(scope="module", params=["gpt2", "qwen3"])
def folder(request, tmp_path_factory):
    return download(tmp_path_factory.mktemp("hub") / request.param, request.param)


def tokenizer_of(folder):
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def facts(said):
    assert said.code == 0, said.err
    lines = said.out.splitlines()[1:]
    return {line[:20].strip(): line[20:].strip() for line in lines}


def continued(folder, text, count, ends=()):
    """Let the model write on greedily, by the library alone."""
    tokenizer, model = tokenizer_of(folder), from_huggingface(folder)
    ids = tokenizer.encode(text).ids
    written = greedy(model, torch.tensor([ids]), max_len=count, eos_id=[*ends])
    both = tokenizer.decode(ids + written[0].tolist())
    return both.removeprefix(tokenizer.decode(ids))


def test_info_says_what_the_folder_holds(tformer, folder):
    said = tformer("info", folder)
    told, model, words = facts(said), from_huggingface(folder), tokenizer_of(folder)
    count = sum(p.numel() for p in model.parameters())
    kind = folder.name
    assert said.out.startswith(
        f"model {folder}: {kind}, a CausalLM of {count:,} parameters\n"
    )
    assert told["vocab_size"] == str(model.vocab_size)
    assert told["weights"] == "float32"
    size = (folder / "model.safetensors").stat().st_size
    assert told["files"] == f"1 of weights, {size:,} bytes"
    a_token = {"gpt2": 2 * 2 * 12 * 4, "qwen3": 2 * 2 * 10 * 4}[kind]
    longest = {"gpt2": 64, "qwen3": 96}[kind]
    whole = f"{a_token * longest:,} bytes for max_len = {longest}"
    assert told["cache"] == f"{a_token:,} bytes a token, {whole}"
    assert told["tokenizer"] == f"{words.get_vocab_size()} tokens"
    assert told["chat template"].endswith(" characters")
    ends = [f"{words.token_to_id(each)} ({each})" for each in SPECIAL[1:]]
    assert told["stop tokens"] == ", ".join(ends)


def test_info_tells_dtypes_and_what_is_missing(tformer, tmp_path):
    folder = download(tmp_path / "a", dtype=torch.bfloat16)
    for name in (
        "chat_template.jinja",
        "generation_config.json",
        "tokenizer_config.json",
    ):
        (folder / name).unlink()
    told = facts(tformer("info", folder))
    assert told["weights"] == "bfloat16"
    assert told["cache"].startswith(f"{2 * 2 * 10 * 2} bytes a token")
    assert (told["chat template"], told["stop tokens"]) == ("none", "none")
    (folder / "tokenizer.json").unlink()
    assert facts(tformer("info", folder))["tokenizer"].startswith("none")
    said = tformer("generate", folder, "a")
    assert (said.code, "tokenizer.json: no such file" in said.err) == (1, True)


def test_generate_writes_on(tformer, folder):
    text = "The cat"
    said = tformer("generate", folder, text, *GREEDY)
    assert said.out == f"{text}{continued(folder, text, 9)}\n"
    assert tformer("generate", folder, "--prompt", text, *GREEDY) == said
    twice = tformer("generate", folder, text, "--prompt", text)
    assert (twice.code, "not both" in twice.err) == (2, True)


def test_a_start_token_comes_first_if_the_file_says_so(tformer, tmp_path):
    folder = download(tmp_path / "a", start="<|start|>")
    ids = tokenizer_of(folder).encode("The").ids
    assert ids[0] == tokenizer_of(folder).token_to_id("<|start|>")
    said = tformer("generate", folder, "The", *GREEDY)
    assert said.out == f"The{continued(folder, 'The', 9)}\n"


def test_chat_is_the_template_around_the_text(tformer, folder):
    around = "<|start|>user\nThe dog<|end|><|start|>assistant\n"
    said = tformer("generate", folder, "The dog", "--chat", *GREEDY)
    assert said.out == f"{continued(folder, around, 9)}\n"


@pytest.mark.parametrize("several", [False, True])
def test_a_template_of_the_older_place(tformer, tmp_path, several):
    folder = download(tmp_path / "a")
    wanted = tformer("generate", folder, "The dog", "--chat", *GREEDY).out
    file, config = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    template = file.read_text()
    file.unlink()
    said = tformer("generate", folder, "The dog", "--chat", *GREEDY)
    assert (said.code, "has no chat template" in said.err) == (1, True)
    named = [
        {"name": "tools", "template": "x"},
        {"name": "default", "template": template},
    ]
    values = json.loads(config.read_text())
    write_json(config, {**values, "chat_template": named if several else template})
    assert tformer("generate", folder, "The dog", "--chat", *GREEDY).out == wanted


@pytest.mark.parametrize("place", ["generation_config.json", "config.json", "neither"])
def test_what_is_written_ends_with_a_stop_token(tformer, tmp_path, place):
    """The third token that it writes is made the end token, one of three ways."""
    folder = download(tmp_path / "a")
    tokenizer, model = tokenizer_of(folder), from_huggingface(folder)
    ids = tokenizer.encode("The cat").ids
    free = greedy(model, torch.tensor([ids]), max_len=9)[0].tolist()
    third, generation = free[2], folder / "generation_config.json"
    assert third not in free[:2]
    generation.unlink()
    if place == "neither":
        word = {"eos_token": tokenizer.id_to_token(third)}
        write_json(folder / "tokenizer_config.json", word)
    else:
        values = json.loads((folder / "config.json").read_text())
        values = values if place == "config.json" else {}
        write_json(folder / place, {**values, "eos_token_id": third})
    said = tformer("generate", folder, "The cat", *GREEDY)
    both = tokenizer.decode(ids + free[:3])
    assert said.out == f"{both}\n"


def test_evaluate_is_the_mean_loss_of_all_windows(tformer, folder, tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("The dog sat on the mat – and slept.\n" * 5, "utf-8")
    said = tformer("evaluate", folder, file, "--context", 13, "--json")
    told, text = json.loads(said.out), file.read_text("utf-8")
    encoding = tokenizer_of(folder).encode(text)
    ids, model = torch.tensor(encoding.ids), from_huggingface(folder)
    windows = (len(ids) - 1) // 13
    assert windows > 3
    losses = [
        F.cross_entropy(model(row[None, :-1])[0], row[1:], reduction="sum").item()
        for n in range(windows)
        for row in [ids[13 * n : 13 * n + 14]]
    ]
    loss = sum(losses) / (13 * windows)
    assert (told["tokens"], told["context"]) == (13 * windows, 13)
    assert told["loss"] == pytest.approx(loss, rel=1e-5)
    assert told["perplexity"] == pytest.approx(math.exp(loss), rel=1e-5)
    begin, end = encoding.offsets[0][1], encoding.offsets[13 * windows][1]
    size = len(text[begin:end].encode())
    bits = sum(losses) / math.log(2) / size
    assert told["bits_per_byte"] == pytest.approx(bits, rel=1e-5)


def test_evaluate_takes_the_window_of_the_model_or_the_text(tformer, folder, tmp_path):
    short, long = tmp_path / "a.txt", tmp_path / "b.txt"
    short.write_text("The cat sat.")
    long.write_text(TEXT)
    count = len(tokenizer_of(folder).encode("The cat sat.").ids)
    told = json.loads(tformer("evaluate", folder, short, "--json").out)
    assert (told["tokens"], told["context"]) == (count - 1, count - 1)
    longest = from_huggingface(folder).max_len
    assert (
        json.loads(tformer("evaluate", folder, long, "--json").out)["context"]
        == longest
    )
    said = tformer("evaluate", folder, long, "--context", longest + 1)
    assert (said.code, f"must be at most {longest}" in said.err) == (1, True)
    said = tformer("evaluate", folder, long, "--split", "test")
    assert (said.code, "--split is for" in said.err) == (2, True)
    said = tformer("evaluate", folder, long, "--save", "x")
    assert (said.code, "is no folder of a run" in said.err) == (1, True)


def test_options_of_downloaded_models_are_for_them(tformer, runs):
    said = tformer("evaluate", runs["gpt"], runs["text"], "--context", 5)
    assert (said.code, "--context is for a downloaded" in said.err) == (2, True)
    said = tformer("generate", runs["gpt"], "To be", "--chat")
    assert (said.code, "is no downloaded chat model" in said.err) == (1, True)


def test_attend_draws_a_downloaded_model(tformer, folder, tmp_path):
    out = tmp_path / "a.svg"
    assert tformer("attend", folder, "The cat sat", "--out", out).code == 0
    assert out.stat().st_size > 1000


def test_translate_is_for_another_model(tformer, folder):
    said = tformer("translate", folder, "abc")
    assert (said.code, "translate is not for it" in said.err) == (1, True)


def test_the_cache_is_what_a_model_takes():
    """Known without weights, and the same as what decoding takes."""
    for window in (None, 5):
        config = {"model_type": "tformer", "window": window, "kv_heads": 2}
        with torch.device("meta"):
            empty = build(config)
        model, ids = build(config).eval(), torch.zeros(1, 40, dtype=torch.int64)
        cache = model.new_cache(40)
        with torch.no_grad():
            model(ids, cache=cache)
        assert cache_nbytes(empty, 40) == cache_nbytes(model, 40) == cache.nbytes > 0


def build(config):
    from tformer.models.families import custom

    return custom.build(config)

"""ONNX files in onnxruntime, at batches and lengths that their export did not see."""

import pytest
import torch
from torch.testing import assert_close

from every_module import LANGUAGE_MODELS
from tformer.interop.exporting import CachedStep, export_onnx, graphs_of
from tformer.models import Transformer, TransformerConfig
from tformer.models.families import family_of

onnxruntime = pytest.importorskip("onnxruntime")

V = 37
CLOSE = {"atol": 5e-6, "rtol": 1e-5}  # of float32, whose sums stand in another order
SIZES = {
    "vocab_size": V,
    "hidden_size": 24,
    "intermediate_size": 42,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
GPT2 = {"vocab_size": V, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 64}
CONFIGS = {
    "gpt2": GPT2,
    "qwen3": SIZES,
    "mistral": {**SIZES, "sliding_window": 4},
}
OTHERS = ("latent", "T5")  # models of one's own parts
STEPS = ((1, 0, 1), (1, 0, 4), (2, 6, 1), (4, 13, 1), (3, 2, 5))  # B, L, T


@pytest.fixture(autouse=True)
def without_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def drawn(model):
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return model.eval()


def made(name):
    if name in OTHERS:
        return drawn(LANGUAGE_MODELS[name]())
    config = {"model_type": name, **CONFIGS[name]}
    return drawn(family_of(config).build(config))


def run(file, names, tensors):
    session = onnxruntime.InferenceSession(
        str(file), providers=["CPUExecutionProvider"]
    )
    given = {n: x.numpy() for n, x in zip(names, tensors, strict=True)}
    return [torch.from_numpy(x) for x in session.run(None, given)]


@pytest.mark.parametrize("name", [*CONFIGS, *OTHERS])
def test_a_language_model(name, tmp_path):
    model = made(name)
    whole, step = export_onnx(model, tmp_path)
    for rows, length in ((1, 1), (1, 9), (4, 20), (3, 2)):
        ids = torch.randint(3, model.vocab_size, (rows, length))
        assert_close(run(whole, ["ids"], [ids])[0], model(ids), **CLOSE)
    names, own = graphs_of(model)["step"].inputs, CachedStep(model)
    for rows, so_far, new in STEPS:
        ids = torch.randint(3, model.vocab_size, (rows, so_far + new))
        past = own.empty(rows)
        if so_far:
            _, *past = run(step, names, [ids[:, :so_far], *past])
        logits, *present = run(step, names, [ids[:, so_far:], *past])
        assert_close(logits, model(ids)[:, so_far:], **CLOSE)
        assert {x.shape[2] for x in present} == {so_far + new}


def test_an_encoder_and_a_decoder(tmp_path):
    sizes = {"num_encoder_layers": 2, "num_decoder_layers": 2, "pad_id": 0}
    config = TransformerConfig(vocab_size=V, d_model=24, num_heads=4, d_ff=30, **sizes)
    model = drawn(Transformer(config))
    encoder, decoder = export_onnx(model, tmp_path)
    names = ["tgt", "memory", "memory_key_mask"]
    for rows, S, T in ((1, 1, 1), (3, 9, 4), (2, 4, 12), (5, 33, 1)):
        src, tgt = torch.randint(1, V, (rows, S)), torch.randint(1, V, (rows, T))
        src[0, 1:] = 0
        (memory,) = run(encoder, ["src"], [src])
        assert_close(memory, model.encode(src), **CLOSE)
        (logits,) = run(decoder, names, [tgt, memory, src != 0])
        assert_close(logits, model(src, tgt), **CLOSE)

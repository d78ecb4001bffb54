"""ONNX files in onnxruntime, at batches and lengths that their export did not see."""

import pytest
import torch
from torch.testing import assert_close

from every_module import LANGUAGE_MODELS
from tformer.interop.exporting import export_onnx
from tformer.interop.graphs import CachedStep, TargetStep, graphs_of
from tformer.models import BERT, BERTConfig, Transformer, TransformerConfig, build_model
from tformer.models.families import FAMILIES
from theirs import MODELS

onnxruntime = pytest.importorskip("onnxruntime")

V = 37
CLOSE = {"atol": 5e-6, "rtol": 1e-5}  # of float32, whose sums stand in another order
SIZES = {"num_hidden_layers": 1, "hidden_size": 24, "intermediate_size": 14}
SIZES |= {"num_attention_heads": 6, "num_key_value_heads": 2}
SIZES |= {"vocab_size": V, "max_position_embeddings": 64, "pad_token_id": None}
GPT2 = {"vocab_size": V, "n_embd": 24, "n_layer": 1, "n_head": 4, "n_positions": 64}
ONE = dict(reversed(MODELS.values()))  # of each family
# Two layers, with a window and without, or a window.
TWO = ("mistral", "gemma2", "gpt_oss", "exaone4")
OTHERS = ("latent", "T5")  # models of one's own parts
NO_OPERATOR = (
    "kimi_linear",
    "qwen3_5_text",
    "qwen3_next",
)  # a triangular system of equations
SIDES = {"vocab_size": V, "d_model": 24, "encoder_layers": 1, "decoder_layers": 2}
SIDES |= {"encoder_attention_heads": 4, "decoder_attention_heads": 6}
SIDES |= {"encoder_ffn_dim": 31, "decoder_ffn_dim": 29, "pad_token_id": 0}
BOTH_SIDES = {
    "t5": {"vocab_size": V, "d_model": 24, "d_kv": 5, "d_ff": 31, "num_layers": 1}
    | {"num_heads": 4},
    "bart": {**SIDES, "max_position_embeddings": 40},
    "marian": {**SIDES, "max_position_embeddings": 40},
}
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


def config_of(kind):
    if kind == "gpt2":
        return {"model_type": kind, **GPT2}
    words = {n: x for n, x in ONE[kind].items() if n != "layer_types"}
    if kind in TWO:
        words["num_hidden_layers"] = 2
    elif kind == "gemma4_text":  # shared keys are in no cache that a step could take
        words |= {"num_hidden_layers": 2, "num_kv_shared_layers": 0}
    elif kind.startswith("qwen3_") and kind in NO_OPERATOR:
        words["full_attention_interval"] = 2
    sizes = dict(SIZES)
    if kind == "kimi_linear":
        sizes |= {"model_max_length": sizes["max_position_embeddings"]}
    if kind == "gpt_neox":
        del sizes["num_key_value_heads"]
    return {"model_type": kind, **sizes, **words}


def made(name):
    """Make one with random numbers; those of a choice of experts are not all alike."""
    model = LANGUAGE_MODELS[name]() if name in OTHERS else build_model(config_of(name))
    return drawn(model)


def test_each_family_is_here():
    tried = {*ONE, *BOTH_SIDES, "bert", "tformer"}  # the last is in OTHERS
    assert tried == {*FAMILIES}


def run(file, names, tensors):
    session = onnxruntime.InferenceSession(
        str(file), providers=["CPUExecutionProvider"]
    )
    given = {n: x.numpy() for n, x in zip(names, tensors, strict=True)}
    return [torch.from_numpy(x) for x in session.run(None, given)]


@pytest.mark.parametrize("name", sorted({*ONE, *OTHERS} - {*NO_OPERATOR}))
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


@pytest.mark.parametrize("name", NO_OPERATOR)
def test_what_onnx_has_no_operator_for(name, tmp_path):
    with pytest.raises(torch.onnx.errors.OnnxExporterError, match="solve_triangular"):
        export_onnx(made(name), tmp_path)


@pytest.mark.parametrize("name", [*BOTH_SIDES, "the paper's"])
def test_an_encoder_a_decoder_and_its_step(name, tmp_path):
    if name in BOTH_SIDES:
        model = drawn(build_model({"model_type": name, **BOTH_SIDES[name]}))
    else:
        sizes = {"num_encoder_layers": 2, "num_decoder_layers": 2, "pad_id": 0}
        config = TransformerConfig(
            vocab_size=V, d_model=24, num_heads=4, d_ff=30, **sizes
        )
        model = drawn(Transformer(config))
    encoder, decoder, step = export_onnx(model, tmp_path)
    names, steps = ["tgt", "memory", "memory_key_mask"], graphs_of(model)["step"].inputs
    for rows, S, T in ((1, 1, 1), (3, 9, 4), (2, 4, 12), (5, 33, 1)):
        src, tgt = torch.randint(1, V, (rows, S)), torch.randint(1, V, (rows, T))
        src[0, 1:] = 0
        (memory,) = run(encoder, ["src"], [src])
        assert_close(memory, model.encode(src), **CLOSE)
        wanted, mask = model(src, tgt), src != 0
        (logits,) = run(decoder, names, [tgt, memory, mask])
        assert_close(logits, wanted, **CLOSE)
        past = TargetStep(model).empty(rows)
        for t in range(0, T, 3):
            given = [tgt[:, t : t + 3], memory, mask, *past]
            logits, *past = run(step, steps, given)
            assert_close(logits, wanted[:, t : t + 3], **CLOSE)


def test_a_bert(tmp_path):
    sizes = {"d_model": 24, "num_heads": 4, "num_layers": 2, "d_ff": 30, "max_len": 40}
    model = drawn(BERT(BERTConfig(vocab_size=V, pad_id=0, pooler=True, **sizes)))
    [file] = export_onnx(model, tmp_path)
    for rows, S in ((1, 1), (3, 9), (2, 33)):
        ids, segments = torch.randint(1, V, (rows, S)), torch.randint(2, (rows, S))
        ids[0, 1:] = 0
        x = model.states(ids, segments=segments)
        logits, pooled = run(file, ["ids", "segments"], [ids, segments])
        assert_close(logits, model.logits(x), **CLOSE)
        assert_close(pooled, model.pooled(x), **CLOSE)

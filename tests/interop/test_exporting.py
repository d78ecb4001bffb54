"""Models as graphs of `torch.export`: any batch, any length, any length of cache."""

import pytest
import torch
from torch.testing import assert_close

from tformer.interop.exporting import export_programs
from tformer.interop.graphs import CachedStep, TargetStep, graphs_of
from tformer.models import BERT, BERTConfig, Transformer, TransformerConfig
from tformer.models.families import bart, custom, gpt2, marian, t5
from tformer.nn import LayerNorm, LinearAttention

V = 23


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def drawn(model):
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return model.eval()


MODELS = {
    "learned": lambda: gpt2.build(
        {"vocab_size": V, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 40}
    ),
    "latent": lambda: custom.build(
        {"vocab_size": V, "d_model": 12, "num_heads": 3, "positions": "rotary"}
        | {"kv_rank": 5, "num_layers": 1, "max_len": 40}
    ),
    "window": lambda: custom.build(
        {"vocab_size": V, "d_model": 12, "num_heads": 3, "positions": "rotary"}
        | {"window": 4, "global_every": 2, "kv_heads": 1, "max_len": 40}
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
def test_a_step_goes_on_from_any_cache(name):
    model = drawn(MODELS[name]())
    programs = {n: p.module() for n, p in export_programs(model).items()}
    step, exported = CachedStep(model), programs["step"]
    for rows, so_far, new in ((1, 0, 1), (1, 0, 6), (2, 1, 1), (4, 13, 1), (3, 2, 5)):
        ids = torch.randint(V, (rows, so_far + new))
        past = step.empty(rows)
        if so_far:
            _, past = exported(ids[:, :so_far], past)
        logits, present = exported(ids[:, so_far:], past)
        assert_close(logits, model(ids)[:, so_far:])
        assert {x.shape[2] for x in present} == {so_far + new}
        assert_close(programs["model"](ids), model(ids))


SIDES = {"d_model": 12, "encoder_layers": 1, "decoder_layers": 2}
SIDES |= {"encoder_attention_heads": 2, "decoder_attention_heads": 3}
SIDES |= {"encoder_ffn_dim": 14, "decoder_ffn_dim": 13, "max_position_embeddings": 40}
T5 = {"d_model": 12, "d_kv": 5, "d_ff": 14, "num_layers": 2, "num_heads": 3}
PAPERS = {"d_model": 12, "num_heads": 3, "d_ff": 14, "pad_id": 0}
PAPERS |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
BOTH_SIDES = {
    "the paper's": lambda: Transformer(TransformerConfig(vocab_size=V, **PAPERS)),
    "T5": lambda: t5.build({"vocab_size": V, **T5}),
    "BART": lambda: bart.build({"vocab_size": V, "pad_token_id": 0, **SIDES}),
    "Marian": lambda: marian.build({"vocab_size": V, "pad_token_id": 0, **SIDES}),
}


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", BOTH_SIDES)
def test_an_encoder_a_decoder_and_its_step(name):
    model = drawn(BOTH_SIDES[name]()).train()
    programs = {n: p.module() for n, p in export_programs(model).items()}
    assert model.training
    model.eval()
    for rows, S, T in ((1, 1, 1), (3, 9, 4), (2, 4, 12)):
        src, tgt = torch.randint(1, V, (rows, S)), torch.randint(1, V, (rows, T))
        src[0, 1:] = 0
        memory, mask, wanted = programs["encoder"](src), src != 0, model(src, tgt)
        assert_close(memory, model.encode(src))
        assert_close(programs["decoder"](tgt, memory, mask), wanted)
        past = TargetStep(model).empty(rows)
        for t in range(T):
            new = tgt[:, t : t + 1]
            logits, past = programs["step"](new, memory, mask, past)
            assert_close(logits[:, 0], wanted[:, t])


@pytest.mark.parametrize("parts", [{"head": True}, {"head": False, "pooler": True}])
def test_a_bert(parts):
    sizes = {"d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 14, "max_len": 20}
    model = drawn(BERT(BERTConfig(vocab_size=V, pad_id=0, **sizes, **parts)))
    program = export_programs(model)["model"].module()
    for rows, S in ((1, 1), (3, 9), (2, 20)):
        ids, segments = torch.randint(1, V, (rows, S)), torch.randint(2, (rows, S))
        ids[0, 1:] = 0
        x = model.states(ids, segments=segments)
        found = program(ids, segments)
        assert_close(found[0], model.logits(x) if parts["head"] else x)
        if "pooler" in parts:
            assert_close(found[1], model.pooled(x))


def test_the_names_of_inputs_and_outputs():
    step = graphs_of(MODELS["learned"]())["step"]
    assert step.inputs[:4] == ["ids", "past_0_keys", "past_0_values", "past_1_keys"]
    assert step.outputs[:2] == ["logits", "present_0_keys"]
    assert len(step.inputs) == len(step.outputs) == 5


def test_of_what_keeps_a_state_there_is_no_step():
    model = drawn(MODELS["learned"]())
    model.blocks[1].attention = LinearAttention(12, 3)
    with pytest.raises(ValueError, match=r"block 1 \(LinearAttention\) keeps no keys"):
        CachedStep(model)
    [(name, program)] = export_programs(model).items()
    ids = torch.randint(V, (3, 30))
    assert name == "model"
    assert_close(program.module()(ids), model(ids))


def test_another_model_is_refused():
    with pytest.raises(TypeError, match="a Seq2SeqLM or a BERT, not LayerNorm"):
        export_programs(LayerNorm(3))

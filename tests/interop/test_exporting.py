"""Models as graphs of `torch.export`: any batch, any length, any length of cache."""

import pytest
import torch
from torch.testing import assert_close

from tformer.interop.exporting import CachedStep, export_programs, graphs_of
from tformer.models import BERT, BERTConfig, Transformer, TransformerConfig
from tformer.models.families import custom, gpt2
from tformer.nn import LinearAttention

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


def test_an_encoder_and_a_decoder():
    sizes = {"num_encoder_layers": 1, "num_decoder_layers": 1, "pad_id": 0}
    config = TransformerConfig(vocab_size=V, d_model=12, num_heads=3, d_ff=14, **sizes)
    model = drawn(Transformer(config)).train()
    programs = {n: p.module() for n, p in export_programs(model).items()}
    assert model.training
    model.eval()
    for rows, S, T in ((1, 1, 1), (3, 9, 4), (2, 4, 12)):
        src, tgt = torch.randint(1, V, (rows, S)), torch.randint(1, V, (rows, T))
        src[0, 1:] = 0
        memory = programs["encoder"](src)
        assert_close(memory, model.encode(src))
        assert_close(programs["decoder"](tgt, memory, src != 0), model(src, tgt))


def test_the_names_of_inputs_and_outputs():
    step = graphs_of(MODELS["learned"]())["step"]
    assert step.inputs[:4] == ["ids", "past_0_keys", "past_0_values", "past_1_keys"]
    assert step.outputs[:2] == ["logits", "present_0_keys"]
    assert len(step.inputs) == len(step.outputs) == 5


def test_what_keeps_no_keys_is_refused():
    model = MODELS["learned"]()
    model.blocks[1].attention = LinearAttention(12, 3)
    with pytest.raises(ValueError, match=r"block 1 \(LinearAttention\) keeps no keys"):
        export_programs(model)


def test_another_model_is_refused():
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 1, "d_ff": 8}
    with pytest.raises(
        TypeError, match="must be a CausalLM or a Transformer, not BERT"
    ):
        export_programs(BERT(BERTConfig(vocab_size=V, **sizes)))

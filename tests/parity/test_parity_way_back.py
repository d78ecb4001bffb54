"""What `to_huggingface` writes, transformers loads to the same logits; so do we."""

import json

import pytest
import torch
from torch.testing import assert_close

from double_everywhere import DoubleEverywhere
from tformer import BERT, BERTConfig, Transformer, TransformerConfig
from tformer.interop import from_huggingface, to_huggingface
from tformer.models import build_model
from tformer.nn import sinusoidal_positions

transformers = pytest.importorskip("transformers")

B, S, T, V = 2, 7, 5, 37
EXACT = {"atol": 1e-12, "rtol": 0}
GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 20}
LLAMA = {"hidden_size": 24, "intermediate_size": 42, "num_hidden_layers": 3}
LLAMA |= {"num_attention_heads": 6, "num_key_value_heads": 2}
LLAMA |= {"max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
OWN = {"d_model": 24, "num_heads": 4, "num_layers": 2, "max_len": 20}
ROTARY = {**OWN, "positions": "rotary", "norm": "rms", "feed_forward": "swiglu"}
CAUSAL = {
    "GPT-2": {"model_type": "gpt2", **GPT2},
    "GPT-2, no biases": {"model_type": "gpt2", **GPT2, "bias": False},
    "GPT-2, untied": {"model_type": "gpt2", **GPT2, "tie_word_embeddings": False},
    "Llama": {"model_type": "llama", **LLAMA, "attention_bias": True},
    "Llama, YaRN": {"model_type": "llama", **LLAMA, "tie_word_embeddings": True}
    | {"rope_theta": 50.0, "rope_scaling": YARN},
    "Llama, rope_parameters": {"model_type": "llama", **LLAMA}
    | {"rope_parameters": {"rope_theta": 20.0, "rope_type": "default"}},
    "Mistral": {"model_type": "mistral", **LLAMA, "sliding_window": 3},
    "Mistral, no window": {"model_type": "mistral", **LLAMA, "sliding_window": None},
    "Qwen3": {"model_type": "qwen3", **LLAMA, "head_dim": 10},
    "own": {"model_type": "tformer", **OWN, "feed_forward": "relu", "eps": 0.01},
    "own, no biases": {"model_type": "tformer", **OWN, "bias": False, "d_ff": 31},
    "own, a Llama": {"model_type": "tformer", **ROTARY, "kv_heads": 2, "head_dim": 8},
    "own, a Mistral": {"model_type": "tformer", **ROTARY, "window": 3, "bias": False},
    "own, a Qwen3": {"model_type": "tformer", **ROTARY, "qk_norm": True, "bias": False}
    | {"tie_embeddings": False, "d_ff": 41},
}
SIDES = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 1, "pad_token_id": 0}
SIDES |= {"encoder_ffn_dim": 31, "decoder_ffn_dim": 29, "max_position_embeddings": 20}
SIDES |= {"encoder_attention_heads": 4, "decoder_attention_heads": 6}
APART = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 41}
T5 = {"d_model": 24, "d_kv": 5, "d_ff": 31, "num_layers": 2, "num_heads": 4}
PAPERS = {"vocab_size": V, "d_model": 24, "num_heads": 4, "d_ff": 31, "max_len": 20}
PAPERS |= {"num_encoder_layers": 2, "num_decoder_layers": 1}
SEQ2SEQ = {
    "T5": {"model_type": "t5", **T5},
    "T5 1.1": {"model_type": "t5", **T5, "feed_forward_proj": "gated-gelu"}
    | {"tie_word_embeddings": False},
    "BART": {"model_type": "bart", **SIDES},
    "BART, untied": {"model_type": "bart", **SIDES, "tie_word_embeddings": False},
    "Marian": {"model_type": "marian", **SIDES, "activation_function": "swish"},
    "Marian, two vocabularies": {"model_type": "marian", **SIDES, **APART},
    "the paper's": PAPERS,
    "the paper's, no biases": {**PAPERS, "bias": False, "activation": "gelu_tanh"},
    "the paper's, untied": {**PAPERS, "tie_embeddings": False, "pad_id": None},
    "the paper's, two vocabularies": {**PAPERS, "tgt_vocab_size": 41},
}
BERTS = {
    "BERT": {},
    "BERT, untied": {"tie_embeddings": False},
    "BERT, no biases": {"bias": False, "activation": "relu"},
}


@pytest.fixture(autouse=True)
def in_float64(float64):
    with torch.no_grad(), DoubleEverywhere():
        yield


def spread(model):
    """Draw all numbers so large that each part is seen."""
    for name, p in [*model.named_parameters(), *model.named_buffers()]:
        if p.numel():
            gain = p.ndim == 1 and name.endswith("weight")
            torch.nn.init.normal_(p, float(gain), 0.3 if p.ndim == 1 else 0.4)
    return model.double().eval()


def loaded(kind, folder):
    """Load what was written; nothing may be missing, or too much."""
    model, told = kind.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager"
    )
    # Of an untied model, whose encoder and head have their own.
    unused = {"model.shared.weight", "cls.predictions.bias"}
    unused = unused if not model.config.tie_word_embeddings else set()
    assert not {*told["missing_keys"]} - unused, told
    assert not told["unexpected_keys"], told
    assert not told["mismatched_keys"], told
    for name, p in model.named_parameters():
        if "embed_positions" in name and "Marian" in type(model).__name__:
            p.copy_(sinusoidal_positions(*p.shape, layout="halves"))  # not in float32
    assert next(model.parameters()).dtype == torch.float64
    return model.eval()


@pytest.mark.parametrize("name", CAUSAL)
def test_language_models(name, tmp_path):
    ours = spread(build_model({"vocab_size": V, **CAUSAL[name]}))
    to_huggingface(ours, tmp_path / "new", eos_token_id=5)
    theirs = loaded(transformers.AutoModelForCausalLM, tmp_path / "new")
    ids = torch.randint(V, (B, S))
    wanted = ours(ids)
    assert wanted.std() > 0.1
    assert_close(theirs(ids).logits, wanted, **EXACT)
    assert theirs.config.eos_token_id == 5
    assert_close(from_huggingface(tmp_path / "new")(ids), wanted, **EXACT)


@pytest.mark.parametrize("name", SEQ2SEQ)
def test_models_from_sequence_to_sequence(name, tmp_path):
    config = SEQ2SEQ[name]
    if name.startswith("the paper's"):
        ours = spread(Transformer(TransformerConfig(**config)))
    else:
        ours = spread(build_model({"vocab_size": V, **config}))
    to_huggingface(ours, tmp_path, decoder_start_token_id=1)
    theirs = loaded(transformers.AutoModelForSeq2SeqLM, tmp_path)
    src, tgt = torch.randint(1, V, (B, S)), torch.randint(1, V, (B, T))
    src[1, 3:] = 0
    wanted = ours(src, tgt)
    real = torch.ones_like(src) if ours.pad_id is None else src != 0
    given = {"attention_mask": real.long(), "decoder_input_ids": tgt}
    scale = wanted.abs().max()
    assert_close(theirs(src, **given).logits / scale, wanted / scale, **EXACT)
    assert_close(from_huggingface(tmp_path)(src, tgt) / scale, wanted / scale, **EXACT)


@pytest.mark.parametrize("name", BERTS)
@pytest.mark.parametrize("pooler", [False, True])
def test_berts(name, pooler, tmp_path):
    sizes = {"vocab_size": V, "d_model": 24, "num_heads": 4, "d_ff": 31, "max_len": 20}
    ours = spread(BERT(BERTConfig.tiny(**sizes, **BERTS[name], pooler=pooler)))
    to_huggingface(ours, tmp_path)
    kind = transformers.AutoModelForMaskedLM
    words = json.loads((tmp_path / "config.json").read_text())
    if pooler:
        assert words["architectures"] == ["BertForPreTraining"]
        theirs = kind.from_pretrained(tmp_path, attn_implementation="eager").eval()
    else:
        theirs = loaded(kind, tmp_path)
    ids, segments = torch.randint(1, V, (B, S)), torch.randint(2, (B, S))
    wanted = ours(ids, segments=segments)
    assert_close(theirs(ids, token_type_ids=segments).logits, wanted, **EXACT)
    assert_close(from_huggingface(tmp_path)(ids, segments=segments), wanted, **EXACT)


def test_a_bert_that_makes_vectors(tmp_path):
    sizes = {"vocab_size": V, "d_model": 24, "num_heads": 4, "head": False}
    ours = spread(BERT(BERTConfig.tiny(**sizes, pooler=True)))
    to_huggingface(ours, tmp_path)
    theirs, ids = loaded(transformers.AutoModel, tmp_path), torch.randint(1, V, (B, S))
    x = ours.states(ids)
    assert_close(theirs(ids).last_hidden_state, x, **EXACT)
    assert_close(theirs(ids).pooler_output, ours.pooled(x), **EXACT)

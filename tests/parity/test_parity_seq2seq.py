"""T5, BART, Marian and BERT of Hugging Face, from a folder and from memory."""

import json

import pytest
import torch
from torch.testing import assert_close

from double_everywhere import DoubleEverywhere
from tformer import greedy
from tformer.interop import from_huggingface
from tformer.nn import sinusoidal_positions

transformers = pytest.importorskip("transformers")

B, S, T, V, NEW, PAD, BOS = 3, 7, 6, 37, 9, 0, 3
EXACT = {"atol": 1e-12, "rtol": 0}
T5 = {"d_model": 24, "d_kv": 5, "d_ff": 31, "num_layers": 3, "num_decoder_layers": 2}
T5 |= {"num_heads": 4, "relative_attention_num_buckets": 8}
T5 |= {"relative_attention_max_distance": 6, "layer_norm_epsilon": 0.01}
GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
SIZES = {"d_model": 24, "encoder_layers": 3, "decoder_layers": 2, "encoder_ffn_dim": 31}
SIZES |= {"decoder_ffn_dim": 29, "encoder_attention_heads": 4}
SIZES |= {"decoder_attention_heads": 6, "max_position_embeddings": 20}
APART = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 41}
BERT = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
BERT |= {"intermediate_size": 31, "layer_norm_eps": 0.01}
BERT |= {"max_position_embeddings": 20, "type_vocab_size": 3}
MODELS = {
    "T5": ("t5", T5),
    "T5 1.1": ("t5", {**T5, **GATED}),
    "T5, SwiGLU": ("t5", {**T5, **GATED, "feed_forward_proj": "gated-silu"}),
    "BART": ("bart", SIZES),
    "BART, untied": (
        "bart",
        {**SIZES, "tie_word_embeddings": False, "activation_function": "relu"}
        | {"scale_embedding": True},
    ),
    "Marian": ("marian", {**SIZES, "scale_embedding": True}),
    "Marian, swish": ("marian", {**SIZES, "activation_function": "swish"}),
    "Marian, two vocabularies": ("marian", {**SIZES, **APART}),
    "Marian, untied": ("marian", {**SIZES, **APART, "tie_word_embeddings": False}),
}


@pytest.fixture(autouse=True)
def in_float64(float64):
    with torch.no_grad(), DoubleEverywhere():
        yield


def make(kind, options, model_class):
    """Make a model of transformers with random numbers, gains and biases too."""
    ids = {"pad_token_id": PAD, "bos_token_id": None, "eos_token_id": None}
    ids |= {"decoder_start_token_id": BOS, "forced_eos_token_id": None}
    config = transformers.AutoConfig.for_model(
        kind, **{"vocab_size": V, **options, **ids}
    )
    model = model_class.from_config(config, attn_implementation="eager")
    for of, p in model.named_parameters():
        if kind == "marian" and "embed_positions" in of:  # which it rounds to float32
            p.copy_(sinusoidal_positions(*p.shape, layout="halves"))
        elif p.ndim == 1:  # gains of either sign, or a tied token is written for ever
            torch.nn.init.normal_(p, std=1 if of.endswith("weight") else 0.1)
        else:
            large = 2 if "shared" in of or "embed" in of else 0.7 * p.shape[-1] ** -0.5
            torch.nn.init.normal_(p, std=large)
    for name, buffer in model.named_buffers():
        if "final_logits_bias" in name:
            torch.nn.init.normal_(buffer, std=0.1)
    return model.eval()


def drawn(name):
    """Make one; of T5 1.1 transformers ties what its file holds apart."""
    kind, options = MODELS[name]
    model = make(kind, options, transformers.AutoModelForSeq2SeqLM)
    if kind == "t5" and "tie_word_embeddings" in options:
        own = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
        model.lm_head.weight = own
    return model


def batch(size=V):
    """Draw sources, some of which end in padding, and targets."""
    src, tgt = torch.randint(1, V, (B, S)), torch.randint(1, size, (B, T))
    src[1, 4:], src[2, 1:], tgt[:, 0] = PAD, PAD, BOS
    return src, tgt


def compare(ours, theirs):
    """Hold logits and texts to theirs, written at once and token by token."""
    src, tgt = batch()
    real = {"attention_mask": (src != PAD).long()}
    wanted = theirs(input_ids=src, decoder_input_ids=tgt, **real).logits
    assert wanted.dtype == torch.float64
    assert wanted.std() > 0.1
    scale = wanted.abs().max()
    assert_close(ours(src, tgt) / scale, wanted / scale, **EXACT)
    cache, memory = ours.new_cache(T), ours.encode(src)
    one_by_one = [
        ours.decode(tgt[:, t : t + 1], memory, memory_key_mask=src != PAD, cache=cache)
        for t in range(T)
    ]
    assert_close(torch.cat(one_by_one, dim=1) / scale, wanted / scale, **EXACT)
    options = {"max_new_tokens": NEW, "do_sample": False, "num_beams": 1}
    text = theirs.generate(src, **real, **options)[:, 1:]
    assert text.shape == (B, NEW)
    assert (text.diff() != 0).any()  # not one token for ever
    assert torch.equal(greedy(ours, src, max_len=NEW, bos_id=BOS), text)
    return src, tgt, wanted


@pytest.mark.parametrize("name", MODELS)
def test_the_same_logits_and_the_same_text(name, tmp_path):
    theirs = drawn(name)
    compare(from_huggingface(theirs), theirs)
    theirs.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len([*tmp_path.glob("*.safetensors")]) > 2
    compare(from_huggingface(tmp_path), theirs)


@pytest.mark.parametrize("name", ["T5", "T5 1.1", "BART", "Marian"])
def test_the_config_as_transformers_4_wrote_it(name, tmp_path):
    theirs = drawn(name)
    theirs.save_pretrained(tmp_path)
    words = json.loads((tmp_path / "config.json").read_text())
    words["torch_dtype"] = words.pop("dtype")
    words["transformers_version"] = "4.30.0"
    for word in ("scale_decoder_outputs", "is_decoder", "tie_word_embeddings"):
        words.pop(word, None)
    if name == "T5":
        words["n_positions"] = 512
    elif name == "T5 1.1":
        words["tie_word_embeddings"] = False
    else:
        words |= {"normalize_before": False, "num_hidden_layers": 3, "num_beams": 4}
        words |= {"normalize_embedding": name == "BART", "_num_labels": 3}
        words |= {"static_position_embeddings": name == "Marian"}
    (tmp_path / "config.json").write_text(json.dumps(words))
    compare(from_huggingface(tmp_path), theirs)


@pytest.mark.parametrize("tied", [True, False])
def test_a_bert_for_masked_tokens(tied, tmp_path):
    options = {**BERT, "tie_word_embeddings": tied}
    theirs = make("bert", options, transformers.AutoModelForMaskedLM)
    theirs.save_pretrained(tmp_path)
    ids, segments = batch()[0], torch.randint(3, (B, S))
    given = {"attention_mask": ids != PAD, "token_type_ids": segments}
    wanted = theirs(ids, **given).logits
    for source in (tmp_path, theirs):
        ours = from_huggingface(source)
        logits = ours(ids, segments=segments)
        assert_close(logits[ids != PAD], wanted[ids != PAD], **EXACT)
        assert (ours.pooler, ours.config.tie_embeddings) == (None, tied)


def test_a_bert_that_makes_vectors(tmp_path):
    theirs = make("bert", BERT, transformers.AutoModel)
    theirs.save_pretrained(tmp_path)
    ids = batch()[0]
    wanted = theirs(ids, attention_mask=ids != PAD)
    for source in (tmp_path, theirs):
        ours = from_huggingface(source)
        x = ours.states(ids)
        real = ids != PAD
        assert_close(x[real], wanted.last_hidden_state[real], **EXACT)
        assert_close(ours.pooled(x), wanted.pooler_output, **EXACT)
        with pytest.raises(ValueError, match="head is False: this model has no scores"):
            ours(ids)


def test_the_file_of_bert_holds_more_than_its_architecture(tmp_path):
    """As those of bert-base-uncased: head, pooler and a guess about two sentences."""
    theirs = make("bert", BERT, transformers.AutoModelForPreTraining)
    theirs.save_pretrained(tmp_path)
    ids = torch.randint(1, V, (B, S))
    ours, wanted = from_huggingface(tmp_path), theirs(ids).prediction_logits
    assert_close(ours(ids), wanted, **EXACT)
    assert_close(ours.pooled(ours.states(ids)), theirs.bert(ids)[1], **EXACT)

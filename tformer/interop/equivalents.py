"""The family of Hugging Face that computes what a model of our own does.

D d_model · H heads
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tformer.models.bert import BERT
from tformer.models.building import Model, config_of
from tformer.models.config import TransformerConfig
from tformer.models.families import Config, bart, bert, custom, family_of, gpt2
from tformer.models.folder import saved_of
from tformer.models.transformer import Transformer

# Which part of a weight belongs to the stream of vectors that all layers add to.
COLUMNS = ("_proj.weight", "linear1.weight", "embedding.weight", "output.weight")
ROWS = ("out_proj.weight", "out_proj.bias", "linear2.weight", "linear2.bias")
# Parts of a model of one's own, and what they must be in each of these families.
OF_GPT2 = {"norm": "layer", "positions": "learned", "kv_heads": None, "qk_norm": False}
OF_LLAMA = {"norm": "rms", "positions": "rotary", "feed_forward": "swiglu"}
OF_ALL = {"placement": "pre", "logit_scale": 1.0, "score_scale": None}
MAPPED = ("positions", "norm", "feed_forward", "kv_heads", "qk_norm", "window")


def in_their_words(model: Model) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return a config in Hugging Face's words, and the weights, by names of ours.

    The config has the words of a family that are not theirs (`OWN_WORDS`) too.

    Raises:
        ValueError: no family computes the same; the message names the part.
    """
    weights = {name: x.detach() for name, x in saved_of(model).items()}
    if isinstance(model, Transformer):
        return as_marian(model.config), in_halves(weights, model.config)
    if isinstance(model, BERT):
        return as_bert(model), weights
    c = config_of(model)
    if c["model_type"] == "tformer":
        return as_family(c), weights
    defaults = family_of(c).DEFAULTS
    told = {"pad_token_id"}  # theirs may have a default beyond a small vocabulary
    told |= {n for n, x in defaults.items() if x is not None}
    words = {n: x for n, x in c.items() if x is not None or n in told}
    if words["model_type"] == "gpt2":
        words["bias"] = True  # theirs has them always
    rope: Any = words.get("rope_parameters", {})
    if "rope_theta" in rope and "rope_theta" in words:  # as transformers 4 reads it
        words["rope_theta"] = rope["rope_theta"]
    return words, weights


def as_bert(model: BERT) -> dict[str, Any]:
    """Say what a BERT is in the words of `BertModel` or `BertForMaskedLM`."""
    c = vars(model.config)
    if c["num_kv_heads"] not in (None, c["num_heads"]):
        raise refusal("num_kv_heads", c["num_kv_heads"], "BERT")
    words = {theirs: c[ours] for theirs, ours in bert.WORDS.items()}
    words["intermediate_size"] = words["intermediate_size"] or 4 * c["d_model"]
    words["hidden_act"] = name_of(c["activation"], bert.ACTIVATION_NAMES, "BERT")
    kinds = {(True, False): "ForMaskedLM", (True, True): "ForPreTraining"}
    return {
        "model_type": "bert",
        "architectures": ["Bert" + kinds.get((c["head"], c["pooler"]), "Model")],
        "attention_probs_dropout_prob": c["dropout"],
        **words,
    }


def as_marian(c: TransformerConfig) -> dict[str, Any]:
    """Say what the paper's Transformer is in Marian's words."""
    must: dict[str, tuple[object, ...]] = {
        "norm_first": (False,),
        "positions": ("sinusoidal",),
        "eps": (1e-5,),
        "num_kv_heads": (None, c.num_heads),
    }
    for name, known in must.items():
        if (value := getattr(c, name)) not in known:
            raise refusal(name, value, "Marian")
    sides = {"ffn_dim": c.d_ff, "attention_heads": c.num_heads}
    both = [f"{side}_{word}" for side in ("encoder", "decoder") for word in sides]
    own = c.tgt_vocab_size is not None
    return {
        "model_type": "marian",
        "vocab_size": c.vocab_size,
        "decoder_vocab_size": c.tgt_vocab_size if own else c.vocab_size,
        "share_encoder_decoder_embeddings": not own,
        "tie_word_embeddings": c.tie_embeddings,
        "d_model": c.d_model,
        "encoder_layers": c.num_encoder_layers,
        "decoder_layers": c.num_decoder_layers,
        **{name: sides[name.partition("_")[2]] for name in both},
        "activation_function": name_of(c.activation, bart.ACTIVATION_NAMES, "Marian"),
        **dict.fromkeys(("dropout", "attention_dropout"), c.dropout),
        "activation_dropout": c.dropout,
        "scale_embedding": True,
        "max_position_embeddings": c.max_len,
        "pad_token_id": c.pad_id,
    }


def in_halves(weights: dict[str, Tensor], c: TransformerConfig) -> dict[str, Tensor]:
    """Put the features in Marian's order: those of the sines, then of the cosines.

    Each number of a vector keeps its weights, and the model computes the same: sums
    over the features do not depend on their order, but by rounding.
    """
    order = torch.cat((torch.arange(0, c.d_model, 2), torch.arange(1, c.d_model, 2)))
    turned = {}
    for name, x in weights.items():
        axis = x.ndim - 1 if name.endswith(COLUMNS) else 0
        moved = name.endswith((*COLUMNS, *ROWS)) or "norm." in name
        axis = 0 if name.endswith(ROWS) else axis
        turned[name] = x.index_select(axis, order.to(x.device)) if moved else x
    if "tgt_embedding.weight" not in turned and "output.weight" in turned:
        turned["tgt_embedding.weight"] = turned["src_embedding.weight"].clone()
    tgt = turned.get("tgt_embedding.weight", turned["src_embedding.weight"])
    turned["logit_bias"] = tgt.new_zeros(len(tgt))
    return turned


def as_family(c: Config) -> dict[str, Any]:
    """Say what a language model of chosen parts is: GPT-2, Llama, Mistral or Qwen3."""
    kinds = {"learned": "gpt2", "rotary": "llama"}
    kind = kinds.get(c["positions"])
    if kind is None:
        raise refusal("positions", c["positions"], "GPT-2 or Llama")
    if kind == "llama" and c["qk_norm"]:
        kind = "qwen3"
    elif kind == "llama" and c["window"]:
        kind = "mistral"
    must: dict[str, object] = {**OF_ALL, **(OF_GPT2 if kind == "gpt2" else OF_LLAMA)}
    for name, part in custom.PARTS.items():
        if name not in MAPPED:
            must.setdefault(name, part.default)
    if kind == "gpt2":
        must |= {"window": None, "head_dim": (None, c["d_model"] // c["num_heads"])}
    if kind in ("mistral", "qwen3"):  # which have biases nowhere, or not in the network
        must["bias"] = False
    if kind == "qwen3":
        must["window"] = None
    for name, value in must.items():
        if c[name] not in (value if isinstance(value, tuple) else (value,)):
            raise refusal(name, c[name], kind)
    return as_gpt2(c) if kind == "gpt2" else as_llama(c, kind)


def as_gpt2(c: Config) -> dict[str, Any]:
    """Say what a model of these parts is in GPT-2's words."""
    return {
        "model_type": "gpt2",
        "vocab_size": c["vocab_size"],
        "n_positions": c["max_len"],
        "n_embd": c["d_model"],
        "n_layer": c["num_layers"],
        "n_head": c["num_heads"],
        "n_inner": custom.inner_width(c),
        "activation_function": name_of(
            c["feed_forward"], gpt2.ACTIVATION_NAMES, "gpt2", "feed_forward"
        ),
        **dict.fromkeys(gpt2.NO_DROPOUT, c["dropout"]),
        "layer_norm_epsilon": c["eps"],
        "tie_word_embeddings": c["tie_embeddings"],
        "pad_token_id": c["pad_id"],
    }


def as_llama(c: Config, kind: str) -> dict[str, Any]:
    """Say what a model of these parts is in the words of Llama or of its heirs."""
    words = {
        "model_type": kind,
        "vocab_size": c["vocab_size"],
        "hidden_size": c["d_model"],
        "intermediate_size": custom.inner_width(c),
        "num_hidden_layers": c["num_layers"],
        "num_attention_heads": c["num_heads"],
        "num_key_value_heads": c["kv_heads"] or c["num_heads"],
        "head_dim": custom.width_of(c),
        "max_position_embeddings": c["max_len"],
        "rms_norm_eps": c["eps"],
        "attention_bias": c["bias"],
        "attention_dropout": c["dropout"],
        "rope_theta": 10_000.0,
        "tie_word_embeddings": c["tie_embeddings"],
        "pad_token_id": c["pad_id"],
    }
    if kind == "mistral":
        words["sliding_window"] = c["window"]
    return words | ({"mlp_bias": c["bias"]} if kind == "llama" else {})


def name_of(
    ours: str, names: Mapping[str, str], kind: str, part: str = "activation"
) -> str:
    """Return the word of theirs for an activation of ours."""
    for theirs, known in names.items():
        if known == ours:
            return theirs
    raise refusal(part, ours, kind)


def refusal(name: str, value: object, kind: str) -> ValueError:
    """Say that a part has no place in a family."""
    return ValueError(f"{name} ({value!r}) has no place in Hugging Face's {kind}")

"""BERT: an encoder that sees both sides, with norms after each sub-layer's sum.

Devlin et al. 2019 (arXiv:1810.04805), table 1 and appendix A.2. A third embedding says
to which of two texts a token belongs; a norm follows the sum. It is what `BertModel`
and `BertForMaskedLM` of Hugging Face compute. The files say whether there is a head for
masked tokens, and what reads the first token (`pooler`). The guess whether two
sentences belong together is left out.
"""

from collections.abc import Iterable, Mapping

from torch import Tensor

from tformer.models.bert import BERT, BERTConfig
from tformer.models.families import Config, one_of, replace_parts, with_defaults

DEFAULTS: Config = {
    "model_type": "bert",
    "vocab_size": 30_522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "tie_word_embeddings": True,
    "is_decoder": False,
    "add_cross_attention": False,
    "position_embedding_type": "absolute",  # of transformers 4
    "head": True,  # for masked tokens: not a word of theirs, as the next
    "pooler": False,
}
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
SIZES: dict[str, Config] = {
    "bert-base-uncased": {},
    "bert-large-uncased": {**LARGE, "intermediate_size": 4096},
}
WORDS = {  # of theirs: ours
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "d_ff",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_len",
    "type_vocab_size": "num_segments",
    "layer_norm_eps": "eps",
    "pad_token_id": "pad_id",
    "tie_word_embeddings": "tie_embeddings",
    "head": "head",
    "pooler": "pooler",
}
ACTIVATION_NAMES = {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu"}
ACTIVATION_NAMES |= {"relu2": "relu2", "silu": "silu"}
NAMES = (
    ("bert.", ""),
    ("embeddings.word_embeddings.", "embedding."),
    ("embeddings.position_embeddings.", "positions."),
    ("embeddings.token_type_embeddings.", "segments."),
    ("embeddings.LayerNorm.", "norm."),
    ("encoder.layer.", "encoder.blocks."),
    ("attention.self.query.", "attention.q_proj."),
    ("attention.self.key.", "attention.k_proj."),
    ("attention.self.value.", "attention.v_proj."),
    ("attention.output.dense.", "attention.out_proj."),
    ("attention.output.LayerNorm.", "attention_norm."),
    ("intermediate.dense.", "feed_forward.linear1."),
    ("output.dense.", "feed_forward.linear2."),
    ("output.LayerNorm.", "feed_forward_norm."),
    ("pooler.dense.", "pooler."),
    ("cls.predictions.transform.dense.", "head."),
    ("cls.predictions.transform.LayerNorm.", "head_norm."),
    ("cls.predictions.decoder.weight", "output.weight"),
    ("cls.predictions.decoder.bias", "output_bias"),
    ("cls.predictions.bias", "output_bias"),  # the same, unless the matrix is untied
)
OWN_WORDS = ("head", "pooler")


def build(config: Config) -> BERT:
    """Build a BERT with random weights; arguments and errors as of `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    for name in ("is_decoder", "add_cross_attention"):
        one_of(name, c[name], [False])
    one_of("position_embedding_type", c["position_embedding_type"], ["absolute"])
    dropout = "attention_probs_dropout_prob"  # one number serves both
    one_of(dropout, c[dropout], [c["hidden_dropout_prob"]])
    kind = one_of("hidden_act", c["hidden_act"], ACTIVATION_NAMES)
    words = {ours: c[theirs] for theirs, ours in WORDS.items()}
    return BERT(BERTConfig(activation=ACTIVATION_NAMES[kind], **words))


def fit(config: Config, names: Iterable[str]) -> Config:
    """Say in the config which of head and pooler the weights of these names have."""
    parts = {"pooler": "pooler.dense.", "head": "cls.predictions.transform."}
    held = " ".join(names)
    return {**config, **{part: name in held for part, name in parts.items()}}


def rename(state: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:  # noqa: ARG001
    """Name Hugging Face's weights as ours."""
    ours = {}
    for name, x in state.items():
        if name.endswith("embeddings.position_ids") or "cls.seq_relationship." in name:
            continue  # 0, 1, 2 …; and whether two sentences belong together
        # As the first files, from TensorFlow, call the weights of a norm.
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        name = name.replace("LayerNorm.beta", "LayerNorm.bias")
        if name == "cls.predictions.bias" and "cls.predictions.decoder.bias" in state:
            continue
        ours[replace_parts(name, NAMES)] = x
    return ours

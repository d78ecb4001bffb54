"""Model families: each a short file, `build(config)` in Hugging Face's own words.

A family is found by the `model_type` of its config. No module and no formula lives
here: a family puts those of `tformer.nn` together.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from torch import Tensor

T = TypeVar("T")
Config = Mapping[str, Any]  # as in a config.json
Weights = Mapping[str, Tensor]  # of a file, by name
# The model_types whose file has their name; then those whose file has another.
NAMES = """
gpt2 llama mistral qwen2 qwen3 olmo2 olmo3 smollm3 granite cohere2 exaone4 gemma2
gpt_neox phi3 ministral3 nanochat mixtral qwen3_moe gpt_oss deepseek_v3 glm4_moe
minimax_m2 qwen3_next kimi_linear bert t5 bart marian
"""
FAMILIES = {name: name for name in NAMES.split()}
FAMILIES |= {"hunyuan_v1_dense": "hunyuan", "gemma3_text": "gemma3"}
FAMILIES |= {"gemma4_text": "gemma4", "qwen3_5_text": "qwen3_5", "tformer": "custom"}
# Words of a config.json that change no number that a model computes.
NOTES = """
_name_or_path architectures auto_map bos_token_id chunk_size_feed_forward
decoder_start_token_id dtype eos_token_id id2label initializer_range is_decoder
is_encoder_decoder label2id output_attentions output_hidden_states problem_type
return_dict torch_dtype transformers_version unk_index use_cache pretraining_tp
cross_attention_hidden_size add_cross_attention summary_activation summary_first_dropout
summary_proj_to_labels summary_type summary_use_proj task_specific_params
tformer_version output_router_logits router_aux_loss_coef _num_labels add_bias_logits
bad_words_ids classif_dropout classifier_dropout early_stopping extra_pos_embeddings
force_bos_token_to_be_generated forced_bos_token_id forced_eos_token_id
gradient_checkpointing init_std length_penalty max_length min_length
no_repeat_ngram_size num_beams output_past
"""

# Words whose default in a family is a number, and which may be null all the same.
MAY_BE_NONE = """head_dim num_key_value_heads sliding_window pad_token_id q_lora_rank
attn_logit_softcapping final_logit_softcapping hidden_size_per_layer_input"""


def family_of(config: Config) -> ModuleType:
    """Return the module with `build` and `rename` for this config."""
    kind = config.get("model_type")
    if kind not in [*FAMILIES]:  # a list, say, is not hashable
        known = ", ".join(FAMILIES)
        raise ValueError(f"model_type ({kind!r}) must be one of {known}")
    return import_module(f"tformer.models.families.{FAMILIES[kind]}")


def with_defaults(config: Config, defaults: Config) -> dict[str, Any]:
    """Complete a config by a family's defaults."""
    own = defaults["model_type"]
    one_of("model_type", config.get("model_type", own), [own])
    known = {*defaults, *NOTES.split()}
    for name, value in config.items():
        if name not in known:
            raise ValueError(f"config has {name} ({value!r}), which is unknown here")
        check_kind(name, value, defaults.get(name))
    return {**defaults, **{n: x for n, x in config.items() if n in defaults}}


def check_kind(name: str, value: object, default: object) -> None:
    """Raise TypeError if the default is a flag or a number, and the value is not."""
    may_be_none = value is None and name in MAY_BE_NONE.split()
    if not isinstance(default, int | float) or may_be_none:
        return
    kinds = (int, float) if isinstance(default, float) else (type(default),)
    flag = isinstance(default, bool)
    if not isinstance(value, kinds) or isinstance(value, bool) != flag:
        known = {bool: "a bool", int: "an int", float: "a float"}[type(default)]
        raise TypeError(f"{name} must be {known}, not {type(value).__name__}")


def one_of(name: str, value: T, known: Iterable[T]) -> T:
    """Return the value, or raise ValueError unless it is one of the known."""
    known = list(known)
    if value not in known:
        raise ValueError(f"{name} ({value!r}) must be one of {known}")
    return value


def replace_parts(name: str, table: Iterable[tuple[str, str]]) -> str:
    """Replace parts of a weight's name, in the order of the table."""
    for theirs, ours in table:
        name = name.replace(theirs, ours)
    return name

"""The words of the configs of open language models, from the classes of transformers.

python tests/support/config_words.py writes config_words.txt anew, a word a line with
the families whose configs have it. `make parity` fails when a word is missing there.
"""

import typing
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).parent / "config_words.txt"

# As transformers names them; models of text, or the part of one that reads text.
FAMILIES = (
    *("llama", "llama4_text", "mistral", "ministral", "mixtral", "qwen2", "qwen2_moe"),
    *("qwen3", "qwen3_moe", "qwen3_next", "gemma", "gemma2", "gemma3_text"),
    *("gemma3n_text", "deepseek_v2", "deepseek_v3", "gpt_oss", "phi", "phi3", "phimoe"),
    *("olmo", "olmo2", "olmo3", "olmoe", "granite", "granitemoe", "granitemoeshared"),
    *("granitemoehybrid", "cohere", "cohere2", "smollm3", "glm", "glm4", "glm4_moe"),
    *("minimax", "minimax_m2", "kimi_linear", "falcon_h1", "nemotron", "nemotron_h"),
    *("starcoder2", "ernie4_5", "ernie4_5_moe", "hunyuan_v1_dense", "hunyuan_v1_moe"),
    *("modernbert", "exaone4", "seed_oss", "lfm2", "dots1", "jamba", "gpt_neox"),
    *("ministral3", "nanochat", "gemma4_text"),
)

# What every config has, and says nothing of the model: files, classes, generation.
OF_ANY_MODEL = {
    *("architectures", "chunk_size_feed_forward", "dtype", "id2label", "label2id"),
    *("is_encoder_decoder", "output_hidden_states", "output_attentions"),
    *("problem_type", "return_dict", "transformers_version", "use_cache"),
    *("initializer_range", "pretraining_tp", "torch_dtype"),
}


def gathered() -> dict[str, list[str]]:
    """Return each word with the families whose config class has it."""
    import transformers
    from transformers.modeling_rope_utils import RopeParameters
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    words = defaultdict(list)
    for family in FAMILIES:
        if family not in CONFIG_MAPPING_NAMES:  # of a later transformers
            continue
        kind = getattr(transformers, CONFIG_MAPPING_NAMES[family])
        base = transformers.PreTrainedConfig
        own = [each for each in kind.__mro__ if issubclass(each, base)]
        own = [each for each in own if each is not base]
        names = {name for each in own for name in vars(each).get("__annotations__", ())}
        names |= {*kind.attribute_map}
        for name in names - OF_ANY_MODEL:
            # Of tokens, vision, sound and the rest of a larger model: no architecture.
            if not name.startswith("_") and "token_id" not in name:
                words[name].append(family)
    for name in typing.get_type_hints(RopeParameters):
        words[name].append("rope_parameters")
    return dict(sorted(words.items()))


def listed() -> dict[str, str]:
    """Return the words of the file, each with the families that stand beside it."""
    rows = LIST.read_text("utf-8").splitlines()
    return {row.split()[0]: row for row in rows if row and not row.startswith("#")}


def main() -> None:
    """Write the file."""
    rows = [f"{word} {' '.join(families)}" for word, families in gathered().items()]
    LIST.write_text("\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main()

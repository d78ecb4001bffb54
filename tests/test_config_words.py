"""Whoever opens the config of an open model finds its words in this book."""

import re
from pathlib import Path

import pytest

from config_words import listed

DOCS = Path(__file__).parents[1] / "docs"

# Words of `config.json` files that the classes of transformers rename or do not have.
OF_FILES = (
    *("alibi", "attention_sink_size", "aux_loss_alpha", "e_score_correction_bias"),
    *("group_size", "index_topk", "linear_attn_config", "medusa_num_heads"),
    *("moe_layer_freq", "n_embd", "n_head", "n_inner", "n_layer", "n_positions"),
    *("num_experts_per_token", "num_mtp_modules", "num_nextn_predict_layers"),
    *("quant_method", "quantization_config", "qk_norm", "rope_scaling", "rope_theta"),
    *("rotary_pct", "scoring_func", "seq_aux", "topk_method", "torch_dtype"),
)


def words_in_tables() -> set[str]:
    """All words in code spans of tables, on the page of words and in the chapters."""
    pages = [DOCS / "configs.md", *(DOCS / "chapters").glob("*.md")]
    rows = [row for page in pages for row in page.read_text("utf-8").splitlines()]
    first_cells = [row.split("|")[1] for row in rows if row.startswith("| ")]
    return set(re.findall(r"`(\w+)[`:]", " ".join(first_cells)))


def test_the_list_is_long_enough():
    words = listed()
    assert len(words) > 200
    families = {family for row in words.values() for family in row.split()[1:]}
    assert len(families) > 45


@pytest.mark.by_day(60)
@pytest.mark.parametrize("word", [*listed(), *OF_FILES])
def test_every_word_of_a_config_is_in_a_table(word):
    families = listed().get(word, word)
    assert word in words_in_tables(), f"say in docs/configs.md what it is: {families}"

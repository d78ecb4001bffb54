"""The list of config words against the configs of the installed transformers."""

import pytest

from config_words import gathered, listed

pytest.importorskip("transformers")


def test_every_word_of_the_configs_is_listed():
    new = {word: rows for word, rows in gathered().items() if word not in listed()}
    assert not new, f"run tests/support/config_words.py, and see docs/configs.md: {new}"

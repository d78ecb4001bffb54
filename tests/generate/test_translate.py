"""From texts to ids: each row up to its end token, in the order of the texts."""

import pytest
import torch

from brute_force import decisive
from tformer import Transformer, TransformerConfig
from tformer.data.vocabulary import CharacterVocabulary
from tformer.generate.translate import translate, translate_to_ids

LETTERS = CharacterVocabulary.of(["abc"])
MODEL = Transformer(TransformerConfig.tiny(vocab_size=len(LETTERS)))


def test_a_row_ends_with_its_end_token_or_where_the_model_stopped():
    a, b, c = LETTERS.encode("abc")
    end, pad = LETTERS.eos_id, LETTERS.pad_id
    rows = [[a, end, pad, pad], [a, b, c, end], [a, b, c, a]]

    def decode(_, batch, **options):
        assert options == {"bos_id": LETTERS.bos_id, "eos_id": end, "max_len": 4}
        assert len(batch) == len(rows)
        return torch.tensor(rows)

    options = {"max_len": 4, "decode": decode}
    found = translate_to_ids(MODEL, LETTERS, ["a", "b", "c"], **options)
    assert found == [[a, end], [a, b, c, end], [a, b, c, a]]
    assert translate(MODEL, LETTERS, ["a", "b", "c"], **options) == ["a", "abc", "abca"]


def test_translate_goes_from_text_to_text_whatever_the_batch():
    vocabulary = CharacterVocabulary("abcdefghij")
    torch.manual_seed(0)
    model = decisive(Transformer(TransformerConfig.tiny(vocab_size=13)))
    texts = ["abc", "d", "jihgfedcba", "ee", "fg"]
    together = translate(model, vocabulary, texts, max_len=7)
    assert len(together) == len(texts)
    assert len(set(together)) > 1
    assert translate(model, vocabulary, texts, max_len=7, batch_size=2) == together
    assert [translate(model, vocabulary, [t], max_len=7)[0] for t in texts] == together
    assert translate(model, vocabulary, [], max_len=7) == []
    with pytest.raises(ValueError, match=r"batch_size \(0\)"):
        translate(model, vocabulary, texts, max_len=7, batch_size=0)

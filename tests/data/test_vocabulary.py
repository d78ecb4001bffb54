"""Characters to ids and back."""

import pytest
import torch

from tformer.data.vocabulary import CharacterVocabulary

ABC = CharacterVocabulary("abcé日")


def test_text_survives_the_way_there_and_back():
    text = "abécaba日"
    assert ABC.decode(ABC.encode(text)) == text
    assert ABC.decode(ABC.encode(text, bos=True, eos=True)) == text
    assert len(set(ABC.encode("abcé日"))) == 5


def test_special_tokens_come_first_and_are_no_characters():
    assert (ABC.pad_id, ABC.bos_id, ABC.eos_id) == (0, 1, 2)
    assert ABC.encode("ab", bos=True, eos=True) == [1, 3, 4, 2]
    assert len(ABC) == 8
    assert max(ABC.encode("日")) == len(ABC) - 1

    assert ABC.decode([1, 3, 0, 4, 2, 5, 2]) == "ab"  # up to the first end


def test_a_batch_is_padded_behind():
    batch = ABC.encode_batch(["abc", "b", ""], bos=True, eos=True)
    expected = [[1, 3, 4, 5, 2], [1, 4, 2, 0, 0], [1, 2, 0, 0, 0]]
    assert batch.tolist() == expected
    assert batch.dtype == torch.int64
    with pytest.raises(ValueError, match="at least one"):
        ABC.encode_batch([])


def test_a_vocabulary_is_collected_in_the_order_of_code_points():
    vocabulary = CharacterVocabulary.of(["cab", "日é", "", "c"])
    assert vocabulary.characters == "abcé日"
    assert CharacterVocabulary(vocabulary.characters).encode("é") == [6]


def test_an_unknown_character_is_named():
    with pytest.raises(ValueError, match=r"'x' \(U\+0078\) in 'abx' .* 5 characters"):
        ABC.encode("abx")
    with pytest.raises(ValueError, match=r"U\+0065"):
        ABC.encode("e\u0301")  # é as two code points


def test_an_id_outside_the_vocabulary_is_named():
    for bad in (-1, 8):
        with pytest.raises(ValueError, match=rf"id \({bad}\) must be in \[0, 8\)"):
            ABC.decode([3, bad])


def test_characters_are_one_text_and_differ():
    """A list would work, and could not be read again where it was saved."""
    with pytest.raises(ValueError, match=r"\['a'\]"):
        CharacterVocabulary("abca")
    with pytest.raises(TypeError, match="characters must be a str, not list"):
        CharacterVocabulary(["a", "b"])

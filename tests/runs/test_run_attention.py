"""The attention of a trained model on a text, asked for and drawn."""

import itertools
import re
import types

import matplotlib.figure
import numpy as np
import pytest
import torch
from torch.testing import assert_close

from tformer import (
    BERT,
    BERTConfig,
    Transformer,
    TransformerConfig,
    record_weights,
)
from tformer.data.bpe import BytePairVocabulary
from tformer.data.vocabulary import CharacterVocabulary
from tformer.models.families import custom
from tformer.runs.attention import attention_of, draw_attention, labels
from tformer.runs.folder import RunError

LETTERS = CharacterVocabulary.of(["abcdefg\n "])
TEXT, TARGET = "bad cab", "fed g"  # 7 characters and 5: sizes that are told apart
SIZES = {"vocab_size": len(LETTERS), "d_model": 18, "num_heads": 3, "d_ff": 11}


def trained(kind="transformer", vocabulary=LETTERS, **changes):
    sizes = {**SIZES, "vocab_size": len(vocabulary)}
    if kind == "transformer":
        sizes |= {"num_encoder_layers": 2, "num_decoder_layers": 1, **changes}
        model = Transformer(TransformerConfig.tiny(**sizes))
    else:
        sizes |= {"num_layers": 2, "max_len": 13, **changes}
        bert = kind == "bert"
        model = BERT(BERTConfig.tiny(**sizes)) if bert else custom.build(sizes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)  # so that the weights are far from even
    return types.SimpleNamespace(model=model, vocabulary=vocabulary)


READ = [*TEXT, "⟨end⟩"]
WROTE = ["⟨start⟩", *TARGET]


@pytest.mark.parametrize(
    ("kind", "layers", "rows", "columns"),
    [
        (None, 1, WROTE, READ),
        ("cross", 1, WROTE, READ),
        ("encoder", 2, READ, READ),
        ("decoder", 1, WROTE, WROTE),
    ],
)
def test_of_a_transformer(kind, layers, rows, columns):
    asked = trained()
    found, of_rows, of_columns = attention_of(asked, TEXT, kind=kind, target=TARGET)
    assert (of_rows, of_columns) == (rows, columns)
    src = LETTERS.encode_batch([TEXT], eos=True)
    tgt = LETTERS.encode_batch([TARGET], bos=True)
    part = asked.model.encoder if kind == "encoder" else asked.model.decoder
    name = "attention" if kind in ("encoder", "decoder") else "cross_attention"
    with record_weights(asked.model.eval()) as weights:
        asked.model(src, tgt)
    wanted = [weights[getattr(block, name)] for block in part.blocks]
    assert len(found) == len(wanted) == layers
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.shape == (3, len(rows), len(columns))
        assert_close(ours, theirs[0])
        assert_close(ours.sum(-1), torch.ones(3, len(rows)))
        assert not ours.requires_grad


@pytest.mark.parametrize("kind", ["gpt", "bert"])
def test_of_a_stack(kind):
    asked = trained(kind)
    found, rows, columns = attention_of(asked, TEXT)
    assert rows == columns == [*TEXT]
    ids = torch.tensor([LETTERS.encode(TEXT)])
    with record_weights(asked.model.eval()) as weights:
        asked.model(ids)
    stack = asked.model.encoder if kind == "bert" else asked.model
    wanted = [weights[block.attention] for block in stack.blocks]
    assert len(found) == 2
    for ours, theirs in zip(found, wanted, strict=True):
        assert_close(ours, theirs[0])
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    assert (found[0][:, future] == 0).all().item() is (kind == "gpt")


def test_without_a_target_it_is_the_model_s_own_answer():
    """A model that always writes "c", so that its answer is as long as may be."""
    asked = trained()
    (c,) = LETTERS.encode("c")
    weight = asked.model.tgt_embedding.weight
    asked.model.logits = lambda x: torch.eye(len(weight))[c].expand(*x.shape[:2], -1)
    _, rows, columns = attention_of(asked, TEXT)
    assert rows == ["⟨start⟩", *"c" * (2 * len(READ) + 20)]
    assert columns == READ
    _, rows, _ = attention_of(asked, "abc" * 30)
    assert len(rows) == 100  # what is written is cut, and not refused


def test_labels_tell_tokens_apart():
    ids = LETTERS.encode("a b\n", bos=True, eos=True)
    assert labels(LETTERS, ids) == ["⟨start⟩", "a", " ", "b", "⏎", "⟨end⟩"]
    pieces = BytePairVocabulary.train(["low lower lowest"] * 3, vocab_size=263)
    found = labels(pieces, pieces.encode("low\n", bos=True))
    assert found[0] == "⟨start⟩"
    assert found[-1] == "⏎"
    assert "".join(found[1:-1]) == "low"


@pytest.mark.parametrize(
    ("asked", "text", "options", "message"),
    [
        ({}, "", {}, "the text is empty"),
        ({}, "bad ☃", {}, "'☃' (U+2603)"),
        ({}, TEXT, {"target": "☃"}, "'☃' (U+2603)"),
        ({}, TEXT, {"kind": "self"}, "must be one of cross, encoder, decoder"),
        ({}, "a" * 100, {}, "the text has more than 100 tokens"),
        ({}, TEXT, {"target": "a" * 100}, "the target has more than 100 tokens"),
        ({"kind": "gpt"}, TEXT, {"kind": "cross"}, "are for a model that translates"),
        ({"kind": "gpt"}, TEXT, {"target": "a"}, "are for a model that translates"),
        ({"kind": "bert"}, "a" * 14, {}, "14"),
        ({"positions": "learned", "max_len": 9}, "a" * 9, {}, "max_len"),
        ({"positions": "learned", "max_len": 9}, TEXT, {"target": "a" * 9}, "max_len"),
    ],
)
def test_mistakes_are_named(asked, text, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        attention_of(trained(**asked), text, **options)


def test_learned_positions_are_not_exceeded_by_its_own_answer():
    asked = trained(positions="learned", max_len=11)
    _, rows, columns = attention_of(asked, TEXT)
    assert len(rows) <= 11
    assert columns == READ


class TestDrawing:
    @pytest.fixture
    def drawn(self, monkeypatch):
        """Catch the figure on its way to the file."""
        figures = []
        save = matplotlib.figure.Figure.savefig

        def caught(figure, *args, **kwargs):
            figures.append(figure)
            return save(figure, *args, **kwargs)

        monkeypatch.setattr(matplotlib.figure.Figure, "savefig", caught)
        return figures

    def test_a_map_for_each_head_in_a_row_for_each_layer(self, drawn, tmp_path):
        asked = trained()
        draw_attention(asked, TEXT, tmp_path / "new/all.svg", kind="encoder")
        (figure,) = drawn
        titles = [ax.get_title() for ax in figure.axes]
        assert titles == [
            f"layer {i}, head {j}" for i, j in itertools.product((1, 2), (1, 2, 3))
        ]
        layers, *_ = attention_of(asked, TEXT, kind="encoder")
        wanted = [head for layer in layers for head in layer]
        for ax, weights in zip(figure.axes, wanted, strict=True):
            np.testing.assert_array_equal(ax.get_images()[0].get_array(), weights)

    def test_one_head(self, drawn, tmp_path):
        asked, out = trained(), tmp_path / "one.png"
        draw_attention(asked, TEXT, out, kind="encoder", layer=2, head=3)
        (ax,) = drawn[0].axes
        assert ax.get_title() == "layer 2, head 3"
        layers, *_ = attention_of(asked, TEXT, kind="encoder")
        np.testing.assert_array_equal(ax.get_images()[0].get_array(), layers[1][2])
        assert out.read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        ("name", "options", "message"),
        [
            ("x.txt", {}, "must end in one of .svg, .png, .pdf"),
            ("x.svg", {"layer": 2}, "layer (2) must be in [1, 1]"),
            ("x.svg", {"head": 4}, "head (4) must be in [1, 3]"),
            ("x.svg", {"head": 0}, "head (0) must be in [1, 3]"),
        ],
    )
    def test_mistakes_are_named(self, tmp_path, name, options, message):
        with pytest.raises(RunError, match=re.escape(message)):
            draw_attention(trained(), TEXT, tmp_path / name, **options)

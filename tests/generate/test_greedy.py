"""Greedy decoding against step-by-step argmax by the full forward pass."""

import pytest
import torch
from torch import nn

from tformer import Transformer, TransformerConfig, greedy
from tformer.data.vocabulary import CharacterVocabulary
from tformer.fast.turning import turn_weights
from tformer.generate.translate import translate

BOS, EOS, PAD = 1, 2, 0


def make_model(seed: int = 0, **changes) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 13, "d_model": 14, "num_heads": 7, "d_ff": 22}
    options = {"tie_embeddings": False, **changes}  # tied, it repeats the last token
    model = Transformer(TransformerConfig.tiny(**{**sizes, **options}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(
                    2.5
                )  # untrained, it would write one token again and again
    return model


def sources(seed: int = 0) -> torch.Tensor:
    src = torch.randint(3, 13, (11, 5), generator=torch.Generator().manual_seed(seed))
    src[3, 4:] = PAD
    src[7, 1:] = PAD
    return src


@torch.no_grad()
def by_hand(model: Transformer, src: torch.Tensor, max_len: int) -> list[list[int]]:
    """Each row by itself, without padding, by the whole model."""
    model.eval()
    rows = []
    for row in src:
        row = row[row != PAD][None]
        tgt = torch.tensor([[BOS]])
        while tgt.shape[1] <= max_len and tgt[0, -1] != EOS:
            newest = model(row, tgt)[:, -1].argmax(-1, keepdim=True)
            tgt = torch.cat((tgt, newest), dim=1)
        rows.append(tgt[0, 1:].tolist())
    return rows


@pytest.mark.parametrize("norm_first", [False, True])
def test_greedy_equals_argmax_by_the_whole_model(norm_first):
    ends = set()
    for seed in range(6):
        model = make_model(seed, norm_first=norm_first)
        src = sources(seed)
        out = greedy(model, src, bos_id=BOS, eos_id=EOS, max_len=9)
        expected = by_hand(model, src, 9)
        longest = max(map(len, expected))
        assert out.shape == (11, longest)
        assert out.dtype == torch.int64
        padded = [row + [PAD] * (longest - len(row)) for row in expected]
        assert out.tolist() == padded
        ends |= {len(row) for row in expected}
    assert len(ends) > 2  # rows that end early, and at different lengths


class Scripted(Transformer):
    """Writes 3, 4, 5, … and ends row b after b + 1 tokens."""

    def decode(self, tgt, memory, *, memory_key_mask=None, cache=None):
        B, new = tgt.shape
        self.lengths.append(new)
        T = len(self.lengths)
        logits = torch.zeros(B, 1, 13)
        for b in range(B):
            logits[b, -1, EOS if b + 1 == T else 2 + T] = 1.0
        return logits


def scripted(**changes) -> Scripted:
    model = Scripted(TransformerConfig.tiny(vocab_size=13, **changes))
    model.lengths = []
    return model


def test_a_row_that_ended_is_padded_and_the_loop_ends_with_the_last():
    model = scripted()
    out = greedy(model, sources()[:3], bos_id=BOS, eos_id=EOS, max_len=9)
    assert out.tolist() == [[EOS, PAD, PAD], [3, EOS, PAD], [3, 4, EOS]]
    assert model.lengths == [1, 1, 1]  # three steps, not 9, each of one token


def test_max_len_cuts_a_row_that_has_not_ended():
    out = greedy(scripted(), sources()[:4], bos_id=BOS, eos_id=EOS, max_len=2)
    assert out.tolist() == [[EOS, PAD], [3, EOS], [3, 4], [3, 4]]


def test_without_a_padding_token_rows_are_filled_with_the_end_token():
    model = scripted(pad_id=None)
    out = greedy(model, sources()[:2], bos_id=BOS, eos_id=EOS, max_len=9)
    assert out.tolist() == [[EOS, EOS], [3, EOS]]


def test_the_source_is_encoded_once():
    model = make_model()
    calls = []
    model.encoder.register_forward_hook(lambda *_: calls.append(1))
    out = greedy(model, sources(), bos_id=BOS, eos_id=EOS, max_len=9)
    assert out.shape[1] > 1
    assert len(calls) == 1


def test_a_given_mask_hides_what_it_says():
    model, src = make_model(), sources()[:3, :3]
    visible = torch.ones(3, 3, dtype=torch.bool)
    visible[:, 2] = False
    options = {"bos_id": BOS, "eos_id": EOS, "max_len": 6}
    masked = greedy(model, src, src_key_mask=visible, **options)
    other = src.clone()
    other[:, 2] = 3 + (src[:, 2] - 2) % 10
    assert torch.equal(masked, greedy(model, other, src_key_mask=visible, **options))
    assert torch.equal(masked, greedy(model, src[:, :2], **options))


def test_the_modes_of_all_modules_come_back_and_dropout_has_no_part():
    model = make_model(dropout=0.5).train()
    model.encoder.eval()
    before = [module.training for module in model.modules()]
    options = {"bos_id": BOS, "eos_id": EOS, "max_len": 6}
    first = greedy(model, sources(), **options)
    assert torch.equal(first, greedy(model, sources(), **options))
    assert [module.training for module in model.modules()] == before
    assert len(set(before)) == 2


def test_the_modes_come_back_after_an_error_too():
    model = make_model().train()
    with pytest.raises(ValueError, match="vocab_size = 13"):
        greedy(model, sources() + 50, bos_id=BOS, eos_id=EOS, max_len=6)
    assert all(module.training for module in model.modules())


def test_no_gradients_are_recorded():
    class Watched(nn.Module):
        def forward(self, x):
            assert not torch.is_grad_enabled()
            return x

    model = make_model()
    model.dropout = Watched()
    out = greedy(model, sources(), bos_id=BOS, eos_id=EOS, max_len=3)
    assert not out.requires_grad
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("changes", "options", "error", "message"),
    [
        ({}, {"max_len": 0}, ValueError, r"max_len \(0\)"),
        ({}, {"max_len": 2.0}, TypeError, "max_len must be an int"),
        ({}, {"bos_id": 13}, ValueError, r"bos_id \(13\) .*13"),
        ({}, {"eos_id": -1}, ValueError, r"eos_id \(-1\)"),
        ({"tgt_vocab_size": 7}, {"eos_id": 7}, ValueError, "vocab_size = 7"),
        (
            {"positions": "learned", "max_len": 5},
            {"max_len": 6},
            ValueError,
            r"max_len \(6\) must be at most .* \(5\)",
        ),
        ({}, {"src_key_mask": torch.ones(11, 5)}, TypeError, "key_mask"),
    ],
)
def test_bad_input_is_named(changes, options, error, message):
    options = {"bos_id": BOS, "eos_id": EOS, "max_len": 4, **options}
    with pytest.raises(error, match=message):
        greedy(make_model(**changes), sources(), **options)


def test_learned_positions_can_be_used_to_the_last():
    model = make_model(positions="learned", max_len=5)
    out = greedy(model, sources(), bos_id=BOS, eos_id=12, max_len=5)
    assert out.shape[1] <= 5


@pytest.mark.parametrize("tied", [False, True])
def test_turned_weights_write_the_same(tied):
    model = make_model(tie_embeddings=tied)
    options = {"bos_id": BOS, "eos_id": EOS, "max_len": 9}
    before = greedy(model, sources(), **options)
    weights = {name: w.clone() for name, w in model.state_dict().items()}
    for _ in range(2):
        assert turn_weights(model) is model
        assert torch.equal(greedy(model, sources(), **options), before)
        assert model.state_dict().keys() == weights.keys()
        for name, weight in model.state_dict().items():
            assert torch.equal(weight, weights[name])
        turned = model.decoder.layers[0].feed_forward.linear1.weight
        assert turned.stride() == (1, 22)
        assert turned.requires_grad


def test_translate_goes_from_text_to_text_whatever_the_batch():
    vocabulary = CharacterVocabulary("abcdefghij")
    model = make_model()
    texts = ["abc", "d", "jihgfedcba", "ee", "fg"]
    together = translate(model, vocabulary, texts, max_len=7)
    assert len(together) == len(texts)
    assert len(set(together)) > 1
    assert translate(model, vocabulary, texts, max_len=7, batch_size=2) == together
    assert [translate(model, vocabulary, [t], max_len=7)[0] for t in texts] == together
    assert translate(model, vocabulary, [], max_len=7) == []
    with pytest.raises(ValueError, match=r"batch_size \(0\)"):
        translate(model, vocabulary, texts, max_len=7, batch_size=0)

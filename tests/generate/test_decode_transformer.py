"""A Transformer writes: sources with padding, rows that end, what is asked of it."""

import pytest
import torch
from torch import nn

from brute_force import WAYS, decisive
from tformer import Transformer, TransformerConfig, greedy, sample
from tformer.nn.memory_layout import turn_weights

BOS, EOS, PAD = 1, 2, 0


def make_model(seed: int = 0, **changes) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 13, "d_model": 14, "num_heads": 7, "d_ff": 22}
    options = {"tie_embeddings": False, **changes}  # tied, it repeats the last token
    model = Transformer(TransformerConfig.tiny(**{**sizes, **options}))
    return decisive(model)


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


@pytest.mark.parametrize(
    ("max_len", "pad_id", "written"),
    [
        (9, PAD, [[EOS, PAD, PAD], [3, EOS, PAD], [3, 4, EOS]]),
        (2, PAD, [[EOS, PAD], [3, EOS], [3, 4]]),  # cut
        (9, None, [[EOS, EOS, EOS], [3, EOS, EOS], [3, 4, EOS]]),
    ],
)
def test_rows_end_and_the_loop_with_the_last(max_len, pad_id, written):
    model = Scripted(TransformerConfig.tiny(vocab_size=13, pad_id=pad_id))
    model.lengths = []
    out = greedy(model, sources()[:3], bos_id=BOS, eos_id=EOS, max_len=max_len)
    assert out.tolist() == written
    assert model.lengths == [1] * len(written[0])  # not 9 steps, each of one token


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


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_model_is_asked_in_eval_and_without_gradients(way):
    class Watched(nn.Module):
        def forward(self, x):
            assert not torch.is_grad_enabled()
            assert not self.training
            return x

    model = make_model(dropout=0.5).train()
    model.dropout = Watched().train()
    model.encoder.eval()
    before = [module.training for module in model.modules()]
    options = {"bos_id": BOS, "eos_id": EOS, "max_len": 6}
    generators = (torch.Generator().manual_seed(0) for _ in range(2))
    extra = [{"generator": g} if way is sample else {} for g in generators]
    first, again = (way(model, sources(), **options, **each) for each in extra)
    assert torch.equal(first, again)  # without dropout
    assert not first.requires_grad
    assert torch.is_grad_enabled()
    assert [module.training for module in model.modules()] == before


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
        turned = model.decoder.blocks[0].feed_forward.linear1.weight
        assert turned.stride() == (1, 22)
        assert turned.requires_grad

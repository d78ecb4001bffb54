"""A Transformer with a cache: it changes no number, however a text is cut."""

import pytest
import torch
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer import Transformer, TransformerConfig

H, S, T, V = 6, 11, 5, 31
pytestmark = pytest.mark.usefixtures("float64")


def transformer(**changes) -> Transformer:
    sizes = {"vocab_size": V, "d_model": 24, "num_heads": H, "d_ff": 17}
    config = TransformerConfig.tiny(**{**sizes, "max_len": 13, **changes})
    return Transformer(config).eval()


def draw(*shape):
    return torch.randint(1, V, shape)


@torch.no_grad()
def written(model, tgt, memory, pieces, real=None, **masks):
    """Decode a target in pieces; the logits of all, and the cache."""
    cache = model.new_cache(T)

    def piece(begin, end):
        if real is not None:
            masks["tgt_key_mask"] = real[:, :end]
        return model.decode(tgt[:, begin:end], memory, cache=cache, **masks)

    return in_pieces(piece, pieces), cache


@pytest.mark.parametrize(
    ("kv_heads", "norm_first", "positions"),
    [(H, False, "sinusoidal"), (3, True, "learned"), (1, False, "learned")],
)
def test_every_split(kv_heads, norm_first, positions, randomised):
    options = {"num_kv_heads": kv_heads, "norm_first": norm_first}
    model = randomised(transformer(positions=positions, **options))
    src, tgt = draw(3, S), draw(3, T)
    src[1, 4:] = src[2, 1:] = 0  # padding
    mask, memory = model.source_mask(src), model.encode(src)
    for pieces in splits(T):
        logits, cache = written(model, tgt, memory, pieces, memory_key_mask=mask)
        assert_close(logits, model(src, tgt))
        assert cache.length == T


def test_padding_on_the_left(randomised):
    model = randomised(transformer(num_kv_heads=2))
    src, tgt = draw(3, S), draw(3, T)
    real = torch.arange(T) >= torch.tensor([0, 3, 4])[:, None]
    whole, memory = model(src, tgt, tgt_key_mask=real), model.encode(src)
    assert not torch.allclose(whole[real], model(src, tgt)[real])
    for pieces in splits(T):
        logits, _ = written(model, tgt, memory, pieces, real)
        assert_close(logits[real], whole[real])


@pytest.mark.parametrize("pieces", [(1, 1, 1, 1, 1), (2, 3)])
def test_beams_of_one_source_ask_one_memory_which_is_projected_once(pieces):
    model, calls = transformer(num_kv_heads=2), []
    for block in model.decoder.blocks:
        block.cross_attention.k_proj.register_forward_hook(lambda *_: calls.append(1))
    src, tgt = draw(2, S), draw(6, T)
    src[1, 4:] = 0
    mask, memory = model.source_mask(src), model.encode(src)
    logits, cache = written(model, tgt, memory, pieces, memory_key_mask=mask)
    assert len(calls) == len(model.decoder.blocks)
    assert len(cache.blocks[0].of_memory[0]) == 2
    assert_close(logits, model(src.repeat_interleave(3, 0), tgt))


@torch.no_grad()
def test_reorder_lets_a_row_go_on_from_another():
    model, src, tgt = transformer(), draw(1, S), draw(3, T)
    memory, rows = model.encode(src), torch.tensor([2, 2, 0])
    _, cache = written(model, tgt[:, :3], memory, (3,))
    cache.reorder(rows)
    new = model.decode(tgt[:, 3:], memory, cache=cache)
    tgt[:, :3] = tgt[rows, :3]
    assert_close(new, model(src.expand(3, -1), tgt)[:, 3:])


def test_the_memory_of_all_layers():
    model = transformer(num_kv_heads=2, num_decoder_layers=3)
    assert model.new_cache(9).nbytes == 0  # taken when the first key comes
    _, cache = written(model, draw(2, 4), model.encode(draw(2, S)), (4,))
    size = 2 * 3 * 2 * 4 * 8  # keys and values, layers, G, Dh, bytes
    assert cache.nbytes == size * 2 * (T + S)
    assert cache.length == 4

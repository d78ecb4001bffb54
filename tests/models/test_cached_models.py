"""A Transformer with a cache: it changes no number, however a text is cut."""

import pytest
import torch
from torch.testing import assert_close

from pieces import in_pieces, splits
from tformer import Transformer, TransformerConfig

H, S, V = 6, 11, 31


@pytest.fixture(params=[H, 3, 1], ids=["MHA", "GQA", "MQA"])
def kv_heads(request):
    return request.param


def transformer(**changes) -> Transformer:
    sizes = {"vocab_size": V, "d_model": 24, "num_heads": H, "d_ff": 17}
    config = TransformerConfig.tiny(**{**sizes, "max_len": 13, **changes})
    return Transformer(config).eval()


@pytest.mark.usefixtures("float64")
class TestTransformer:
    @torch.no_grad()
    @pytest.mark.parametrize("norm_first", [False, True])
    @pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
    def test_every_split(self, kv_heads, norm_first, positions, randomised):
        T = 5
        model = randomised(
            transformer(
                num_kv_heads=kv_heads, norm_first=norm_first, positions=positions
            )
        )
        src, tgt = torch.randint(1, V, (3, S)), torch.randint(1, V, (3, T))
        src[1, 4:] = src[2, 1:] = 0  # padding
        mask = model.source_mask(src)
        memory = model.encode(src)
        whole = model(src, tgt)
        for pieces in splits(T):
            cache = model.new_cache(T)
            logits = in_pieces(
                lambda begin, end, cache=cache: model.decode(
                    tgt[:, begin:end], memory, memory_key_mask=mask, cache=cache
                ),
                pieces,
            )
            assert_close(logits, whole)
            assert cache.length == T

    @torch.no_grad()
    def test_padding_on_the_left(self, randomised):
        model, T = randomised(transformer(num_kv_heads=2)), 6
        src, tgt = torch.randint(1, V, (3, S)), torch.randint(1, V, (3, T))
        real = torch.arange(T) >= torch.tensor([0, 3, 5])[:, None]
        whole = model(src, tgt, tgt_key_mask=real)
        memory = model.encode(src)
        for pieces in splits(T):
            cache = model.new_cache(T)
            logits = in_pieces(
                lambda begin, end, cache=cache: model.decode(
                    tgt[:, begin:end],
                    memory,
                    tgt_key_mask=real[:, :end],
                    cache=cache,
                ),
                pieces,
            )
            assert_close(logits[real], whole[real])
        assert_close(model.decode(tgt, memory, tgt_key_mask=real)[real], whole[real])

    @torch.no_grad()
    def test_the_memory_is_projected_once_in_each_layer(self):
        model = transformer()
        calls = []
        for block in model.decoder.blocks:
            block.cross_attention.k_proj.register_forward_hook(
                lambda *_: calls.append(1)
            )
        memory = model.encode(torch.randint(1, V, (2, S)))
        cache = model.new_cache(5)
        for token in torch.randint(1, V, (2, 5)).split(1, dim=1):
            model.decode(token, memory, cache=cache)
        assert len(calls) == 2

    @torch.no_grad()
    def test_beams_of_one_source_ask_one_memory(self):
        model, beams = transformer(num_kv_heads=2), 3
        src = torch.randint(1, V, (2, S))
        src[1, 4:] = 0
        mask, memory = model.source_mask(src), model.encode(src)
        tgt = torch.randint(1, V, (2 * beams, 5))
        whole = model(src.repeat_interleave(beams, 0), tgt)
        for pieces in ((1, 1, 1, 1, 1), (2, 3)):
            cache = model.new_cache(5)
            logits = in_pieces(
                lambda begin, end, cache=cache: model.decode(
                    tgt[:, begin:end], memory, memory_key_mask=mask, cache=cache
                ),
                pieces,
            )
            assert_close(logits, whole)
            keys, _ = cache.blocks[0].of_memory
            assert len(keys) == 2

    @torch.no_grad()
    def test_reorder_lets_a_row_go_on_from_another(self):
        model, beams = transformer(), 3
        src = torch.randint(1, V, (1, S))
        memory = model.encode(src)
        tgt = torch.randint(1, V, (beams, 5))
        cache, rows = model.new_cache(5), torch.tensor([2, 2, 0])
        model.decode(tgt[:, :3], memory, cache=cache)
        cache.reorder(rows)
        new = model.decode(tgt[:, 3:], memory, cache=cache)
        tgt[:, :3] = tgt[rows, :3]
        assert_close(new, model(src.expand(beams, -1), tgt)[:, 3:])

    def test_the_memory_of_all_layers(self):
        model = transformer(num_kv_heads=2, num_decoder_layers=3)
        cache = model.new_cache(9)
        size = 2 * 3 * 2 * 4 * 8  # keys and values, layers, G, Dh, bytes
        assert cache.nbytes == cache.length == 0  # taken when the first key comes
        with torch.no_grad():
            memory = model.encode(torch.randint(1, V, (2, S)))
            model.decode(torch.ones(2, 4, dtype=torch.int64), memory, cache=cache)
        assert cache.nbytes == size * 2 * (9 + S)
        assert cache.length == 4

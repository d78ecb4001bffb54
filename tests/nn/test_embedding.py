import pytest
import torch
from torch.testing import assert_close

from tformer.nn import TokenEmbedding

B, T, D, V = 2, 5, 16, 11


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_looks_up_rows_times_the_root_of_the_width(dtype):
    embedding = TokenEmbedding(V, D)
    ids = torch.tensor([[0, 10, 3, 3, 7], [1, 2, 3, 4, 5]], dtype=dtype)
    output = embedding(ids)
    assert output.shape == (B, T, D)
    for b in range(B):
        for t in range(T):
            assert_close(output[b, t], 4 * embedding.weight[ids[b, t].item()])


def test_without_the_root():
    embedding, ids = TokenEmbedding(V, D, scale=False), torch.tensor([[0, 10, 3]])
    assert torch.equal(embedding(ids), embedding.weight[ids])


def test_logits_come_from_the_same_matrix():
    embedding, x = TokenEmbedding(V, D), torch.randn(B, T, D)
    logits = embedding.logits(x)
    assert logits.shape == (B, T, V)
    assert_close(logits, x @ embedding.weight.T)
    (embedding(torch.tensor([[3]])).sum() + logits.sum()).backward()
    from_logits = x.sum(dim=(0, 1))
    wanted = from_logits.expand(V, D).clone()
    wanted[3] += 4
    assert_close(embedding.weight.grad, wanted)


def test_first_vectors_have_unit_deviation():
    embedding = TokenEmbedding(501, 64)
    assert embedding.weight.std().item() == pytest.approx(1 / 8, rel=0.03)
    assert embedding(torch.arange(501)[None]).std().item() == pytest.approx(1, rel=0.03)


def test_meta_device_has_no_numbers_to_check():
    embedding = TokenEmbedding(V, D).to("meta")
    output = embedding(torch.zeros(B, T, dtype=torch.int64, device="meta"))
    assert output.is_meta
    assert output.shape == (B, T, D)


class TestBadInput:
    @pytest.mark.parametrize(("low", "high"), [(0, 11), (-1, 3), (-5, 99)])
    def test_ids_outside_the_vocabulary(self, raises, low, high):
        message = (
            f"ids must be in [0, vocab_size = 11), but they reach from {low} to {high}"
        )
        with raises(ValueError, message):
            TokenEmbedding(V, D)(torch.tensor([[2, high], [low, 1]]))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.uint8])
    def test_ids_are_integers(self, raises, dtype):
        with raises(TypeError, f"ids must be int64 or int32, not {dtype}"):
            TokenEmbedding(V, D)(torch.ones(B, T, dtype=dtype))

    @pytest.mark.parametrize("shape", [(T,), (B, T, 1), (B, 0), (0, T)])
    def test_shape(self, raises, shape):
        message = f"ids must be (batch, length) and not empty, not {shape}"
        with raises(ValueError, message):
            TokenEmbedding(V, D)(torch.ones(shape, dtype=torch.int64))

    def test_sizes(self, raises):
        with raises(ValueError, "vocab_size (0) must be at least 1"):
            TokenEmbedding(0, D)
        with raises(ValueError, "d_model (0) must be at least 1"):
            TokenEmbedding(V, 0)

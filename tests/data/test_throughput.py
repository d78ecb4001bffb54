"""A loader never makes the model wait: it takes less than 5 % of a step's time."""

import time
from itertools import islice

import pytest
import torch

from tformer import BERT, BERTConfig, Transformer, TransformerConfig
from tformer.data.batches import batches_of_pairs
from tformer.data.windows import masked_batches, text_batches
from tformer.models.families import custom
from tformer.tasks import TASKS
from tformer.training.loop import batch_loss

# The tiny models: every larger one gives the loader more time.
TASK = TASKS["addition"]
STREAM = torch.arange(300_000) % 60 + 3


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other on a busy machine would count as work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def seconds(call) -> float:
    """Processor time, the least of three: what else runs here does not count."""
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


WINDOWS = {"batch_size": 12, "context": 64, "seed": 0}
HIDING = {"mask_id": 65, "vocab_size": 65, "special_ids": (0, 1, 2)}
VOCABULARY = TASK.vocabulary()
LOADERS = {  # what makes the model, and the batches
    "pairs": (
        lambda: Transformer(TransformerConfig.tiny(vocab_size=len(VOCABULARY))),
        lambda: batches_of_pairs(
            VOCABULARY, TASK.pairs("train", 5_000, 0), seed=0, batch_tokens=1000
        ),
    ),
    "text": (
        lambda: custom.build({"vocab_size": 65, "max_len": 64}),
        lambda: text_batches(STREAM, **WINDOWS),
    ),
    "masked": (
        lambda: BERT(BERTConfig.tiny(vocab_size=66, max_len=64)),
        lambda: masked_batches(STREAM, **WINDOWS, **HIDING),
    ),
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_takes_less_than_a_twentieth_of_a_step(name):
    model, batches = (make() for make in LOADERS[name])
    batch = next(batches)
    training = seconds(lambda: batch_loss(model, batch).backward())
    loading = seconds(lambda: list(islice(batches, 100))) / 100
    assert loading / training < 0.05

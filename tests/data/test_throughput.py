"""A loader never makes the model wait: it takes less than 5 % of a step's time."""

import time
from collections.abc import Iterator
from itertools import islice

import pytest
import torch

from tformer import BERT, BERTConfig, Transformer, TransformerConfig
from tformer.data.batch import Batch
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


def share_of_a_step(model: torch.nn.Module, batches: Iterator[Batch]) -> float:
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step(batch: Batch) -> None:
        optimizer.zero_grad(set_to_none=True)
        batch_loss(model, batch).backward()
        optimizer.step()

    some = list(islice(batches, 2))
    step(some[0])
    training = seconds(lambda: [step(batch) for batch in some]) / 2
    loading = seconds(lambda: list(islice(batches, 100))) / 100
    return loading / training


def loaders() -> Iterator[tuple[torch.nn.Module, Iterator[Batch]]]:
    vocabulary = TASK.vocabulary()
    config = TransformerConfig.tiny(vocab_size=len(vocabulary), norm_first=True)
    pairs = TASK.pairs("train", 5_000, 0)
    for size in ({"batch_size": 64}, {"batch_tokens": 1000}):
        batches = batches_of_pairs(vocabulary, pairs, seed=0, **size)
        yield Transformer(config), batches
    windows = {"batch_size": 12, "context": 64, "seed": 0}
    gpt = custom.build({"vocab_size": 65, "max_len": 64})
    yield gpt, text_batches(STREAM, **windows)
    hiding = {"mask_id": 65, "vocab_size": 65, "special_ids": (0, 1, 2)}
    bert = BERT(BERTConfig.tiny(vocab_size=66, max_len=64))
    yield bert, masked_batches(STREAM, **windows, **hiding)


def test_a_loader_takes_less_than_a_twentieth_of_a_step():
    shares = [share_of_a_step(model, batches) for model, batches in loaders()]
    assert max(shares) < 0.05, shares

"""Writing costs a fixed number of torch's operations, and copies nothing."""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tformer import GPT, GPTConfig, greedy

PROMPT = torch.tensor([[3, 4]])
# Of one token: four projections, two layers, two norms, two sums, and their views.
OF_A_LAYER = 33
OF_THE_REST = 18  # ids checked, embedded, positions, a norm, logits, the largest
COPIES = {"cat", "clone", "_to_copy", "masked_fill", "repeat_interleave", "tril"}


class Counting(TorchDispatchMode):
    """Count what torch is asked to do."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.counts[function.overloadpacket.__name__] += 1
        return function(*args, **(kwargs or {}))


def of_one_token(layers: int) -> Counter[str]:
    """Count the operations of one more token: of six tokens, less those of five."""
    config = GPTConfig.tiny(num_layers=layers)
    model, found = GPT(config).eval(), []
    for tokens in (6, 5):
        with Counting() as counting:
            greedy(model, PROMPT, max_len=tokens)
        found.append(counting.counts)
    return found[0] - found[1]


@pytest.mark.skipif(torch.__version__ < "2.13", reason="other releases count otherwise")
def test_a_token_costs_few_operations():
    of_layers = {layers: of_one_token(layers) for layers in (1, 2)}
    of_a_layer = of_layers[2].total() - of_layers[1].total()
    assert of_a_layer <= OF_A_LAYER
    assert of_layers[1].total() - of_a_layer <= OF_THE_REST


def test_nothing_is_copied_for_a_token():
    counts = of_one_token(2)
    assert counts["addmm"] == 2 * 6  # it counts
    assert not COPIES & set(counts)

"""What a layer recalls after training, by keys, rate and seed: writes recall_shares.py.

Run as `python tests/experiments/recall.py`; the chapter on linear attention shows it.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tformer.nn import (
    GatedDeltaRule,
    LinearAttention,
    MultiHeadAttention,
    RotaryEmbedding,
    rotary_frequencies,
)

SEEDS = range(5)
RATES = {  # softmax attention is at its limit with any of them
    "softmax": (0.01,),
    "rotary": (0.01,),
    "linear": (0.01, 0.03, 0.1, 0.3),
    "delta": (0.01, 0.03, 0.1, 0.3),
}
CASES = ((8, 1), (8, 2))  # keys, and how often each is written

softmax = partial(MultiHeadAttention, bias=False)
layers: dict[str, Callable[[int, int], nn.Module]] = {
    "softmax": softmax,
    "rotary": partial(softmax, rotary=RotaryEmbedding(rotary_frequencies(16))),
    "linear": LinearAttention,
    "delta": GatedDeltaRule,
}


class Recall(nn.Module):
    """One layer of one head and width 16, between embeddings of n keys and 16 words."""

    def __init__(self, layer: Callable[[int, int], nn.Module], n: int) -> None:
        super().__init__()
        self.key, self.word = nn.Embedding(n, 16), nn.Embedding(17, 16)  # 16: "?"
        self.layer, self.output = layer(16, 1), nn.Linear(16, 16)

    def forward(self, keys: Tensor, said: Tensor) -> Tensor:
        """Score the words (B, 8, 16) of the last eight keys of (B, T)."""
        x = self.key(keys) + self.word(said)
        return self.output(self.layer(x, is_causal=True))[:, -8:]


def sequences(n: int, times: int, count: int = 32) -> tuple[Tensor, Tensor, Tensor]:
    """Draw keys (count, T), the word beside each, and the words that are asked."""
    order = [torch.cat([torch.randperm(n) for _ in range(times)]) for _ in range(count)]
    keys, said = torch.stack(order), torch.randint(16, (count, n * times))
    last = torch.zeros(count, n, dtype=torch.long)
    last = last.scatter(1, keys[:, -n:], said[:, -n:])
    asked = torch.stack([torch.randperm(n)[:8] for _ in range(count)])
    unknown = torch.full((count, 8), 16)
    both = torch.cat((keys, asked), 1), torch.cat((said, unknown), 1)
    return *both, last.gather(1, asked)


def recalled(
    name: str, n: int, times: int, rate: float, seed: int, steps: int = 250
) -> float:
    """Train one model; return the share of words that it recalls on fresh sequences."""
    torch.manual_seed(seed)
    model = Recall(layers[name], n).double()
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        keys, said, wanted = sequences(n, times)
        loss = cross_entropy(model(keys, said).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    with torch.no_grad():
        keys, said, wanted = sequences(n, times, count=256)
        return (model(keys, said).argmax(-1) == wanted).double().mean().item()


def main() -> None:
    """Train all; write {case: {layer: {rate: [the share of each seed]}}}."""
    words = {1: "once", 2: "twice"}
    lines = ['"""What recall.py has measured."""', "", "recall = {"]
    for n, times in CASES:
        lines.append(f'    "{n} keys, {words[times]}": {{')
        for name, rates in RATES.items():
            lines.append(f'        "{name}": {{')
            for rate in rates:
                shares = [round(recalled(name, n, times, rate, x), 3) for x in SEEDS]
                lines.append(f"            {rate}: {shares},")
                print(lines[-1].strip(), flush=True)
            lines.append("        },")
        lines.append("    },")
    Path(__file__).with_name("recall_shares.py").write_text(
        "\n".join([*lines, "}", ""])
    )


if __name__ == "__main__":
    main()

"""Other people's modules with the weights of ours, and forms in a few plain lines.

torchs           `nn.Transformer`, made to read and write ids
plain            attention and the Transformer as tutorials write them
nano             GPT as nanoGPT writes it, with a plain cache for decoding
huggingface      BERT's encoder, MarianMT and GPT-2 of `transformers`
x_transformers   the encoder and the GPT of `x-transformers`
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

FOREIGN = True  # the tests of the project do without other people's packages
PACKAGES = {"huggingface": "transformers", "x_transformers": "x_transformers"}


def peer(name: str) -> ModuleType | None:
    """Import one of these files; None without its package: the peer does not run."""
    there = FOREIGN and find_spec(PACKAGES[name])
    return import_module(f"benchmarks.peers.{name}") if there else None

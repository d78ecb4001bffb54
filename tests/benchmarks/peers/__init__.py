"""Other people's modules with the weights of ours, and forms in a few plain lines.

plain            attention and the Transformer as tutorials write them
nano             GPT as nanoGPT writes it, with a plain cache for decoding
huggingface      BERT's encoder, MarianMT and GPT-2 of `transformers`
x_transformers   the encoder and the GPT of `x-transformers`
"""

from importlib.util import find_spec

FOREIGN = True  # the tests of the project do without other people's packages


def installed(name: str) -> bool:
    """Say whether a peer's package is there; without it the peer does not run."""
    return FOREIGN and find_spec(name) is not None

"""Models of four kinds."""

import pytest

from compared import GEMMA, GPT2, LLAMA, QWEN, spread
from tformer.models.families import custom, gpt2, llama, qwen3


@pytest.fixture(scope="module")
def models():
    built = {"gpt": gpt2.build(GPT2), "llama": llama.build(LLAMA)}
    built |= {"qwen": qwen3.build(QWEN), "gemma": custom.build(GEMMA)}
    return {name: spread(model) for name, model in built.items()}

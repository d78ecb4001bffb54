"""The loop that writes, without conveniences; the other ways of decoding extend it.

B batch · S length of a source · P of a prompt · T of what is written
"""

import torch
from torch import Tensor

from tformer.models.gpt import GPT
from tformer.models.transformer import Transformer


@torch.no_grad()
def continue_text(
    model: GPT, prompt: Tensor, count: int, *, temperature: float = 0.0
) -> Tensor:
    """Write `count` more tokens after a prompt, ids (B, P); returns (B, P + T).

    Only the newest token is read: the cache has the others. Temperature 0 takes the
    likeliest token; above it one is drawn from softmax(logits / temperature). The model
    should be in `eval()`.
    """
    cache = model.new_cache(prompt.shape[1] + count)
    text = newest = prompt
    for _ in range(count):
        logits = model(newest, cache=cache, last_only=True)[:, -1]  # (B, V)
        if temperature > 0:
            newest = torch.multinomial((logits / temperature).softmax(dim=-1), 1)
        else:
            newest = logits.argmax(dim=-1, keepdim=True)  # (B, 1)
        text = torch.cat((text, newest), dim=1)
    return text


@torch.no_grad()
def translate_greedily(
    model: Transformer, src: Tensor, *, bos_id: int, eos_id: int, max_len: int
) -> Tensor:
    """Write the likeliest next token of each target until all have ended.

    The source, ids (B, S), is encoded once; the cache keeps its keys and values too. A
    target begins with `bos_id`, and ends with `eos_id` or after `max_len` tokens: what
    stands after an `eos_id` is to be left out. Returns ids (B, T).
    """
    memory = model.encode(src)  # (B, S, D)
    mask = model.source_mask(src)
    cache = model.new_cache(max_len)
    newest = src.new_full((len(src), 1), bos_id)
    written = newest[:, :0]
    while written.shape[1] < max_len and not (written == eos_id).any(dim=1).all():
        logits = model.decode(newest, memory, memory_key_mask=mask, cache=cache)
        newest = logits[:, -1:].argmax(dim=-1)  # (B, 1)
        written = torch.cat((written, newest), dim=1)
    return written

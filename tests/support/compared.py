"""Small models that are compared, of weights that are not small."""

import torch

from tformer.models.families import gpt2

V = 37
GPT2 = {"model_type": "gpt2", "vocab_size": V, "n_embd": 24, "n_layer": 3, "n_head": 4}
GPT2 |= {"n_positions": 64, **gpt2.NO_DROPOUT}
LLAMA = {
    "model_type": "llama",
    "vocab_size": V,
    "hidden_size": 48,
    "intermediate_size": 42,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
QWEN = {**LLAMA, "model_type": "qwen3", "head_dim": 10, "num_key_value_heads": 6}
GEMMA = {"vocab_size": V, "d_model": 24, "num_heads": 4, "num_layers": 3}
GEMMA |= {"positions": "rotary", "norm": "rms_plus_one", "feed_forward": "swiglu"}
GEMMA |= {"softcap": 5.0, "window": 6, "logit_cap": 9.0, "bias": False}


def spread(model):
    """Draw weights that are not small, so that every part has its say."""
    chance = torch.Generator().manual_seed(0)
    for x in model.parameters():
        drawn = torch.randn(x.shape, generator=chance)
        x.data = drawn * x.shape[-1] ** -0.5 if x.ndim > 1 else x.data + 0.3 * drawn
    return model.eval()

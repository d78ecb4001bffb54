"""The indexer beside DeepSeek-V3.2's of Hugging Face: the same keys are chosen."""

import pytest
import torch

from double_everywhere import DoubleEverywhere
from tformer.nn import (
    Indexer,
    RotaryEmbedding,
    causal_mask,
    choose_keys,
    rotary_frequencies,
)

transformers = pytest.importorskip("transformers")
theirs = pytest.importorskip("transformers.models.deepseek_v32.modeling_deepseek_v32")

B, T, D, H, DH, ROTATED, K = 2, 13, 20, 3, 12, 4, 5


@pytest.mark.usefixtures("float64")
def test_the_same_choice():
    config = transformers.DeepseekV32Config(
        hidden_size=D,
        q_lora_rank=D,  # so that queries can be made of x, as ours are
        qk_rope_head_dim=ROTATED,
        index_n_heads=H,
        index_head_dim=DH,
        index_topk=K,
    )
    with DoubleEverywhere(), torch.no_grad():
        block = theirs.DeepseekV32Indexer(config, 0)
        for p in block.parameters():
            torch.nn.init.normal_(p, std=0.5)
        rotary = RotaryEmbedding(
            rotary_frequencies(ROTATED), layout="halves", head_dim=DH
        )
        ours = Indexer(D, H, DH, top_k=K, rotary=rotary)
        names = {"wq_b": "q_proj", "wk": "k_proj", "weights_proj": "weight_proj"}
        state = {
            f"{names.get(n.split('.')[0], 'k_norm')}.{n.split('.')[1]}": p
            for n, p in block.state_dict().items()
        }
        ours.load_state_dict(state)
        x = torch.randn(B, T, D)
        cosine, sine = rotary.angles(torch.arange(T))
        both = [torch.cat((each, each), dim=-1)[None] for each in (cosine, sine)]
        mask = causal_mask(T)
        indices = block(x, x, both, mask[None], None)
        chosen = choose_keys(ours(x), K, mask)[:, 0]
    wanted = torch.zeros(B, T, T, dtype=torch.bool).scatter(-1, indices.long(), True)
    assert torch.equal(chosen, wanted & mask)
    assert chosen[:, -1].sum(-1).tolist() == [K, K]

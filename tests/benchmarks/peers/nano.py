"""GPT as nanoGPT writes it (after karpathy/nanoGPT, written anew), with our weights.

One product for queries, keys and values, torch's kernel with its causal flag, tied
logits. For decoding it gets the plainest cache: a tensor a layer, written in place, as
gpt-fast has it.

B batch · T length · D width
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """Pre-norm attention and feed-forward."""

    def __init__(self, config) -> None:
        super().__init__()
        D, bias = config["n_embd"], config["bias"]
        self.num_heads = config["n_head"]
        self.ln_1 = nn.LayerNorm(D, bias=bias)
        self.attn = nn.Linear(D, 3 * D, bias=bias)
        self.attn_proj = nn.Linear(D, D, bias=bias)
        self.ln_2 = nn.LayerNorm(D, bias=bias)
        self.fc = nn.Linear(D, 4 * D, bias=bias)
        self.fc_proj = nn.Linear(4 * D, D, bias=bias)
        self.gelu = "none" if config["activation_function"] == "gelu" else "tanh"

    def forward(self, x: Tensor, cache: Tensor | None = None, start: int = 0) -> Tensor:
        B, T, D = x.shape
        parts = self.attn(self.ln_1(x)).split(D, dim=2)
        q, k, v = (
            part.view(B, T, self.num_heads, D // self.num_heads).transpose(1, 2)
            for part in parts
        )
        if cache is not None:
            end = start + T
            cache[0, :, :, start:end], cache[1, :, :, start:end] = k, v
            k, v = cache[0, :, :, :end], cache[1, :, :, :end]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)
        x = x + self.attn_proj(y.transpose(1, 2).contiguous().view(B, T, D))
        hidden = F.gelu(self.fc(self.ln_2(x)), approximate=self.gelu)
        return x + self.fc_proj(hidden)


class NanoGPT(nn.Module):
    """Token and position embeddings, blocks, a norm, and tied logits."""

    def __init__(self, c: dict) -> None:
        super().__init__()
        self.config = c
        self.tokens = nn.Embedding(c["vocab_size"], c["n_embd"])
        self.positions = nn.Embedding(c["n_positions"], c["n_embd"])
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["n_layer"]))
        self.norm = nn.LayerNorm(c["n_embd"], bias=c["bias"])

    def forward(
        self, ids: Tensor, caches=None, start: int = 0, last_only: bool = False
    ) -> Tensor:
        at = torch.arange(start, start + ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(at)
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i], start)
        return F.linear(self.norm(x[:, -1:] if last_only else x), self.tokens.weight)

    @torch.no_grad()
    def generate(self, ids: Tensor, tokens: int, choose, cached: bool = True) -> Tensor:
        """Write so many tokens; without a cache the whole text is read for each."""
        c, (B, P), caches = self.config, ids.shape, None
        if cached:
            heads = (B, c["n_head"], P + tokens, c["n_embd"] // c["n_head"])
            weight = self.tokens.weight
            caches = [weight.new_empty(2, *heads) for _ in self.blocks]
        newest, start = ids, 0
        for _ in range(tokens):
            if cached:
                logits = self(newest, caches, start, last_only=True)
                start += newest.shape[1]
            else:
                logits = self(ids, last_only=True)
            newest = choose(logits[:, -1])[:, None]
            ids = torch.cat((ids, newest), dim=1)
        return ids[:, P:]

    @classmethod
    @torch.no_grad()
    def of(cls, ours: nn.Module) -> "NanoGPT":
        """Make one with the config and the weights of our GPT-2."""
        made = cls(ours.config)
        pairs = [
            (made.tokens, ours.embedding),
            (made.positions, ours.positions),
            (made.norm, ours.norm),
        ]
        for block, mine in zip(made.blocks, ours.blocks, strict=True):
            attn, network = mine.attention, mine.feed_forward
            projections = (attn.q_proj, attn.k_proj, attn.v_proj)
            block.attn.weight.copy_(torch.cat([p.weight for p in projections]))
            if block.attn.bias is not None:
                block.attn.bias.copy_(torch.cat([p.bias for p in projections]))
            pairs += [
                (block.ln_1, mine.attention_norm),
                (block.attn_proj, attn.out_proj),
                (block.ln_2, mine.feed_forward_norm),
                (block.fc, network.linear1),
                (block.fc_proj, network.linear2),
            ]
        for theirs, part in pairs:
            theirs.load_state_dict(part.state_dict())
        return made.to(ours.embedding.weight.dtype)

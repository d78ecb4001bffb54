"""A GPT or a Llama as a reader would write it, with one mistake in it, or none.

It takes its weights from a model of ours. Names and structure are its own: one weight
for q, k and v, no classes of ours.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, old, mistake):
        super().__init__()
        self.old = {"H": old.num_heads, "G": old.num_kv_heads, "Dh": old.head_dim}
        self.mistake, self.window, self.cap = mistake, old.window, old.softcap
        parts = [old.q_proj, old.k_proj, old.v_proj]
        if mistake == "order kqv":
            parts = [parts[1], parts[0], parts[2]]
        self.rotates = old.rotary is not None
        if mistake.startswith("permuted"):
            Dh = old.head_dim
            to = torch.arange(Dh).view(-1, 2).t().flatten()
            to = to.argsort() if "pairs" in mistake else to
        weights, biases = [], []
        for i, part in enumerate(parts):
            w, b = part.weight.detach().clone(), part.bias
            if mistake.startswith("permuted") and i < 2:
                w = w.unflatten(0, (-1, old.head_dim))[:, to].flatten(0, 1)
            if mistake == "q transposed" and i == 0:
                w = w.t()
            weights.append(w)
            biases.append(None if b is None else b.detach().clone())
        whole = torch.cat(weights)
        self.c_attn = nn.Linear(whole.shape[1], len(whole), bias=biases[0] is not None)
        self.c_attn.weight.data = whole
        if biases[0] is not None:
            self.c_attn.bias.data = torch.cat(biases)
            if mistake == "no bias of q, k, v":
                self.c_attn.bias = None
        self.c_proj = nn.Linear(*old.out_proj.weight.shape[::-1])
        self.c_proj.weight.data = old.out_proj.weight.detach().clone()
        bias = old.out_proj.bias
        self.c_proj.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        if mistake == "out transposed":
            self.c_proj.weight.data = self.c_proj.weight.data.t().contiguous()
        self.norms = old.q_norm, old.k_norm

    def rotate(self, x):
        m, Dh = self.mistake, x.shape[-1]
        base = {"base": 500_000.0}.get(m, 10_000.0)
        inv = base ** -(torch.arange(0, Dh, 2).double() / Dh)
        at = torch.arange(x.shape[2]).double() / (4 if m == "linear scaling" else 1)
        if m == "table in float32":
            inv = inv.float().double()
        angle = at[:, None] * inv * (-1 if m == "backwards" else 1)
        cos, sin = angle.cos().to(x), angle.sin().to(x)
        if m == "pairs":
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x):
        (B, T, _), H, G, Dh = x.shape, *self.old.values()
        m = self.mistake
        y = self.c_attn(x)
        if m == "head by head":
            q, k, v = (z.transpose(1, 2) for z in y.view(B, T, H, 3, Dh).unbind(3))
        else:
            parts = y.split((H * Dh, G * Dh, G * Dh), -1)
            if m == "cut without transposing":
                q, k, v = (
                    z.reshape(B, h, T, Dh)
                    for z, h in zip(parts, (H, G, G), strict=True)
                )
            elif m == "width first":
                cut = zip(parts, (H, G, G), strict=True)
                q, k, v = (z.view(B, T, Dh, h).permute(0, 3, 1, 2) for z, h in cut)
            else:
                cut = zip(parts, (H, G, G), strict=True)
                q, k, v = (z.view(B, T, h, Dh).transpose(1, 2) for z, h in cut)
        late = m == "norm after rotation"
        if self.norms[0] is not None and m != "no qk norm" and not late:
            q, k = self.norms[0](q), self.norms[1](k)
        if self.rotates and m != "no rotation":
            q, k = self.rotate(q), self.rotate(k)
        if late:
            q, k = self.norms[0](q), self.norms[1](k)
        if m == "tiled":
            k, v = k.repeat(1, H // G, 1, 1), v.repeat(1, H // G, 1, 1)
        else:
            k, v = (z.repeat_interleave(H // G, 1) for z in (k, v))
        s = q @ k.mT / (1 if m == "no scale" else Dh if m == "scale d" else Dh**0.5)
        if self.cap and m != "no softcap":
            s = self.cap * torch.tanh(s / self.cap)
        if m != "no mask":
            seen = torch.ones(T, T, dtype=torch.bool).tril(int(m == "sees one ahead"))
            if self.window and m != "no window":
                near = self.window + (m == "window + 1")
                seen &= ~torch.ones(T, T, dtype=torch.bool).tril(-near)
            s = s.masked_fill(~seen, -math.inf)
        y = s.softmax(-1) @ v
        y = y if m == "merged without transposing" else y.transpose(1, 2)
        return self.c_proj(y.reshape(B, T, H * Dh))


class FeedForward(nn.Module):
    def __init__(self, old, mistake):
        super().__init__()
        self.mistake, self.gated = mistake, hasattr(old, "gate_proj")
        names = ["gate_proj", "up_proj", "down_proj"][-3 if self.gated else 1 :]
        names = names if self.gated else ["linear1", "linear2"]
        if mistake == "gate and up exchanged":
            names[:2] = names[1::-1]
        for to, name in zip(
            ("w1", "w3", "w2") if self.gated else ("w1", "w2"), names, strict=True
        ):
            layer = getattr(old, name)
            setattr(self, to, nn.Linear(*layer.weight.shape[::-1]))
            getattr(self, to).load_state_dict(layer.state_dict(), strict=False)
            if layer.bias is None or mistake == "no bias of the feed-forward":
                getattr(self, to).bias = None
        self.kind = getattr(old, "gate", None) or old.activation
        if self.gated and mistake == "gate and up row by row":
            whole = torch.cat((self.w1.weight.data, self.w3.weight.data))
            self.w1.weight.data, self.w3.weight.data = whole[0::2], whole[1::2]

    def forward(self, x):
        act = F.silu if self.kind == "swiglu" else F.gelu
        if self.kind == "gelu_tanh" and self.mistake != "exact gelu":
            act = lambda x: F.gelu(x, approximate="tanh")  # noqa: E731
        act = F.gelu if self.mistake == "geglu" else act
        act = F.relu if self.mistake == "relu" else act
        hidden = act(self.w1(x))
        return self.w2(hidden * self.w3(x) if self.gated else hidden)


class Norm(nn.Module):
    def __init__(self, old, mistake):
        super().__init__()
        self.weight = nn.Parameter(old.weight.detach().clone())
        bias = getattr(old, "bias", None)
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        self.layer, self.mistake = hasattr(old, "bias"), mistake
        self.plus = float(getattr(old, "plus_one", False))
        self.eps = 1e-6 if mistake == "eps" and old.eps != 1e-6 else old.eps
        self.eps = 1e-5 if mistake == "eps" and old.eps == 1e-6 else self.eps

    def forward(self, x):
        m = self.mistake
        plus = {"1 + weight": 1.0, "weight, not 1 + weight": 0.0}.get(m, self.plus)
        if self.layer and m != "RMSNorm":
            x = x - x.mean(-1, keepdim=True)
        square = x.square().mean(-1, keepdim=True)
        if m == "unbiased variance":
            square = x.var(-1, keepdim=True)
        y = x / (square + self.eps).sqrt() * (self.weight + plus)
        return y if self.bias is None or m == "no bias of norms" else y + self.bias


class Layer(nn.Module):
    def __init__(self, old, mistake):
        super().__init__()
        self.ln_1 = Norm(old.attention_norm, mistake)
        self.attn = Attention(old.attention, mistake)
        self.ln_2 = Norm(old.feed_forward_norm, mistake)
        self.mlp = FeedForward(old.feed_forward, mistake)
        self.mistake = mistake

    def forward(self, x):
        m = self.mistake
        if m == "post-norm":
            x = self.ln_1(x + self.attn(x))
            return self.ln_2(x + self.mlp(x))
        if m == "parallel":
            return x + self.attn(self.ln_1(x)) + self.mlp(self.ln_2(x))
        y = self.attn(self.ln_1(x))
        x = y if m == "no residual" else x + y
        return x + self.mlp(self.ln_2(x))


class Plain(nn.Module):
    """The same as a CausalLM, or with the mistake named, in these layers."""

    def __init__(self, old, mistake="", layers=None):
        super().__init__()
        self.wte = nn.Embedding.from_pretrained(old.embedding.weight.detach().clone())
        self.wpe = None
        if old.positions is not None:
            self.wpe = nn.Embedding.from_pretrained(old.positions.weight.detach())
        order = [*range(len(old.blocks))]
        order = {"two layers swapped": [0, 2, 1, *order[3:]], "a layer missing": [0,
                 *order[2:]]}.get(mistake, order)  # fmt: skip
        self.h = nn.ModuleList(
            Layer(old.blocks[j], mistake if layers is None or i in layers else "")
            for i, j in enumerate(order)
        )
        at_end = mistake.removeprefix("final: ")
        self.ln_f = Norm(old.norm, at_end if at_end != mistake else "")
        self.lm_head = nn.Linear(*old.embedding.weight.shape[::-1], bias=False)
        tied = old.output is None or mistake == "tied"
        head = old.embedding.weight if tied else old.output.weight
        self.lm_head.weight.data = head.detach().clone()
        self.mistake, self.cap = mistake, old.logit_cap
        self.dropout = nn.Dropout(0.2)
        if mistake == "bf16 weights":
            for x in self.parameters():
                x.data = x.data.bfloat16().to(x.dtype)

    def forward(self, ids):
        m, x = self.mistake, self.wte(ids)
        x = x * x.shape[-1] ** 0.5 if m == "embedding scaled" else x
        if self.wpe is not None and m != "no positions":
            start = {"positions from 1": 1, "positions from 2": 2}.get(m, 0)
            x = x + self.wpe(torch.arange(start, start + ids.shape[1]))
        x = self.dropout(x)
        for layer in self.h:
            x = layer(x)
        x = x if m == "no final norm" else self.ln_f(x)
        y = self.lm_head(x)
        cap = 30.0 if m == "logits softcapped" else self.cap
        y = cap * torch.tanh(y / cap) if cap and m != "no logit cap" else y
        return y.log_softmax(-1) if m == "log-probabilities" else y

"""Hugging Face's own functions are right, as `tformer check` sees it."""

import pytest
import torch

pytest.importorskip("transformers")

from transformers.generation.logits_process import TopPLogitsWarper
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import (
    LlamaMLP,
    LlamaRMSNorm,
    apply_rotary_pos_emb,
    repeat_kv,
)

from tformer.check.evidence import ask
from tformer.check.exercises import EXERCISES
from tformer.check.judging import judge_evidence


def rotary(x, positions, base):
    inverse = float(base) ** -(torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = torch.outer(positions.double(), inverse.double()).repeat(1, 2)[None]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return apply_rotary_pos_emb(x, x, cos, sin)[0]


def rms_norm(x, weight, eps):
    norm = LlamaRMSNorm(x.shape[-1], eps)
    return torch.func.functional_call(norm, {"weight": weight}, (x,))


def swiglu(x, w_gate, w_up, w_down):
    sizes = {"hidden_size": x.shape[-1], "intermediate_size": len(w_gate)}
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 2}
    config = LlamaConfig(**sizes, **heads)
    weights = {"gate_proj": w_gate, "up_proj": w_up, "down_proj": w_down}
    named = {f"{name}.weight": weight for name, weight in weights.items()}
    return torch.func.functional_call(LlamaMLP(config), named, (x,))


def grouped_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    key, value = (repeat_kv(x, times) for x in (key, value))
    return torch.nn.functional.scaled_dot_product_attention(query, key, value)


def alibi(num_heads, T, S):
    whole = build_alibi_tensor(torch.ones(1, S), num_heads, torch.float64)
    return whole.view(num_heads, 1, S).expand(-1, T, -1)


def top_p(logits, p):
    return TopPLogitsWarper(p)(None, logits)


FUNCTIONS = (rotary, rms_norm, swiglu, grouped_attention, alibi, top_p)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda x: x.__name__)
def test_what_hugging_face_computes_is_right(function):
    exercise = EXERCISES[function.__name__]
    evidence = ask(exercise.spec, function, "torch", exercise.cases)
    verdict = judge_evidence(evidence)
    assert verdict.right, str(verdict)


def test_without_their_rotation_it_is_wrong():
    """So that the others can fail."""
    exercise = EXERCISES["rotary"]
    given = ask(exercise.spec, lambda x, *_: x.clone(), "torch", exercise.cases)
    assert [x.id for x in judge_evidence(given).mistakes] == ["not_rotated"]

"""The hints: as long as people read, the code in the last one only, and it works."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tformer.check.evidence import ask
from tformer.check.exercises import EXERCISES
from tformer.check.grading import DTYPES
from tformer.check.judging import judge_evidence

SOFTMAX = """
weights = np.exp(scores - np.amax(scores, -1, keepdims=True))
weights = weights / weights.sum(-1, keepdims=True)
"""
ATTEND = f"""
scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
{SOFTMAX}
return weights @ value
"""
# What a reader writes around the code of the third hint.
SOLUTIONS = {
    "attention": """
        scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
        if mask is None:
            mask = scores == scores
        HINT
        return weights @ value""",
    "causal_mask": "HINT",
    "multi_head": """
        def attention(query, key, value, mask):
            scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
            if mask is not None:
                scores = np.where(mask, scores, -np.inf)
            SOFTMAX
            return weights @ value

        B, T, _ = x.shape
        HINT""",
    "sinusoids": "HINT",
    "layer_norm": """
        HINT
        return normal * weight + bias""",
    "rotary": """
        HINT
        return type_of(np.concatenate([first, second], -1), x)""",
    "rms_norm": """
        HINT
        return normal * weight""",
    "swiglu": """
        HINT
        return (silu * up) @ w_down.T""",
    "grouped_attention": """
        HINT
        ATTEND""",
    "alibi": """
        HINT
        distance = np.arange(S - T, S)[:, None] - np.arange(S)
        return np.stack([-slope * distance for slope in slopes])""",
    "cached_step": """
        HINT
        query, key, value = q, k, v
        ATTEND""",
    "smoothed_loss": """
        shifted = logits - np.amax(logits, -1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        HINT
        return loss.mean()""",
    "noam": """
        HINT
        return d_model**-0.5 * min(rising, falling)""",
    "t5_buckets": """
        HINT
        return bucket + N * both * (distance < 0)""",
    "top_k": """
        HINT
        return np.where(keep, logits, -np.inf)""",
    "top_p": """
        scores = logits
        SOFTMAX
        probs = weights
        HINT
        return np.where(keep | (p >= 1), logits, -np.inf)""",
    "beam": """
        live, done = [(0.0, [])], []
        for _ in range(max_len):
            HINT
        def score(pair):
            return pair[0] / ((5 + len(pair[1])) / 6) ** length_penalty
        return max(done + live, key=score)[1]""",
    "moe": """
        logits = x @ router.T
        chosen = np.argsort(-logits, -1)[:, :k]
        kept = (chosen[:, :, None] == np.arange(len(experts))).any(1)
        scores = np.where(kept, logits, -np.inf)
        SOFTMAX
        gate, result = weights, np.zeros_like(x)
        HINT
        return result""",
    "route": """
        HINT
        return scores_of_all, chosen, weights / weights.sum(-1, keepdims=True)""",
    "index_scores": """
        HINT
        return summed / query.shape[1] ** 0.5""",
    "choose_keys": """
        HINT
        return chosen & attn_mask""",
    "delta_rule": """
        outputs = []
        for t in range(query.shape[2]):
            HINT
            outputs.append((query[:, :, t, :, None] * state).sum(2))
        return np.stack(outputs, 2), state""",
    "short_convolution": """
        HINT
        if bias is not None:
            y = y + bias
        return y, seen[:, T:]""",
    "state_space": """
        outputs = []
        for t in range(x.shape[2]):
            HINT
            outputs.append((out_of[:, :, t, :, None] * state).sum(2))
        return np.stack(outputs, 2), state""",
    "clamped_swiglu": """
        HINT
        return inner @ w_out.T + b_out""",
    "sinkhorn": """
        HINT
        return matrix""",
    "hyper_connection": """
        def sinkhorn(scores, rounds, eps):
            SOFTMAX
            weights = weights + eps
            for again in range(rounds):
                if again:
                    weights = weights / (weights.sum(-1)[..., None] + eps)
                weights = weights / (weights.sum(-2)[..., None, :] + eps)
            return weights

        def sigmoid(z):
            return (1 + np.tanh(z / 2)) / 2

        B, T, N, D = x.shape
        flat = x.reshape(B, T, N * D)
        normal = flat / np.sqrt((flat**2).mean(-1)[..., None] + 0.01)
        HINT
        y = read @ branch.T
        return mixed + w[..., None] * y[:, :, None]""",
    "lora": """
        HINT
        return weight + update""",
    "speculative": """
        HINT
        return len(draft), p[-1]""",
}
LIBRARIES = {"numpy": np, "torch": torch}


def code_of(exercise):
    """The code of the third hint."""
    return re.search(r"```python\n(.+?)```", exercise.hints[2], re.DOTALL)[1]


def put(text, word, code):
    """Put lines where a word stands on a line of its own, as far in."""
    line = rf"^( *){word}$"
    lines = code.strip("\n").split("\n")
    return re.sub(line, lambda x: "\n".join(x[1] + y for y in lines), text, flags=re.M)


def solution(name, framework, hint):
    """A whole function, with some code in the place of the hint."""
    np = SimpleNamespace(**vars(LIBRARIES[framework]))
    if framework == "torch":  # what the hint says to write in its place
        np.take_along_axis = torch.take_along_dim

    def type_of(array, x):
        return array.to(x.dtype) if framework == "torch" else array.astype(x.dtype)

    body = re.sub(r"^ {8}", "", SOLUTIONS[name].strip("\n"), flags=re.M)
    for word, code in ("HINT", hint), ("ATTEND", ATTEND), ("SOFTMAX", SOFTMAX):
        body = put(body, word, code)
    exercise = EXERCISES[name]
    signature = re.search(r"^def .+?:$", exercise.starter, re.M)[0]
    names = {"np": np, "type_of": type_of, "math": math}
    exec(put(f"{signature}\n    BODY", "BODY", body), names)
    return names[exercise.function]


def verdict(name, framework, hint):
    exercise = EXERCISES[name]
    function = solution(name, framework, hint)
    evidence = ask(exercise.spec, function, framework, exercise.cases)
    dtypes = tuple(x for x in evidence.task.dtypes if x in DTYPES)
    return judge_evidence(replace(evidence, task=replace(evidence.task, dtypes=dtypes)))


def test_every_exercise_has_a_solution_here():
    assert SOLUTIONS.keys() == EXERCISES.keys()


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_are_short_and_the_last_has_the_code(name):
    first, second, third = EXERCISES[name].hints
    for hint in first, second, third:
        assert 80 <= len(hint.split()) <= 160
        assert max(map(len, hint.splitlines())) <= 88
    assert "```" not in first + second
    assert code_of(EXERCISES[name]).strip()


@pytest.mark.by_day(12)
@pytest.mark.parametrize("framework", LIBRARIES)
@pytest.mark.parametrize("name", EXERCISES)
def test_the_code_of_the_last_hint_is_right(name, framework):
    judged = verdict(name, framework, code_of(EXERCISES[name]))
    assert judged.right, judged


@pytest.mark.parametrize("name", EXERCISES)
def test_without_it_the_function_is_wrong(name):
    assert not verdict(name, "numpy", "pass").right

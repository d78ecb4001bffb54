"""What explains wrong code: one mistake, one of several, two at once, or nothing."""

import numpy as np
import pytest
import torch

from separating import asked, not_told_apart
from tformer.check import SPECS, judge
from tformer.check.evidence import ask
from tformer.check.exercises import EXERCISES
from tformer.check.judging import judge_evidence


def judged(name, function, framework="torch"):
    exercise = EXERCISES[name]
    return judge_evidence(ask(exercise.spec, function, framework, exercise.cases))


def ids(verdict):
    return [mistake.id for mistake in verdict.mistakes]


@pytest.mark.by_day(6)
@pytest.mark.parametrize("name", EXERCISES)
def test_the_cases_of_an_exercise_tell_its_mistakes_apart(name):
    spec = SPECS[name]
    same = not_told_apart(spec, asked(spec))
    unseen = {second for first, second in same if first == "right"}
    assert not [pair for pair in same if not unseen.intersection(pair)]
    options = {key for case in spec.cases for key in case.options}
    assert len(unseen) <= 2 * len(options) + 2, unseen


def attend(query, key, value, mask=None):
    """Attention that is right."""
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(-1) @ value
    return (scores.masked_fill(~mask, -1e30).softmax(-1) * mask) @ value


def test_two_mistakes_at_once_are_both_named():
    def attention(query, key, value, mask=None):
        scores = query @ key.mT / query.shape[-1]
        if mask is None:
            return scores.softmax(-1) @ key
        return (scores.masked_fill(~mask, -1e30).softmax(-1) * mask) @ key

    verdict = judged("attention", attention)
    assert {*ids(verdict)} == {"divided_by_d", "keys_as_values"}
    assert verdict.together
    assert "All of these:" in str(verdict)


def test_a_mistake_beside_a_changed_input_is_named_with_it():
    def lora_weight(weight, a, b, alpha):
        weight += alpha * b @ a
        return weight.clone()

    verdict = judged("lora", lora_weight)
    assert ids(verdict) == ["not_divided", "changes_input"]
    assert verdict.together


FORMS = {
    "heads_and_time": lambda x: x.transpose(1, 2),
    "axis_in_front": lambda x: x[None],
    "axis_lost": lambda x: x[0],
    "flat": lambda x: x.flatten(),
    "zeros": lambda x: x * 0,
    "negative": lambda x: -x,
    "scaled": lambda x: 3 * x,
    "scaled_by": lambda x: x * x.shape[0],
    "more_results": lambda x: (x, x.sum()),
    "more_rows": lambda x: torch.cat((x, x), 2),
    "last_row_empty": lambda x: torch.cat((x[:, :, :-1], 0 * x[:, :, -1:]), 2),
    "cut_at_zero": lambda x: x.relu(),
    "rounded": lambda x: x.half().to(x.dtype),
}


@pytest.mark.parametrize("id", FORMS)
def test_a_right_result_in_another_form(id):
    verdict = judged("attention", lambda *given: FORMS[id](attend(*given)))
    assert ids(verdict) == [id]
    assert "{" not in verdict.mistakes[0].sentence


def test_a_known_mistake_in_another_form_is_two():
    def attention(query, key, value, mask=None):
        return attend(query * query.shape[-1] ** 0.5, key, value, mask).transpose(1, 2)

    verdict = judged("attention", attention)
    assert {*ids(verdict)} == {"unscaled", "heads_and_time"}
    assert verdict.together


def test_a_number_where_infinity_must_stand_is_named():
    def top_p(logits, p):
        ranked, places = logits.sort(-1, descending=True)
        shares = ranked.softmax(-1)
        hidden = shares.cumsum(-1) - shares >= p
        return logits.masked_fill(hidden.scatter(-1, places, hidden), -12345.0)

    verdict = judged("top_p", top_p)
    assert ids(verdict) == ["for_infinity"]
    assert "-12345" in verdict.mistakes[0].sentence


def test_a_dtype_that_does_not_fit_is_named():
    def lora_weight(weight, a, b, alpha):
        return weight + alpha / len(a) * b @ a.float()

    assert ids(judged("lora", lora_weight)) == ["fixed_dtype"]


def drops(x):
    return torch.nn.functional.dropout(x, 0.5)


def widened(x):
    return x.double()


def detached(x):
    return x.detach()


def as_it_lies(x):
    return x.view(-1).view(x.shape)


KEPT = []


def kept(x):
    KEPT.append(x)
    return x if len(KEPT) < 4 else x + len(KEPT)


PROPERTIES = {
    "random": drops,
    "widened": widened,
    "detached": detached,
    "needs_rows": as_it_lies,
    "remembers": kept,
}


@pytest.mark.parametrize("id", PROPERTIES)
def test_a_property_is_named_however_the_code_is_written(id):
    def swiglu(x, w_gate, w_up, w_down):
        gate = torch.nn.functional.silu(x @ w_gate.T)
        if id == "needs_rows":
            x = as_it_lies(x)
        result = x @ w_up.T * gate @ w_down.T
        return result if id == "needs_rows" else PROPERTIES[id](result)

    assert ids(judged("swiglu", swiglu)) == [id]


def test_a_written_input_is_named():
    def rms_norm(x, weight, eps):
        x /= np.sqrt(np.mean(x * x, -1, keepdims=True) + eps)
        return x * weight

    verdict = judged("rms_norm", rms_norm, "numpy")
    assert ids(verdict) == ["changes_input"]
    assert "x," in verdict.mistakes[0].sentence


def test_the_gradient_of_dead_rows_is_named():
    def attention(query, key, value, mask=None):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return (scores.softmax(-1) @ value).nan_to_num(0.0)

    assert {*ids(judged("attention", attention))} == {"nan_gradient"}


def test_a_mistake_is_named_though_the_code_raises_elsewhere():
    def layer_norm(x, weight, bias, eps):
        _, _, _ = x.shape
        centred = x - x.mean(-1, keepdim=True)
        return weight * centred / (x.var(-1, keepdim=True) + eps).sqrt() + bias

    assert ids(judged("layer_norm", layer_norm)) == ["unbiased"]


def test_the_number_of_axes_that_is_refused_is_named():
    def layer_norm(x, weight, bias, eps):
        _, _, D = x.shape
        return torch.nn.functional.layer_norm(x, (D,), weight, bias, eps)

    verdict = judged("layer_norm", layer_norm)
    assert ids(verdict) == ["axes_only"]
    assert "x with 3 axes" in verdict.mistakes[0].sentence


def test_what_nobody_knows_is_not_diagnosed():
    def attention(query, key, value, mask=None):
        return attend(query, key, value, mask) + 0.01 * attend(key, key, value).mean()

    verdict = judged("attention", attention)
    assert not verdict.right
    assert not verdict.mistakes


def test_an_unwritten_function_is_not_diagnosed():
    def noam(step, d_model, warmup):
        raise NotImplementedError

    assert not judged("noam", noam).mistakes
    assert ids(judged("noam", lambda *_: None)) == ["nothing"]


def test_experts_without_rows_are_told_from_vectors():
    def without_rows(x, router, experts, k):
        best, chosen = (x @ router.T).topk(k)
        output = torch.zeros_like(x)
        for e, expert in enumerate(experts):
            rows, place = (chosen == e).nonzero(as_tuple=True)
            made = best.softmax(-1)[rows, place, None] * expert(x[rows])
            output = output.index_add(0, rows, made)
        return output

    def vectors(x, router, experts, k):
        return torch.stack([experts[0](row) for row in x])

    assert ids(judged("moe", without_rows)) == ["no_rows"]
    assert ids(judged("moe", vectors)) == ["one_vector"]


def test_judging_without_a_framework_of_the_reader():
    verdict = judge(SPECS["lora"], lambda weight, a, b, alpha: weight + alpha * b @ a)
    assert ids(verdict) == ["not_divided"]

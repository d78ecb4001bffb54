"""The training loop: it learns, repeats itself, and stops before it ruins a model."""

import itertools
import math
import sys
from contextlib import nullcontext

import pytest
import torch
from torch.testing import assert_close

import checkpoint_files
from tformer import Transformer, greedy, train
from tformer.data.batch import PairBatch
from tformer.training.loop import batch_loss, train_step
from tformer.training.optimizer import adamw
from tformer.training.precision import Precision

BOS, EOS, PAD = 1, 2, 0


def make_model(seed: int = 0, **changes) -> Transformer:
    options = {"dropout": 0.0, "norm_first": True, **changes}
    return checkpoint_files.make_model(seed, **options)


def make_batch(seed: int = 0, rows: int = 5) -> PairBatch:
    """The target is the source, reversed; the last row is shorter."""
    src = torch.randint(3, 13, (rows, 3), generator=torch.Generator().manual_seed(seed))
    ends = torch.full((rows, 1), EOS)
    tgt = torch.cat((torch.full((rows, 1), BOS), src.flip(1), ends), dim=1)
    src[-1, -1] = PAD
    tgt[-1] = torch.tensor([BOS, src[-1, 1], src[-1, 0], EOS, PAD])
    return PairBatch(src, tgt)


def run(model, batches=None, steps=20, **options):
    batches = itertools.repeat(make_batch()) if batches is None else batches
    options = {"schedule": lambda _: 0.01, "progress": False, **options}
    return train(model, batches, steps=steps, **options)


def test_a_group_with_a_factor_gets_so_much_of_the_rate():
    model = make_model()
    first, *others = model.parameters()
    groups = [{"params": [first], "lr_factor": 0.25}, {"params": others}]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    run(model, steps=2, optimizer=optimizer, schedule=lambda s: 0.1 * s)
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.2]


def test_one_batch_is_learned_by_heart():
    model, batch = make_model(), make_batch()
    reports = run(model, steps=100)
    assert reports[0].loss > 1.5
    assert reports[-1].loss < 0.02
    out = greedy(model, batch.src, bos_id=BOS, eos_id=EOS, max_len=6)
    assert out.tolist() == batch.tgt[:, 1:].tolist()


def test_the_loss_compares_each_position_with_the_next_token():
    model, batch = make_model(), make_batch()
    total, count = 0.0, 0
    for src, tgt in zip(batch.src, batch.tgt, strict=True):
        src, tgt = src[src != PAD][None], tgt[tgt != PAD]
        for t in range(1, len(tgt)):
            logits = model(src, tgt[None, :t])[0, -1]
            total -= logits.log_softmax(-1)[tgt[t]].item()
            count += 1
    assert batch_loss(model, batch).item() == pytest.approx(total / count, rel=1e-5)
    smoothed = run(model, steps=1, smoothing=0.3)[0].loss
    assert smoothed != pytest.approx(total / count, rel=1e-3)


def test_two_runs_are_equal_to_the_last_bit():
    batches = [make_batch(seed) for seed in range(5)]
    models, reports = [make_model(seed, dropout=0.1) for seed in (0, 0, 1)], []
    for model in models:
        torch.manual_seed(5)  # of the dropout
        reports.append(run(model, batches, steps=5))
    assert reports[0] == reports[1] != reports[2]
    assert all(map(torch.equal, *(model.parameters() for model in models[:2])))


def test_steps_equal_those_of_a_plain_loop():
    """Without clipping, smoothing and decay: forward, backward, Adam.

    In float64: Adam makes whole steps of rounding errors where a gradient is 0, as
    that of the keys' bias, which softmax does not see.
    """
    batches = [make_batch(seed) for seed in range(6)]
    ours, theirs = make_model().double(), make_model().double()
    options = {"schedule": lambda step: 0.01 / step, "clip_norm": 1e9}
    options["optimizer"] = adamw(ours, weight_decay=0.0)
    reports = run(ours, batches, steps=6, **options)
    optimizer = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for i, batch in enumerate(batches):
        optimizer.param_groups[0]["lr"] = 0.01 / (i + 1)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            theirs(batch.src, batch.tgt[:, :-1]).flatten(0, 1),
            batch.tgt[:, 1:].flatten(),
            ignore_index=PAD,
        )
        loss.backward()
        norm = torch.cat([p.grad.flatten() for p in theirs.parameters()]).norm()
        optimizer.step()
        numbers = i + 1, loss.item(), 0.01 / (i + 1), norm.item()
        assert reports[i][:4] == pytest.approx(numbers, rel=1e-9)
    assert_close([*ours.parameters()], [*theirs.parameters()], rtol=1e-6, atol=1e-7)


def gradients(model, batch, **options):
    """Those of one step, which is too short to change anything."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    result = train_step(model, batch, optimizer, clip_norm=1e9, **options)
    return result, [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("accumulate", [2, 3, 50])
def test_parts_of_a_batch_add_up_to_the_batch(accumulate):
    """The last row is shorter, so the parts hold different numbers of tokens."""
    model, batch = make_model().double(), make_batch(rows=5)
    (loss, norm, tokens), whole = gradients(model, batch, smoothing=0.1)
    parts = gradients(model, batch, smoothing=0.1, accumulate=accumulate)
    assert parts[0] == (pytest.approx(loss, rel=1e-12), pytest.approx(norm), tokens)
    assert tokens == 19
    assert_close(whole, parts[1], rtol=1e-9, atol=1e-14)


def test_bf16_computes_products_in_16_bits_and_keeps_weights_in_32():
    model, seen = make_model(), []
    part = model.encoder.blocks[0].feed_forward
    part.register_forward_hook(lambda _, __, output: seen.append(output.dtype))
    (full, *_), _ = gradients(model, make_batch())
    (half, *_), of_half = gradients(model, make_batch(), precision=Precision("bf16"))
    assert seen == [torch.float32, torch.bfloat16]
    assert full != half == pytest.approx(full, rel=2e-2)
    assert {gradient.dtype for gradient in of_half} == {torch.float32}


def test_a_training_goes_on_where_it_stopped():
    batches = [make_batch(seed) for seed in range(6)]
    model, rates = make_model(), []
    optimizer = adamw(model)
    options = {"optimizer": optimizer, "schedule": lambda s: rates.append(s) or 0.01}
    options["accumulate"] = 3  # which the schedule does not see
    first = run(model, batches[:2], steps=2, **options)
    rest = run(model, iter(batches[2:]), steps=6, start=2, **options)
    assert [r.step for r in rest] == rates[2:] == [3, 4, 5, 6]
    assert first + rest == run(make_model(), batches, steps=6, accumulate=3)
    assert run(model, batches, steps=6, start=6) == []


def test_the_callback_sees_each_step_its_clipped_gradient_and_may_evaluate():
    model, seen, lengths = make_model(dropout=0.3), [], []
    batches = iter([make_batch(seed) for seed in range(5)])

    def callback(report):
        seen.append((report, model.training))
        gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
        lengths.append(gradient.norm().item())
        model.eval()

    reports = run(model, batches, steps=4, callback=callback, clip_norm=0.05)
    assert [report for report, _ in seen] == reports
    assert [training for _, training in seen] == [True] * 4
    assert all(report.grad_norm > 0.1 for report in reports)
    assert lengths == pytest.approx([0.05] * 4, rel=1e-3)
    assert len(list(batches)) == 1  # no more are taken than needed


def test_a_loss_that_is_nan_stops_before_the_step_and_other_steps_may_follow():
    model, calls = make_model(), itertools.count(1)
    model.encoder.register_forward_hook(
        lambda _, __, output: output * math.nan if next(calls) == 3 else output
    )
    precision = Precision()
    precision.scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    arguments = model, make_batch(), adamw(model)
    for group in arguments[-1].param_groups:
        group["lr"] = 0.01
    for number in range(1, 5):
        before = copies(model)
        fails = pytest.raises(FloatingPointError, match="the loss is nan: a sum")
        with fails if number == 3 else nullcontext():
            train_step(*arguments, precision=precision)
        assert all(map(torch.equal, model.parameters(), before)) == (number == 3)


def copies(model):
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("of_gradient", [False, True])
def test_what_is_not_finite_is_named(of_gradient):
    model = make_model()
    bias = model.encoder.blocks[0].feed_forward.linear1.bias
    message = "step 1: .* parameter encoder.*linear1.bias"
    if of_gradient:
        bias.register_hook(lambda gradient: gradient + math.inf)
        message = "gradient is (inf|nan): the gradient of .*linear1.bias"
    else:
        torch.nn.init.constant_(bias, math.inf)
    before = copies(model)
    with pytest.raises(FloatingPointError, match=message):
        run(model)
    assert all(map(torch.equal, model.parameters(), before))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, r"steps \(0\)"),
        ({"accumulate": 0}, r"accumulate \(0\)"),
        ({"start": 21}, r"start \(21\) must be in \[0, steps = 20\]"),
        ({"clip_norm": 0.0}, r"clip_norm \(0.0\)"),
        ({"schedule": lambda _: -1.0}, "schedule gives -1.0 for step 1"),
        ({"schedule": lambda _: math.nan}, "schedule gives nan"),
        ({"batches": [make_batch()], "steps": 3}, "after 1 of 3 steps"),
        ({"smoothing": 1.0}, r"smoothing \(1.0\)"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        run(make_model(), **options)


def test_the_bar_can_be_switched_off(capsys, monkeypatch):
    run(make_model(), steps=2, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "2/2" in err
    assert "loss" in err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    run(make_model(), steps=2, progress=False)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(ImportError, match=r"tqdm: pip install 'tformer\[train\]'"):
        run(make_model(), progress=True)

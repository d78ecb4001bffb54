"""The ledger of parts and the recipes, on numbers made here."""

import math
import statistics

import pytest

from engine.results import choice, keep, kept_results, written
from engine.results.groups import Group, command, folder_name, grouped
from engine.results.ledger import differences, name_of, nearest, unsteady, verdict
from engine.results.ledger import ledger as rows_of
from engine.tables import paired
from small_run import small_text_settings, train_here
from test_results_sections import result

NANO = "nanoGPT's recipe"
GPT = {"feed_forward": "gelu"}
TODAY = {"positions": "rotary", "norm": "rms", "feed_forward": "swiglu"}


def runs(losses, *, ratio=None, steps=800, seconds=40.0, **more):
    """Runs of a row, a seed each, with these losses."""
    made = []
    for seed, loss in enumerate(losses):
        run = result("text", seed, files=("a.txt",), steps=steps, **more)
        run.data["result"] |= {"test_loss": loss, "cpu_seconds": seconds}
        if ratio is not None and seed == 0:
            kept = {"asked": {}, "result": {"ratio": ratio}, "mistakes": []}
            run.data["evaluations"] = {"step-time": kept}
        made.append(run)
    return made


def unfolded(page):
    return " ".join(page.split()).replace("\\ ", "")


BOTH = [
    *runs([2.0, 2.1, 2.2], ratio=1.0, **GPT),
    *runs([1.5, 1.61, 1.69], ratio=1.02, **TODAY),
]


@pytest.mark.parametrize("count", [2, 3, 10])
def test_the_interval_of_paired_differences(count):
    """Student's t by its density, integrated up to where 97.5 % lie."""
    values = [0.1 * i**2 for i in range(count)]
    mean, half = paired(values)
    assert mean == pytest.approx(statistics.mean(values))
    t = half * math.sqrt(count) / statistics.stdev(values)
    n, parts = count - 1, 200_000
    factor = math.gamma((n + 1) / 2) / (math.sqrt(n * math.pi) * math.gamma(n / 2))
    xs = ((i + 0.5) * t / parts for i in range(parts))
    inside = sum((1 + x * x / n) ** (-(n + 1) / 2) for x in xs) * factor * t / parts
    assert inside == pytest.approx(0.475, abs=1e-5)


@pytest.mark.parametrize(
    ("apart", "said"),
    [
        ([-0.11, -0.10, -0.12], "helps"),
        ([0.11, 0.10, 0.12], "hurts"),
        ([-0.11, 0.10, -0.12], "does not show"),
        ([-0.11, -0.01, -0.12], "does not show"),  # all better, and too far apart
        ([-0.1], "–"),
    ],
)
def test_the_interval_decides(apart, said):
    assert verdict(apart) == said


def test_differences_are_taken_seed_by_seed():
    one, two = grouped(BOTH)
    assert differences(two, one) == pytest.approx([-0.5, -0.49, -0.51])
    assert differences(Group(two[1:]), Group(one[:2])) == pytest.approx([-0.49])


def test_each_row_is_held_to_its_own_base():
    kept = [
        *BOTH,
        *runs([2.05, 2.15, 2.25], **GPT, positions="rotary"),
        *runs([2.06, 2.16, 2.26], **GPT, window=16, global_every=2),
        *runs([1.7, 1.8, 1.9], **(TODAY | {"positions": "learned"})),
        *runs([1.4, 1.5, 1.6], **TODAY, qk_norm=True),
        *runs([1.0, 1.0, 1.0], **GPT, sinks=True, learning_rate=0.5),
    ]
    found = {r.name: r for r in rows_of(grouped(kept))}
    of_gpt = ["the block of today", "rotary positions"]
    of_gpt += ["window of 16, 1 in 2 global"]
    assert list(found) == [*of_gpt, "QK-norm", "learned positions"]
    assert found["learned positions"].instead == "rotary positions"
    assert found["learned positions"].apart == pytest.approx([0.2, 0.19, 0.21])
    assert found["rotary positions"].apart == pytest.approx([0.05] * 3)
    assert (found["QK-norm"].instead, found["QK-norm"].at) == ("", "today")
    assert nearest(TODAY) == nearest({"norm": "rms", "feed_forward": "gelu"}) == "gpt"


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([2.5, 5.0, 3.0], ["QK-norm, 2.500 to 5.000, each above all of the base's"]),
        ([2.1, 5.0, 2.0], ["QK-norm, 2.000 to 5.000"]),
        ([3.9, 5.1, 4.2], []),  # far apart too, but it hurts: the interval says so
        ([2.0, 2.2, 2.1], []),
    ],
)
def test_seeds_that_end_far_apart_are_told(losses, said):
    kept = [*BOTH, *runs(losses, **GPT, qk_norm=True)]
    kept[:3] = runs([2.0, 2.1, 2.05], **GPT)
    assert unsteady(rows_of(grouped(kept))) == said
    page = unfolded(written(kept))
    assert ("**unstable**" in page, all(x in page for x in said)) == (bool(said), True)


def test_names_of_parts():
    assert name_of(GPT, GPT | {"kv_heads": 1}) == ("1 key/value head", "")
    assert name_of(GPT, {"feed_forward": "relu2"}) == ("ReLU²", "GELU")
    experts = GPT | {"experts": 8, "d_ff": 256}
    assert name_of(GPT, experts) == ("8 experts, of width 256", "")
    assert name_of(GPT, GPT | {"optimizer": "muon"}) == ("Muon", "AdamW")


def test_equal_time():
    """A row that takes longer needs runs with fewer steps; one as fast needs none."""
    slow = GPT | {"norm": "rms"}
    kept = [*BOTH, *runs([1.9, 2.0, 2.1], ratio=1.25, **slow)]
    kept += runs([1.8, 1.9, 2.0], ratio=0.96, **GPT, sinks=True)
    found = {r.name: r for r in rows_of(grouped(kept))}
    assert found["RMSNorm"].timed == []
    assert found["sinks"].timed is found["sinks"].runs
    kept += runs([2.3, 2.4, 2.5], steps=640, **slow)  # 800 / 1.25
    kept += runs([9, 9, 9], steps=400, **slow)
    found = {r.name: r for r in rows_of(grouped(kept))}
    row = found["RMSNorm"]
    assert [run.steps for run in row.timed] == [640] * 3
    assert differences(row.timed, row.base_timed) == pytest.approx([0.3] * 3)
    assert len(found) == 3  # runs of equal time are no rows of their own
    page = written(kept)
    assert "| RMSNorm | LayerNorm | 2.000<br>(1.900\u00a0to\u00a02.100) |" in page
    assert "−0.100\u00a0±\u00a00.000 | helps |" in page
    assert "| 1.25 | +0.300\u00a0±\u00a00.000 |" in page
    assert "- **Helps**: the block of today in place of all three (−0.500)" in page
    assert "--feed-forward gelu --steps 640" in unfolded(page)
    assert "no such run was made" not in page


def test_the_picture_has_the_numbers():
    far = runs([3.0, 3.1, 3.2], **GPT, positions="sinusoidal")
    near = runs([2.01, 2.13, 2.2], **GPT, sinks=True)
    page = written([*BOTH, *near, *far])
    assert "Too far to be drawn: the block of today −0.500, sinusoids +1.000" in page
    assert "names = [\n        'sinks',\n    ]\n    means = [0.0133]" in page
    assert "Of these there are fewer" not in page
    short = written([*BOTH, *near[:2], *far])
    assert "Of these there are fewer than 3: sinks. A part" in short
    assert rows_of(grouped(runs([2.0], **GPT))) == []


def test_recipes():
    better = {**TODAY, "learning_rate": 0.006, "max_len": 128, "evaluate_every": 900}
    kept = [
        *BOTH,
        *runs([1.9, 1.92], steps=2000, seconds=120.0, baseline=NANO),
        *runs([1.7, 1.72], steps=10_000, seconds=570.0, baseline=NANO),
        *runs([1.6, 1.61], steps=5000, seconds=582.0, **better),
        *runs([1.8], steps=500, seconds=102.0, **better),
        *runs([1.2], steps=5500, seconds=601.0, **better),  # too long
        *runs([1.75], steps=2000, seconds=120.0),  # the preset
    ]
    assert len(choice.recipes(grouped(kept))[0]) == 5
    page = unfolded(written(kept))
    assert "found has **1.605** after 9.7 minutes. nanoGPT's has 1.910" in page
    assert "2,000 steps, 2.0 minutes and 1.710 after 10,000 steps, 9.5 minutes" in page
    assert "`--positions rotary` `--norm rms`" in page
    assert "evaluate-every 900 --seed 0" in page
    assert "| nanoGPT's recipe | 1.710<br>(1.700 to 1.720) | 10,000 | 9.5 min |" in page
    assert "| `tformer train text` | 1.750 | 2,000 |" in page
    assert "12 × 128" in page
    assert "tests/baselines/nanogpt.py train a.txt --steps 10000" in page
    assert not choice.recipes(grouped([*BOTH, *runs([1.7], steps=9, baseline=NANO)]))[0]


def test_a_model_with_parts_has_a_short_command_and_a_name():
    run = runs([2.0], **GPT, kv_heads=1, softcap=50.0)[0]
    name = "text-gelu-kv_heads-1-softcap-50-800-0"
    assert run.name == folder_name(run) == name
    assert command(run) == (
        "tformer train text a.txt --feed-forward gelu --kv-heads 1 --softcap 50.0 "
        f"--steps 800 --seed 0 --threads 1 --out runs/{name}"
    )


def test_runs_with_parts_are_kept_in_a_folder_of_their_own(tmp_path):
    train_here(tmp_path / "run", small_text_settings(tmp_path, norm="rms"))
    keep(tmp_path, [tmp_path / "run"])
    (file,) = (tmp_path / "results").rglob("*.json")
    assert file.parent.name == "parts"
    assert len(kept_results(tmp_path)) == 1

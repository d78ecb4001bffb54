"""The numbers of a run: as they come, at its end, and of what it is asked later.

As they come each is a line of JSON.
"""

import json
import math
import os
import platform
import re
import time
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import nn

import tformer
from tformer.data.batch import Batch
from tformer.data.vocabulary import Vocabulary
from tformer.files import (
    Json,
    beside,
    check_has_end,
    finite_or_null,
    open_new,
    sealed,
    wait_for_disk,
    write_json,
)
from tformer.models.causal_lm import CausalLM
from tformer.models.transformer import Transformer
from tformer.nn.experts import active_parameters
from tformer.runs.data import Pairs, RunData
from tformer.runs.folder import RunError, RunFolder, read_kept_json
from tformer.training.evaluation import MeanLoss, bits_per_byte, exact_match, mean_loss
from tformer.training.processes import num_processes

FOLDER = "evaluations"
ADVICE = "A lower learning rate or a longer warm-up may help"
PATIENCE = 60.0  # seconds to wait for others that write there; each takes a moment


def read_metrics(path: Path) -> list[Json]:
    """Read the lines, if there are any, without a last one that a kill has torn.

    Damaged ones are left out, and a warning says how many there are.
    """
    return [values for _, values in _read_lines(path)]


def _read_lines(path: Path) -> list[tuple[bytes, Json]]:
    """Read the lines, each as it was written and what it says."""
    if not path.exists():
        return []
    check_has_end(path)
    whole = path.read_bytes().split(b"\n")[:-1]  # the last has no end
    lines = [(line + b"\n", v) for line in whole if (v := _read_line(line)) is not None]
    if damaged := len(whole) - len(lines):
        warnings.warn(f"{path}: damaged lines ({damaged}) are left out", stacklevel=3)
    return lines


def _read_line(line: bytes) -> Json | None:
    """Read what a line says; None if it is damaged."""
    try:
        values: Json = json.loads(line)
        return values if type(values["step"]) is int else None
    # No such object, or 10,000 brackets, each in the other.
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


class Metrics:
    """Write lines to a file, after those of steps that still count.

    Lines of steps after `start`, from which the run goes on, are taken out: they will
    be written again. Of several processes the main one alone writes.
    """

    def __init__(self, path: Path, start: int, *, main: bool = True) -> None:
        self._path, self._main = path, main
        kept = [(line, v) for line, v in _read_lines(path) if v["step"] <= start]
        # The clocks go on where the last step that counts has left them.
        self._began = _clocks()
        for name in self._began:
            times = [v[name] for _, v in kept if type(v.get(name)) in (int, float)]
            if times and 0 <= times[-1] < 1e12:  # and not what somebody has written
                self._began[name] -= times[-1]
        if main and path.exists():
            with open_new(beside(path)) as file:
                file.writelines(line for line, _ in kept)
            wait_for_disk(beside(path))
            os.replace(beside(path), path)

    def seconds(self) -> dict[str, float]:
        """Say how long the run has taken, on the wall's clock and the processor's."""
        return {n: round(now - self._began[n], 3) for n, now in _clocks().items()}

    def write(self, values: Mapping[str, object]) -> None:
        """Write a line, and let it be seen at once."""
        if self._main:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(finite_or_null(values)) + "\n")

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        if self._main:
            wait_for_disk(self._path)


def _clocks() -> dict[str, float]:
    return {"seconds": time.perf_counter(), "cpu_seconds": time.process_time()}


def validation_scores(
    model: nn.Module, data: RunData, device: torch.device
) -> dict[str, float]:
    """Measure a model on the validation data: its loss, and how often it is right.

    Raises:
        FloatingPointError: the loss, or a score of a next token, is not finite.
    """
    loss = mean_loss(model, (batch.to(device) for batch in data.validation)).loss
    if not math.isfinite(loss):
        raise FloatingPointError(f"the validation loss is {loss}. {ADVICE}")
    scores = {"validation_loss": loss}
    if isinstance(model, Transformer):
        scores["validation_exact_match"] = _share(model, data, data.validation_pairs)
    return scores


def test_scores(
    model: nn.Module, data: RunData, device: torch.device
) -> dict[str, float]:
    """Measure a model on the test data; of a text, in bits per byte as well."""
    loss = mean_loss(model, (batch.to(device) for batch in data.test))
    scores: dict[str, float] = {"test_loss": loss.loss, "test_tokens": loss.tokens}
    if isinstance(model, Transformer):
        scores["test_pairs"] = len(data.test_pairs)
        scores["test_exact_match"] = _share(model, data, data.test_pairs)
    elif isinstance(model, CausalLM):
        bits = text_bits_per_byte(data.vocabulary, data.test, loss)
        scores["test_bits_per_byte"] = bits
    return scores


def _share(model: Transformer, data: RunData, pairs: Pairs) -> float:
    return exact_match(model, data.vocabulary, pairs, max_len=data.max_target_len)


def text_bits_per_byte(
    vocabulary: Vocabulary, batches: Iterable[Batch], loss: MeanLoss
) -> float:
    """Compute `bits_per_byte` of a text, from the loss of all its next tokens."""
    rows = (row for batch in batches for row in batch.targets.tolist())
    size = sum(map(vocabulary.num_bytes, rows))
    return bits_per_byte(loss.loss * loss.tokens, size)


def parameter_counts(model: nn.Module) -> dict[str, int]:
    """Count the parameters; with experts those, too, that one token uses."""
    whole = sum(p.numel() for p in model.parameters())
    active = active_parameters(model)
    used = {} if active == whole else {"active_parameters": active}
    return {"parameters": whole, **used}


def describe_machine(device: torch.device) -> Json:
    """Name the processor or GPU on which a number was measured, and the versions."""
    cuda = device.type == "cuda"
    return {
        "device": device.type,
        "name": torch.cuda.get_device_name(device) if cuda else _cpu_name(),
        "kernels": "CUDA" if cuda else torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processes": num_processes(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "tformer": tformer.__version__,
    }


def _cpu_name() -> str:
    """Name the processor: Linux knows more of it, also where a name is that of many."""
    file = Path("/proc/cpuinfo")
    text = file.read_text("utf-8") if file.exists() else ""
    line = r"^(model name|cpu family|model|stepping)\s*: (.*)$"
    told = dict(re.findall(line, text, re.MULTILINE))
    name = told.pop("model name", platform.processor() or platform.machine())
    numbers = [f"{n.split()[-1]} {told[n]}" for n in sorted(told)]
    return ", ".join([name, *numbers])


def save_evaluation(
    folder: RunFolder,
    name: str,
    *,
    asked: Json,
    result: Json,
    mistakes: list[dict[str, str]],
    device: torch.device,
) -> Path:
    """Write what a run's model was asked after the training, and what came of it.

    One of this name is replaced. Of wrong answers some are kept: source, target, and
    what was written. A RunError says that the name cannot be that of a file, or the
    file not be written.
    """
    check_name(name)
    folder.check(FOLDER)
    path = folder.path / FOLDER / f"{name}.json"
    kept: Json = {"asked": asked, "result": result, "mistakes": mistakes}
    kept["machine"] = describe_machine(device)
    folder.lock(PATIENCE)
    try:
        path.parent.mkdir(exist_ok=True)
        write_json(path, sealed(kept))
    finally:
        folder.unlock()
    return path


def check_name(name: str) -> None:
    """Raise a RunError unless a name can be that of a file on any system."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise RunError(
            f"the name {name!r} must be of letters, digits, '.', '_' and '-', at most "
            "100, and begin with a letter or a digit"
        )


def saved_evaluations(folder: RunFolder) -> dict[str, Json]:
    """Read the evaluations of a run, by name."""
    files = sorted((folder.path / FOLDER).glob("*.json"))
    return {file.stem: read_kept_json(file, asked=dict, result=dict) for file in files}

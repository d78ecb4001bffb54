"""How good a model is: while it is trained, at the end, and asked later."""

import math
import os
import platform
import re
from pathlib import Path

import torch
from torch import nn

import tformer
from tformer.files import Json, sealed, write_json
from tformer.models.transformer import Transformer
from tformer.nn.experts import active_parameters
from tformer.runs.batches import RunData
from tformer.runs.folder import RunError, RunFolder, read_kept_json, writing
from tformer.training.evaluation import bits_per_byte, exact_match, mean_loss
from tformer.training.processes import not_finite, num_processes

FOLDER = "evaluations"
ADVICE = "A lower learning rate or a longer warm-up may help"
PATIENCE = 60.0  # seconds to wait for others that write there; each takes a moment


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
    return {"validation_loss": loss, **_matches("validation", model, data)}


def check_useful(model: nn.Module, data: RunData, device: torch.device) -> None:
    """Raise if nobody could go on from a model.

    Raises:
        FloatingPointError: a weight is not finite, or the weights are so large that the
            loss of a batch is not.
    """
    then = f"and no checkpoint is made. {ADVICE}"
    if name := not_finite(model.named_parameters()):
        raise FloatingPointError(f"the parameter {name} is not finite, {then}")
    loss, _ = mean_loss(model, [data.validation[0].to(device)])
    if not math.isfinite(loss):
        said = f"the loss of the validation's first batch is {loss}"
        raise FloatingPointError(f"{said}, {then}")


def test_scores(
    model: nn.Module, data: RunData, device: torch.device
) -> dict[str, float]:
    """Measure a model on the test data; of a text, in bits per byte as well."""
    loss, tokens = mean_loss(model, (batch.to(device) for batch in data.test))
    scores: dict[str, float] = {"test_loss": loss, "test_tokens": tokens}
    if data.test_pairs:
        scores["test_pairs"] = len(data.test_pairs)
    scores |= _matches("test", model, data)
    if data.test_bytes:
        scores["test_bits_per_byte"] = bits_per_byte(loss * tokens, data.test_bytes)
    return scores


def _matches(split: str, model: nn.Module, data: RunData) -> dict[str, float]:
    pairs = data.test_pairs if split == "test" else data.validation_pairs
    if not pairs or not isinstance(model, Transformer):
        return {}
    share = exact_match(model, data.vocabulary, pairs, max_len=data.max_target_len)
    return {f"{split}_exact_match": share}


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
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    told = {n.strip(): x.strip() for n, _, x in (s.partition(":") for s in lines)}
    if "model name" not in told:
        return platform.processor() or platform.machine()
    numbers = [n for n in ("cpu family", "model", "stepping") if n in told]
    return ", ".join(
        [told["model name"], *(f"{n.split()[-1]} {told[n]}" for n in numbers)]
    )


def check_name(name: str) -> None:
    """Raise a RunError unless a name can be that of a file on any system."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise RunError(
            f"the name {name!r} must be of letters, digits, '.', '_' and '-', at most "
            "100, and begin with a letter or a digit"
        )


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

    Args:
        folder: of the run.
        name: of the evaluation; one of this name is replaced.
        asked: files, split and the like.
        result: numbers by name.
        mistakes: some wrong answers: source, target, and what was written.
        device: on which it was computed.

    Raises:
        RunError: the name cannot be that of a file, or the file not be written.
    """
    check_name(name)
    folder.check(FOLDER)
    path = folder.path / FOLDER / f"{name}.json"
    kept: Json = {"asked": asked, "result": result, "mistakes": mistakes}
    kept["machine"] = describe_machine(device)
    with folder.locked(PATIENCE), writing(path):
        path.parent.mkdir(exist_ok=True)
        write_json(path, sealed(kept))
    return path


def saved_evaluations(folder: RunFolder) -> dict[str, Json]:
    """Read the evaluations of a run, by name."""
    files = sorted((folder.path / FOLDER).glob("*.json"))
    return {file.stem: read_kept_json(file, asked=dict, result=dict) for file in files}

"""A model from wherever it is: a folder, a function in a file, or in memory."""

import importlib.util
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from tformer.interop.compare.recorded import Model, Recorded, first_tensor, record
from tformer.interop.huggingface import from_huggingface
from tformer.models.causal_lm import CausalLM
from tformer.models.folder import read_model
from tformer.models.seq2seq_lm import Seq2SeqLM

Source = str | Path | Model


def open_model(source: Source) -> Model:
    """Return the model of a folder, of `FILE.py:FUNCTION`, or the one given.

    Raises:
        OSError: a file or folder is missing.
        ValueError: there is no such function, or it fails; a folder is damaged.
        TypeError: it is no model.
    """
    if source == "":  # which Path takes for the folder that one is in
        raise ValueError("the model must be a folder or FILE.py:FUNCTION, not ''")
    if isinstance(source, str | Path):
        path, _, name = str(source).rpartition(":")
        if path.endswith(".py"):
            return call_function(Path(path), name)
        if str(source).endswith(".py"):
            raise ValueError(
                f"{source} must be FILE.py:FUNCTION, as {source}:make_model"
            )
        folder = Path(source)
        if not folder.is_dir():
            raise FileNotFoundError(f"{source}: no such folder, nor FILE.py:FUNCTION")
        inner = folder / "model"  # of the folder of a run
        inner = inner if (inner / "config.json").exists() else folder
        return checked(read_model(inner), source)
    return checked(source, "a model")


def checked(model: object, name: object) -> Model:
    """Return it if it can be called with ids."""
    if isinstance(model, Seq2SeqLM):
        raise TypeError(
            f"{name} is a model of two sequences: only models of one are compared"
        )
    if not callable(model):
        raise TypeError(f"{name} must be a module or function of ids, not {model!r}")
    return cast(Model, model)


def call_function(path: Path, name: str) -> Model:
    """Run a file and call one of its functions, which makes the model."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(f"compared_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses of the file look for it there
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        guarded(lambda: spec.loader.exec_module(module), str(path))  # type: ignore[union-attr]
        make = getattr(module, name, None)
        if not callable(make):
            raise ValueError(f"{path} has no function {name!r}")
        return checked(guarded(make, f"{path}:{name}"), f"{path}:{name}")
    finally:
        sys.path.remove(str(path.parent.resolve()))


def guarded(call: Callable[[], object], name: str) -> object:
    """Call what others wrote; whatever it raises becomes a ValueError with its name."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        first = str(error).strip().partition("\n")[0]
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        at = ""
        if frame is not None:
            file = Path(frame.tb_frame.f_code.co_filename).name
            at = f" ({file}, line {frame.tb_lineno})"
        said = f"{type(error).__name__}: {first}".removesuffix(": ")
        raise ValueError(f"{name} raised {said}{at}") from error


class Side(NamedTuple):
    """One of the two models, ready to run."""

    letter: str  # A or B
    model: Model
    notes: list[str]

    def run(self, ids: Tensor) -> Recorded:
        """Record its rows; what it raises is told with the ids' shape."""
        name = f"{self.letter}, for ids {tuple(ids.shape)},"
        return cast(Recorded, guarded(lambda: record(self.model, ids), name))

    def in_dtype(self, dtype: torch.dtype) -> "Side":
        """Return a copy that computes in this dtype, on the CPU."""
        if not isinstance(self.model, nn.Module):
            return self
        return self._replace(model=deepcopy(self.model).to("cpu", dtype).eval())

    def ready(self, dtype: torch.dtype) -> "Side":
        """Copy the model in this dtype, in eval; or as it is, if it cannot be so."""
        if not isinstance(self.model, nn.Module):
            return self
        ids = torch.zeros(1, 2, dtype=torch.int64)
        try:
            ready = self.in_dtype(dtype)
            record(ready.model, ids)
        except Exception as error:  # noqa: BLE001 - of another's code
            first = str(error).partition("\n")[0]
            self.notes.append(f"{self.letter} cannot run in {word(dtype)}: {first}")
            copy = guarded(lambda: deepcopy(self.model), self.letter)
            return self._replace(model=cast(nn.Module, copy).cpu().eval())
        return ready

    def is_random(self, ids: Tensor) -> bool:
        """Whether two calls on the same ids differ."""
        with torch.no_grad():
            one, two = (guarded(lambda: first_tensor(self.model(ids)),
                self.letter) for _ in range(2))  # fmt: skip
        if not (isinstance(one, Tensor) and isinstance(two, Tensor)):
            return False
        return not torch.equal(one.nan_to_num(), two.nan_to_num())

    def as_ours(self) -> CausalLM | None:
        """Return the model if it is ours, or what is read from Hugging Face's."""
        if isinstance(self.model, CausalLM):
            return self.model
        if isinstance(self.model, nn.Module) and hasattr(self.model, "config"):
            try:
                model = from_huggingface(self.model)
                return model if isinstance(model, CausalLM) else None
            except (AttributeError, KeyError, TypeError, ValueError):
                return None
        return None


def word(dtype: torch.dtype) -> str:
    """Name a dtype."""
    return str(dtype).removeprefix("torch.")

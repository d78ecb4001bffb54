"""A run from its beginning, or from where it stopped, to its end."""

import dataclasses
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import torch

from tformer.data.batch import Batch
from tformer.files import Json, finite_or_null, sealed, write_json
from tformer.runs.attention import draw_curves
from tformer.runs.checkpoints import load_newest, save_state
from tformer.runs.data import run_data
from tformer.runs.folder import RunFolder, read_kept_json
from tformer.runs.metrics import (
    ADVICE,
    Metrics,
    describe_machine,
    parameter_counts,
    test_scores,
    validation_scores,
)
from tformer.runs.model import ablate, build_model, build_optimizer, check_unchanged
from tformer.training.checkpoint import save_checkpoint
from tformer.training.distributed import distribute, settle, unwrap
from tformer.training.loop import StepReport, train
from tformer.training.precision import Precision
from tformer.training.processes import (
    not_finite,
    process_rank,
    sum_over_processes,
    wait_for_all,
)
from tformer.training.shards import full_state

GRACE = 1.0  # seconds in which one signal more is the same wish, as a double press


class Stopped(Exception):
    """The run was asked to stop, and has saved all."""


@contextmanager
def stop_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` at SIGINT (Ctrl-C) or SIGTERM, instead of dying; a later one kills.

    It is called between two instructions of Python, and must only take a note.
    """
    asked: list[float] = []

    def note(kind: int, _: FrameType | None) -> None:
        asked.append(time.monotonic())
        if asked[-1] > asked[0] + GRACE:  # it does what it always does
            signal.signal(kind, before[kind])
            signal.raise_signal(kind)
        stop()

    main = threading.current_thread() is threading.main_thread()  # only it may
    kinds = (signal.SIGINT, signal.SIGTERM) if main else ()
    before = {int(kind): signal.signal(kind, note) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


class Run:
    """One training in a folder, on a device, with a `distribute` strategy.

    Step n is a function of the settings, and of the step before it: its batch is drawn
    from the seed and n, its dropout too, and everything else lies in the checkpoint.
    That is why a run that was killed resumes with the same numbers, bit for bit, on the
    same machine and torch, with as many processes and threads as before: others sum in
    another order. With `compile` this is measured of batches of one length; where
    lengths vary, kernels are made for the first that come, and numbers are rounded
    otherwise.

    The callback gets the report of each step, before anything is saved.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        device: torch.device | str = "cpu",
        strategy: str = "none",
        progress: bool = True,
        callback: Callable[[StepReport], object] = lambda _: None,
    ) -> None:
        self._main = process_rank() == 0  # writes for all
        self.folder, self.callback = folder, callback
        self.device, self.strategy = torch.device(device), strategy
        self.progress, self._stop = progress and self._main, False

    def stop(self) -> None:
        """Ask for an end after this step, with all saved, as Ctrl-C does."""
        self._stop = True

    def train(self) -> Json:
        """Train to the end, from the newest checkpoint; return what result.json has.

        The folder is locked meanwhile: no other process can begin to train in it, not
        even while the data are read.

        Raises:
            FloatingPointError: a loss or a weight is not finite. The message says at
                which step and why; the last checkpoint is from before.
            OSError: a file is missing, or cannot be written.
            ValueError: the folder is in use or was moved; the data are faulty; or
                config.json does not go with the newest checkpoint.
            Stopped: Ctrl-C or SIGTERM came; a checkpoint was made first.
        """
        if self._main:
            self.folder.lock()
        try:
            wait_for_all()
            return self._train()
        finally:
            self.folder.unlock()

    def _train(self) -> Json:
        folder, self.settings = self.folder, self.folder.settings()
        s = self.settings
        check_unchanged(folder, s)
        self.data = run_data(s, folder.path)
        model = build_model(s, self.data.vocabulary).to(self.device)
        ablate(model, *s.without)
        self.model = distribute(model, self.strategy)
        if s.compile:
            # Windows of a text have one shape; pairs many, others after a kill.
            self.model.compile(dynamic=None if s.task == "text" else True)
        self.optimizer = build_optimizer(s, self.model)
        self.precision = Precision(s.precision, self.device.type)
        start = load_newest(
            folder.checkpoints,
            self.model,
            self.optimizer,
            scaler=self.precision.scaler,
            data=self.data.digest,
        )
        # A run that is done needs its checkpoints no more.
        if start in (0, s.steps) and folder.saved_model() and folder.result.exists():
            result = read_kept_json(folder.result)
            if result.get("steps") == s.steps:  # and is not of a shorter run
                return result
        if not s.compile:  # it would make kernels for a single row
            settle(self.model, self.data.validation[0].to(self.device))
        self._stop = False
        self._metrics = Metrics(folder.metrics, start, main=self._main)
        with stop_signals(self.stop):
            train(
                self.model,
                self._batches(start),
                steps=s.steps,
                start=start,
                schedule=s.rate_at,
                optimizer=self.optimizer,
                accumulate=s.accumulate,
                smoothing=s.smoothing,
                clip_norm=s.clip_norm,
                precision=self.precision,
                progress=self.progress,
                callback=self._after,
            )
        return self._finish()

    def _batches(self, start: int) -> Iterator[Batch]:
        """Yield each step's batch on the device, and set its dropout's seed."""
        for step, batch in enumerate(self.data.batches(start), start=start + 1):
            key = f"{self.settings.seed} {step} {process_rank()}"
            torch.manual_seed(random.Random(key).getrandbits(63))
            yield batch.to(self.device, non_blocking=True)

    def _after(self, report: StepReport) -> None:
        """After each step: write it down, and when it is time, evaluate and save."""
        s, step = self.settings, report.step
        self._write({**report._asdict(), **self._metrics.seconds()})
        self.callback(report)
        last = step == s.steps
        measured = (unwrap(self.model), self.data, self.device)
        try:
            if step % s.evaluate_every == 0 or last:
                self._write({"step": step, **validation_scores(*measured)})
            # All processes stop at the same step, whichever was asked to.
            asked = torch.tensor(float(self._stop), device=self.device)
            stop = sum_over_processes(asked).item() > 0
            if step % s.save_every == 0 or stop or last:
                self._save(step)
        except FloatingPointError as error:
            raise FloatingPointError(f"after step {step}: {error}") from error
        if stop and not last:
            if self._main:
                draw_curves(self.folder)
            wait_for_all()  # torchrun kills the others when one has left
            raise Stopped(f"stopped after step {step}")

    def _write(self, values: Json) -> None:
        self.folder.check("metrics.jsonl")
        self._metrics.write(values)

    def _save(self, step: int) -> None:
        s, folder = self.settings, self.folder
        if name := not_finite(self.model.named_parameters()):  # nobody could go on
            then = f"is not finite, and no checkpoint is made. {ADVICE}"
            raise FloatingPointError(f"the parameter {name} {then}")
        folder.check("checkpoints")  # in a link's place old ones would go
        self._metrics.sync()  # no line of a step before the checkpoint can be lost
        facts = {"scaler": self.precision.scaler.state_dict(), "data": self.data.digest}
        save_state(
            folder.checkpoints,
            step,
            self.model,
            self.optimizer,
            facts={**facts, "settings": dataclasses.asdict(s)},
            keep=s.keep,
        )

    def _finish(self) -> Json:
        """Measure the trained model on the test data; save it; write the result."""
        result = {
            "task": self.settings.task,
            "steps": self.settings.steps,
            **parameter_counts(self.model),
            **self._metrics.seconds(),
            **test_scores(unwrap(self.model), self.data, self.device),
            "machine": describe_machine(self.device),
        }
        trained = full_state(self.model)  # of several processes the first gets it
        if not self._main:
            return result
        s, folder, words = self.settings, self.folder, self.data.vocabulary
        model = build_model(s, words)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(trained[f"model.{name}"])
        folder.check("model")
        facts = {"settings": dataclasses.asdict(s)}
        save_checkpoint(folder.model, model, vocabulary=words, facts=facts)
        draw_curves(folder)
        write_json(folder.result, sealed(finite_or_null(result)))
        folder.check()  # a move since the last look is seen here
        return result

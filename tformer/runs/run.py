"""A run from its beginning, or from where it stopped, to its end."""

import dataclasses
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch import nn

from tformer.data.batch import Batch
from tformer.files import finite_or_null, sealed, write_json
from tformer.runs.attention import draw_curves, draw_if_possible, draw_result
from tformer.runs.batches import RunData
from tformer.runs.checkpoints import (
    clean_up,
    load_state,
    refusal,
    save_state,
    saved_states,
)
from tformer.runs.data import run_data
from tformer.runs.evaluation import (
    check_useful,
    describe_machine,
    parameter_counts,
    test_scores,
    validation_scores,
)
from tformer.runs.folder import RunError, RunFolder, read_kept_json
from tformer.runs.metrics import Metrics
from tformer.runs.model import ablate, build_model, build_optimizer, build_schedule
from tformer.runs.trained import check_unchanged
from tformer.training.checkpoint import save_checkpoint
from tformer.training.distributed import distribute, settle, unwrap
from tformer.training.loop import StepReport, train
from tformer.training.precision import Precision
from tformer.training.processes import process_rank, sum_over_processes, wait_for_all
from tformer.training.shards import full_state


class Stopped(Exception):
    """The run was asked to stop, and has saved all."""

    def __init__(self, step: int) -> None:
        super().__init__(f"stopped after step {step}")
        self.step = step


GRACE = 1.0  # seconds in which one signal more is the same wish, as a double press


@contextmanager
def stop_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` at SIGINT (Ctrl-C) or SIGTERM, instead of dying; a later one kills.

    It is called between two instructions of Python, and must only take a note.
    """
    asked: list[float] = []

    def note(kind: int, _: FrameType | None) -> None:
        if not asked:
            stop()
        elif time.monotonic() > asked[0] + GRACE:
            for each, handler in before.items():  # it does what it always does
                signal.signal(each, handler)
            signal.raise_signal(kind)
        asked.append(time.monotonic())

    before = {}
    if threading.current_thread() is threading.main_thread():  # only it may
        for kind in (signal.SIGINT, signal.SIGTERM):
            before[kind] = signal.signal(kind, note)
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


class Run:
    """One training in a folder.

    Step n is a function of the settings, and of the step before it: its batch is drawn
    from the seed and n, its dropout too, and everything else lies in the checkpoint.
    That is why a run that was killed resumes with the same numbers, bit for bit, on the
    same machine and torch, with as many processes and threads as before: others sum in
    another order. With `compile` this is measured and not promised.

    The folder is locked from here until `train` ends: no other process can begin to
    train in it, not even while the data are read.

    Args:
        folder: of the run.
        device: to train on.
        strategy: "none", "ddp" or "fsdp", as `distribute` takes it.
        progress: show a bar.
        callback: gets the report of each step, after it was written down and before
            anything is saved; it may call `stop`.

    Raises:
        RunError: the folder cannot be read or written, or is in use; the data are
            faulty; or config.json does not go with the newest checkpoint.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        device: torch.device | str = "cpu",
        strategy: str = "none",
        progress: bool = True,
        callback: Callable[[StepReport], object] | None = None,
    ) -> None:
        self._main = process_rank() == 0  # writes for all
        self.folder = folder
        self.device, self.strategy = torch.device(device), strategy
        self.progress = progress and self._main
        self.callback, self._stop = callback, False
        with self._locked(keep=True):
            self._prepare()

    @contextmanager
    def _locked(self, *, keep: bool = False) -> Iterator[None]:
        """Hold the lock, for all processes; to the end, or, unless it fails, longer."""
        if self._main:
            self.folder.lock()
        wait_for_all()
        try:
            yield
        except BaseException:
            self.folder.unlock()
            raise
        if not keep:
            self.folder.unlock()

    def _prepare(self) -> None:
        self.settings = self.folder.settings()
        check_unchanged(self.folder, self.settings)
        self.data: RunData = run_data(self.settings, self.folder.path)
        model = self._new_model().to(self.device)
        ablate(model, *self.settings.without)
        self.model: nn.Module = distribute(model, self.strategy)
        if self.settings.compile:
            # Windows of a text have one shape; pairs have many, others after a kill.
            self.model.compile(dynamic=None if self.settings.task == "text" else True)
        self.optimizer = build_optimizer(self.settings, self.model)
        self.precision = Precision(self.settings.precision, self.device.type)

    def _new_model(self) -> Any:
        data = self.data
        pad_id = data.vocabulary.pad_id
        return build_model(self.settings, vocab_size=data.vocab_size, pad_id=pad_id)

    def stop(self) -> None:
        """Ask for an end after this step, with all saved, as Ctrl-C does."""
        self._stop = True

    def train(self) -> dict[str, Any]:
        """Train to the end, from the newest checkpoint if there is one.

        Returns:
            What came of it: the contents of result.json.

        Raises:
            FloatingPointError: the loss, that of the validation or a weight is not
                finite; the message says at which step and why. The last checkpoint
                is from before.
            RunError: the folder cannot be read or written, is in use, or was moved; it
                has a model already, and no checkpoint to go on from; or what is read
                of the data was changed.
            Stopped: Ctrl-C or SIGTERM came; a checkpoint was made first.
        """
        with self._locked():
            start = self._restore()
            s = self.settings
            # A run that is done needs its checkpoints no more.
            has_model = self.folder.saved_model() is not None
            done = start == s.steps or (not start and has_model)
            if done and (result := self._result()) is not None:
                return result
            if not start and has_model:
                raise RunError(
                    f"{self.folder.path} has a model, and no checkpoint to go on from: "
                    "it is not trained anew in its place. Begin another run"
                )
            if not s.compile:  # it would make kernels for a single row
                settle(self.model, self.data.validation[0].to(self.device))
            self._stop = False
            self._metrics = Metrics(self.folder.metrics, start, main=self._main)
            with stop_signals(self.stop):
                train(
                    self.model,
                    self._batches(start),
                    steps=s.steps,
                    start=start,
                    schedule=build_schedule(s),
                    optimizer=self.optimizer,
                    accumulate=s.accumulate,
                    smoothing=s.smoothing,
                    clip_norm=s.clip_norm,
                    precision=self.precision,
                    progress=self.progress,
                    callback=self._after,
                )
            return self._finish()

    def _result(self) -> dict[str, Any] | None:
        """Read what came of it, if that is there already, and not of a shorter run."""
        if not (self.folder.result.exists() and self.folder.saved_model()):
            return None
        result = read_kept_json(self.folder.result)
        return result if result.get("steps") == self.settings.steps else None

    def _restore(self) -> int:
        if self._main:
            clean_up(self.folder.checkpoints)
        saved = saved_states(self.folder.checkpoints)
        if not saved:
            return 0
        facts = load_state(saved[-1], self.model, self.optimizer)
        if facts.get("data", self.data.digest) != self.data.digest:
            raise refusal(saved[-1], ValueError("the run's data are no longer its own"))
        try:
            self.precision.scaler.load_state_dict(facts["scaler"])
        except (KeyError, TypeError, RuntimeError) as error:
            raise refusal(saved[-1], error) from error
        return int(facts["step"])

    def _batches(self, start: int) -> Iterator[Batch]:
        """Yield each step's batch on the device, and set its dropout's seed."""
        for step, batch in enumerate(self.data.batches(start), start=start + 1):
            key = f"{self.settings.seed} {step} {process_rank()}"
            torch.manual_seed(random.Random(key).getrandbits(63))
            yield batch.to(self.device, non_blocking=True)

    def _after(self, report: StepReport) -> None:
        """After each step: write it down, and when it is time, evaluate and save."""
        s, step = self.settings, report.step
        self.folder.check_in_place()
        self._metrics.write({**report._asdict(), **self._metrics.seconds()})
        if self.callback is not None:
            self.callback(report)
        last = step == s.steps
        evaluated = step % s.evaluate_every == 0 or last
        if evaluated:
            self._evaluate(step)
        # All processes stop at the same step, whichever was asked to.
        stop = torch.tensor(float(self._stop), device=self.device)
        stop_now = sum_over_processes(stop).item() > 0
        if step % s.save_every == 0 or stop_now or last:
            if not evaluated:
                with _named(step):
                    check_useful(unwrap(self.model), self.data, self.device)
            self._save(step)
        if stop_now and not last:
            if self._main:
                draw_if_possible(lambda: draw_curves(self.folder))
            wait_for_all()  # torchrun kills the others when one has left
            raise Stopped(step)

    def _evaluate(self, step: int) -> None:
        with _named(step):
            scores = validation_scores(unwrap(self.model), self.data, self.device)
        self.folder.check_in_place()  # it may have taken long
        self._metrics.write({"step": step, **scores})

    def _save(self, step: int) -> None:
        self.folder.check_in_place()
        self.folder.check_own("checkpoints")  # in a link's place old ones would go
        self.data.check(False)
        self._metrics.sync()  # no line of a step before the checkpoint can be lost
        facts = {
            "scaler": self.precision.scaler.state_dict(),
            "data": self.data.digest,
            "settings": dataclasses.asdict(self.settings),
        }
        save_state(
            self.folder.checkpoints,
            step,
            self.model,
            self.optimizer,
            facts=facts,
            keep=self.settings.keep,
            sharded=self.strategy == "fsdp",
        )

    def _finish(self) -> dict[str, Any]:
        """Measure the trained model on the test data; save it; write the result."""
        self.data.check(True)
        result = {
            "task": self.settings.task,
            "steps": self.settings.steps,
            **parameter_counts(self.model),
            **self._metrics.seconds(),
            **test_scores(unwrap(self.model), self.data, self.device),
            "machine": describe_machine(self.device),
        }
        # With several processes, the first gathers what all have.
        trained = full_state(self.model)
        if self._main:
            model = self._new_model()
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    parameter.copy_(trained[f"model.{name}"])
            self.folder.check_in_place()
            self.folder.check_own("model")
            save_checkpoint(
                self.folder.model,
                model,
                vocabulary=self.data.vocabulary,
                facts={"settings": dataclasses.asdict(self.settings)},
            )
            old = self.folder.old_model  # of fewer steps
            for file in (old, old.with_suffix(".json")):
                file.unlink(missing_ok=True)
            ablate(model, *self.settings.without)
            draw_result(self.folder, self.data, model.eval(), self.settings)
            write_json(self.folder.result, sealed(finite_or_null(result)))
            self.folder.check_in_place()  # a move since the last look is seen here
        self._metrics.close()
        return result


@contextmanager
def _named(step: int) -> Iterator[None]:
    """Say after which step numbers were not finite."""
    try:
        yield
    except FloatingPointError as error:
        raise FloatingPointError(f"after step {step}: {error}") from error

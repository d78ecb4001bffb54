"""A run from its beginning, or from where it stopped, to its end."""

import dataclasses
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from tformer.data.batch import Batch
from tformer.files import Json, finite_or_null, sealed, write_json
from tformer.models.building import Model
from tformer.runs.attention import draw_curves, draw_if_possible, draw_result
from tformer.runs.checkpoints import load_newest, refusal, save_state
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
from tformer.runs.stopping import Stopped, stop_signals
from tformer.runs.trained import check_unchanged
from tformer.training.checkpoint import save_checkpoint
from tformer.training.distributed import distribute, settle, unwrap
from tformer.training.loop import StepReport, train
from tformer.training.precision import Precision
from tformer.training.processes import process_rank, sum_over_processes, wait_for_all
from tformer.training.shards import full_state


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
        callback: gets the report of each step, before anything is saved.

    Raises:
        OSError: a file is missing.
        ValueError: the folder cannot be read or written, or is in use; the data are
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
        self.folder, self.callback = folder, callback
        self.device, self.strategy = torch.device(device), strategy
        self.progress, self._stop = progress and self._main, False
        with self._locked(keep=True):
            self.settings = s = folder.settings()
            check_unchanged(folder, s)
            self.data = run_data(s, folder.path)
            model = self._new_model().to(self.device)
            ablate(model, *s.without)
            self.model = distribute(model, strategy)
            if s.compile:
                # Windows of a text have one shape; pairs many, others after a kill.
                self.model.compile(dynamic=None if s.task == "text" else True)
            self.optimizer = build_optimizer(s, self.model)
            self.precision = Precision(s.precision, self.device.type)

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

    def _new_model(self) -> Model:
        size, pad_id = self.data.vocab_size, self.data.vocabulary.pad_id
        return build_model(self.settings, vocab_size=size, pad_id=pad_id)

    def stop(self) -> None:
        """Ask for an end after this step, with all saved, as Ctrl-C does."""
        self._stop = True

    def train(self) -> Json:
        """Train to the end, from the newest checkpoint if there is one.

        Returns:
            What came of it, as result.json has it.

        Raises:
            FloatingPointError: a loss or a weight is not finite; the message says at
                which step and why. The last checkpoint is from before.
            ValueError: as the class; or the folder was moved, or has a model already,
                and no checkpoint to go on from; or the data were changed.
            Stopped: Ctrl-C or SIGTERM came; a checkpoint was made first.
        """
        with self._locked():
            start, s, folder = self._restore(), self.settings, self.folder
            # A run that is done needs its checkpoints no more.
            has_model = folder.saved_model() is not None
            if has_model and start in (0, s.steps) and folder.result.exists():
                result = read_kept_json(folder.result)
                if result.get("steps") == s.steps:  # and is not of a shorter run
                    return result
            if has_model and not start:
                raise RunError(
                    f"{folder.path} has a model, and no checkpoint to go on from: "
                    "it is not trained anew in its place. Begin another run"
                )
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

    def _restore(self) -> int:
        """Load the newest checkpoint, if there is one, and say of which step it is."""
        found = load_newest(self.folder.checkpoints, self.model, self.optimizer)
        if found is None:
            return 0
        path, facts = found
        try:
            if facts.get("data", self.data.digest) != self.data.digest:
                raise ValueError("the run's data are no longer its own")
            self.precision.scaler.load_state_dict(facts["scaler"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise refusal(path, error) from error
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
        self._write({**report._asdict(), **self._metrics.seconds()})
        if self.callback is not None:
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
                check_useful(*measured)
                self._save(step)
        except FloatingPointError as error:
            raise FloatingPointError(f"after step {step}: {error}") from error
        if stop and not last:
            if self._main:
                draw_if_possible(lambda: draw_curves(self.folder))
            wait_for_all()  # torchrun kills the others when one has left
            raise Stopped(step)

    def _write(self, values: Json) -> None:
        self.folder.check()
        self._metrics.write(values)

    def _save(self, step: int) -> None:
        s, folder = self.settings, self.folder
        folder.check("checkpoints")  # in a link's place old ones would go
        self.data.check(False)
        self._metrics.sync()  # no line of a step before the checkpoint can be lost
        facts = {"scaler": self.precision.scaler.state_dict(), "data": self.data.digest}
        save_state(
            folder.checkpoints,
            step,
            self.model,
            self.optimizer,
            facts={**facts, "settings": dataclasses.asdict(s)},
            keep=s.keep,
            sharded=self.strategy == "fsdp",
        )

    def _finish(self) -> Json:
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
        self._metrics.close()
        trained = full_state(self.model)  # of several processes the first gets it
        if not self._main:
            return result
        s, folder, model = self.settings, self.folder, self._new_model()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(trained[f"model.{name}"])
        folder.check("model")
        words, facts = self.data.vocabulary, {"settings": dataclasses.asdict(s)}
        save_checkpoint(folder.model, model, vocabulary=words, facts=facts)
        for file in (folder.old_model, folder.old_model.with_suffix(".json")):
            file.unlink(missing_ok=True)  # of fewer steps
        ablate(model, *s.without)
        draw_result(folder, self.data, model.eval(), s)
        write_json(folder.result, sealed(finite_or_null(result)))
        folder.check()  # a move since the last look is seen here
        return result

"""The data of a run: drawn from a task, or read from files."""

from pathlib import Path

from tformer.runs.folder import RunError
from tformer.runs.own_files import own_pairs_data, text_data
from tformer.runs.run_data import RunData, pairs_data
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS


def run_data(settings: RunSettings, folder: Path) -> RunData:
    """Draw or read the data of a run: always the same for the same settings.

    Args:
        settings: of the run.
        folder: of the run, where what is made of large files is kept.

    Returns:
        The data.

    Raises:
        RunError: a file is missing, faulty, or has changed since the run began.
    """
    if settings.task == "text":
        return text_data(settings, folder)
    if settings.task == "pairs":
        return own_pairs_data(settings, folder)
    return task_data(settings)


def task_data(settings: RunSettings) -> RunData:
    """Draw pairs of a task.

    Raises:
        RunError: `max_len` is below the length of the task's texts.
    """
    s, task = settings, TASKS[settings.task]
    longest = max(task.max_source_len, task.max_target_len) + 1  # and the end token
    if s.max_len < longest:
        raise RunError(
            f"max_len ({s.max_len}) must be at least {longest} for {s.task}: so many "
            "tokens has its longest text"
        )
    vocabulary = task.vocabulary()
    drawn = {
        "train": task.pairs("train", s.examples, s.seed),
        # The same for all seeds, so that runs can be compared.
        "validation": task.pairs("validation", s.evaluate_examples, 0),
        "test": task.pairs("test", s.test_examples, 0),
    }
    return pairs_data(s, vocabulary, drawn, max_target_len=task.max_target_len + 1)

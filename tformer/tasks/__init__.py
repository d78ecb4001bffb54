"""Tasks to learn, made here: `TASKS["copy"].pairs("train", 8, 0)`.

Nothing is downloaded, and no task knows the model that will learn it.
"""

from tformer.data.pairs import SPLITS, Pair
from tformer.tasks.addition import AdditionTask
from tformer.tasks.dates import DatesTask
from tformer.tasks.number_words import NumberWordsTask
from tformer.tasks.sequences import SequenceTask
from tformer.tasks.task import Task
from tformer.tasks.typed_dates import TypedDatesTask

__all__ = [
    "SPLITS",
    "TASKS",
    "AdditionTask",
    "DatesTask",
    "NumberWordsTask",
    "Pair",
    "SequenceTask",
    "Task",
    "TypedDatesTask",
]

_ALL: tuple[Task, ...] = (
    SequenceTask("copy"),
    SequenceTask("reverse"),
    SequenceTask("sort"),
    AdditionTask(),
    NumberWordsTask(languages=("en", "de", "es", "it", "ru", "uk")),
    DatesTask(),
    DatesTask(name="dates-new-locales", held_out=("da", "pt", "uk", "ko")),
    TypedDatesTask(),
)
TASKS = {task.name: task for task in _ALL}
"""Every task by its name: copy, reverse, sort, addition, number-words, dates,
dates-new-locales, whose test is in four locales that its training has not, and
dates-as-typed, which has numbers and ordinals as well."""

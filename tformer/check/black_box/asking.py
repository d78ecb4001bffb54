"""All questions, in their order: what is found by one is not found again by others."""

from collections.abc import Callable, Iterator

from tformer.check.black_box import caches, calls, future, padding, training
from tformer.check.black_box.box import Box
from tformer.check.black_box.copying import Model, kept, module_in
from tformer.check.black_box.forms import NotAsked, Unusable, told
from tformer.check.black_box.report import QUESTIONS, Finding, Report
from tformer.check.black_box.through import explain

Question = Callable[[Box], Iterator[Finding]]


def ask(model: Model, seconds: float) -> Report:
    """Ask a model everything, and leave it as it was."""
    with kept(model):
        return _report(model, seconds)


def _report(given: Model, seconds: float) -> Report:
    if not callable(given):
        return Report(error=f"the model ({type(given).__name__}) must be callable")
    try:
        box = Box(given)
        if box.eps > 1e-5 and module_in(given) is not None:
            box = _in_double(given) or box
    except Unusable as error:
        return Report(error=str(error))
    except Exception as error:  # noqa: BLE001 - whatever it raises
        return Report(error=told(error))
    return Asking(given, box, seconds).report()


def _in_double(given: Model) -> Box | None:
    try:
        return Box(given, double=True)
    except Exception:  # noqa: BLE001 - some parts have a dtype of their own
        return None


class Asking:
    """One model that is asked everything."""

    def __init__(self, given: Model, box: Box, seconds: float) -> None:
        self.given, self.box, self.seconds = given, box, seconds
        self.findings: list[Finding] = []
        self.asked: list[str] = []
        self.left: dict[str, str] = {}

    @property
    def found(self) -> set[str]:
        """The ids of what was found."""
        return {each.id for each in self.findings}

    def ask(self, name: str, question: Question, *after: str) -> None:
        """Ask one thing, unless what was found makes it follow or senseless."""
        if spoiled := [each for each in after if each in self.found]:
            self.left[name] = f"what was found of {spoiled[0]!r} changes it, too"
            return
        try:
            found = [*question(self.box)]
            if found and name in ("length", "cache", "padding", "batch"):
                found = self.confirmed(found, question)
            self.findings += found
            self.asked.append(name)
        except NotAsked as error:
            self.left[name] = str(error)
        except Exception as error:  # noqa: BLE001 - whatever the model raises
            self.left[name] = told(error)

    def confirmed(self, found: list[Finding], question: Question) -> list[Finding]:
        """Ask once more in float64, where what is rounding vanishes."""
        if self.box.double or module_in(self.given) is None:
            return found
        double = _in_double(self.given)
        if double is None:
            return found
        double.stateful = self.box.stateful
        try:
            return [*question(double)]
        except Exception:  # noqa: BLE001 - some parts have a dtype of their own
            return found

    def report(self) -> Report:
        """Ask all, in an order in which causes come before what follows from them."""
        box = self.box
        self.ask("nan", calls.nan)
        self.ask("shape", calls.shape)
        self.ask("random", calls.random)
        self.ask("state", calls.state)
        if box.stateful and box.pristine is not None:
            box.measure()
        spoiled = () if not box.stateful or box.pristine is not None else ("state",)
        self.ask("batch", calls.batch, *spoiled)
        self.ask("future", self.future, *spoiled)
        self.ask("length", future.length, "nan", "future", *spoiled)
        self.ask("cache", caches.cache, "nan", "future", "length", "state")
        self.ask("padding", padding.padding, "nan", "future", "length", *spoiled)
        self.ask("inputs", calls.inputs)
        self.ask("start", lambda box: training.start(box, self.given), *spoiled)
        self.ask("unused", training.unused, "nan")
        share = 0.5 * self.seconds
        self.ask("learns", lambda box: training.learns(box, self.given, share), "nan")
        order = sorted(self.findings, key=lambda x: [*QUESTIONS].index(x.id))
        error = ""
        if not order and "future" not in self.asked:
            error = f"it could not be asked for the future: {self.left['future']}"
        return Report(tuple(order), tuple(self.asked), self.left, error)

    def future(self, box: Box) -> Iterator[Finding]:
        """Ask for leaks in eval(), then in train()."""
        leak, untried = future.find(box, (0.04 if box.large else 0.2) * self.seconds)
        if leak is not None:
            box.leaks = True
            yield explain(box, leak)
            return
        if untried:
            self.left["future"] = untried
        if (leak := future.in_training(box)) is not None:
            numbers = {"i": leak.i, "j": leak.j, "change": leak.change}
            yield Finding("future", "training", numbers)

"""Errors of the command line: a sentence on stderr, and an exit code."""

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FAILED = 1  # what was asked for could not be done; the message says why
INTERRUPTED = 130  # Ctrl-C, as shells count it: 128 + SIGINT
TRACEBACK = "TFORMER_TRACEBACK"


@contextmanager
def explained() -> Iterator[None]:
    """Turn whatever goes wrong into a sentence and an exit code, without traceback.

    What a user can put right is told from a mistake of ours, which the sentence calls
    so. With TFORMER_TRACEBACK=1 in the environment, the traceback is shown as well.
    """
    as_before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        _check_streams()
        yield
    except SystemExit:  # typer has said all
        raise
    except KeyboardInterrupt:
        _say("\ninterrupted")
        raise SystemExit(INTERRUPTED) from None
    except BaseException as error:  # what Rust calls a panic is no Exception
        if os.environ.get(TRACEBACK):
            raise
        message = _known(error)
        if message is None:
            message = (
                f"internal: {type(error).__name__}: {_first_line(error)}. This is a "
                f"mistake of tformer's: please report it, with what {TRACEBACK}=1 in "
                "the environment shows"
            )
        _say(f"error: {message}")
        raise SystemExit(FAILED) from error
    finally:
        warnings.formatwarning = as_before


# How torch says that no memory is so large: the first as it tries, the others before.
_TOO_LARGE = (
    "can't allocate memory",
    "Storage size calculation overflowed",
    "numel: integer multiplication overflow",
)


def _known(error: BaseException) -> str | None:
    """Say what a user can put right, such as a mistake or a full disk."""
    import torch

    from tformer.runs.folder import RunError
    from tformer.training.distributed import ProcessLostError

    if type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
        return f"torch.compile failed: {_first_line(error)}. Train without --compile"
    full = isinstance(error, (MemoryError, torch.OutOfMemoryError))
    if full or any(words in str(error) for words in _TOO_LARGE):
        return f"there is not enough memory: {_first_line(error)}"
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror}"
    kinds = (RunError, ProcessLostError, FloatingPointError, OSError, ImportError)
    return str(error) if isinstance(error, (*kinds, ValueError)) else None


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _say(sentence: str) -> None:
    with suppress(OSError):  # of a full disk, where nothing can be said any more
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


def _check_streams() -> None:
    """Raise if the standard output is closed (`>&-`): what is asked for would be lost.

    Other streams that are closed get something in their place. Else the next file to
    be opened would get their number, and what is printed would be written into it.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        raise OSError(errno.EBADF, "the standard output is closed")

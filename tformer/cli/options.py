"""Options that commands share, and those that come from the settings of a run."""

import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any

import typer

from tformer.runs.settings import RunSettings

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="The folder of a run, a .safetensors file, or a model that comes with the "
        "package: dates.",
    ),
]
Device = Annotated[
    str, typer.Option(help="auto (CUDA, MPS or CPU, the first that is there), or one.")
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Threads of the CPU; torch chooses by itself."),
]

LengthPenalty = Annotated[
    float,
    typer.Option(min=-10, max=10, help="Of beam search: larger favours longer texts."),
]
LARGEST = 2**31 - 1  # of sizes and counts; a seed may be larger

PANELS = {
    "Model": "model d_model num_heads num_layers d_ff max_len dropout bias norm_first "
    "without",
    "Parts of a language model": "positions norm placement feed_forward experts "
    "top_k shared_experts kv_rank kv_heads qk_norm window global_every sinks softcap "
    "logit_cap",
    "Data": "examples vocabulary vocab_size batch_size batch_tokens",
    "Training": "steps accumulate optimizer learning_rate schedule warmup_steps "
    "weight_decay beta2 clip_norm smoothing precision compile seed",
    "Watching": "evaluate_every evaluate_examples save_every keep test_examples",
}


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each setting of a run but its task and its files.

    What a setting means is written once, in the docstring of `RunSettings`. An option
    that is not given is None: then the preset of the task stands.
    """
    signature = inspect.signature(command)
    own = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
    kinds, told = typing.get_type_hints(RunSettings), _descriptions()
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                _optional(kinds[name]),
                typer.Option(help=told.get(name), rich_help_panel=panel),
            ],
        )
        for panel, names in PANELS.items()
        for name in names.split()
    ]
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *added]
    )
    return command


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Keep the options that were given.

    Raises:
        BadParameter: a size is larger than any that there could be.
    """
    for name, value in options.items():
        if isinstance(value, int) and value > LARGEST and name != "seed":
            option = name.replace("_", "-")
            raise typer.BadParameter(f"--{option} ({value}) must be at most {LARGEST}")
    lists = {n: tuple(v) for n, v in options.items() if isinstance(v, list) and v}
    plain = {n: v for n, v in options.items() if not isinstance(v, list)}
    return {n: v for n, v in {**plain, **lists}.items() if v is not None}


def _optional(kind: Any) -> Any:
    if kind == tuple[str, ...]:
        return list[str] | None
    return kind if isinstance(kind, types.UnionType) else kind | None


def _descriptions() -> dict[str, str]:
    """Read what RunSettings says of each setting: nothing under `python -OO`."""
    text = inspect.cleandoc(RunSettings.__doc__ or "").partition("Args:")[2]
    found = re.findall(r"^    (\w+): (.+?)(?=^    \w|\Z|^\w)", text, re.M | re.S)
    return {
        name: (words := " ".join(said.split()))[0].upper() + words[1:]
        for name, said in found
    }

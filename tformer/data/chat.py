"""A conversation as the text that a chat model was trained on: its chat template.

The template is a small program in Jinja's language, and may be a stranger's. It runs in
Jinja's sandbox, in a process of its own that has little memory and time.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from tformer.checks import require

Message = Mapping[str, str]  # role and content
SECONDS = 20  # of the wall; a template takes milliseconds, starting Python 0.2 s
CPU_SECONDS = 5
MEMORY = 2**28  # bytes
MOST_TEXT = 2**22  # characters
CHILD = """import json, sys
sys.path[:] = json.loads(sys.argv.pop())
from tformer.data.chat import answer
answer()
"""


def render_chat(
    template: str, messages: Sequence[Message], special_tokens: Mapping[str, str]
) -> str:
    """Write a conversation as text, up to where the model's next answer begins.

    As `apply_chat_template(..., add_generation_prompt=True)` of `transformers`, whose
    words a template may use: messages, special tokens by name, raise_exception,
    strftime_now, tojson, break and continue, and generation blocks.

    Args:
        template: in Jinja's language.
        messages: "role", as "user", and "content" of each.
        special_tokens: as {"bos_token": "<s>"}.

    Raises:
        ImportError: jinja2 is not installed.
        ValueError: the template is wrong, refuses the messages, wants what the sandbox
            does not give, or takes too long or too much.
    """
    require("jinja2")
    path = json.dumps([place for place in sys.path if place])
    asked = {"template": template, "messages": [*messages], "special": special_tokens}
    child = [sys.executable, "-P", "-B", "-c", CHILD, path]
    try:
        done = subprocess.run(
            child,
            input=json.dumps(asked).encode(),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"the chat template did not end in {SECONDS} s") from None
    try:
        said = json.loads(done.stdout)
    except ValueError:  # the system has ended it
        why = f"did not end in {CPU_SECONDS} s, or took more than {MEMORY:,} bytes"
        raise ValueError(f"the chat template {why}") from None
    if "error" in said:
        raise ValueError(f"the chat template failed: {said['error']}")
    return str(said["text"])


def answer() -> None:
    """Render what comes on the standard input, in the process of its own."""
    asked = json.load(sys.stdin)
    _limit()
    said: dict[str, str]
    try:
        text = _rendered(**asked)
        if len(text) > MOST_TEXT:
            raise ValueError(f"it writes more than {MOST_TEXT:,} characters")
        said = {"text": text}
    except Exception as error:  # noqa: BLE001 - of a template of anyone's
        first = str(error).partition("\n")[0][:200]
        said = {"error": first or type(error).__name__}
    json.dump(said, sys.stdout)


def _limit() -> None:
    """Let it take no more than a little memory and time, where that can be said."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def _rendered(
    template: str, messages: list[Message], special: Mapping[str, str]
) -> str:
    extensions = require("jinja2.ext")
    refused = require("jinja2").TemplateError

    class Generation(extensions.Extension):  # type: ignore[name-defined, misc]
        """`{% generation %}` marks what a model is trained on; here nothing."""

        tags = frozenset(("generation",))

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def raise_exception(message: object) -> None:
        raise refused(str(message))

    def tojson(value: object, indent: int | None = None, **options: Any) -> str:
        return json.dumps(value, indent=indent, ensure_ascii=False, **options)

    environment = require("jinja2.sandbox").ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, extensions.loopcontrols],
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = datetime.now().strftime
    nothing = {"tools": None, "documents": None, "add_generation_prompt": True}
    return environment.from_string(template).render(
        **{**special, **nothing, "messages": messages}
    )

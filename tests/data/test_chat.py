"""Chat templates: as transformers renders them, and those that attack."""

import json
import time
from datetime import datetime

import pytest

from tformer.data.chat import CPU_SECONDS, SECONDS, render_chat

TALK = [
    {"role": "system", "content": "Be <b>brief</b> & kind."},
    {"role": "user", "content": "Où? \n"},
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def render(template, messages=TALK):
    return render_chat(template, messages, TOKENS)


def test_a_conversation_up_to_the_answer():
    """In the words of templates in use, without the lines that Jinja's blocks leave."""
    template = """{{ bos_token }}
{% for message in messages %}
    {% if message.role == "system" %}
        {% continue %}
    {% endif %}
    {% generation %}
[{{ message["role"] | upper }}] {{ message.content | trim }}{{ eos_token }}
    {% endgeneration %}
{% endfor %}
{% if add_generation_prompt and not tools %}
[ASSISTANT]{% endif %}"""
    assert render(template) == "<s>\n[USER] Où?</s>\n[ASSISTANT]"


def test_words_beyond_jinja():
    assert json.loads(render("{{ messages | tojson }}")) == TALK
    assert "<b>brief</b> & kind" in render("{{ messages | tojson(indent=2) }}")
    assert "Où" in render("{{ messages | tojson }}")
    assert render("{{ strftime_now('%Y') }}") == datetime.now().strftime("%Y")
    with pytest.raises(ValueError, match=r"^the chat template failed: no system here$"):
        render("{{ raise_exception('no system here') }}")


ATTACKS = {
    "loops": (
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
        "{% endfor %}",
        "did not end in",
    ),
    "is too long": (
        "{% for a in range(99999) %}{{ 'a' * 999 }}{% endfor %}",
        "writes more than|MemoryError|took more than",
    ),
    "takes memory": ("{{ 'a' * 10 ** 9 }}", "MemoryError|took more than"),
    "a number": ("{{ 10 ** (10 ** 10) }}", "did not end|took more"),
    "a wide format": ("{{ '{:>9999999999}'.format(1) }}", "MemoryError|took more"),
    "a long range": ("{% for a in range(10 ** 9) %}{% endfor %}", "Range too big"),
    "is deep": ("{{ " + "(" * 50_000 + ")" * 50_000 + " }}", "recursion"),
    "calls itself": ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "recursion"),
    "classes": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
    "a shell": ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", "unsafe"),
    "globals": ("{{ raise_exception.__globals__.keys() }}", "undefined|unsafe"),
    "self": ("{{ strftime_now.__self__.mro() }}", "undefined|unsafe"),
    "a file": ("{% include '/etc/passwd' %}", "no loader"),
    "changes": ("{{ messages.append(1) }}", "unsafe"),
    "is none": ("{% if %}", "Expected an expression"),
    "tells in lines": ("{{ raise_exception('no\nuser') }}", "no$"),
}


# Both of these take all the seconds that they get; one of them is enough by day.
LATE = {"loops"}


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "what",
    [pytest.param(x, marks=[pytest.mark.nightly] * (x in LATE)) for x in ATTACKS],
)
def test_a_template_that(what):
    template, told = ATTACKS[what]
    began = time.monotonic()
    with pytest.raises(ValueError, match=told) as raised:
        render(template)
    assert time.monotonic() - began < SECONDS + 5
    assert CPU_SECONDS < SECONDS
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_what_a_template_does_not_reach():
    """Neither names of this process nor of the one that renders."""
    assert render("{{ TALK }}{{ os }}{{ environment }}") == ""

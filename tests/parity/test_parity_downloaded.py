"""A folder that transformers has written, asked by us and by them: the same text."""

import json

import pytest
import torch

from tformer import greedy
from tformer.data.chat import render_chat
from tformer.runs.model import load_trained

transformers = pytest.importorskip("transformers")
downloaded = pytest.importorskip("downloaded_folders")

TALK = [{"role": "user", "content": "The cat <sat> on\n the mat – é."}]
TOKENS = {"bos_token": "<s>", "eos_token": "<|end|>"}
TEMPLATES = {
    "ours": downloaded.TEMPLATE,
    "blocks": "{{ bos_token }}\n{% for m in messages %}\n  {% generation %}\n"
    "{{ m.content | trim }}\n  {% endgeneration %}\n{% if loop.last %}\n"
    "    {% break %}\n{% endif %}\n{% endfor %}\n{{ eos_token }}",
    "json": "{{ messages | tojson }} {{ messages | tojson(indent=2) }}"
    "{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_writes_the_same(name):
    from transformers.utils.chat_template_utils import render_jinja_template

    template = TEMPLATES[name]
    (wanted,), _ = render_jinja_template(
        [TALK], chat_template=template, add_generation_prompt=True, **TOKENS
    )
    assert render_chat(template, TALK, TOKENS) == wanted


@pytest.mark.parametrize("start", [None, "<|start|>"])
@pytest.mark.parametrize("chat", [False, True])
def test_the_same_ids_and_the_same_text(tmp_path, start, chat):
    raw = downloaded.train_tokenizer()
    if start is not None:
        downloaded.begin_with(raw, start)
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|end|>", bos_token=start
    )
    theirs.chat_template = downloaded.TEMPLATE
    config = transformers.Qwen3Config(
        **downloaded.config_of("qwen3", len(theirs) + 3), pad_token_id=0
    )
    torch.manual_seed(0)
    model = transformers.Qwen3ForCausalLM(config).double().eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    ends = [raw.token_to_id("<|end|>"), raw.token_to_id(" cat")]
    model.generation_config.eos_token_id = [x for x in ends if x is not None]
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    theirs.save_pretrained(folder)
    text = "The dog lay – é"
    if chat:
        said = [{"role": "user", "content": text}]
        asked = theirs.apply_chat_template(
            said, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )["input_ids"]
    else:
        asked = theirs(text, return_tensors="pt")["input_ids"]
    ours = load_trained(folder)
    words = ours.words
    ids = words.chat(text) if chat else words.tokenizer.encode(text, bos=True)
    assert ids == asked[0].tolist()
    given = json.loads((folder / "generation_config.json").read_text())
    assert [*words.stops] == given["eos_token_id"]
    options = {"do_sample": False, "max_new_tokens": 12, "pad_token_id": 0}
    wanted = model.generate(asked, **options)[0, len(ids) :]
    written = greedy(ours.model, [ids], max_len=12, eos_id=words.stops)[0]
    assert written.tolist() == wanted.tolist()
    both = theirs.decode(asked[0], skip_special_tokens=True)
    whole = theirs.decode([*ids, *wanted.tolist()], skip_special_tokens=True)
    after = words.continued(ids, written.tolist(), words.stops)
    assert both + after == whole

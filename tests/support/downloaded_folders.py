"""Folders as one downloads them: a tiny GPT-2 and a tiny Qwen3, made here."""

import json

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from tformer.models.families import family_of

TEXT = "The cat sat on the mat. The dog lay on the rug, and the cat slept.\n" * 20
SPECIAL = ["<|start|>", "<|end|>", "<|stop|>"]
TEMPLATE = """{%- for message in messages %}
{{- '<|start|>' + message['role'] + '\\n' + message['content'] + eos_token }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}"""
LLAMA = {
    "attention_norm.": "input_layernorm.",
    "feed_forward_norm.": "post_attention_layernorm.",
    "attention.out_proj": "self_attn.o_proj",
    "attention.": "self_attn.",
    "feed_forward.": "mlp.",
    "blocks.": "model.layers.",
    "embedding.": "model.embed_tokens.",
    "output.": "lm_head.",
}
GPT2 = {
    "attention_norm.": "ln_1.",
    "feed_forward_norm.": "ln_2.",
    "attention.out_proj": "attn.c_proj",
    "feed_forward.linear1": "mlp.c_fc",
    "feed_forward.linear2": "mlp.c_proj",
    "blocks.": "transformer.h.",
    "embedding.": "transformer.wte.",
    "positions.": "transformer.wpe.",
}


def their_state(model, kind):
    """Name a model's weights as Hugging Face does; in GPT-2 they are turned, too."""
    own, state = model.state_dict(), {}
    gpt2 = kind == "gpt2"
    for name, x in own.items():
        if gpt2 and "q_proj" in name:
            x = torch.cat(
                [own[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            )
            name = name.replace("attention.q_proj", "attn.c_attn")
        elif gpt2 and ("k_proj" in name or "v_proj" in name):
            continue
        x = x.t() if gpt2 and name.startswith("blocks.") and x.ndim == 2 else x
        last = "transformer.ln_f." if gpt2 else "model.norm."
        name = name.replace("norm.", last) if name.startswith("norm.") else name
        for ours, theirs in (GPT2 if gpt2 else LLAMA).items():
            name = name.replace(ours, theirs)
        state[name] = x
    return state


def train_tokenizer():
    """Learn pieces of the text; the special tokens stand after them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=290, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def begin_with(tokenizer, token):
    """Let a tokenizer put a start token before each text."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{token} $A", special_tokens=[(token, tokenizer.token_to_id(token))]
    )


def config_of(kind, vocab_size):
    if kind == "gpt2":
        sizes = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 64}
    else:
        sizes = {"hidden_size": 12, "intermediate_size": 14, "num_hidden_layers": 2}
        sizes |= {"num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 10}
        sizes |= {"tie_word_embeddings": True, "max_position_embeddings": 96}
    return {"model_type": kind, "vocab_size": vocab_size, **sizes}


def write_json(path, values):
    path.write_text(json.dumps(values), "utf-8")


def download(folder, kind="qwen3", dtype=torch.float32, start=None, more_ids=3):
    """Write a folder as one downloads it, with random weights."""
    folder.mkdir()
    tokenizer = train_tokenizer()
    size = tokenizer.get_vocab_size()
    if start is not None:
        begin_with(tokenizer, start)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = config_of(kind, size + more_ids)
    write_json(folder / "config.json", config)
    torch.manual_seed(1)
    model = family_of(config).build(config).to(dtype)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    state = {name: x.contiguous() for name, x in their_state(model, kind).items()}
    save_file(state, folder / "model.safetensors")
    ends = [tokenizer.token_to_id(each) for each in SPECIAL[1:]]
    write_json(folder / "generation_config.json", {"eos_token_id": ends})
    words = {"bos_token": None, "eos_token": {"content": "<|end|>", "special": True}}
    write_json(folder / "tokenizer_config.json", words)
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    return folder

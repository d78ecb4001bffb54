"""From a config to a model and back; weights under the names of older versions."""

import pytest
import torch

from tformer import BERTConfig, CausalLM, TransformerConfig
from tformer.models import build_model, config_of, names_of_today
from tformer.models.families import gpt2
from tformer.nn import TokenEmbedding, transformer_block

BERT = BERTConfig.tiny(vocab_size=13, num_layers=1)
STACKS = TransformerConfig.tiny(
    vocab_size=13, num_encoder_layers=1, num_decoder_layers=1, norm_first=True
)
CONFIGS = {
    "BERT": {"model_type": "bert", **vars(BERT)},
    "Transformer": {"model_type": "transformer", **vars(STACKS)},
    "GPT": {"model_type": "tformer", "num_layers": 1, "vocab_size": 13},
    "GPT-2": {"model_type": "gpt2", **gpt2.SIZES["tiny"]},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_is_made_again_of_its_config(name):
    model = build_model(CONFIGS[name])
    config = config_of(model)
    assert {n: config[n] for n in CONFIGS[name]} == CONFIGS[name]
    again = build_model(config)
    assert type(again) is type(model)
    assert config_of(again) == config
    again.load_state_dict(model.state_dict())


def test_a_model_put_together_by_hand_has_no_config(raises):
    model = CausalLM(
        TokenEmbedding(5, 4), [transformer_block(4, 1, 3)], None, max_len=3
    )
    with raises(ValueError, "model (CausalLM) was built without a config"):
        config_of(model)


def test_a_model_of_given_parts_leaves_them_as_they_are():
    model = build_model(CONFIGS["GPT"])
    before = {name: p.clone() for name, p in model.named_parameters()}
    again = CausalLM(model.embedding, model.blocks, model.norm, max_len=9)
    assert all(torch.equal(p, before[name]) for name, p in again.named_parameters())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logit_cap": 0.0}, "logit_cap (0.0) must be above 0 and finite"),
        ({"pad_id": 13}, "pad_id (13) must be in [0, vocab_size = 13)"),
        ({"pad_id": -1}, "pad_id (-1) must be in [0, vocab_size = 13)"),
    ],
)
def test_bad_values_of_a_model_put_together_by_hand(changes, message, raises):
    parts = build_model(CONFIGS["GPT"])
    with raises(ValueError, message):
        CausalLM(parts.embedding, parts.blocks, None, max_len=3, **changes)


@pytest.mark.parametrize("name", ["BERT", "Transformer"])
def test_padding_is_what_the_model_says(name):
    model, ids = build_model(CONFIGS[name]).eval(), torch.tensor([[7, 5, 3, 3]])
    other = [] if name == "BERT" else [ids]
    model.pad_id = 3
    key_mask = {"key_mask" if name == "BERT" else "src_key_mask": ids != 3}
    assert torch.equal(model(ids, *other), model(ids, *other, **key_mask))


def test_bad_configs(raises):
    bert = CONFIGS["BERT"]
    with raises(ValueError, "config has an unknown 'depth'"):
        build_model({**bert, "depth": 3})
    with raises(ValueError, "config lacks 'd_model'"):
        build_model({name: bert[name] for name in bert.keys() - {"d_model"}})
    with pytest.raises(ValueError, match=r"model_type .None. must be one of gpt2, "):
        build_model({"vocab_size": 3})


def test_a_bert_in_the_words_of_either():
    older = {n: x for n, x in CONFIGS["BERT"].items() if n not in ("head", "pooler")}
    assert build_model(older).config == BERT
    theirs = {"model_type": "bert", "hidden_size": 24, "num_hidden_layers": 1}
    theirs |= {"vocab_size": 13, "num_attention_heads": 3, "intermediate_size": 17}
    model = build_model(theirs)
    assert (model.config.d_model, model.config.d_ff, model.pooler) == (24, 17, None)


def of_a_layer(stack, *, crosses=False, norms=True):
    """The names of a layer as versions before had them, and today's."""
    pairs = {}
    attentions = {"self_attn": "attention"}
    if crosses:
        attentions["cross_attn"] = "cross_attention"
    for old, new in attentions.items():
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            pairs[f"{old}.{part}"] = f"{new}.{part}"
        pairs[f"{old}_residual.norm"] = f"{new}_norm"
    for part in ("linear1", "linear2"):
        pairs[f"feed_forward.{part}"] = f"feed_forward.{part}"
    pairs["feed_forward_residual.norm"] = "feed_forward_norm"
    today = f"{stack}.".replace("stack.", "")
    pairs = {f"{stack}.layers.0.{o}": f"{today}blocks.0.{n}" for o, n in pairs.items()}
    if norms:
        pairs[f"{stack}.norm"] = f"{today}norm"
    return pairs


OLD = {
    "GPT": of_a_layer("stack"),
    "BERT": {
        old: f"encoder.{new}" for old, new in of_a_layer("stack", norms=False).items()
    },
    "Transformer": {**of_a_layer("encoder"), **of_a_layer("decoder", crosses=True)},
}


@pytest.mark.parametrize("name", OLD)
@pytest.mark.parametrize("before", ["", "model.", "optimizer.state."])
def test_weights_of_an_older_version_get_the_names_of_today(name, before):
    own = build_model(CONFIGS[name]).state_dict()
    renamed = {
        f"{before}{old}.{kind}": f"{before}{new}.{kind}"
        for old, new in OLD[name].items()
        for kind in ("weight", "bias")
    }
    assert {new.removeprefix(before) for new in renamed.values()} <= own.keys()
    inside = [n for n in own if n.partition(".")[0] in ("blocks", "encoder", "decoder")]
    assert {f"{before}{n}" for n in inside} <= {*renamed.values()}  # all of them
    kept = {f"{before}{n}": n for n in own} | {"optimizer.step": "7"}
    old = renamed | {n: n for n in kept if n not in renamed.values()}
    today = names_of_today(old, {f"{before}{n}" for n in own})
    assert today.keys() == kept.keys()
    assert all(today[new] == new for new in today)


def test_a_name_that_is_nobodys_stays():
    own = {"blocks.0.attention.q_proj.weight"}
    state = {"layers.9.self_attn.q_proj.weight": torch.ones(1)}
    assert names_of_today(state, own) == state

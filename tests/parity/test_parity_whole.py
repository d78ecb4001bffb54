"""Whole models that turn in a way of their own: Llama 3.1 and Gemma 3."""

import pytest

transformers = pytest.importorskip("transformers")

from test_parity_block import (  # noqa: E402
    SIZES,
    compare,
    in_float64,  # noqa: F401
    loaded,
    no_gradients,  # noqa: F401
)

LLAMA = {"rope_type": "llama3", "rope_theta": 20.0, "factor": 8.0}
LLAMA |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA |= {"original_max_position_embeddings": 40}  # and some pairs are mixed
OURS = {"base": 20.0, "scaling": "llama3", "scale": 8.0, "trained_len": 40}
FAR = 1e-6  # a mistake is off by more


@pytest.mark.usefixtures("in_float64")
def test_llama_3_1():
    config = transformers.LlamaConfig(**SIZES, rope_parameters=LLAMA)
    theirs = transformers.LlamaForCausalLM(config)
    _, ids, wanted = compare(theirs, rotary=OURS)
    for mistake in (
        {"base": 20.0},
        OURS | {"scaling": "linear", "trained_len": None},
        OURS | {"trained_len": 64},
        OURS | {"low": 2.0},
        OURS | {"high": 8.0},
    ):
        wrong = loaded(theirs, rotary=mistake)
        assert (wrong(ids) - wanted).abs().max() > FAR, mistake


@pytest.mark.usefixtures("in_float64")
def test_gemma_3():
    config = transformers.Gemma3TextConfig(
        **SIZES,
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            "full_attention": {
                "rope_type": "linear",
                "rope_theta": 10_000.0,
                "factor": 8.0,
            },
        },
        head_dim=10,
        query_pre_attn_scalar=7,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention"] * 2,
    )
    parts = {
        "norm": "rms_plus_one",
        "placement": "sandwich",
        "feed_forward": "geglu_tanh",
        "qk_norm": True,
        "window": 5,
        "global_every": 2,
        "score_scale": 7.0**-0.5,
        "scale_embedding": True,
    }
    rotary = {"base": 1e4, "local_base": 100.0, "scaling": "linear", "scale": 8.0}
    theirs = transformers.Gemma3ForCausalLM(config)
    ours, ids, wanted = compare(theirs, **parts, rotary=rotary)
    assert [block.attention.window for block in ours.blocks] == [5, None, 5, None]
    for mistake in (
        rotary | {"local_base": None},
        rotary | {"local_base": 1e4},
        rotary | {"scale": 4.0},
    ):
        wrong = loaded(theirs, **parts, rotary=mistake)
        assert (wrong(ids) - wanted).abs().max() > FAR, mistake

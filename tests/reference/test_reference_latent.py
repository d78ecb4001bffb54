import numpy as np
import pytest

import tformer
from tformer import reference
from tformer.nn.latent import LatentAttention
from tformer.nn.rotary import RotaryEmbedding, rotary_frequencies

B, T, D, H = 2, 5, 14, 3


def built(parity, layout="pairs", **options):
    rotary = RotaryEmbedding(rotary_frequencies(4), layout=layout)
    sizes = {"kv_rank": 7, "head_dim": 5, "value_dim": 2}
    return parity.module(LatentAttention(D, H, rotary=rotary, **sizes, **options))


@pytest.mark.parametrize("absorbed", [False, True, None])
@pytest.mark.parametrize(
    "options",
    [{}, {"q_rank": 8}, {"scale": 0.9}, {"eps": 0.3, "layout": "halves"}],
)
def test_latent_attention(parity, absorbed, options):
    module = built(parity, absorbed=absorbed, **options)
    twin = reference.from_torch(module)
    assert isinstance(twin, reference.LatentAttention)
    assert twin.absorbed is bool(absorbed)
    array, tensor = parity.numbers(B, T, D)
    parity.same(twin(array), module(tensor))
    parity.same(twin.to_keep(array), module.to_keep(tensor, 0))
    parity.same(twin.queries(array), module.queries(tensor, 0))
    with (
        reference.record_weights(twin) as weights,
        tformer.record_weights(module) as theirs,
    ):
        twin(array), module(tensor)
    parity.same(weights[twin], theirs[module])


def test_the_forms_are_equal(new_parity):
    parity = new_parity()
    twin = reference.from_torch(built(parity, q_rank=8))
    query, kept = twin.queries(x := parity.numbers(B, T, D)[0]), twin.to_keep(x)
    naive, absorbed = twin.naive_form(query, kept), twin.absorbed_form(query, kept)
    np.testing.assert_allclose(absorbed, naive, rtol=0, atol=1e-13)


def test_a_norm_without_its_matrix(new_parity):
    twin = reference.from_torch(built(new_parity(), q_rank=8))
    state = {
        f"{name}.weight": getattr(twin, name).weight
        for name in ("q_proj", "q_norm", "kv_down", "kv_norm", "kv_up", "out_proj")
    }
    with pytest.raises(ValueError, match="weights must be of weight, bias; missing: w"):
        reference.LatentAttention(state, H, twin.rotary)
    del state["kv_up.weight"]
    with pytest.raises(ValueError, match="missing: kv_up"):
        reference.LatentAttention(state, H, twin.rotary)

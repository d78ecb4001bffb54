import inspect

import numpy as np
import pytest
import torch

import tformer
from tformer.nn.positions import sinusoidal_positions
from tformer.reference import (
    EncoderDecoder,
    TokenEmbedding,
    Transformer,
    from_torch,
    record_weights,
)

B, S, T, V, H = 2, 7, 5, 17, 3
SIZES = {"vocab_size": V, "d_model": 12, "num_heads": H, "d_ff": 11, "max_len": 13}
LAYERS = {"num_encoder_layers": 2, "num_decoder_layers": 3}

CHOICES = [
    {},
    {"positions": "learned"},
    {"tie_embeddings": False},
    {"tgt_vocab_size": 19},
    {"tgt_vocab_size": 19, "tie_embeddings": False, "positions": "learned"},
    {"norm_first": True, "activation": "gelu", "eps": 0.01},
    {"num_kv_heads": 1, "bias": False, "pad_id": None, "dropout": 0.5},
]


def build(parity, **choice):
    config = tformer.TransformerConfig(**{**SIZES, **LAYERS, **choice})
    module = parity.module(tformer.Transformer(config))
    for positions in (module.src_positions, module.tgt_positions):
        if config.positions == "sinusoidal":  # whose table is else rounded to float32
            exact = sinusoidal_positions(config.max_len, config.d_model)
            positions.table = exact.to(getattr(torch, parity.dtype))
    return module, from_torch(module)


def draw(parity, tgt_vocab_size=V):
    return zip(parity.ids(V, B, S), parity.ids(tgt_vocab_size, B, T), strict=True)


@pytest.mark.parametrize("choice", CHOICES)
def test_transformer(parity, choice):
    module, twin = build(parity, **choice)
    target = choice.get("tgt_vocab_size", V)
    arrays, tensors = draw(parity, target)
    arrays[0][:, -2:] = 0  # padding
    tensors[0][:, -2:] = 0
    logits = twin(*arrays)
    parity.same(logits, module(*tensors))
    assert logits.shape == (B, T, target)
    with record_weights(twin) as weights:
        twin(*arrays)
    hidden = choice.get("pad_id", 0) == 0
    across = weights["decoder.layers.0.cross_attn"]
    assert (across[..., -2:].max() == 0) == hidden


def test_as_it_comes(new_parity):
    """The module's own table of sinusoids is in float32: equal to 1e-6 all the same."""
    parity = new_parity()
    config = tformer.TransformerConfig(**SIZES, **LAYERS)
    module = parity.module(tformer.Transformer(config))
    arrays, tensors = draw(parity)
    parity.same(from_torch(module)(*arrays), module(*tensors), 1e-6)


def test_key_masks(parity):
    module, twin = build(parity)
    arrays, tensors = draw(parity)
    source, source_tensor = parity.mask(B, S)
    target, target_tensor = parity.mask(B, T)
    plain = twin(*arrays)
    masked = twin(*arrays, src_key_mask=source, tgt_key_mask=target)
    expected = module(*tensors, src_key_mask=source_tensor, tgt_key_mask=target_tensor)
    parity.same(masked, expected)
    assert np.abs(masked - plain).max() > 1e-3
    assert np.abs(twin(*arrays, src_key_mask=source) - masked).max() > 1e-3


def test_encode_and_decode_are_the_whole(parity):
    module, twin = build(parity)
    (src, tgt), (src_tensor, tgt_tensor) = draw(parity)
    mask, mask_tensor = parity.mask(B, S)
    memory = twin.encode(src, src_key_mask=mask)
    parity.same(memory, module.encode(src_tensor, src_key_mask=mask_tensor))
    logits = twin.decode(tgt, memory, memory_key_mask=mask)
    left, left_tensor = parity.mask(B, T)
    parity.same(
        twin.decode(tgt, memory, tgt_key_mask=left, memory_key_mask=mask),
        module.decode(
            tgt_tensor,
            torch.tensor(memory),
            tgt_key_mask=left_tensor,
            memory_key_mask=mask_tensor,
        ),
    )
    np.testing.assert_array_equal(logits, twin(src, tgt, src_key_mask=mask))
    unmasked = module.decode(tgt_tensor, torch.tensor(memory))
    parity.same(twin.decode(tgt, memory), unmasked)
    parity.same(twin.encode(src), module.encode(src_tensor))


@pytest.mark.parametrize("norm_first", [False, True])
def test_stacks_alone(parity, norm_first):
    sizes = (12, H, 11)
    module = tformer.EncoderDecoder(
        tformer.Encoder(*sizes, 2, norm_first=norm_first),
        tformer.Decoder(*sizes, 3, activation="gelu"),
    )
    twin = from_torch(parity.module(module))
    assert isinstance(twin, EncoderDecoder)
    inputs = [parity.numbers(B, S, 12), parity.numbers(B, T, 12), parity.mask(T, T)]
    arrays, tensors = zip(*inputs, strict=True)
    drawn = {"src_mask": parity.mask(S, S), "memory_mask": parity.mask(B, 1, 1, S)}
    array_masks, tensor_masks = ({n: m[i] for n, m in drawn.items()} for i in (0, 1))
    parity.same(
        twin(*arrays, **array_masks, is_causal=True),
        module(*tensors, **tensor_masks, is_causal=True),
    )
    parity.same(twin(*arrays[:2]), module(*tensors[:2]))


@pytest.mark.parametrize("scale", [True, False])
def test_embedding(parity, scale):
    module = parity.module(tformer.TokenEmbedding(V, 11, scale=scale))
    twin = from_torch(module)
    ids, ids_tensor = parity.ids(V, B, T)
    x, x_tensor = parity.numbers(B, T, 11)
    parity.same(twin(ids), module(ids_tensor))
    parity.same(twin(ids.astype("int32")), module(ids_tensor))
    parity.same(twin.logits(x), module.logits(x_tensor))
    assert isinstance(twin, TokenEmbedding)
    assert twin(ids).shape == (B, T, 11)


@pytest.mark.parametrize(
    ("twin", "original"),
    [
        (Transformer.__call__, tformer.Transformer.forward),
        (Transformer.encode, tformer.Transformer.encode),
        (Transformer.decode, tformer.Transformer.decode),
        (EncoderDecoder.__call__, tformer.EncoderDecoder.forward),
    ],
)
def test_arguments_are_those_of_the_original(twin, original):
    of_original = inspect.signature(original).parameters
    without_cache = [name for name in of_original if name != "cache"]
    assert list(inspect.signature(twin).parameters) == without_cache


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[0, 17]], "ids must be in [0, vocab_size = 17), but they reach from 0 to 17"),
        ([[-1, 2]], "but they reach from -1 to 2"),
    ],
)
def test_bad_ids(same_error, ids, message):
    module = tformer.TokenEmbedding(V, 11)
    twin = from_torch(module)
    same_error(
        lambda: twin(np.array(ids)),
        lambda: module(torch.tensor(np.array(ids))),
        ValueError,
        message,
    )


def test_ids_of_another_type():
    twin = from_torch(tformer.TokenEmbedding(V, 11))
    with pytest.raises(TypeError, match="ids must be integers, not float64"):
        twin(np.zeros((B, T)))
    with pytest.raises(TypeError, match="ids must be integers, not bool"):
        twin(np.zeros((B, T), dtype=bool))
    with pytest.raises(AttributeError):
        twin(torch.zeros(B, T, dtype=torch.int64))


@pytest.mark.parametrize("shape", [(T,), (B, 0), (B, T, 1)])
def test_ids_of_another_shape(new_parity, shape):
    """They do not get past the positions."""
    _, twin = build(new_parity())
    src, tgt = np.ones((B, S), dtype=int), np.ones(shape, dtype=int)
    with pytest.raises((ValueError, TypeError)):
        twin(src, tgt)
    with pytest.raises((ValueError, TypeError)):
        twin(tgt, src)


def test_two_batch_sizes(new_parity, both_refuse):
    module, twin = build(new_parity("float32"))
    for src_rows, tgt_rows in ((2, 3), (1, 2), (2, 1)):
        src = np.ones((src_rows, S), dtype=int)
        tgt = np.ones((tgt_rows, T), dtype=int)
        both_refuse(
            lambda src=src, tgt=tgt: twin(src, tgt),
            lambda src=src, tgt=tgt: module(torch.tensor(src), torch.tensor(tgt)),
            f"key has batch {src_rows} but query has {tgt_rows}",
        )


def test_a_key_mask_of_one_row(new_parity, same_error):
    module, twin = build(new_parity())
    (src, tgt), (src_tensor, tgt_tensor) = draw(new_parity())
    one, one_tensor = np.ones((1, S), dtype=bool), torch.ones(1, S, dtype=torch.bool)
    same_error(
        lambda: twin(src, tgt, src_key_mask=one),
        lambda: module(src_tensor, tgt_tensor, src_key_mask=one_tensor),
        ValueError,
        "src_key_mask must be (B, S) = (2, 7), not (1, 7)",
    )


def test_longer_than_learned_positions(new_parity, same_error):
    module, twin = build(new_parity("float32"), positions="learned", max_len=6)
    src, tgt = np.ones((B, S), dtype=int), np.ones((B, T), dtype=int)
    same_error(
        lambda: twin(src, tgt),
        lambda: module(torch.tensor(src), torch.tensor(tgt)),
        ValueError,
        "x needs positions up to 7 but max_len is 6",
    )


def test_the_weights_say_what_there_is(new_parity):
    """Layers, vocabularies, what is shared or learned: none is told twice."""
    parity = new_parity()
    choice = {"tgt_vocab_size": 19, "tie_embeddings": False, "positions": "learned"}
    module, twin = build(parity, **choice)
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    arrays, _ = draw(parity)
    by_defaults = tformer.TransformerConfig(**SIZES)
    same = Transformer(weights, by_defaults)
    np.testing.assert_array_equal(same(*arrays), twin(*arrays))


@pytest.mark.parametrize("removed", ["encoder", "decoder", "src_embedding"])
def test_weights_that_are_missing(new_parity, removed):
    module, _ = build(new_parity())
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    less = {n: w for n, w in weights.items() if not n.startswith(removed)}
    with pytest.raises(ValueError, match=f"missing: {removed}; unknown: none"):
        Transformer(less, module.config)


def test_weights_of_another_model(new_parity):
    module, _ = build(new_parity())
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    more = {**weights, "stacks.encoder.norm.weight": np.ones(12)}
    with pytest.raises(ValueError, match="missing: none; unknown: stacks"):
        Transformer(more, module.config)


def test_a_shared_embedding_may_come_once(new_parity):
    parity = new_parity()
    module, twin = build(parity)
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    weights.pop("tgt_embedding.weight", None)
    arrays, _ = draw(parity)
    once = Transformer(weights, module.config)
    np.testing.assert_array_equal(once(*arrays), twin(*arrays))

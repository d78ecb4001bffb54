import inspect

import numpy as np
import pytest
import torch

import tformer
from tformer.nn.positions import sinusoidal_positions
from tformer.reference import (
    AttentionWeights,
    EncoderDecoder,
    TokenEmbedding,
    Transformer,
    from_torch,
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
    logits, weights = twin(*arrays, return_weights=True)
    expected, expected_weights = module(*tensors, return_weights=True)
    parity.same(logits, expected)
    parity.same(tuple(weights), tuple(expected_weights))
    parity.same(twin(*arrays), module(*tensors))
    assert logits.shape == (B, T, target)
    assert isinstance(weights, AttentionWeights)
    assert [w.shape for w in weights.encoder] == [(B, H, S, S)] * 2
    assert [w.shape for w in weights.decoder] == [(B, H, T, T)] * 3
    assert [w.shape for w in weights.cross] == [(B, H, T, S)] * 3
    hidden = choice.get("pad_id", 0) == 0
    assert (weights.cross[0][..., -2:].max() == 0) == hidden


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
    drawn = {
        "key_mask": parity.mask(B, T),
        "src_mask": parity.mask(S, S),
        "src_key_mask": parity.mask(B, S),
        "memory_mask": parity.mask(T, S),
    }
    array_masks, tensor_masks = ({n: m[i] for n, m in drawn.items()} for i in (0, 1))
    options = {"is_causal": True, "return_weights": True}
    output, weights = twin(*arrays, **array_masks, **options)
    expected, expected_weights = module(*tensors, **tensor_masks, **options)
    parity.same(output, expected)
    parity.same(tuple(weights), tuple(expected_weights))
    parity.same(twin(*arrays[:2]), module(*tensors[:2]))


def test_embedding(parity):
    module = parity.module(tformer.TokenEmbedding(V, 11))
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
    for_cache = {"cache", "tgt_key_mask"}  # padding on the left, while a model writes
    if original is tformer.Transformer.decode:
        of_original = [name for name in of_original if name not in for_cache]
    assert list(inspect.signature(twin).parameters) == list(of_original)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[0, 17]], "ids must be in [0, vocab_size = 17), but they reach from 0 to 17"),
        ([[-1, 2]], "but they reach from -1 to 2"),
        ([0, 1], "ids must be (batch, length) and not empty, not (2,)"),
        (np.zeros((2, 0), dtype=int), "and not empty, not (2, 0)"),
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
    with pytest.raises(TypeError, match="ids must be a NumPy array, not Tensor"):
        twin(torch.zeros(B, T, dtype=torch.int64))


def test_two_batch_sizes(new_parity, same_error):
    module, twin = build(new_parity("float32"))
    src, tgt = np.ones((B, S), dtype=int), np.ones((3, T), dtype=int)
    same_error(
        lambda: twin(src, tgt),
        lambda: module(torch.tensor(src), torch.tensor(tgt)),
        ValueError,
        "src and tgt must have one batch size: src is (2, 7), tgt is (3, 5)",
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


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"vocab_size": 18},
            r"src_embedding.weight must be \(18, 12\), not \(17, 12\)",
        ),
        ({"tgt_vocab_size": 16}, r"tgt_embedding.weight must be \(16, 12\)"),
        ({"num_encoder_layers": 1}, "2 encoder layers but num_encoder_layers is 1"),
        ({"num_decoder_layers": 4}, "3 decoder layers but num_decoder_layers is 4"),
        ({"tie_embeddings": False}, "missing: output; unknown: none"),
        ({"positions": "learned"}, "missing: src_positions, tgt_positions"),
        ({"num_heads": 4, "num_kv_heads": 2}, r"k_proj.weight must be \(6, 12\)"),
    ],
)
def test_weights_of_another_model(new_parity, choice, message):
    module, _ = build(new_parity())
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    config = tformer.TransformerConfig(**{**SIZES, **LAYERS, **choice})
    with pytest.raises(ValueError, match=message):
        Transformer(weights, config)


def test_a_shared_embedding_may_come_once(new_parity):
    parity = new_parity()
    module, twin = build(parity)
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    del weights["tgt_embedding.weight"]
    arrays, _ = draw(parity)
    once = Transformer(weights, module.config)
    np.testing.assert_array_equal(once(*arrays), twin(*arrays))

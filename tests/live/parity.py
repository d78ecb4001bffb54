"""What the engine in the page computes, held to the package, number by number.

The package is asked by hooks: each module's output, and the steps of each attention. It
computes in float64, so that what is seen is the engine's own rounding, to float32.
"""

import base64
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page
from torch import Tensor, nn

from live_serving import LiveSite
from tformer import Transformer, save_checkpoint
from tformer.data.vocabulary import CharacterVocabulary
from tformer.nn import heads as of_heads
from tformer.nn.attention import attention_weights
from tformer.nn.block import Block
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.masks import causal_mask
from tformer.nn.positions import (
    SinusoidalPositionalEncoding,
    sinusoidal_positions,
)
from tformer.tasks.dates import date_examples

ASK = Path(__file__).with_name("parity.js").read_text("utf-8")
MAX_LEN = 11
BATCH = 10  # cases of one message


@dataclass(frozen=True)
class Case:
    """What the model reads, and what is changed in it."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    off: tuple[str, ...] = ()
    scale: float = 1.0
    positions: float = 1.0
    causal: bool = True
    whole: bool = False  # compare every step, and not only weights and logits

    def asked(self) -> dict[str, Any]:
        changes = {"off": self.off, "scale": self.scale, "positions": self.positions}
        changes["causal"] = self.causal
        given = {"source": self.source, "target": self.target, "whole": self.whole}
        return {**given, "changes": changes}


@dataclass
class Tolerance:
    """How far numbers may be apart: those of a step, logits, and attention weights."""

    steps: float = 1e-4
    logits: float = 1e-4
    weights: float = 1e-5
    largest: dict[str, float] = field(default_factory=dict)  # what was seen

    def check(self, name: str, ours: Tensor, theirs: Tensor, case: Case) -> None:
        assert ours.shape == theirs.shape, (name, ours.shape, theirs.shape)
        infinite = theirs.isinf()
        assert torch.equal(ours.isinf(), infinite), (name, "another mask", case)
        off = (ours - theirs).masked_fill(infinite, 0.0).abs()
        kind, allowed = "steps", torch.tensor(self.steps)
        if name.endswith(":weights"):
            kind, allowed = "weights", torch.tensor(self.weights)
        elif name == "logits":
            kind, allowed = "logits", torch.tensor(self.logits)
        else:  # float32 has seven digits: where numbers are large, so are differences
            allowed = self.steps * theirs.masked_fill(infinite, 0.0).abs().clamp(min=1)
        self.largest[kind] = max(self.largest.get(kind, 0.0), float(off.max()))
        assert bool((off <= allowed).all()), (name, float(off.max()), case)


def cases(
    count: int, model: Transformer, *, seed: int = 0, texts: Sequence[str] = ()
) -> list[Case]:
    """Draw inputs and ablations; the first quarter is unbroken."""
    draw = random.Random(seed)
    attentions = attention_names(model)
    vocab_size = model.src_embedding.vocab_size
    tgt_size = model.tgt_embedding.vocab_size
    drawn = []
    for i in range(count):
        source = [draw.randrange(3, vocab_size) for _ in range(draw.randint(1, 40))]
        if texts and i % 4 < 3:
            source = encode(texts[i % len(texts)])
        if i % 7 == 3:  # characters that the model never saw
            source[draw.randrange(len(source))] = 0
        target = [draw.randrange(3, tgt_size) for _ in range(draw.randint(0, 10))]
        case = Case((*source, 2), (1, *target), whole=i % 8 == 5)
        if i >= count // 4:
            share = draw.choice((0.0, 0.1, 0.5))
            heads = [f"{n}:{h}" for n in attentions for h in range(attentions[n])]
            case = Case(
                case.source,
                case.target,
                off=tuple(head for head in heads if draw.random() < share),
                scale=draw.choice((1.0, 1.0, 0.5, 4.0, draw.random())),
                positions=draw.choice((1.0, 1.0, 0.5, 0.0)),
                causal=draw.random() < 0.7,
                whole=case.whole,
            )
        drawn.append(case)
    return drawn


def date_texts(count: int) -> list[str]:
    return [example.text for example in date_examples(count, seed=5, split="test")]


def encode(text: str) -> list[int]:
    from tformer.pretrained import load_pretrained

    return load_pretrained("dates").vocabulary.encode(text)


def attention_names(model: nn.Module) -> dict[str, int]:
    """The attentions of a model, and how many heads each has."""
    named = model.named_modules()
    return {n: m.num_heads for n, m in named if isinstance(m, MultiHeadAttention)}


@contextmanager
def changed(model: Transformer, case: Case) -> Iterator[dict[str, Tensor]]:
    """Change the package's model as a case says; yield what its modules compute."""
    kept: dict[str, Tensor] = {}
    running: list[str] = []  # the name of the attention that runs
    handles: list[Any] = []

    def enter(name: str, _: nn.Module, __: Any) -> None:
        running[:] = [name]

    def keep(name: str, _: nn.Module, __: Any, output: Tensor) -> None:
        kept[name] = output[0]

    def move(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return args[0] + case.positions * (output - args[0])

    def see(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        return args, {**kwargs, "is_causal": case.causal}

    handles.append(model.decoder.register_forward_pre_hook(see, with_kwargs=True))
    for name, module in model.named_modules():
        if isinstance(module, SinusoidalPositionalEncoding):
            handles.append(module.register_forward_hook(move))
        if isinstance(module, MultiHeadAttention):
            handles.append(module.register_forward_pre_hook(partial(enter, name)))
        if isinstance(module, Block):
            handles += keep_sums(name, module, kept)
        if name and not isinstance(module, TokenEmbedding):
            handles.append(module.register_forward_hook(partial(keep, name)))
    for side in ("src", "tgt"):  # which share an embedding
        positions = getattr(model, f"{side}_positions")
        hook = partial(keep_input, kept, f"{side}_embedding")
        handles.append(positions.register_forward_pre_hook(hook))
    kernel = of_heads.scaled_dot_product_attention
    of_heads.scaled_dot_product_attention = partial(attend, kept, running, case)
    yield kept
    of_heads.scaled_dot_product_attention = kernel
    for handle in handles:
        handle.remove()


def keep_input(
    kept: dict[str, Tensor], name: str, _: nn.Module, args: tuple[Tensor, ...]
) -> None:
    kept[name] = args[0][0]


def keep_sums(name: str, block: Block, kept: dict[str, Tensor]) -> list[Any]:
    """Keep the sum after each sub-layer of a block."""
    parts = ["attention", "feed_forward"]
    if block.cross_attention is not None:
        parts.insert(1, "cross_attention")
    sums = [f"{name}.after_{part}" for part in parts]

    def behind(which: str, _: nn.Module, __: Any, output: Tensor) -> None:
        kept[which] = output[0]

    handles: list[Any] = [block.register_forward_hook(partial(behind, sums[-1]))]
    for which, part, following in zip(sums, parts, parts[1:], strict=False):
        if block.placement == "pre":  # the norm of the next sub-layer gets the sum
            norm = getattr(block, f"{following}_norm")
            hook = partial(keep_input, kept, which)
            handles.append(norm.register_forward_pre_hook(hook))
        else:
            norm = getattr(block, f"{part}_norm")
            handles.append(norm.register_forward_hook(partial(behind, which)))
    hook = partial(keep_input, kept, f"{name}.feed_forward.hidden")
    handles.append(block.feed_forward.linear2.register_forward_pre_hook(hook))
    return handles


def attend(
    kept: dict[str, Tensor],
    running: list[str],
    case: Case,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    *,
    is_causal: bool,
    **_: Any,
) -> Tensor:
    """Attend as the package does, and keep the steps."""
    (name,) = running
    scale = case.scale * query.shape[3] ** -0.5
    options: dict[str, Any] = {"is_causal": is_causal, "scale": scale}
    weights = attention_weights(query, key, attn_mask, **options)
    heads = weights @ value.repeat_interleave(query.shape[1] // value.shape[1], 1)
    gone = [h for h in range(query.shape[1]) if f"{name}:{h}" in case.off]
    heads[:, gone] = 0.0
    scores = query @ key.repeat_interleave(query.shape[1] // key.shape[1], 1).mT
    masked = scaled = scale * scores
    if attn_mask is not None:
        masked = masked.masked_fill(~attn_mask, -torch.inf)
    if is_causal:
        masked = masked.masked_fill(~causal_mask(*masked.shape[2:]), -torch.inf)
    steps = {"query": query, "key": key, "value": value, "scores": scores}
    steps |= {"scaled": scaled, "masked": masked, "weights": weights, "heads": heads}
    kept |= {f"{name}:{step}": x[0] for step, x in steps.items()}
    kept[f"{name}:joined"] = heads.transpose(1, 2).flatten(2)[0]
    return heads


@cache
def compared(model: Transformer, case: Case) -> dict[str, Tensor]:
    """What is compared of a case: every step, or only weights and logits. It is kept,
    for the second browser is asked the same."""
    theirs = expected(model, case)
    if case.whole:
        return theirs
    return {n: x for n, x in theirs.items() if n.endswith(":weights") or n == "logits"}


@torch.no_grad()
def expected(model: Transformer, case: Case) -> dict[str, Tensor]:
    """Every number of the package on the way to the logits."""
    with changed(model, case) as kept:
        logits = model(torch.tensor([case.source]), torch.tensor([case.target]))[0]
    kept |= {"logits": logits, "probabilities": logits.softmax(-1)}
    return {name: x for name, x in kept.items() if not name.endswith("dropout")}


@cache
@torch.no_grad()
def choices(model: Transformer, case: Case, ids: tuple[int, ...]) -> Tensor:
    """The logits from which the package chooses each token after those written."""
    src, read = torch.tensor([case.source]), torch.tensor([[1, *ids]])
    with changed(model, case):
        mask = model.source_mask(src)
        memory = model.encode(src)
        # With the mask, one pass over all shows what each step has seen.
        ends = [len(ids) + 1] if case.causal else range(1, len(ids) + 2)
        passes = [model.decode(read[:, :n], memory, memory_key_mask=mask) for n in ends]
    return passes[0][0] if case.causal else torch.stack([x[0, -1] for x in passes])


def check_written(model: Transformer, case: Case, ids: list[int], gap: float) -> None:
    """Hold a text to the package's choices: the likeliest token, up to equal ones."""
    assert 1 <= len(ids) <= MAX_LEN
    assert ids[-1] == 2 or len(ids) == MAX_LEN
    assert 2 not in ids[:-1]
    logits = choices(model, case, tuple(ids[:-1]))
    behind = logits.amax(-1) - logits[range(len(ids)), ids]
    assert bool((behind <= gap).all()), (ids, behind, case)


def check_parity(
    page: Page, name: str, model: Transformer, asked: list[Case], allowed: Tolerance
) -> None:
    """Ask the engine in a page and the package the same, and compare all of it."""
    seen: set[str] = set()
    model = exact(model)
    for start in range(0, len(asked), BATCH):
        some = asked[start : start + BATCH]
        given = {"name": name, "cases": [case.asked() for case in some]}
        for case, answer in zip(some, page.evaluate(ASK, given), strict=True):
            theirs = compared(model, case)
            numbers = answer["numbers"]
            if case.whole:
                assert set(numbers) == set(theirs), set(numbers) ^ set(theirs)
            for step, packed in numbers.items():
                allowed.check(step, unpacked(packed), theirs[step], case)
            seen |= set(numbers)
            check_written(model, case, answer["ids"], 2 * allowed.logits)
    assert {f"{n}:weights" for n in attention_names(model)} | {"logits"} <= seen


@cache
def exact(model: Transformer) -> Transformer:
    """The same model in float64; its positions are not rounded either."""
    other = Transformer(replace(model.config, max_len=1)).double().eval()
    other.load_state_dict({n: x.double() for n, x in model.state_dict().items()})
    for positions in (other.src_positions, other.tgt_positions):
        positions._table = sinusoidal_positions(64, model.config.d_model)
    return other


def unpacked(packed: dict[str, Any]) -> Tensor:
    data = bytearray(base64.b64decode(packed["data"]))
    return torch.frombuffer(data, dtype=torch.float32).view(packed["shape"]).double()


def publish(site: LiveSite, name: str, model: Transformer, folder: Path) -> None:
    """Serve a model of a test under a name."""
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + model.config.vocab_size - 3)))
    vocabulary = CharacterVocabulary(characters)
    save_checkpoint(folder / name, model, vocabulary=vocabulary)
    for path in (folder / name).iterdir():
        site.changed[f"/live/models/{name}/{path.name}"] = path.read_bytes()

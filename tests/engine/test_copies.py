"""The one-file copies of the chapters: short, whole, and equal to the package."""

import ast
import dis
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import tformer
from engine.copies.standalone import standalone_files
from engine.pages.reading import Page
from engine.project import Project
from tformer import greedy
from tformer.models.families import gpt2

PROJECT = Project.find(Path(__file__).parents[2])
CHAPTERS = [path for path in PROJECT.site_pages if path.parent.name == "chapters"]
READS = ("LOAD_GLOBAL", "LOAD_NAME")  # not an attribute, which may have a like name
LONGEST = {  # lines; in brackets where they are to go
    "attention": 295,  # (180)
    "heads": 573,  # (320)
    "encoder": 1166,  # (800)
    "gpt": 1518,  # (800)
    "transformer": 1901,  # (950)
}


def written(chapter: Path, folder: Path) -> list[Path]:
    """Write the copies that a chapter hands out."""
    files = standalone_files(Page(PROJECT, chapter))
    for file in files:
        (folder / file.name).write_text(file.text, "utf-8")
    return [folder / file.name for file in files]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The copies whose numbers are compared, by the name of the chapter."""
    folder = tmp_path_factory.mktemp("copies")
    named = (x for x in CHAPTERS if x.stem in (*LONGEST, "loss"))
    return {x.stem: x for chapter in named for x in written(chapter, folder)}


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"copy_of_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", LONGEST)
def test_a_copy_is_short(copies: dict[str, Path], name: str) -> None:
    lines = copies[name].read_text("utf-8").count("\n")
    assert lines <= LONGEST[name]


def statements(source: str) -> dict[str, ast.stmt]:
    """Return what stands at the top of a file, by its text."""
    lines, found = source.split("\n"), {}
    for node in ast.parse(source).body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(x.lineno for x in decorators)])
        found["\n".join(lines[first - 1 : node.end_lineno])] = node
    return found


def is_code(node: ast.stmt) -> bool:
    """Whether it is neither an import nor the demonstration."""
    if isinstance(node, ast.If):
        return "__main__" not in ast.unparse(node.test)
    return not isinstance(node, ast.Import | ast.ImportFrom)


def imported(source: str) -> set[str]:
    """Return the packages that a file imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [x.module or "" for x in nodes if isinstance(x, ast.ImportFrom)]
    names += [a.name for x in nodes if isinstance(x, ast.Import) for a in x.names]
    return {name.partition(".")[0] for name in names}


def global_names(code: CodeType) -> set[str]:
    """Return every name that the code of a definition reads from its module."""
    inner = (x for x in code.co_consts if isinstance(x, CodeType))
    reads = (x for x in dis.get_instructions(code) if x.opname in READS)
    return {x.argval for x in reads}.union(*map(global_names, inner))


def stands_for(value: Any, module: str) -> str:
    """Name what a module defines; what comes from elsewhere is the thing itself."""
    if getattr(value, "__module__", "").startswith(module):
        value = getattr(value, "__qualname__", value)
    return re.sub(r" at 0x\w+|\b(tformer|copy_of_[\w-]+)\.(\w+\.)*", "", repr(value))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_definitions_are_the_packages_own(chapter: Path, tmp_path: Path) -> None:
    """Each has the same text, and each name in it means the same."""
    for path in written(chapter, tmp_path):
        copy, source, home = load(path), path.read_text("utf-8"), ""
        libraries = {"torch", "numpy", "matplotlib"}
        libraries -= {"torch"} if path.stem.endswith("_numpy") else set()
        assert imported(source) <= {*libraries, *sys.stdlib_module_names}, path.name
        for part in re.split(r"^# ---- (tformer/\S+\.py) -+$", source, flags=re.M)[1:]:
            if part.startswith("tformer/"):
                home = part
                continue
            own = statements((PROJECT.root / home).read_text("utf-8"))
            dotted = home.removesuffix(".py").replace("/", ".")
            module = importlib.import_module(dotted)
            for text, node in statements(part).items():
                if not is_code(node):
                    continue
                assert text in own, f"{path.name}: {home} does not say\n{text}"
                for name in global_names(compile(text, home, "exec")):
                    if name in vars(module) and not name.startswith("__"):
                        theirs = stands_for(getattr(module, name), "tformer")
                        ours = stands_for(getattr(copy, name, None), copy.__name__)
                        assert ours == theirs, f"{path.name}: {name}"


def test_every_chapter_with_a_copy_has_a_demonstration() -> None:
    pages = [Page(PROJECT, path) for path in PROJECT.site_pages]
    lacking = [
        f"{page.top}: the front matter has `copy:`, and no `demo:`"
        for page in pages
        if page.meta.get("copy") and not page.meta.get("demo")
    ]
    assert not lacking, "\n".join(lacking)


@pytest.mark.parametrize("masked", ["no", "causal", "rows", "keys", "bias", "both"])
@pytest.mark.parametrize("lengths", [(5, 5), (3, 5)])
def test_attention_gives_the_packages_numbers(
    copies: dict[str, Path], masked: str, lengths: tuple[int, int]
) -> None:
    copy = load(copies["attention"])
    T, S = lengths
    query = torch.randn(2, 6, T, 7)
    key, value = torch.randn(2, 3, S, 7), torch.randn(2, 3, S, 7)
    options = {
        "no": {},
        "causal": {"is_causal": True},
        "rows": {"attn_mask": torch.rand(2, 6, T, S) < 0.8},
        "keys": {"attn_mask": torch.rand(2, 1, 1, S) < 0.8, "is_causal": True},
        "bias": {"bias": torch.randn(2, 1, T, S), "is_causal": True},
        "both": {"bias": torch.randn(T, S), "softcap": 2.0, "scale": 0.3},
    }[masked]
    assert_close(
        copy.scaled_dot_product_attention(query, key, value, **options),
        tformer.scaled_dot_product_attention(query, key, value, **options),
        atol=1e-6,
        rtol=0,
    )
    assert_close(
        copy.attention_weights(query, key, **options),
        tformer.attention_weights(query, key, **options),
        atol=1e-6,
        rtol=0,
    )


def test_heads_give_the_packages_numbers(copies: dict[str, Path]) -> None:
    copy = load(copies["heads"])
    theirs = tformer.MultiHeadAttention(24, 6, num_kv_heads=3)
    ours = copy.MultiHeadAttention(24, 6, num_kv_heads=3)
    ours.load_state_dict(theirs.state_dict())
    x, y = torch.randn(2, 5, 24), torch.randn(2, 7, 24)
    for inputs, options in (
        ((x,), {}),
        ((x,), {"is_causal": True}),
        ((x, y), {"attn_mask": torch.rand(2, 1, 5, 7) < 0.8}),
    ):
        assert_close(ours(*inputs, **options), theirs(*inputs, **options))
    with torch.no_grad():
        cache = tformer.KeyValueCache(5)
        pieces = [ours(x[:, i : i + 1], is_causal=True, cache=cache) for i in range(5)]
        assert_close(torch.cat(pieces, dim=1), theirs(x, is_causal=True))
    with pytest.raises(ValueError, match="must be divisible by num_heads"):
        copy.MultiHeadAttention(10, 3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_loss_gives_the_packages_numbers(
    copies: dict[str, Path], dtype: torch.dtype
) -> None:
    copy = load(copies["loss"])
    logits, targets = torch.randn(3, 5, 11).to(dtype), torch.randint(1, 11, (3, 5))
    targets[1, 2:] = 0
    for smoothing in (0.0, 0.3):
        options = {"smoothing": smoothing, "pad_id": 0}
        assert_close(
            copy.label_smoothed_cross_entropy(logits, targets, **options),
            tformer.label_smoothed_cross_entropy(logits, targets, **options),
        )


def test_gpt_gives_the_packages_numbers(copies: dict[str, Path]) -> None:
    copy = load(copies["gpt"])
    sizes = {**gpt2.SIZES["tiny"], "vocab_size": 31, "tie_word_embeddings": False}
    theirs, ours = gpt2.build(sizes).eval(), copy.build(sizes).eval()
    ours.load_state_dict(theirs.state_dict())
    ids = torch.randint(31, (3, 9))
    assert_close(ours(ids), theirs(ids), atol=1e-6, rtol=1e-6)
    written = copy.write(copy.continuing(ours, ours.new_cache(15)), ids, 6)
    assert torch.equal(written, greedy(theirs, ids, max_len=6))
    for mine, other in zip(
        torch.autograd.grad(ours(ids).square().mean(), list(ours.parameters())),
        torch.autograd.grad(theirs(ids).square().mean(), list(theirs.parameters())),
        strict=True,
    ):
        assert_close(mine, other, atol=1e-6, rtol=1e-4)


def test_transformer_gives_the_packages_numbers(copies: dict[str, Path]) -> None:
    copy = load(copies["transformer"])
    theirs = tformer.Transformer(tformer.TransformerConfig.tiny(vocab_size=29)).eval()
    ours = copy.Transformer(copy.TransformerConfig.tiny(vocab_size=29)).eval()
    ours.load_state_dict(theirs.state_dict())
    src = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
    tgt = torch.randint(1, 29, (2, 7))
    assert_close(ours(src, tgt), theirs(src, tgt), atol=1e-6, rtol=1e-6)
    score = copy.translating(ours, src, ours.new_cache(8))
    written = copy.write(score, src.new_ones(2, 1), 8, stops=[2])
    wanted = greedy(theirs, src, bos_id=1, eos_id=2, max_len=8)
    assert torch.equal(written, wanted)

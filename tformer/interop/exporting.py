"""Models as graphs that need no Python: `torch.export` and ONNX.

`tformer.interop.graphs` says what the graphs of a model are. Every one takes any batch
and any length.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn
from torch.export import ExportedProgram

from tformer.checks import require
from tformer.interop.graphs import Graph, graphs_of
from tformer.models.bert import BERT
from tformer.models.causal_lm import CausalLM
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.nn.latent import LatentAttention

Exported = CausalLM | Seq2SeqLM | BERT


def export_programs(model: Exported) -> dict[str, ExportedProgram]:
    """Export the graphs of a model: of a CausalLM "model" and "step".

    Of a model from sequence to sequence they are "encoder", "decoder" and "step", of a
    BERT "model". Each takes any batch and length.
    """
    was = model.training
    try:
        model.eval()
        with torch.no_grad(), naive(model):
            return {name: _exported(each) for name, each in graphs_of(model).items()}
    finally:
        model.train(was)


@contextmanager
def naive(model: nn.Module) -> Iterator[None]:
    """Let latent attention make keys and values of its latents, at any length.

    Else it chooses by the lengths; the other form reads a weight, which a graph cannot.
    """
    free = [m for m in model.modules() if isinstance(m, LatentAttention)]
    free = [m for m in free if m.absorbed is None]
    for attention in free:
        attention.absorbed = False
    try:
        yield
    finally:
        for attention in free:
            attention.absorbed = None


def _exported(graph: Graph) -> ExportedProgram:
    return torch.export.export(
        graph.module,
        graph.example,
        dynamic_shapes=graph.axes,
        prefer_deferred_runtime_asserts_over_guards=True,
    )


def export_onnx(model: Exported, folder: str | Path) -> list[Path]:
    """Write the graphs of a model as ONNX files.

    Of a CausalLM they are model.onnx, the whole forward, and step.onnx, the step with a
    cache; of a model from sequence to sequence encoder.onnx, decoder.onnx, step.onnx;
    of a BERT model.onnx. The inputs and outputs have the names of the arguments:
    past_0_keys is what step.onnx is given of block 0, and present_0_keys what it gives
    back. onnxruntime and others run the files.

    Args:
        model: in float32, mostly: not every runtime has all operators in others.
        folder: new, or what is in it under these names is replaced.

    Returns:
        The files, each with its weights; one of more than 2 GB has a second, .data.

    Raises:
        ImportError: onnx and onnxscript are not installed.
        TypeError: it is another kind of model.
        ValueError: an attention keeps something else than keys and values.
    """
    for name in ("onnx", "onnxscript"):
        require(name)
    folder, files = Path(folder), []
    programs, graphs = export_programs(model), graphs_of(model)
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in programs.items():
        graph, file = graphs[name], folder / f"{name}.onnx"
        with torch.no_grad():  # else kernels come apart in another way
            torch.onnx.export(
                program,
                f=file,
                input_names=graph.inputs,
                output_names=graph.outputs,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        files.append(file)
    return files

"""Models of Hugging Face, from a folder or from memory, as ours."""

from pathlib import Path

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import family_of
from tformer.models.folder import check_names, read_model, saved_of


def from_huggingface(source: str | Path | nn.Module) -> CausalLM:
    """Build the same model, with its weights, in their dtype and in `eval()`.

    Args:
        source: a folder with config.json and safetensors, sharded or not, or a model of
            `transformers` in memory.

    Raises:
        OSError: a file is missing.
        ValueError: the architecture or an option is unknown here, or a weight is
            missing, superfluous or wrongly shaped. The message names it.
    """
    if not isinstance(source, nn.Module):
        model = read_model(Path(source))
        if not isinstance(model, CausalLM):
            raise ValueError(f"{source} is no language model of Hugging Face")
        return model
    config = source.config.to_dict()  # type: ignore[operator, union-attr]
    family = family_of(config)
    model = family.build(config)
    state = family.rename(source.state_dict(), config)
    own = saved_of(model)
    check_names(Path(config["model_type"]), own, state, tied=True)
    first = next(iter(state.values()))
    model = model.to(first.device, first.dtype)
    model.load_state_dict({name: state[name] for name in own}, strict=False)
    return model.eval()

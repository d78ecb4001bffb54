"""The first weights of a deep model: what is added to its sum is drawn smaller.

N layers
"""

import math

from torch import nn

# The last matrix of each sub-layer, by the end of its name: what it makes is added to
# the residual stream.
LAST = ("out_proj.weight", "linear2.weight", "down_proj.weight")


def depth_scaled_normal_(
    model: nn.Module, num_layers: int, *, std: float = 0.02
) -> None:
    """Draw matrices from N(0, std²), the last of each sub-layer with std / √(2N).

    Radford et al. 2019 ("Language Models are Unsupervised Multitask Learners"), section
    2.3: "We scale the weights of residual layers at initialization by a factor of 1/√N
    where N is the number of residual layers". A layer has two, attention and
    feed-forward, so theirs is 2N. Each adds to one sum, the residual stream. 2N
    independent terms with the variance s² / (2N) sum to the variance s², however many
    they are.

    The 0.02 is that of OpenAI's code of GPT-2, at every width.

    Args:
        model: its parameters are changed. Tables of embeddings and positions count as
            matrices; a matrix that two modules share is drawn once.
        num_layers: layers N, each of two sub-layers.
        std: standard deviation of all other matrices.

    Biases become 0. Other vectors, such as the gains of norms, stay as they are.
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            last = name.endswith(LAST)
            smaller = std / math.sqrt(2 * num_layers)
            nn.init.normal_(parameter, std=smaller if last else std)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)

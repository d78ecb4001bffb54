"""All that a run imports, so that a process forked from here begins at once."""

import filelock  # noqa: F401
import matplotlib.backends.backend_svg
import matplotlib.figure  # noqa: F401
import safetensors.torch  # noqa: F401
import small_run  # noqa: F401
import torch.distributed.checkpoint.state_dict  # noqa: F401

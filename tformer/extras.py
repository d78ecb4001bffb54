"""Optional packages: imported when they are needed, named when they are missing."""

# --8<-- [start:imports]
from importlib import import_module
from typing import Any

# --8<-- [end:imports]


# --8<-- [start:require]
def require(module: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: its name, such as "babel.dates".

    Returns:
        The module.

    Raises:
        ImportError: the package is not installed; the message says what to install.
    """
    package = module.partition(".")[0]
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, and lacks something itself
            raise
        raise ImportError(
            f"this needs the package {package}: pip install 'tformer[train]'"
        ) from error
    return import_module(module)
    # --8<-- [end:require]

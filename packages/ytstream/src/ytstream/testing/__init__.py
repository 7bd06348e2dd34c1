"""The public names for the tests of a job. The code is in the package ytstream-tools.

A name is looked up when it is used, so a cluster, which has no ytstream-tools, can import this.
"""

from collections.abc import Callable
from importlib import import_module

from ..version import __version__


def provided_by(module: str) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a module whose names are those of ``module``."""

    def get(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            found = import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module.partition(".")[0]:
                raise
            raise ModuleNotFoundError(
                "the tests of a job need the package ytstream-tools: "
                f"pip install 'ytstream-tools[testing]=={__version__}'",
                name=error.name,
            ) from None
        return getattr(found, name)

    return get

"""The version of the runtime, and those of Spark and SPYT here, which are asked for unimported.

The first number changes when a job's own files have to change.
"""

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

__version__ = "1.0.0"


@cache
def version_of(package: str) -> str:
    """Return the version of ``pyspark`` or ``spyt`` by its module ``version`` only.

    Importing SPYT takes a second, for pandas. Raises ModuleNotFoundError.
    """
    found = find_spec(package)
    places = found.submodule_search_locations if found is not None else []
    spec = PathFinder.find_spec(f"{package}.version", places)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{package} is not installed here", name=package)
    spec.loader.exec_module(module := module_from_spec(spec))
    return str(module.__version__)

"""Saving the whole state to a file, and loading it into a running cluster.

The file is a pickle, read with a list of the classes that it may name: a state file of unknown
origin cannot run code here.
"""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path
from typing import Any

from .cluster import Cluster
from .core.errors import generic
from .cypress.model import MISSING

MAGIC = b"minicluster state 8\n"
_PLAIN = frozenset(
    {
        ("builtins", "set"),
        ("builtins", "frozenset"),
        ("builtins", "bytearray"),
        ("collections", "Counter"),
        ("collections", "OrderedDict"),
        ("collections", "defaultdict"),
        ("collections", "deque"),
        ("random", "Random"),
    }
)
_PACKAGE = __name__.rpartition(".")[0]
_ROOMS = tuple(
    f"{_PACKAGE}.{room}." for room in ("rows", "cypress", "tables", "queues", "operations")
)
_VALUES = "yt.yson.yson_types"


def save(cluster: Cluster, path: str) -> None:
    """Write the state in one step, so that a file is whole or not there. Raises YtError."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    buffer = io.BytesIO()
    pickle.dump(cluster.state(), buffer, pickle.HIGHEST_PROTOCOL)
    try:
        temporary.write_bytes(MAGIC + buffer.getvalue())
        temporary.replace(target)
    except OSError as error:
        raise generic(f"Cannot save the state: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def load(cluster: Cluster, path: str) -> None:
    """Replace the state by a saved one. Raises YtError, and then nothing has changed."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise generic(f"Cannot load the state: {error}") from None
    if not data.startswith(MAGIC):
        raise generic(f"{path} is not a state of this version of minicluster")
    try:
        loaded = _Unpickler(io.BytesIO(data[len(MAGIC) :])).load()
    except Exception as error:
        raise generic(f"Cannot load the state: {error!r}") from None
    if not isinstance(loaded, dict) or loaded.keys() != cluster.state().keys():
        raise generic(f"Cannot load the state: {path} does not hold the parts of a cluster")
    cluster.restore(loaded)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # A dotted name could reach what a module has imported: only its own classes will do.
        found = super().find_class(module, name)
        own = module.startswith(_ROOMS) or module == _VALUES
        if found is MISSING or (module, name) in _PLAIN:
            return found
        if own and isinstance(found, type) and found.__module__ == module:
            return found
        raise pickle.UnpicklingError(f"{module}.{name} does not belong to a state file")

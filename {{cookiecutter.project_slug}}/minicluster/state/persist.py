"""Saving the whole state to a file, and loading it into a running cluster.

The file is a pickle, read with a list of what may stand in it: a state file that somebody else made
cannot run code here.
"""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import generic
from .branches import MISSING

if TYPE_CHECKING:
    from .cluster import Cluster

MAGIC = b"minicluster state 1\n"
_CLUSTER = "cluster"
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
_PACKAGE = __name__.rsplit(".", 2)[0]
_VALUES = frozenset({f"{_PACKAGE}.clock", "yt.yson.yson_types"})


def save(cluster: Cluster, path: str) -> None:
    """Writes the state; the file is there as a whole or not at all. Raises: YtError."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    buffer = io.BytesIO()
    _Pickler(buffer, cluster).dump(cluster.__dict__)
    try:
        temporary.write_bytes(MAGIC + buffer.getvalue())
        temporary.replace(target)
    except OSError as error:
        raise generic(f"Cannot save the state: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def load(cluster: Cluster, path: str) -> None:
    """Replaces the state by a saved one. Raises: YtError, and then nothing has changed."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise generic(f"Cannot load the state: {error}") from None
    if not data.startswith(MAGIC):
        raise generic(f"{path} is no state of this version of minicluster")
    try:
        loaded = _Unpickler(io.BytesIO(data[len(MAGIC) :]), cluster).load()
    except Exception as error:
        raise generic(f"Cannot load the state: {error!r}") from None
    cluster.restore(loaded)


class _Pickler(pickle.Pickler):
    """Leaves the cluster itself out: its parts belong to the one that loads them."""

    def __init__(self, file: io.BytesIO, cluster: Cluster) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._cluster = cluster

    def persistent_id(self, item: Any) -> str | None:
        return _CLUSTER if item is self._cluster else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, cluster: Cluster) -> None:
        super().__init__(file)
        self._cluster = cluster

    def persistent_load(self, name: Any) -> Cluster:
        return self._cluster

    def find_class(self, module: str, name: str) -> Any:
        # A dotted name could reach what a module has imported: only its own classes will do.
        found = super().find_class(module, name)
        own = module.startswith(f"{_PACKAGE}.state.") or module in _VALUES
        if found is MISSING or (module, name) in _PLAIN:
            return found
        if own and isinstance(found, type) and found.__module__ == module:
            return found
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into a state file")

"""The runtime's table of settings, for docs/operations.md of a generated project."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).parent.parent / "packages/ytstream/src/ytstream/confs.py"
_STATELESS = ("map", "join")


def confs(guarantee: str, processing: str, spark: str) -> Iterator[Any]:
    """Yield the settings of a job's session and the options of its reader and writer.

    Each has ``key``, ``value`` and ``reason``. The module that is read needs no package.
    """
    table = runpy.run_path(str(_TABLE))
    stateful = processing not in _STATELESS
    yield from table["of_session"](guarantee, stateful=stateful, spark=spark)
    yield from (*table["READER"], *table["WRITER"][stateful], *table["SINK"])

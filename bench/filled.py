"""A table that has a row for each key before a run, written over RPC, where rows go in fastest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench import rpc_rows
from bench.rpc_rows import TYPES
from minicluster.rows import wire
from minicluster.testing import Running
from ytstream import Column
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.schema.columns import type_name

OLD = 1_704_067_199_000_000
"""A time before those of all rows of a queue, in microseconds."""
_CHUNK = 50_000

Encode = Callable[[int], bytes]


def output(cluster: Running, context: JobContext, keys: int) -> None:
    """Make what the job writes, and write a row for each of so many keys into its output."""
    job_objects.provision(context)
    columns = context.job.output_columns["output"]
    names = [column.name for column in columns]
    write(cluster, context.settings.outputs["output"], names, keys, encoder(columns))


def write(cluster: Running, path: str, names: list[str], keys: int, encode: Encode) -> None:
    """Write the rows of the keys 0 to ``keys`` - 1."""

    def calls() -> Iterator[rpc_rows.Call]:
        for first in range(0, keys, _CHUNK):
            rows = [*map(encode, range(first, min(keys, first + _CHUNK)))]
            yield rpc_rows.modify(path, names, rows)

    asyncio.run(rpc_rows.send_to(cluster.rpc[0], calls()))


def encoder(columns: Sequence[Column]) -> Encode:
    """Return what encodes the row of a key: ones, and texts of the key."""
    kinds = [TYPES[type_name(column.type)] for column in columns]
    return lambda key: wire.encode(_values(columns, kinds, key))


def _values(columns: Sequence[Column], kinds: Sequence[int], key: int) -> Iterator[Any]:
    for number, (column, kind) in enumerate(zip(columns, kinds, strict=True)):
        match column.key, kind:
            case True, _:
                yield number, kind, key
            case _, wire.STRING:
                yield number, kind, b"%d" % key
            case _, wire.UINT64:
                yield number, kind, OLD
            case _:
                yield number, kind, 1

"""Rows of random values in YT's wire format: millions of them in minutes.

A pool of rows goes through a job once, and is compared as Python values. After that every row has
for each column the bytes of some row of the pool, and must come out as the bytes that this value
came out as before.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import NamedTuple

from minicluster.rows import wire
from minicluster.rpc import protos
from packages.minicluster.tests.support.rpc_client import RpcClient, build, describe, text_id

_WORD = 8
_ID = "id"
_TABLET = "$tablet_index"
"""Numbers in a request's name table where our own rows end."""


class Rowset(NamedTuple):
    """Rows of a tablet as they were pulled: the names of their columns, and their bytes."""

    names: tuple[str, ...]
    rows: list[bytes]


def pull(address: str, path: str, starts: Sequence[int], ends: Sequence[int]) -> Rowset:
    """Return the rows of all tablets of an ordered table between these row numbers."""
    return asyncio.run(_pull(address, path, starts, ends))


async def _pull(address: str, path: str, starts: Sequence[int], ends: Sequence[int]) -> Rowset:
    client = await RpcClient.connect(address)
    names: tuple[str, ...] = ()
    rows: list[bytes] = []
    for tablet, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while start < end:
            message = build("TReqPullQueue", queue_path=path, offset=start, partition_index=tablet)
            message.row_batch_read_options.max_row_count = end - start
            client.send("PullQueue", message)
            answer = await client.read_message()
            reply, parts = client.open_response(answer, f"{protos.API}TRspPullQueue")
            found = wire.split(b"".join(part or b"" for part in parts))
            rows += [row for row in found if row is not None]
            names = tuple(entry.name for entry in reply.rowset_descriptor.name_table_entries)
            assert found
            start += len(found)
    await client.close()
    return Rowset(names, rows)


def insert(address: str, path: str, names: Sequence[str], rows: Sequence[bytes]) -> None:
    """Write rows in a tablet transaction of their own."""
    asyncio.run(_insert(address, path, names, rows))


async def _insert(address: str, path: str, names: Sequence[str], rows: Sequence[bytes]) -> None:
    client = await RpcClient.connect(address)
    reply, _ = await client.call("StartTransaction", type=1, sticky=True, timeout=10**8)
    transaction = text_id(reply.id)
    message = build("TReqModifyRows", path=path, transaction_id=transaction)
    message.row_modification_types.extend([0] * len(rows))
    describe(message, [*names])
    client.send("ModifyRows", message, [wire.join([*rows])])
    client.open_response(await client.read_message(), f"{protos.API}TRspModifyRows")
    await client.call("CommitTransaction", transaction_id=transaction)
    await client.close()


class Pool:
    """Values of a pool of rows, as they are in a queue and as a job has written them."""

    def __init__(self, sent: Rowset, written: Rowset) -> None:
        self._names = [name for name in written.names if not name.startswith("$")]
        self._inputs = [name for name in sent.names if not name.startswith("$")]
        self._service = len(written.names) - len(self._names)
        before, after = _by_id(sent), _by_id(written)
        assert before.keys() == after.keys()
        self._count = len(before)
        # By column: its bytes in each row of the pool, under its number in our requests.
        self._sent = {
            name: [wire.renumbered(row[name], number) for row in before.values()]
            for number, name in enumerate(self._inputs)
        }
        self._written = {name: [after[key][name] for key in before] for name in self._names}
        self._number = int.from_bytes(self._written[_ID][0][:2], "little")
        self._tail = wire.encode_value(len(self._inputs), wire.INT64, 0)

    @property
    def names(self) -> list[str]:
        """The name table of the rows to send."""
        return [*self._inputs, _TABLET]

    def rows(self, rng: random.Random, numbers: range) -> tuple[list[bytes], list[bytes]]:
        """Return rows to send, and what must come out of them, without service columns."""
        count, texts = len(numbers), [f"row-{number:07}".encode() for number in numbers]
        picked = {name: rng.choices(range(self._count), k=count) for name in self._inputs}
        sent = [self._pick(self._sent[name], picked[name]) for name in self._inputs]
        written = [self._pick(self._written[name], picked[name]) for name in self._names]
        place = self._inputs.index(_ID)
        sent[place] = [wire.encode_value(place, wire.STRING, text) for text in texts]
        of_output = self._names.index(_ID)
        written[of_output] = [wire.encode_value(self._number, wire.STRING, text) for text in texts]
        head = (len(sent) + 1).to_bytes(_WORD, "little")
        return (
            [head + b"".join(row) + self._tail for row in zip(*sent, strict=True)],
            [b"".join(row) for row in zip(*written, strict=True)],
        )

    def own(self, pulled: Rowset) -> list[bytes]:
        """Return written rows without their count and their service columns, which come last."""
        tail = 2 * _WORD * self._service
        return [row[_WORD:-tail] for row in pulled.rows]

    @staticmethod
    def _pick(values: list[bytes], places: list[int]) -> list[bytes]:
        return [values[place] for place in places]


def _by_id(rowset: Rowset) -> dict[bytes, dict[str, bytes]]:
    """Return the bytes of each value by column, by the row's id."""
    found = {}
    for row in rowset.rows:
        values = {rowset.names[number]: chunk for number, chunk in wire.chunks(row).items()}
        found[values[_ID][2:]] = values
    return found

"""Reads Spark's checkpoint from Cypress: which batches were planned, which are done.

Spark writes ``offsets/N`` before batch N runs (offset log) and ``commits/N`` after it (commit log).
Both are text: ``v1``, a line of JSON metadata, then in ``offsets`` one line per source, in which
SPYT stores the index of the LAST row of each partition (YtQueueOffset).
"""

import json
import re
from datetime import UTC, datetime, timedelta

from ..cluster.client import Client
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..ledger.offsets import OffsetLogEntry, Rows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = 253_370_764_800_000
"""The last year that Python can name; a wrong date may have moved the watermark beyond it."""


def numbers(client: Client, folder: str) -> list[int]:
    """Return the batches that have an entry in the log ``folder``; none if it is absent."""
    if not client.exists(folder):
        return []
    # Other names are Spark's temporary files.
    return sorted(int(name) for name in client.list(folder) if str(name).isdigit())


def planned(client: Client, path: str, batch: int) -> OffsetLogEntry:
    """Return the entry ``offsets/batch`` of the checkpoint ``path``.

    Raises JobError for one that is cut short or not in the format of version 1.
    """
    try:
        return _planned(batch, bytes(client.read_file(f"{path}/offsets/{batch}").read()).decode())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JobError(
            f"{path}/offsets/{batch} cannot be read: {error}",
            "restore the checkpoint, or use `rewind`, which starts a new one",
            code=ErrorCode.CHECKPOINT_DAMAGED,
        ) from error


def is_whole_commit(client: Client, path: str, batch: int) -> bool:
    """Return whether Spark can read the entry ``commits/batch``."""
    version, _, text = bytes(client.read_file(f"{path}/commits/{batch}").read()).partition(b"\n")
    try:
        metadata = json.loads(text)
    except ValueError:
        return False
    return version == b"v1" and isinstance(metadata, dict) and "nextBatchWatermarkMs" in metadata


def watermark(client: Client, path: str, batch: int) -> int:
    """Return the watermark after the batch, in milliseconds since 1970; 0 without one.

    Raises JobError for an entry that cannot be read.
    """
    if batch not in numbers(client, f"{path}/commits"):  # the driver has died before
        return int(planned(client, path, batch).metadata.get("batchWatermarkMs", 0))
    text = bytes(client.read_file(f"{path}/commits/{batch}").read()).decode()
    found = re.search(r'"nextBatchWatermarkMs":\s*(\d+)', text)
    return int(found[1]) if found else 0


def named(watermark: int) -> str:
    """Return the watermark as a date and a time, for people."""
    return f"{moment(watermark):%Y-%m-%d %H:%M:%S} UTC"


def moment(watermark: int) -> datetime:
    """Return the watermark as a time."""
    return _EPOCH + timedelta(milliseconds=min(watermark, _LATEST_MS))


def by_queue(ends: Rows, queues: int) -> Rows:
    """Return what an entry of Spark's offset log says of each queue, once.

    It has an item for each place in the plan that reads a source (Spark, MicroBatchExecution:
    ``sources``), so two rounds of all queues where transform() unites its rows with themselves.
    Raises JobError for an entry of other sources.
    """
    if len(ends) % queues or any(ends[i] != ends[i % queues] for i in range(len(ends))):
        raise JobError(
            f"an entry of the checkpoint's offset log is of {len(ends)} sources, the job reads "
            f"{queues} queues",
            "restore the checkpoint, or use `rewind`, which starts a new one",
            code=ErrorCode.CHECKPOINT_DAMAGED,
        )
    return ends[:queues]


def _planned(batch: int, text: str) -> OffsetLogEntry:
    lines = text.splitlines()
    if len(lines) < 3 or lines[0] != "v1":
        raise ValueError(f"it is cut short or of an unknown version: {text[:60]!r}")
    sources, metadata = tuple(lines[2:]), json.loads(lines[1])
    metadata.get("conf", {}).items()  # both must be maps, or AttributeError
    return OffsetLogEntry(batch, tuple(map(_ends, sources)), metadata, sources)


def _ends(source: str) -> dict[int, int]:
    if source == "-":  # a source that has not had a row yet
        return {}
    return {int(p): last + 1 for p, last in json.loads(source)["partitions"].items()}

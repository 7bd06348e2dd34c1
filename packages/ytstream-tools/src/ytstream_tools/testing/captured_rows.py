"""Runs the rows of a folder that `capture` has written through the job, on the minicluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ytstream.job import REJECTED
from ytstream.schema.columns import Column, type_name
from ytstream.text_table import counted

from ..demo import yson_rows
from ..replay import batch_capture
from ..replay.batch_rows import PARTITION, QUEUE, CapturedRow
from .job_stream import Stream

#: The value of a required column that was not captured, by type; 0 for others.
_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("utf8", "string"), ""),
    "json": "{}",
    "bool": False,
    "yson": {},
    "list": [],
    "dict": [],
}


def run_through(stream: Stream, folder: Path) -> None:
    """Let the job read the captured rows. Fail with the error that ends the batch, if any.

    Args:
        stream: the job on a minicluster, of the fixture
        folder: the folder below tests/captured/ that `capture` made
    """
    _run(stream, folder)


def accepted(stream: Stream, folder: Path) -> None:
    """Let the job read the captured rows. Fail while REJECT rejects one of them.

    Args:
        stream: the job on a minicluster, of the fixture
        folder: the folder below tests/captured/ that `capture` made
    """
    stream.configure(reject_limit=1.0)
    count = _run(stream, folder)
    path = stream.settings.outputs.get(REJECTED)
    found = list(stream.client.select_rows(f"reason from [{path}]")) if path else []
    if found:
        reasons = ", ".join(sorted({str(row["reason"]) for row in found}))
        pytest.fail(f"{len(found)} of {counted(count, 'row')} rejected: {reasons}", pytrace=False)


def _run(stream: Stream, folder: Path) -> int:
    job, client, settings = stream.context.job, stream.client, stream.settings
    rows = yson_rows.read(folder / batch_capture.ROWS)
    queues = sorted({str(row[QUEUE]) for row in rows})
    if settings.reference is not None and (folder / batch_capture.REFERENCE).exists():
        keys = [column.name for column in job.reference_columns if column.key]
        names = ", ".join(f"[{key}]" for key in keys)
        client.delete_rows(
            settings.reference, list(client.select_rows(f"{names} from [{settings.reference}]"))
        )
        known = yson_rows.read(folder / batch_capture.REFERENCE)
        client.insert_rows(settings.reference, [_row(job.reference_columns, row) for row in known])
    counts = [int(client.get(f"{queue}/@tablet_count")) for queue in settings.queues]
    stream.configure(max_rows_per_partition=max(len(rows), settings.max_rows_per_partition))
    # Rows of a queue that is missing here go into the first one.
    places = {queue: number if number < len(counts) else 0 for number, queue in enumerate(queues)}
    for place, count in enumerate(counts):
        made = [
            {**_row(job.queue_columns, row), PARTITION: int(row[PARTITION]) % count}
            for row in rows
            if places[str(row[QUEUE])] == place
        ]
        client.insert_rows(settings.queues[place], made)
    stream.recover()
    stream.drain()
    return len(rows)


def _row(columns: Sequence[Column], row: CapturedRow) -> dict[str, Any]:
    """Return a row with the columns of here; one that was not captured is null or empty."""
    return {column.name: row.get(column.name, _empty(column)) for column in columns}


def _empty(column: Column) -> Any:
    return _EMPTY.get(type_name(column.type), 0) if column.required else None

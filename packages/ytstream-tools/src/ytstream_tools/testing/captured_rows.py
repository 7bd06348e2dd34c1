"""Runs the rows of a folder that `capture` has written through the job, on the minicluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ytstream.cluster.client import Client
from ytstream.job import REJECTED
from ytstream.outputs.archives import REASONS
from ytstream.schema.columns import Column, key_of, type_name
from ytstream.text_table import counted

from ..demo import yson_rows
from ..replay import batch_capture
from ..replay.batch_rows import PARTITION, QUEUE, CapturedRow
from .job_stream import Stream

_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("utf8", "string"), ""),
    "json": "{}",
    "bool": False,
    "yson": {},
    "list": [],
    "dict": [],
}
"""The value of a required column that was not captured, by type; 0 for others."""


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
    rows = stream.client.select_rows(f"reason from [{path}]") if path else []
    # REJECT does not cause this: captured rows get so old that an archive has no period for them.
    found = [row for row in rows if row["reason"] not in REASONS.values()]
    if found:
        reasons = ", ".join(sorted({str(row["reason"]) for row in found}))
        pytest.fail(f"{len(found)} of {counted(count, 'row')} rejected: {reasons}", pytrace=False)


def _run(stream: Stream, folder: Path) -> int:
    job, client, settings = stream.context.job, stream.client, stream.settings
    rows = yson_rows.read(folder / batch_capture.ROWS)
    queues = sorted({str(row[QUEUE]) for row in rows})
    if settings.reference is not None and (folder / batch_capture.REFERENCE).exists():
        known = yson_rows.read(folder / batch_capture.REFERENCE)
        _replace(client, settings.reference, job.reference_columns, known)
    if (folder / batch_capture.REFERENCES).exists():
        looked_up = yson_rows.read(folder / batch_capture.REFERENCES)
        for name, path in settings.references.items():
            known = [row for row in looked_up if row[batch_capture.OF] == name]
            _replace(client, path, job.lookup_columns[name], known)
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


def _replace(
    client: Client, path: str, columns: Sequence[Column], rows: Sequence[CapturedRow]
) -> None:
    """Let a reference have these rows and no others."""
    names = ", ".join(f"[{name}]" for name in key_of(columns))
    client.delete_rows(path, list(client.select_rows(f"{names} from [{path}]")))
    client.insert_rows(path, [_row(columns, row) for row in rows])


def _row(columns: Sequence[Column], row: CapturedRow) -> dict[str, Any]:
    """Return a row with the columns of here; one that was not captured is null or empty."""
    return {column.name: row.get(column.name, _empty(column)) for column in columns}


def _empty(column: Column) -> Any:
    return _EMPTY.get(type_name(column.type), 0) if column.required else None

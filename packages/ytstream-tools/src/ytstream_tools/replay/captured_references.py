"""The rows of references that belong to captured rows.

As of the moment that the ledger names, while the table is sure to have its rows of it. Otherwise as
they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ytstream.cluster.client import Client, facts
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import LookedUp
from ytstream.provisioning import references
from ytstream.schema.columns import Column, key_of

from .batch_rows import CapturedRow

_CHUNK = 10_000
"""Keys of one request."""
CapturedReferences = Mapping[str, Sequence[CapturedRow]]
"""Name of a reference -> its rows."""


def of(
    context: JobContext,
    rows: Sequence[CapturedRow],
    at: Mapping[str, LookedUp],
    say: Callable[[str], object],
) -> CapturedReferences:
    """Return the rows of each reference; those of a large one for the keys in ``rows``.

    ``at`` is what the rows' batch has looked up; ``say`` is told where it is not that moment.
    Raises JobError for a large reference whose key the rows do not have.
    """
    found = {}
    for name, columns in context.job.lookup_columns.items():
        path, timestamp = _moment(context, name, at.get(name), say)
        found[name] = _rows(context, name, path, timestamp, columns, rows)
    return found


def _moment(
    context: JobContext, name: str, known: LookedUp | None, say: Callable[[str], object]
) -> tuple[str, int | None]:
    """Return path and time to read at."""
    why = "the ledger names no moment"
    if known is not None:
        there = facts(context.client, f"#{known.table}", references.KEPT_BY)
        why = "the table was removed" if there is None else references.lost(there, known.timestamp)
        if not why:
            return f"#{known.table}", known.timestamp
    say(f"reference {name}: its rows as they are now, since {why}")
    return context.settings.references[name], None


def _rows(
    context: JobContext,
    name: str,
    path: str,
    timestamp: int | None,
    columns: Sequence[Column],
    rows: Sequence[CapturedRow],
) -> list[CapturedRow]:
    client, most = context.client, context.job.reference_rows
    listed = ", ".join(f"[{column.name}]" for column in columns)
    query = f"{listed} from [{path}] limit {most + 1}"
    whole: list[CapturedRow] = [dict(row) for row in client.select_rows(query, timestamp=timestamp)]
    if len(whole) <= most:
        return whole
    key, known = key_of(columns), {column.name for column in context.job.queue_columns}
    if missing := [column for column in key if column not in known]:
        raise JobError(
            f"the reference {name} has more than {most} rows, and its key column "
            f"{', '.join(missing)} is not a column of the queue, so nobody can tell which rows it "
            "needs",
            "raise reference_rows in job.py above the size of the table for this command",
            code=ErrorCode.REFERENCE,
        )
    keys = {tuple(row.get(column) for column in key) for row in rows}
    wanted = [dict(zip(key, one, strict=True)) for one in keys if None not in one]
    names = [column.name for column in columns]
    return [
        {column: row[column] for column in names}
        for row in _looked_up(client, path, wanted, timestamp)
    ]


def _looked_up(
    client: Client, path: str, keys: Sequence[CapturedRow], timestamp: int | None
) -> Iterator[CapturedRow]:
    for first in range(0, len(keys), _CHUNK):
        yield from client.lookup_rows(path, [*keys[first : first + _CHUNK]], timestamp=timestamp)

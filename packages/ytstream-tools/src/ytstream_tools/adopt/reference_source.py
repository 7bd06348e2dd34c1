"""A reference table on a cluster: its columns, and its rows for the keys of the sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from yt.wrapper import TablePath
from yt.wrapper.schema import TableSchema

from ytstream.cluster.client import Client, facts
from ytstream.job import Job, JobContext
from ytstream.query.reference_table import unread
from ytstream.schema.columns import Column, key_of, type_name
from ytstream.schema.string_values import shown
from ytstream.text_table import counted

from . import queue_source
from .source_rows import Row, SourceRows, split

_KEYS = 1_000
"""Keys of one request."""
_MOST = 100_000
"""Rows of a static table that are read: a larger one is not joined either."""


@dataclass(frozen=True)
class Reference:
    """A table that the job joins or looks up, as far as the sample needs it."""

    name: str
    """Its name in REFERENCES; empty for REFERENCE."""
    path: str
    columns: Sequence[Column]
    """The key first, as the table has it."""
    on: Mapping[str, str]
    """Column of the key -> column of the queue."""
    rows: Sequence[Row]
    keys: int
    """How many different keys the sample has."""
    why: str = ""
    """Why the rows are not those of the table; empty if they are."""

    def __str__(self) -> str:
        if self.why:
            return f"reference {self.path}: {self.why}, so {self._instead}"
        pairs = ", ".join(key if key == own else f"{key} = {own}" for key, own in self.on.items())
        found = f"{counted(len(self.rows), 'row')} for {counted(self.keys, 'key')} of the sample"
        return f"reference {self.path}: {found}, by {pairs}"

    @property
    def _instead(self) -> str:
        if self.rows:
            made = counted(len(self.rows), "row")
            return f"its {made} in sample/ are made up, one for each key of the sample: write yours"
        names = ", ".join(key_of(self.columns))
        return (
            f"it has no rows in sample/rows.py, and none are made up, since the sample has no keys "
            f"under the names {names}: write some"
        )


@dataclass(frozen=True)
class _Table:
    client: Client
    path: str
    columns: Sequence[Column]
    is_dynamic: bool

    def rows(self, keys: Sequence[Row]) -> list[Row]:
        """Return the rows of these keys."""
        names = [column.name for column in self.columns]
        if self.is_dynamic:
            found = [
                row for part in _chunks(keys) for row in self.client.lookup_rows(self.path, part)
            ]
            return [{name: row.get(name) for name in names} for row in found]
        key = key_of(self.columns)
        wanted = {tuple(row[name] for name in key) for row in keys}
        part = TablePath(self.path, columns=names, start_index=0, end_index=_MOST)
        read = ({name: row.get(name) for name in names} for row in self.client.read_table(part))
        return [row for row in read if tuple(row[name] for name in key) in wanted]


def read_all(
    context: JobContext, source: SourceRows, masked: Sequence[str] = ()
) -> tuple[list[Reference], list[str]]:
    """Return the job's references that are on the cluster, and why others are not among them.

    ``masked`` are the columns that get other values in the sample, which no table has.
    """
    job, settings = context.job, context.settings
    wanted: dict[str, tuple[str, Sequence[Column]]] = {
        name: (path, job.lookup_columns[name])
        for name, path in settings.references.items()
        if name in job.lookup_columns
    }
    if settings.reference is not None:
        wanted[""] = settings.reference, ()
    found, notes = list[Reference](), list[str]()
    for name, (path, columns) in wanted.items():
        read_one = _read(context.client, name, path, columns, source)
        if not isinstance(read_one, str) and (hidden := {*read_one.on.values()} & {*masked}):
            read_one = f"MASK hides {', '.join(hidden)}, its key"
        if not isinstance(read_one, str):
            found.append(read_one)
        elif name:
            found.append(_unread(name, path, columns, read_one))
        else:
            notes.append(f"reference {path}: {read_one}. Write its rows into sample/rows.py")
    return found, notes


def all_unread(job: Job, paths: Mapping[str, str], why: str) -> list[Reference]:
    """Return the references of lookup() where no cluster is asked for their rows."""
    listed = job.lookup_columns.items()
    return [_unread(name, paths.get(name, name), columns, why) for name, columns in listed]


def filled(reference: Reference, source: SourceRows) -> Reference:
    """Return the reference with a row for each key of the sample where its table gave none.

    ``source`` has the values that the sample gets.
    """
    own = {column.name for column in source.columns}
    names = key_of(reference.columns)
    if not reference.why or not all(name in own for name in names):
        return reference
    on = {name: name for name in names}
    keys = _keys(on, source)
    values = [column for column in reference.columns if not column.key]
    rows = [{**key, **{column.name: _made_up(column, key) for column in values}} for key in keys]
    return replace(reference, on=on, rows=rows, keys=len(keys))


def _unread(name: str, path: str, columns: Sequence[Column], why: str) -> Reference:
    return Reference(name, path, columns, {}, (), 0, why)


def _made_up(column: Column, key: Row) -> Any:
    kind = type_name(column.type)
    if kind in ("utf8", "string"):
        values = (value if isinstance(value, str) else shown(value) for value in key.values())
        return f"{column.name} of {', '.join(values)}"
    return {"bool": False, "json": "0"}.get(kind, 0) if column.required else None


def _read(
    client: Client, name: str, path: str, declared: Sequence[Column], source: SourceRows
) -> Reference | str:
    """Return the reference, or why it cannot be used. ``declared`` are the columns to read."""
    known = facts(client, path, ("type", "dynamic", "schema", "tablet_state"))
    if known is None:
        return "the table is missing"
    if known.get("dynamic") and known.get("tablet_state") not in ("mounted", "frozen"):
        return f"it is {known.get('tablet_state')}"
    columns = [*declared] or _columns(known["schema"])
    table = _Table(client, path, columns, is_dynamic=bool(known.get("dynamic")))
    on = _on(table, source)
    if on is None:
        return "no column of the queue has its keys"
    keys = _keys(on, source)
    return Reference(name, path, columns, on, table.rows(keys), len(keys))


def _columns(stored: Any) -> list[Column]:
    """Return the columns that a job can read, the key first, as the table has them."""
    keys = {
        column.name
        for column in TableSchema.from_yson_type(stored).columns
        if column.sort_order is not None
    }
    kept, _ = split(queue_source.columns_of(stored))
    joined = [column for column in kept if column.name in keys or not unread([column])]
    return [Column(c.name, c.type, key=True) if c.name in keys else c for c in joined]


def _on(table: _Table, source: SourceRows) -> Mapping[str, str] | None:
    """Return which columns of the queue have the key: by their names, else by what is found."""
    key = key_of(table.columns)
    own = {column.name: type_name(column.type) for column in source.columns}
    if key and all(name in own for name in key):
        return {name: name for name in key}
    if len(key) != 1:
        return None
    (kind,) = (type_name(column.type) for column in table.columns if column.key)
    hits = {
        name: len(table.rows(_keys({key[0]: name}, source)))
        for name, of_own in own.items()
        if of_own == kind
    }
    best = max(hits, key=lambda name: hits[name], default=None)
    return {key[0]: best} if best is not None and hits[best] else None


def _keys(on: Mapping[str, str], source: SourceRows) -> list[Row]:
    """Return the different keys of the sample; none with a null."""
    found = (tuple(row[own] for own in on.values()) for row in source.rows)
    whole = dict.fromkeys(values for values in found if None not in values)
    return [dict(zip(on, values, strict=True)) for values in whole]


def _chunks(keys: Sequence[Row]) -> Iterator[Sequence[Row]]:
    yield from (keys[first : first + _KEYS] for first in range(0, len(keys), _KEYS))

"""The static table that a reference is built from: whether it can be one, and its rows' keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from yt.wrapper import TablePath
from yt.wrapper.schema import TableSchema

from ytstream.cluster.client import Client, facts
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.schema.columns import Column, is_comparable, resolved, spelled, type_name

_MOST_KEYS = 32
"""The most key columns of a dynamic table (YTsaurus, "Sorted dynamic tables")."""
_ASKED = (
    "type", "id", "path", "dynamic", "schema", "row_count", "uncompressed_data_size",
    "content_revision",
)  # fmt: skip


@dataclass(frozen=True)
class SourceTable:
    """A static table that can become a reference with this key."""

    path: str
    id: str
    key: tuple[str, ...]
    schema: Any
    """Of the reference: the key columns first."""
    rows: int
    bytes: int
    revision: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, the key's first."""
        return tuple(column.name for column in self.schema.columns)

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The columns that tables.py cannot name."""
        return tuple(_undeclared(self.columns))


def read(client: Client, path: str, key: Sequence[str]) -> SourceTable:
    """Return the table, as it is in the transaction of the client.

    Raises JobError for a table that cannot become a reference with this key.
    """
    found = facts(client, path, _ASKED)
    problems = ["it is missing"] if found is None else [*_of_table(found)]
    if not problems:
        assert found is not None
        problems = [*_of_key(found["schema"], key)]
    if problems:
        raise refused(path, *problems)
    assert found is not None
    made = SourceTable(
        path=str(found["path"]),
        id=str(found["id"]),
        key=tuple(key),
        schema=_schema(found["schema"], key),
        rows=int(found["row_count"]),
        bytes=int(found["uncompressed_data_size"]),
        revision=int(found["content_revision"]),
    )
    if nulls := _with_null(client, made, [*_optional(made)]):
        raise refused(
            path,
            f"the key column {', '.join(nulls)} has nulls, and no row of a stream finds them",
            remedy="leave those rows out of the table, or name another KEY",
        )
    return made


def refused(path: str, *problems: str, remedy: str = "correct FROM or KEY") -> JobError:
    """Return the error of a source that cannot become a reference."""
    return JobError(
        f"{path} cannot become a reference: {'; '.join(problems)}",
        f"{remedy}; nothing was changed",
        code=ErrorCode.REFERENCE,
    )


def keys(
    client: Client, source: SourceTable, path: str, row_index: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the key of each row of the table ``path``, which has the columns of ``source``.

    With a ``row_index`` only that row's.
    """
    for row in client.read_table(TablePath(path, columns=[*source.key], exact_index=row_index)):
        yield tuple(row[name] for name in source.key)


def _of_table(found: Any) -> Iterator[str]:
    if found["type"] != "table":
        yield f"it is a {found['type']}, not a table"
    elif found["dynamic"]:
        yield "it is dynamic already: a job looks keys up in it as it is, if it is sorted"
    elif not found["schema"] or not found["schema"].attributes.get("strict"):
        yield "it has no strict schema, so its columns are not known"
    elif not found["row_count"]:
        yield "it has no rows"


def _of_key(schema: Any, key: Sequence[str]) -> Iterator[str]:
    known = {column.name: column for column in TableSchema.from_yson_type(schema).columns}
    computed = {column["name"] for column in schema if column.get("expression")}
    for name in key:
        if name not in known:
            yield f"it has no column {name}: it has {', '.join(known)}"
        elif not is_comparable(_inner(known[name].type)):
            yield f"{name} is of type {spelled(_inner(known[name].type))}, which cannot be a key"
        elif name in computed:
            yield f"{name} is a computed column, and rows that look up a key do not have it"
    for name in _undeclared(key):
        yield f"REFERENCES of tables.py cannot name the column {name!r}: rename it in the source"
    if len(set(key)) < len(key):
        yield "KEY names a column twice"
    if len(key) > _MOST_KEYS:
        yield f"a key has at most {_MOST_KEYS} columns"
    if known.keys() <= set(key):
        yield "all its columns are in KEY, so there is nothing to look up"


def _undeclared(names: Sequence[str]) -> Iterator[str]:
    """Yield the columns that tables.py does not take."""
    for position, name in enumerate(names):
        same = [other for other in names[:position] if other.lower() == name.lower()]
        try:
            resolved("REFERENCES", [Column(one, "int64") for one in (*same, name)])
        except JobError:
            yield name


def _schema(stored: Any, key: Sequence[str]) -> Any:
    """Return the schema of the reference: only names and types are kept."""
    columns = {column.name: column.type for column in TableSchema.from_yson_type(stored).columns}
    schema = TableSchema(strict=True, unique_keys=True)
    for name in (*key, *(name for name in columns if name not in key)):
        schema.add_column(name, columns[name], sort_order="ascending" if name in key else None)
    return schema


def _inner(type_: Any) -> Any:
    return type_.item if type_name(type_) == "optional" else type_


def _optional(source: SourceTable) -> Iterator[str]:
    """Yield the key columns that may hold null."""
    for column in source.schema.columns[: len(source.key)]:
        if type_name(column.type) == "optional":
            yield column.name


def _with_null(client: Client, source: SourceTable, names: Sequence[str]) -> list[str]:
    """Return which columns hold null: from the statistics of their chunks, else from their rows.

    Chunks of older servers have no such statistics (YTsaurus, client/driver/table_commands.cpp,
    TGetTableColumnarStatisticsCommand).
    """
    if not names:
        return []
    path = TablePath(source.path, columns=[*names])
    (found,) = client.get_table_columnar_statistics([path])
    counts = found.get("column_non_null_value_counts")
    if counts is not None and not found.get("legacy_chunk_row_count"):
        return [name for name in names if int(counts[name]) < source.rows]
    nulls = {name for row in client.read_table(path) for name in names if row[name] is None}
    return [name for name in names if name in nulls]

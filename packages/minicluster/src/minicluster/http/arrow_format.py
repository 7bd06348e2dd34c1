"""The Arrow format: rows of `read_table` as a stream of record batches, in which types are kept.

Source: library/formats/arrow_writer.cpp (SerializeLeafColumnType); composite values are YSON, as
there without `enable_complex_types`. Model: no column is dictionary encoded, a table without rows
has a schema all the same, and columns of YSON do not say so in their metadata.

It takes pyarrow, which is no dependency of this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from yt import yson

from ..core.errors import generic, not_supported
from ..rows import wire
from ..rows.schema import Column
from .options import Options, refuse

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_TYPES: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in _INTEGERS},
    "interval": ("int64",),
    "date": ("date32",),
    "datetime": ("timestamp", "s"),
    "timestamp": ("timestamp", "us"),
    "double": ("float64",),
    "float": ("float32",),
    "boolean": ("bool_",),
    "string": ("binary",),
    "any": ("binary",),
    "utf8": ("string",),
    "json": ("string",),
    "null": ("null",),
    "void": ("null",),
}
"""Older name of a type (any: every composite one) -> pyarrow's function for it, and an argument."""
ROWS_OF_A_BATCH = 10_000


@dataclass(frozen=True)
class Typed:
    """Rows with the columns that their ids stand for."""

    columns: Sequence[Column]
    rows: Sequence[bytes]


class Arrow:
    """Writes `Typed` rows and nothing else."""

    content_type = "application/octet-stream"

    def __init__(self) -> None:
        try:
            self._pa: Any = import_module("pyarrow")
        except ImportError:
            raise not_supported('format "arrow" without the package "pyarrow" beside it') from None

    @classmethod
    def parse(cls, options: Options) -> Arrow:
        refuse(options, {"enable_complex_types": False, "enable_tz_index": False})
        return cls()

    def load(self, data: bytes) -> Any:
        raise not_supported('input in format "arrow"')

    def load_rows(self, data: bytes) -> list[Any]:
        return list(self.load(data))

    def dump(self, value: Any) -> bytes:
        # library/formats/format.cpp, CreateConsumerForFormat, CreateSchemafulWriterForFormat
        raise generic('Unsupported output format "arrow"')

    def dump_rows(self, rows: Iterable[Any]) -> bytes:
        if not isinstance(rows, Typed):
            return self.dump(rows)
        pa, sink = self._pa, self._pa.BufferOutputStream()
        schema = pa.schema([self._field(column) for column in rows.columns])
        with pa.ipc.new_stream(sink, schema) as writer:
            for start in range(0, len(rows.rows), ROWS_OF_A_BATCH):
                values = _columns(rows, start, start + ROWS_OF_A_BATCH)
                arrays = [
                    pa.array(items, field.type) for items, field in zip(values, schema, strict=True)
                ]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
        return bytes(sink.getvalue().to_pybytes())

    def _field(self, column: Column) -> Any:
        if column.type not in _TYPES:
            raise generic(f'Type "{column.type}" is not currently supported by Arrow encoder')
        name, *arguments = _TYPES[column.type]
        kind = getattr(self._pa, name)(*arguments)
        return self._pa.field(column.name, kind, not column.required)


def _columns(rows: Typed, start: int, end: int) -> list[list[Any]]:
    """Return the values of some rows by column."""
    taken = rows.rows[start:end]
    found: list[list[Any]] = [[None] * len(taken) for _ in rows.columns]
    is_yson = [column.type == "any" for column in rows.columns]
    for number, row in enumerate(taken):
        for index, kind, value in wire.values(row):
            if is_yson[index] and value is not None and kind not in (wire.ANY, wire.COMPOSITE):
                value = yson.dumps(wire.to_python(kind, value), yson_format="binary")
            found[index][number] = value
    return found

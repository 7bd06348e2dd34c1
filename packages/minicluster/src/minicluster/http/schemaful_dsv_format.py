"""The format `schemaful_dsv`: a row is a line of values, separated by tabs, without their names.

The rules and the wording of errors: library/formats, schemaful_dsv_writer.cpp, where a writer
without `columns` does not work. Here rows are only written in it. Model: bytes are escaped as in
DSV.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import generic, not_supported
from .dsv_format import Dsv
from .options import Options, flag, one_of, refuse


@dataclass(frozen=True)
class SchemafulDsv:
    """The order of the columns, and what stands for a null."""

    values: Dsv
    """Writes values, and has the separators."""
    columns: Sequence[str]
    missing: str = "fail"
    sentinel: bytes = b""
    header: bool = False
    one_schema: bool = False
    """Whether each row has all columns of its schema, so that others are known not to be there."""

    content_type = "text/tab-separated-values"

    @classmethod
    def parse(cls, options: Options) -> SchemafulDsv:
        refuse(options, {"enable_table_index": False})
        columns = options.get("columns")
        if not isinstance(columns, list) or not columns:
            raise generic('Missing "columns" attribute in schemaful DSV format')
        names = [str(name) for name in columns]
        for name in names:
            if names.count(name) > 1:
                raise generic(f'Duplicate column name "{name}" in schemaful DSV config')
        return cls(
            Dsv.parse(options),
            names,
            one_of(options, "missing_value_mode", "fail", "skip_row", "print_sentinel"),
            str(options.get("missing_value_sentinel", "")).encode(),
            flag(options, "enable_column_names_header", False),
        )

    def load(self, data: bytes) -> Any:
        raise generic("Schemaful DSV is supported only for tabular data")

    def load_rows(self, data: bytes) -> list[Any]:
        raise not_supported('reading rows in format "schemaful_dsv"')

    def dump(self, value: Any) -> bytes:
        raise generic("Schemaful DSV is supported only for tabular data")

    def dump_rows(self, rows: Iterable[Mapping[str, Any] | None]) -> bytes:
        """Return a line for each row, as far as nulls let it have one. Raises YtError."""
        lines = [[name.encode() for name in self.columns]] if self.header else []
        for row in rows:
            if row is None:
                raise generic("Empty rows are not supported by schemaful dsv writer")
            if self.one_schema and not row.keys() >= set(self.columns):
                name = next(name for name in self.columns if name not in row)
                raise generic(f'Missing schema column "{name}"')
            fields = [self.values.value(row.get(name)) for name in self.columns]
            if None in fields:
                if self.missing == "fail":
                    name = self.columns[fields.index(None)]
                    raise generic(f'Column "{name}" is in schema but missing')
                if self.missing == "skip_row":
                    continue
            lines.append([self.sentinel if field is None else field for field in fields])
        return b"".join(self.values.field.join(line) + self.values.record for line in lines)

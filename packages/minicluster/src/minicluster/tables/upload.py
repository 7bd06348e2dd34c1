"""The attributes of a path that `write_table` obeys: append, sort, change a static table's schema.

The rules and the wording of refusals: ytlib/table_client/table_upload_options.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import generic, not_supported
from ..rows.schema import Column, TableSchema
from .table import Table

_REFUSED = (
    "compression_codec",
    "erasure_codec",
    "optimize_for",
    "partially_sorted",
    "schema_modification",
    "security_tags",
)


@dataclass(frozen=True)
class Upload:
    """How rows are written, and what the table is afterwards."""

    append: bool
    schema: TableSchema
    schema_mode: str

    @property
    def shared(self) -> bool:
        """Return whether several transactions may append at the same time."""
        return self.append and not self.schema.sorted


def upload(table: Table, attributes: Mapping[str, Any]) -> Upload:
    """Return what the attributes of a path ask for. Raises YtError for what cannot be done."""
    if table.dynamic:
        # client/api: the message of the real client
        raise generic(
            '"write_table" API is not supported for dynamic tables; use "insert_rows" instead'
        )
    for name in _REFUSED:
        if name in attributes:
            raise not_supported(f'a path with "{name}" for write_table')
    append = attributes.get("append") in (True, "true")
    given, sorted_by = attributes.get("schema"), _key_columns(attributes.get("sorted_by", []))
    for name, present in (("append", append), ("sorted_by", bool(sorted_by))):
        if given is not None and present:
            raise generic(f'YPath attributes "{name}" and "schema" are not compatible')
    if given is not None:
        return Upload(append, TableSchema.from_yson(given), "strong")
    if table.schema_mode == "strong":
        if sorted_by and sorted_by != table.schema.key_columns:
            raise generic(
                'YPath attribute "sorted_by" must be compatible with table schema '
                'for a "strong" schema mode',
                key_columns=sorted_by,
            )
        return Upload(append, table.schema, "strong")
    current = table.schema.key_columns
    if append and table.static_rows and current[: len(sorted_by)] != sorted_by:
        raise generic(
            "Key columns mismatch while trying to append sorted data into a non-empty table",
            append_key_columns=sorted_by,
            current_key_columns=current,
        )
    return Upload(append, ordered_by(sorted_by), "weak")


def _key_columns(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise generic(f'Error parsing YPath attribute "sorted_by": {given!r}')
    names = [str(name) for name in given]
    for name in names:
        if names.count(name) > 1:
            raise generic(f'Duplicate key column name "{name}"')
    return names


def ordered_by(names: list[str]) -> TableSchema:
    """Return the schema of a table without one: its key columns may hold anything."""
    columns = [Column(name, "any", "yson", sort_order="ascending") for name in names]
    return TableSchema(tuple(columns), strict=False)

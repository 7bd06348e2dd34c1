"""Table schemas: YSON in and out, what each column type accepts, validation of written rows.

A column has a logical type (`int32`, `utf8`, `timestamp`, `list<...>`) and a wire type (int64,
string, any). `type` is the older name of it, without optionality and with `any` for everything
composite; `type_v3` says it all. The wording of errors is that of the server (client/table_client:
unversioned_row.cpp, name_table.cpp, schema.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from yt import yson

from ..core.errors import YtError, around, not_supported
from . import aggregates, types, wire
from .aggregates import Fold, NumberRows
from .computed import Computed, compiled
from .rowset import RowsetColumn
from .types import MAX_NAME_LENGTH, SCALARS, V3_NAMES, LogicalType, ScalarType

SCHEMA_VIOLATION = 307
TIMESTAMP = "$timestamp"
DATA_WEIGHT = "$cumulative_data_weight"
# Filled in by the server; a client may not write them.
SYSTEM_COLUMNS = {TIMESTAMP: "uint64", DATA_WEIGHT: "int64"}


EXTRA = frozenset(
    {
        "aggregate",
        "evaluated",
        "expression",
        "group",
        "lock",
        "max_inline_hunk_size",
        "materialized",
    }
)
"""What else a column has (client/table_client/column_schema.h); other keys are dropped."""


def _error(message: str) -> YtError:
    return YtError(1, message)


def violation(message: str, inner: Iterable[YtError] = ()) -> YtError:
    return YtError(SCHEMA_VIOLATION, message, inner=inner)


@dataclass(frozen=True)
class Column:
    """One column; `type` is the older type name, `type_v3` the full one, without the optional."""

    name: str
    type: str
    type_v3: Any
    required: bool = False
    sort_order: str | None = None
    extra: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @property
    def scalar(self) -> ScalarType:
        return SCALARS[self.type]

    @property
    def composite(self) -> bool:
        inner = self.logical.parts[0] if self.logical.kind == "optional" else self.logical
        return inner.detagged.kind != "scalar"

    @cached_property
    def logical(self) -> LogicalType:
        """The whole type, parsed."""
        return types.parse(self._whole, self.name)

    @property
    def _whole(self) -> Any:
        optional = not self.required and self.type not in ("null", "void")
        return {"type_name": "optional", "item": self.type_v3} if optional else self.type_v3

    @property
    def wire_type(self) -> int:
        return wire.COMPOSITE if self.composite else self.scalar.wire_type

    @property
    def aggregate(self) -> str | None:
        return self.extra.get("aggregate")

    @property
    def expression(self) -> str | None:
        """What the column's values are computed by."""
        return self.extra.get("expression")

    @property
    def described(self) -> RowsetColumn:
        """Return the column as one of an answer."""
        logical = self.logical if self.logical.named else None
        return RowsetColumn(self.name, self.wire_type, logical)

    def to_yson(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "type_v3": self._whole,
            **self.extra,
        }
        if self.sort_order:
            result["sort_order"] = self.sort_order
        return dict(sorted(result.items()))


def _column(value: Any) -> Column:
    if not isinstance(value, dict) or "name" not in value:
        raise _error("Error parsing table schema: a column needs a name")
    name = str(value["name"])
    if not name:
        raise _error("Column name cannot be empty")
    required = value.get("required")
    if "type_v3" in value:
        type_v3 = value["type_v3"]
        logical = types.parse(type_v3, name)
        optional = logical.kind == "optional"
        if required is not None and bool(required) == optional:
            raise _error(
                f'Column "{name}" has "type_v3" and "required" that do not match: '
                f'"required" is {"true" if required else "false"}'
            )
        inner = type_v3["item"] if optional else type_v3
        type_ = (logical.parts[0] if optional else logical).v1
        required = not optional and type_ not in ("null", "void")
    else:
        if "type" not in value:
            raise _error(f'Column type is not specified for column "{name}"')
        type_ = str(value["type"])
        if type_ not in SCALARS:
            raise _error(
                f'Error parsing type of column "{name}": '
                f'Error parsing ESimpleLogicalValueType value "{type_}"'
            )
        required = bool(required)
        inner = V3_NAMES.get(type_, type_)
        if required and type_ == "any":
            # schema.cpp: a required column of type any is only possible with type_v3 = yson
            raise _error(f'Column of type "any" cannot be required: "{name}"')
    if isinstance(inner, str):
        inner = V3_NAMES.get(inner, str(inner))
    sort_order = value.get("sort_order")
    if isinstance(sort_order, yson.YsonEntity):
        sort_order = None
    extra = {
        key: item
        for key, item in value.items()
        if key in EXTRA and not isinstance(item, yson.YsonEntity) and item is not None
    }
    return Column(name, type_, inner, required, sort_order and str(sort_order), extra)


@dataclass(frozen=True)
class TableSchema:
    """Columns in order, key columns first; equality is that of what a client sees."""

    columns: tuple[Column, ...] = ()
    strict: bool = True
    unique_keys: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was compiled: a saved state has no functions."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @classmethod
    def from_yson(cls, value: Any) -> TableSchema:
        """Read a list of columns with attributes `strict` and `unique_keys`. Raises YtError."""
        if not isinstance(value, list):
            raise _error("Error parsing table schema: a list of columns is expected")
        attributes = getattr(value, "attributes", {})
        schema = cls(
            tuple(_column(item) for item in value),
            bool(attributes.get("strict", True)),
            bool(attributes.get("unique_keys", False)),
        )
        schema._validate()
        return schema

    def to_yson(self) -> yson.YsonList:
        result = yson.YsonList([column.to_yson() for column in self.columns])
        result.attributes = {"strict": self.strict, "unique_keys": self.unique_keys}
        return result

    def _validate(self) -> None:
        seen: set[str] = set()
        for column in self.columns:
            if column.name in seen:
                raise _error(f'Duplicate column "{column.name}"')
            seen.add(column.name)
            if len(column.name.encode()) > MAX_NAME_LENGTH:
                raise _error(
                    f'Column name "{column.name}" is longer than maximum allowed: '
                    f"{len(column.name.encode())} > {MAX_NAME_LENGTH}"
                )
            if column.name.startswith("$") and column.name not in SYSTEM_COLUMNS:
                raise _error(f'Column name "{column.name}" cannot start with prefix "$"')
            if column.sort_order not in (None, "ascending"):
                raise YtError(1, f'Sort order "{column.sort_order}" is not supported')
            if column.sort_order and column.wire_type == wire.COMPOSITE:
                raise _error(f'Key column "{column.name}" cannot be of type "{column.type}"')
            _validate_aggregate(column)
            if column.expression is not None and column.required:
                why = _error("Computed column cannot be required")
                raise around(f'Error validating schema of column "{column.name}"', why)
        keys = self.key_count
        if any(column.sort_order for column in self.columns[keys:]):
            raise _error("Key columns must form a prefix of schema")
        if self.unique_keys and not keys:
            raise _error('"unique_keys" can only be true for a sorted schema')
        self._validate_computed()

    def _validate_computed(self) -> None:
        """Source: ytlib/table_client/schema.cpp, ValidateComputedColumns."""
        for index, one in self.computed:
            column = self.columns[index]
            if one.kind not in (column.wire_type, wire.NULL):
                raise _error(
                    f'Computed column "{column.name}" type mismatch: declared type is '
                    f'"{column.type}" but expression type is "{wire.TYPE_NAMES[one.kind]}"'
                )
            for name in sorted(one.needs):
                needed = self.find(name)
                if needed is not None and needed.expression is not None:
                    raise _error(
                        f'Computed column "{column.name}" depends on a computed column "{name}"'
                    )

    @cached_property
    def computed(self) -> list[tuple[int, Computed]]:
        """The computed columns by index, compiled. Raises YtError for a wrong expression."""
        kinds = {column.name: column.wire_type for column in self.columns}
        return [
            (index, compiled(column.expression, kinds))
            for index, column in enumerate(self.columns)
            if column.expression is not None
        ]

    def validate_dynamic(self) -> None:
        """Check the demands of dynamic tables beyond those of static ones. Raises YtError."""
        if not self.columns:
            raise _error("Table schema must not be empty for a dynamic table")
        if not self.strict:
            raise _error('"strict" cannot be "false" for a dynamic table')
        if self.sorted and not self.unique_keys:
            raise _error('"unique_keys" cannot be "false" for a sorted dynamic table')
        for key in self.columns[: self.key_count]:
            if key.wire_type == wire.ANY:
                raise _error(f'Key column "{key.name}" cannot be of type "{key.type}"')
        for index, one in self.computed:
            computed = f'column "{self.columns[index].name}"'
            if not self.columns[index].sort_order:
                raise _error(f"Non-key {computed} cannot be computed")
            for name in sorted(one.needs - {*self.key_columns}):
                raise _error(f'Computed {computed} depends on a non-key column "{name}"')
        if self.sorted and self.key_count == len(self.columns):
            raise _error("There must be at least one non-key column")
        for name, type_ in SYSTEM_COLUMNS.items():
            column = self.find(name)
            if column and (column.type != type_ or column.required or self.sorted):
                raise _error(f'Column "{name}" must be of type "{type_}" in an ordered table')

    def with_unique_keys(self) -> TableSchema:
        """Return the schema that the server gives a dynamic table: keys of a sorted one are unique.

        Source: server/master/table_server, "Sorted dynamic tables contain unique keys".
        """
        return replace(self, unique_keys=True) if self.sorted else self

    @cached_property
    def folds(self) -> list[tuple[int, Fold]]:
        """The aggregating columns by index, and what adds a value of each to the one before."""
        return [
            (index, aggregates.FOLDS[column.aggregate])
            for index, column in enumerate(self.columns)
            if column.aggregate is not None
        ]

    @cached_property
    def number_rows(self) -> NumberRows | None:
        """What adds to a stored row at one go; None if not all columns are numbers."""
        return aggregates.number_rows([(one.wire_type, one.aggregate) for one in self.columns])

    @cached_property
    def pieces_of(self) -> Callable[[bytes], dict[int, bytes]]:
        """What gives the encoded values of a stored row by column."""
        if all(column.wire_type in wire.FIXED for column in self.columns):
            return wire.chunks_of_numbers(len(self.columns))
        return wire.chunks

    @cached_property
    def key_count(self) -> int:
        """Number of leading key columns."""
        for index, column in enumerate(self.columns):
            if not column.sort_order:
                return index
        return len(self.columns)

    @property
    def sorted(self) -> bool:
        return bool(self.columns) and self.columns[0].sort_order is not None

    @property
    def key_columns(self) -> list[str]:
        return [column.name for column in self.columns[: self.key_count]]

    def find(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    def rowset_columns(self) -> list[RowsetColumn]:
        return [column.described for column in self.columns]


def _validate_aggregate(column: Column) -> None:
    """Raise YtError for a function that the column cannot have.

    Source: client/table_client/schema.cpp, ValidateColumnSchema; ytlib/table_client/schema.cpp,
    ValidateAggregatedColumns.
    """
    function, name = column.aggregate, f'"{column.name}"'
    if function is None:
        return
    if column.sort_order or function not in aggregates.FUNCTIONS:
        why = (
            "Key column cannot be aggregated"
            if column.sort_order
            else f'Invalid aggregate function "{function}"'
        )
        raise around(f"Error validating schema of column {name}", _error(why))
    if column.composite or column.type != wire.TYPE_NAMES.get(column.wire_type):
        raise _error(f'Aggregated column {name} is forbidden to have logical type "{column.type}"')
    accepted = aggregates.TYPES[function]
    if column.wire_type not in accepted:
        expected = ", ".join(wire.TYPE_NAMES[kind] for kind in sorted(accepted))
        raise _error(
            f'Argument type mismatch in aggregate function "{function}" from column {name}: '
            f'expected "{expected}", got "{column.type}"'
        )
    if function == "xdelta":
        raise not_supported("columns with the aggregate function xdelta")


def sorted_schema(*columns: tuple[str, str, bool], keys: int) -> TableSchema:
    """Return a strict schema of (name, type, required); the first `keys` are the unique key."""
    return TableSchema(
        tuple(
            Column(
                name,
                type_,
                V3_NAMES.get(type_, type_),
                required,
                "ascending" if index < keys else None,
            )
            for index, (name, type_, required) in enumerate(columns)
        ),
        strict=True,
        unique_keys=True,
    )


def check_value(column: Column, kind: int, value: wire.Value) -> None:
    """Raise the server's schema violation if `value` of a wire type may not go into `column`."""
    name = f'"{column.name}"'
    if kind == wire.NULL:
        if column.required:
            raise violation(f'Required column {name} cannot have "null" value')
        return
    expected = column.wire_type
    # SPYT sends composite values as any; a real server's RPC proxy takes both.
    accepted = (expected == wire.COMPOSITE and kind == wire.ANY) or (
        expected == wire.ANY and column.sort_order is not None
    )
    if kind != expected and not accepted:
        problem: str | None = (
            f'Invalid type: expected "{wire.TYPE_NAMES[expected]}", '
            f'actual "{wire.TYPE_NAMES[kind]}"'
        )
    else:
        problem = types.defect(column.type, value)
    if problem:
        raise violation(f"Error validating column {name}", [violation(problem)])

"""One representation of a value: YTsaurus', as rows are inserted and selected, to and from Spark's.

Times are numbers: days of a date, seconds of a datetime, microseconds of a timestamp or interval.
A struct is a dict by name, a dict a list of pairs, a tuple a list (YTsaurus, "Data types"). Strings
are bytes: on their way to and from Spark each byte is a character (outputs/string_columns.py).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, NamedTuple
from uuid import UUID

from pyspark.sql import types as spark

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.outputs import string_columns
from ytstream.schema import string_values
from ytstream.schema.columns import spelled, type_name
from ytstream.spark.imported_spyt import types as spyt

_DAY_0 = date(1970, 1, 1)
_SECOND_0 = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Conversion(NamedTuple):
    """The type as SPYT reads it, and a value's way there and back."""

    type: spark.DataType
    to_spark: Callable[[Any], Any]
    from_spark: Callable[[Any], Any]


def _to_spark(value: Any) -> str:
    return string_columns.to_python(string_values.as_bytes(value))


def _from_spark(value: Any) -> str | bytes:
    """Return a string, also of the bytes that Spark's BinaryType holds."""
    found = string_columns.from_python(value) if isinstance(value, str) else value
    return string_values.canonical(found)


def _number(type_: spark.DataType, wrap: Callable[[int], Any]) -> Conversion:
    """Return the conversion of a type that SPYT wraps a number in."""
    return Conversion(type_, lambda number: wrap(int(number)), lambda found: int(found.value))


_SCALARS: dict[str, Conversion] = {
    **dict.fromkeys(
        ("utf8", "json", "string"), Conversion(spark.StringType(), _to_spark, _from_spark)
    ),
    "bool": Conversion(spark.BooleanType(), bool, bool),
    "int8": Conversion(spark.ByteType(), int, int),
    **{name: Conversion(spark.ShortType(), int, int) for name in ("int16", "uint8")},
    **{name: Conversion(spark.IntegerType(), int, int) for name in ("int32", "uint16")},
    **{name: Conversion(spark.LongType(), int, int) for name in ("int64", "uint32", "interval")},
    "uint64": Conversion(spyt.UInt64Type(), int, int),
    "float": Conversion(spark.FloatType(), float, float),
    "double": Conversion(spark.DoubleType(), float, float),
    "date": Conversion(
        spark.DateType(),
        lambda days: _DAY_0 + timedelta(days=int(days)),
        lambda day: (day - _DAY_0).days,
    ),
    "timestamp": Conversion(
        spark.TimestampType(),
        lambda micros: _SECOND_0 + int(micros) * _MICROSECOND,
        lambda moment: (moment.astimezone(UTC) - _SECOND_0) // _MICROSECOND,
    ),
    "datetime": Conversion(
        spyt.DatetimeType(),
        lambda seconds: spyt.Datetime.from_seconds(int(seconds)),
        lambda moment: int(moment.value.replace(tzinfo=UTC).timestamp()),
    ),
    "date32": _number(spyt.Date32Type(), spyt.Date32),
    "datetime64": _number(spyt.Datetime64Type(), spyt.Datetime64),
    "timestamp64": _number(spyt.Timestamp64Type(), spyt.Timestamp64),
    "interval64": _number(spyt.Interval64Type(), spyt.Interval64),
    "yson": Conversion(spyt.YsonType(), spyt.Yson, lambda value: value),
    # 16 bytes in the table, text in Spark (SPYT, WireDeserializer).
    "uuid": Conversion(
        spark.StringType(),
        lambda value: str(UUID(bytes=string_values.as_bytes(value))),
        lambda text: string_values.canonical(UUID(text).bytes),
    ),
}


def with_zone(type_: spark.DataType, value: Any) -> Any:
    """Return a value that Spark has given, as createDataFrame takes it back; a row as a tuple.

    PySpark gives local times, and does not read which of two equal ones it gave in the hour that
    occurs twice when daylight saving time ends (TimestampType.toInternal, time.mktime).
    """
    if value is None:
        return None
    if isinstance(type_, spark.TimestampType):
        return value.astimezone(UTC)
    if isinstance(type_, spark.ArrayType):
        return [with_zone(type_.elementType, item) for item in value]
    if isinstance(type_, spark.MapType):
        key, item = type_.keyType, type_.valueType
        return {with_zone(key, k): with_zone(item, v) for k, v in value.items()}
    if isinstance(type_, spark.StructType):
        parts = zip(type_, value, strict=True)
        return tuple(with_zone(field.dataType, part) for field, part in parts)
    return value


def conversion(type_: Any) -> Conversion:
    """Return the conversion of a yt.type_info type; null passes through every one.

    Raises JobError for a type that SPYT does not read.
    """
    kind = type_name(type_)
    if kind == "optional":
        return conversion(type_.item)
    if kind in _SCALARS:
        return _nullable(_SCALARS[kind])
    if kind == "decimal":
        return _nullable(_decimal(type_.precision, type_.scale))
    if kind == "list":
        item = conversion(type_.item)
        return _nullable(
            Conversion(
                spark.ArrayType(item.type),
                lambda values: [item.to_spark(value) for value in values],
                lambda values: [item.from_spark(value) for value in values],
            )
        )
    if kind == "dict":
        key, value = conversion(type_.key), conversion(type_.value)
        return _nullable(
            Conversion(
                spark.MapType(key.type, value.type),
                lambda pairs: {key.to_spark(k): value.to_spark(v) for k, v in pairs},
                lambda found: [[key.from_spark(k), value.from_spark(v)] for k, v in found.items()],
            )
        )
    if kind in ("struct", "tuple"):
        return _nullable(_record(type_, is_struct=kind == "struct"))
    raise JobError(
        f"no sample row or unit test can have a column of type {spelled(type_)}",
        "use another type, or try the column on the minicluster with `make demo`",
        code=ErrorCode.SAMPLE,
    )


_DECIMAL_BYTES = {9: 4, 18: 8, 35: 16}
"""Digits that a decimal of so many bytes holds (YTsaurus, "Data types": decimal)."""
_EXACT = Context(prec=max(_DECIMAL_BYTES))
"""Python rounds to 28 digits otherwise."""


def _decimal(precision: int, scale: int) -> Conversion:
    """Return the conversion of a decimal: a big-endian number whose sign bit is inverted.

    Raises JobError for one with more digits than Spark has.
    """
    size = next((size for digits, size in _DECIMAL_BYTES.items() if precision <= digits), None)
    if size is None:
        raise JobError(
            f"no sample row or unit test can have a decimal of {precision} digits",
            f"use at most {max(_DECIMAL_BYTES)} digits",
            code=ErrorCode.SAMPLE,
        )
    half = 1 << (8 * size - 1)

    def to_spark(value: Any) -> Decimal:
        whole = int.from_bytes(string_values.as_bytes(value), "big") - half
        return Decimal(whole).scaleb(-scale, _EXACT)

    def from_spark(found: Decimal) -> str | bytes:
        whole = int(found.scaleb(scale, _EXACT)) + half
        return string_values.canonical(whole.to_bytes(size, "big"))

    return Conversion(spark.DecimalType(precision, scale), to_spark, from_spark)


def _record(type_: Any, *, is_struct: bool) -> Conversion:
    """Return the conversion of a struct, or of a tuple, whose fields SPYT calls _1, _2 ..."""
    items = type_.items if is_struct else [(f"_{n}", item) for n, item in enumerate(type_.items, 1)]
    parts = {name: conversion(item) for name, item in items}
    fields = [spark.StructField(name, part.type) for name, part in parts.items()]

    def to_spark(value: Any) -> tuple[Any, ...]:
        values = [value[name] for name in parts] if is_struct else value
        return tuple(
            part.to_spark(inner) for part, inner in zip(parts.values(), values, strict=True)
        )

    def from_spark(row: Any) -> Any:
        found = {name: part.from_spark(row[name]) for name, part in parts.items()}
        return found if is_struct else [*found.values()]

    return Conversion(spark.StructType(fields), to_spark, from_spark)


def _nullable(inner: Conversion) -> Conversion:
    return Conversion(
        inner.type,
        lambda value: None if value is None else inner.to_spark(value),
        lambda value: None if value is None else inner.from_spark(value),
    )

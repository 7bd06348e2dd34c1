"""Strings in the columns of a frame: YTsaurus' `string` is bytes, and so is Spark's, in the JVM.

SPYT gives Spark the bytes unchanged (UTF8String.fromBytes), and writes them unchanged. On the way
to Python and to JSON they become a Java string, with U+FFFD where bytes are not UTF-8. So they
cross as text with one character for each byte (ISO 8859-1), and not as Spark's binary: PySpark 3.5
returns it as bytearray, which cannot be a key of a dict.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

_BYTES = "ISO-8859-1"
"""The encoding that gives each byte a character of its own."""

Change = Callable[[Expression], Expression]


def has_string(kind: DataType) -> bool:
    """Return whether values of this type have strings in them."""
    if isinstance(kind, StructType):
        return any(has_string(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return has_string(kind.elementType)
    if isinstance(kind, MapType):
        return has_string(kind.keyType) or has_string(kind.valueType)
    return isinstance(kind, StringType)


def each(column: Expression, kind: DataType, change: Change) -> Expression:
    """Return ``column``, of the type ``kind``, with each string in it changed."""
    if not has_string(kind):
        return column
    if isinstance(kind, StructType):
        fields = (each(column.getField(f.name), f.dataType, change).alias(f.name) for f in kind)
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(kind, ArrayType):
        item = kind.elementType
        return F.transform(column, lambda value: each(value, item, change))
    if isinstance(kind, MapType):
        key, value = kind.keyType, kind.valueType
        changed = F.transform_keys(column, lambda name, _: each(name, key, change))
        return F.transform_values(changed, lambda _, found: each(found, value, change))
    return change(column)


def crossing(rows: DataFrame) -> DataFrame:
    """Return ``rows`` for Python: in each string a character stands for a byte."""
    return _changed(rows, lambda text: F.decode(text.cast("binary"), _BYTES))


def crossed(rows: DataFrame) -> DataFrame:
    """Return ``rows`` out of Python, in whose strings a character stands for a byte."""
    return _changed(rows, lambda text: F.encode(text, _BYTES).cast("string"))


def to_python(value: bytes) -> str:
    """Return what Python gives Spark for ``crossed``."""
    return value.decode(_BYTES)


def from_python(text: str) -> bytes:
    """Return the bytes of a string that ``crossing`` gave Python."""
    return text.encode(_BYTES)


def _changed(rows: DataFrame, change: Change) -> DataFrame:
    if not has_string(rows.schema):
        return rows
    return rows.select(
        *(each(F.col(f"`{f.name}`"), f.dataType, change).alias(f.name) for f in rows.schema)
    )

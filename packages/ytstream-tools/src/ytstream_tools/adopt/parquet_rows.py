"""Columns and rows of a Parquet file, read by Spark, which is installed anyway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yt.type_info as ti

from ytstream.schema.columns import Column

from ..testing.type_conversion import conversion
from .source_rows import Row, split

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

_CONFS = {
    "spark.sql.session.timeZone": "UTC",
    # Of columns that differ only in case, all but the first are left out, with the reason.
    "spark.sql.caseSensitive": "true",
    # YTsaurus has no type for nanoseconds: they become a number.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # Other programs than old versions of Spark write days as the calendar has them.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
_DAYS, _DAY = 49_673, 86_400_000_000
"""Days in which date and timestamp end (YTsaurus, "Data types"), and microseconds of a day."""


def read(file: Path) -> tuple[list[Column], list[Row]]:
    """Return columns and rows. Raises ValueError for what Spark cannot read."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with _session() as spark:
            frame = spark.read.parquet(file.resolve().as_uri())
            fields = [*frame.schema]
            rows = [row.asDict() for row in _with_numbers(frame, fields).collect()]
    except (PySparkException, Py4JError) as error:
        raise ValueError(str(error).splitlines()[0]) from error
    columns = [Column(field.name, _type_of(field, rows)) for field in fields]
    numbers = {field.name for field in fields if _unit(field)}
    back = {
        column.name: (lambda value: value)
        if column.name in numbers
        else conversion(column.type).from_spark
        for column in split(columns)[0]
    }
    return columns, [{name: back[name](row[name]) for name in back} for row in rows]


@contextmanager
def _session() -> Iterator[SparkSession]:
    """Give a session with settings of its own, in the process's Spark if there is one."""
    from pyspark.sql import SparkSession

    from ytstream.connector.java_home import require_java
    from ytstream.spark.jvm_process import explained_jvm

    running = SparkSession.getActiveSession()
    if running is None:
        require_java()
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    with explained_jvm():
        spark = running or builder.getOrCreate()
    session = spark.newSession()
    for name, value in _CONFS.items():
        session.conf.set(name, value)
    try:
        yield session
    finally:
        if running is None:
            spark.stop()


def _with_numbers(frame: DataFrame, fields: Sequence[StructField]) -> DataFrame:
    """Return the frame with days and microseconds: Python's own times end with the year 9999."""
    return frame.select(*map(_number, fields))


def _number(field: StructField) -> SparkColumn:
    from pyspark.sql import functions as F

    quoted = field.name.replace("`", "``")
    column = F.col(f"`{quoted}`")
    if unit := _unit(field):
        made = F.unix_date(column) if unit == _DAY else F.unix_micros(column.cast("timestamp"))
        return made.alias(field.name)
    return column


def _unit(field: StructField) -> int:
    """Return the microseconds in a unit of a time; 0 for other types."""
    kinds = {"date": _DAY, "timestamp": 1, "timestamp_ntz": 1}
    return kinds.get(field.dataType.simpleString(), 0)


def _type_of(field: StructField, rows: Sequence[Row]) -> Any:
    """Return the type of YTsaurus. One that also has times before 1970 is chosen where it must."""
    unit = _unit(field)
    if not unit:
        return _of_spark(field.dataType)
    values = [row[field.name] for row in rows if row[field.name] is not None]
    fits = all(0 <= value * unit < _DAYS * _DAY for value in values)
    if unit == _DAY:
        return ti.Date if fits else ti.Date32
    return ti.Timestamp if fits else ti.Timestamp64


def _of_spark(kind: Any) -> Any:
    """Return the type of YTsaurus for a type of Spark; one that has none is left out later."""
    from pyspark.sql import types

    scalars: Mapping[type, Any] = {
        types.ByteType: ti.Int8,
        types.ShortType: ti.Int16,
        types.IntegerType: ti.Int32,
        types.LongType: ti.Int64,
        types.FloatType: ti.Float,
        types.DoubleType: ti.Double,
        types.BooleanType: ti.Bool,
        types.StringType: ti.Utf8,
        types.BinaryType: ti.String,
        types.DateType: ti.Date,
        types.TimestampType: ti.Timestamp,
        types.TimestampNTZType: ti.Timestamp,
    }
    if isinstance(kind, types.DecimalType):
        return ti.Decimal(kind.precision, kind.scale)
    if isinstance(kind, types.ArrayType):
        return ti.List[ti.Optional[_of_spark(kind.elementType)]]
    if isinstance(kind, types.MapType):
        return ti.Dict[_of_spark(kind.keyType), ti.Optional[_of_spark(kind.valueType)]]
    if isinstance(kind, types.StructType):
        return ti.Struct[tuple(slice(f.name, ti.Optional[_of_spark(f.dataType)]) for f in kind)]
    return scalars.get(type(kind), ti.Null)

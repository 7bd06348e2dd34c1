"""Columns and rows of a file: for a queue that does not exist yet, or that cannot be reached.

A file of Parquet has types. In the others a column gets the type of its values.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yt.type_info as ti
from yt.yson import YsonUint64

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.schema.columns import Column
from ytstream.schema.string_values import is_string

from ..demo import yson_rows
from ..testing.type_conversion import conversion
from .queue_source import Take
from .source_rows import Row, SourceRows, split

_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_FLOAT = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def read(file: Path, count: int, take: Take) -> SourceRows:
    """Read the file. Raises JobError for one that has no rows, or is not of a known form."""
    read_as = _READERS.get(file.suffix.lower())
    if read_as is None:
        raise JobError(
            f"FROM={file}: {file.suffix or 'a file without a suffix'} is not a known form",
            f"give a file of {', '.join(_READERS)}",
            code=ErrorCode.USAGE,
        )
    if not file.is_file():
        raise JobError(f"{file} does not exist", "correct FROM", code=ErrorCode.FILE)
    try:
        columns, rows = read_as(file)
    except (OSError, ValueError, csv.Error) as error:
        raise JobError(
            f"{file} cannot be read: {error}", "correct it", code=ErrorCode.FILE
        ) from error
    if not rows:
        raise JobError(f"{file} has no rows", "give another file", code=ErrorCode.NO_ROWS)
    kept, left = split(columns)
    names = {column.name for column in kept}
    chosen = _chosen(rows, count, take)
    plain = [{n: row.get(n) for n in row if n in names} for row in chosen]
    whole = [{name: row.get(name) for name in names} for row in plain]
    return SourceRows(file.name, kept, left, whole, "the last" if take is Take.NEWEST else "spread")


def _chosen(rows: Sequence[Row], count: int, take: Take) -> Sequence[Row]:
    if take is Take.NEWEST or len(rows) <= count:
        return rows[-count:]
    return [rows[number * len(rows) // count] for number in range(count)]


def _jsonl(file: Path) -> tuple[list[Column], list[Row]]:
    rows = []
    # Not splitlines(): it also splits at characters that a text of JSON may have.
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"line {number} is not an object")
        rows.append(row)
    return _typed(rows)


def _yson(file: Path) -> tuple[list[Column], list[Row]]:
    return _typed(yson_rows.read(file, "give a list of rows: yt read-table --format yson"))


def _csv(file: Path) -> tuple[list[Column], list[Row]]:
    """Read texts; a column whose texts are all numbers has numbers, and an empty text is null."""
    with file.open(newline="", encoding="utf-8-sig") as opened:
        reader = csv.DictReader(opened)
        texts = [{str(name): value or None for name, value in row.items()} for row in reader]
    names = [str(name) for name in reader.fieldnames or ()]
    to = {name: _reader_of([row[name] for row in texts]) for name in names}
    rows = [
        {name: None if row[name] is None else to[name](row[name]) for name in names}
        for row in texts
    ]
    return _typed(rows)


def _reader_of(values: Iterable[str | None]) -> Callable[[Any], Any]:
    present = [value for value in values if value is not None]
    if present and all(map(_WHOLE.fullmatch, present)):
        return int
    return float if present and all(map(_FLOAT.fullmatch, present)) else str


def _parquet(file: Path) -> tuple[list[Column], list[Row]]:
    """Read the file by Spark, which is installed anyway."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    opened = (
        spark
        or SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    try:
        frame = opened.read.parquet(file.resolve().as_uri())
        columns = [Column(field.name, _of_spark(field.dataType)) for field in frame.schema]
        rows = frame.collect()
    except PySparkException as error:
        raise ValueError(str(error).splitlines()[0]) from error
    finally:
        if spark is None:
            opened.stop()
    back = {column.name: conversion(column.type).from_spark for column in split(columns)[0]}
    made = [{name: back[name](row[name]) for name in back} for row in rows]
    return columns, made


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
    return scalars.get(type(kind), ti.Null)


def _typed(rows: Sequence[Row]) -> tuple[list[Column], list[Row]]:
    """Return columns that all rows fit; a column is required if no row lacks its value."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in names:
        values = [row[name] for row in rows if row.get(name) is not None]
        is_required = len(values) == len(rows)
        columns.append(Column(name, _type_of(values), required=is_required))
    floats = {column.name for column in columns if column.type == ti.Double}
    made = [
        {n: float(v) if n in floats and v is not None else v for n, v in row.items()}
        for row in rows
    ]
    return columns, made


def _type_of(values: Sequence[Any]) -> Any:
    def are(*kinds: type) -> bool:
        return all(isinstance(value, kinds) and not isinstance(value, bool) for value in values)

    if not values or all(isinstance(value, bool) for value in values):
        return ti.Bool if values else ti.Utf8
    if are(YsonUint64):
        return ti.Uint64
    if are(int) and min(values) >= -(2**63) and max(values) < 2**63:
        return ti.Int64
    if are(int) and min(values) >= 0 and max(values) < 2**64:
        return ti.Uint64
    if are(int, float):
        return ti.Double
    if all(map(is_string, values)):
        return ti.Utf8 if are(str) else ti.String
    if are(list):
        items = [item for value in values for item in value]
        inner = _type_of([item for item in islice(items, 10_000) if item is not None])
        return ti.List[ti.Optional[inner]] if inner in (ti.Int64, ti.Utf8) else ti.Yson
    return ti.Yson


_READERS = {
    ".jsonl": _jsonl,
    ".yson": _yson,
    ".parquet": _parquet,
    ".csv": _csv,
}

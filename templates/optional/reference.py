"""The reference table: read whole by the driver when a query starts, fixed until the next start.

Not through Spark: a mounted dynamic table shows batch readers its flushed rows only, unless it has
``@enable_dynamic_store_read`` (YTsaurus documentation, "Dynamic tables"), and a plan that reads the
table would read it again in every micro-batch. ``select_rows`` sees every committed row.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from .errors import JobError
from .monitor import say
from .schema import Column, type_name

#: The whole table goes through the driver's memory and to every executor.
MOST_ROWS = 100_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


#: By type name: Spark's type, and how a value of the cluster becomes one of Spark's.
_TYPES: Mapping[str, tuple[spark_types.DataType, Callable[[Any], Any]]] = {
    "int8": (spark_types.ByteType(), int),
    "int16": (spark_types.ShortType(), int),
    "int32": (spark_types.IntegerType(), int),
    "uint8": (spark_types.ShortType(), int),
    "uint16": (spark_types.IntegerType(), int),
    **dict.fromkeys(("int64", "uint32", "interval"), (spark_types.LongType(), int)),
    "float": (spark_types.FloatType(), float),
    "double": (spark_types.DoubleType(), float),
    "bool": (spark_types.BooleanType(), bool),
    **dict.fromkeys(("utf8", "string", "json"), (spark_types.StringType(), str)),
    "date": (spark_types.DateType(), lambda days: date(1970, 1, 1) + timedelta(days=int(days))),
    "datetime": (spark_types.TimestampType(), lambda value: _EPOCH + timedelta(seconds=int(value))),
    "timestamp": (
        spark_types.TimestampType(),
        lambda value: _EPOCH + timedelta(microseconds=int(value)),
    ),
}


def read(spark: SparkSession, client: Any, path: str, described: Sequence[Column]) -> DataFrame:
    """The table's rows as they are now, with the columns ``described``.

    Raises JobError for a column type that is not read, for more than MOST_ROWS rows, and for a key
    that stands in two rows: each row that it matches would become two.
    """
    unread = [
        f"{c.name} ({type_name(c.type)})" for c in described if type_name(c.type) not in _TYPES
    ]
    if unread:
        raise JobError(
            f"tables.py, REFERENCE: cannot read {', '.join(unread)}",
            f"leave those columns out, or store them as one of {', '.join(_TYPES)}",
        )
    names = ", ".join(f"[{column.name}]" for column in described)
    found = list(client.select_rows(f"{names} from [{path}] limit {MOST_ROWS + 1}"))
    if len(found) > MOST_ROWS:
        raise JobError(
            f"the reference {path} has more than {MOST_ROWS} rows",
            "keep what is needed in a smaller table, or raise MOST_ROWS in reference.py together "
            "with the memory of driver and executors",
        )
    say(f"reference {path}: {len(found)} rows{_without_key(path, described, found)}")
    types = [_TYPES[type_name(column.type)] for column in described]
    rows = [
        tuple(
            None if row[column.name] is None else convert(row[column.name])
            for column, (_, convert) in zip(described, types, strict=True)
        )
        for row in found
    ]
    fields = [
        spark_types.StructField(column.name, type_, not column.required)
        for column, (type_, _) in zip(described, types, strict=True)
    ]
    return spark.createDataFrame(rows, spark_types.StructType(fields))


def _without_key(path: str, described: Sequence[Column], found: Sequence[Mapping[str, Any]]) -> str:
    """What to say of rows whose key is null. Raises JobError for a key that is there twice."""
    key = [column.name for column in described if column.key]
    keys = Counter(tuple(row[name] for name in key) for row in found)
    repeated = [values for values, count in keys.items() if count > 1 and None not in values]
    if repeated:
        raise JobError(
            f"the reference {path} has {len(repeated)} keys ({', '.join(key)}) more than once, for "
            f"example {repeated[0]}",
            "name the table's whole key in REFERENCE_KEY, or make the rows unique",
        )
    nameless = sum(count for values, count in keys.items() if None in values)
    return f", of which {nameless} have no key and match nothing" if nameless else ""

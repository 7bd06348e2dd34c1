"""The reference table of a join: the driver reads it whole when a query starts.

Not through Spark, which would read it again in every micro-batch, and flushed rows only unless the
table has ``@enable_dynamic_store_read`` (YTsaurus documentation, "Dynamic tables"). Executors keep
the rows: a frame of Python's rows goes through Python workers each time that it is computed
(pyspark, RDD._reserialize), which took 0.4 processor seconds in each batch.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types
from yt.wrapper import TablePath

from ..cluster.client import Client
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..log import say, warn
from ..outputs import string_columns
from ..schema import string_values
from ..schema.columns import Column, spelled, type_name
from ..schema.table_schema import unlike
from ..spark.imported_spyt import types as spyt

_TYPES: Mapping[str, spark_types.DataType] = {
    "int8": spark_types.ByteType(),
    **dict.fromkeys(("int16", "uint8"), spark_types.ShortType()),
    **dict.fromkeys(("int32", "uint16"), spark_types.IntegerType()),
    **dict.fromkeys(("int64", "uint32", "interval"), spark_types.LongType()),
    **dict.fromkeys(("utf8", "string", "json"), spark_types.StringType()),
    **dict.fromkeys(("datetime", "timestamp"), spark_types.TimestampType()),
    "bool": spark_types.BooleanType(),
    "float": spark_types.FloatType(),
    "double": spark_types.DoubleType(),
    "date": spark_types.DateType(),
}
"""Spark's type for each type of the cluster that is read."""
_AS_A_QUEUE = {**_TYPES, "datetime": spyt.DatetimeType()}
"""The same for lookup(): as SPYT reads a queue, whose columns are compared with the key. SQL casts
nothing to or from SPYT's own type (ytsaurus-spyt#37)."""
_UNITS = {"date": 86_400_000_000, "datetime": 1_000_000, "timestamp": 1}
"""Microseconds in one unit of a time."""


class TooLargeError(JobError):
    """A table has more rows than are read whole."""


def unread(columns: Sequence[Column]) -> list[str]:
    """Return the columns of types that are not read whole."""
    return [f"{c.name} ({spelled(c.type)})" for c in columns if type_name(c.type) not in _TYPES]


def read(
    spark: SparkSession, client: Client, path: str, columns: Sequence[Column], most_rows: int
) -> DataFrame:
    """Return the table's rows as they are now, with ``columns``, to be kept once computed.

    ``unpersist()`` frees them. Raises JobError for a type that is not read, a table that has other
    columns than these, more than ``most_rows`` rows and a repeated key.
    """
    return read_at(spark, client, path, columns, most_rows)[1]


def read_at(
    spark: SparkSession,
    client: Client,
    path: str,
    columns: Sequence[Column],
    most_rows: int,
    timestamp: int | None = None,
    name: str = "REFERENCE",
    *,
    for_lookup: bool = False,
) -> tuple[str, DataFrame]:
    """Return the table's id, and its rows as of a time of the cluster, as read() does.

    ``name`` is that of the columns in tables.py. ``for_lookup``: columns have the types of a queue.
    """
    kinds = {column.name: type_name(column.type) for column in columns}
    if never := unread(columns):
        raise JobError(
            f"tables.py, {name}: cannot read {', '.join(never)}",
            'leave out by="table": lookups by key read them. `make reference` makes a table for '
            "those of a static one"
            if for_lookup
            else f"leave those columns out, or store them as one of {', '.join(_TYPES)}",
            code=ErrorCode.REFERENCE,
        )
    before = _verified(client, path, columns, name)
    found = _rows(client, path, [*kinds], most_rows + 1, timestamp)
    if _verified(client, path, columns, name) != before:
        raise JobError(
            f"the reference {path} was recreated while it was read",
            "read it again",
            code=ErrorCode.REFERENCE,
        )
    if len(found) > most_rows:
        raise TooLargeError(
            f"the reference {path} has more than {most_rows} rows",
            "keep what is needed in a smaller table, or raise reference_rows in job.py and the "
            "memory of driver and executors",
            code=ErrorCode.REFERENCE,
        )
    nameless = _without_key(path, columns, found, name)
    (warn if nameless else say)(f"reference {path}: read whole, {len(found)} rows{nameless}")
    types = _AS_A_QUEUE if for_lookup else _TYPES
    schema = spark_types.StructType(
        [spark_types.StructField(column, types[kind]) for column, kind in kinds.items()]
    )
    rows = [
        tuple(_plain(row[column], kind, types[kind]) for column, kind in kinds.items())
        for row in found
    ]
    return before, string_columns.crossed(spark.createDataFrame(rows, schema)).cache()


def _rows(
    client: Client, path: str, names: Sequence[str], most: int, timestamp: int | None
) -> list[dict[str, Any]]:
    """Return at most so many rows of a dynamic or a static table."""
    if client.get(f"{path}/@dynamic"):
        # A name in brackets cannot have an unpaired one in it (YTsaurus, query/base/lexer.rl6).
        is_plain = not {*"[]"} & {*"".join(names)}
        wanted = ", ".join(f"[{name}]" for name in names) if is_plain else "*"
        query = f"{wanted} from [{path}] limit {most}"
        return list(client.select_rows(query, timestamp=timestamp))
    part = TablePath(path, columns=[*names], start_index=0, end_index=most)
    return list(client.read_table(part))


def _verified(client: Client, path: str, columns: Sequence[Column], name: str) -> str:
    """Return the table's id. Raises JobError for other columns: their values would be converted."""
    found = client.get(f"{path}/@", attributes=["id", "schema"])
    if lines := unlike(columns, found["schema"]):
        raise JobError(
            f"the reference {path} has other columns than {name}: {'; '.join(lines)}",
            f"correct {name} in tables.py, or give the table those columns",
            code=ErrorCode.REFERENCE,
        )
    return str(found["id"])


def _plain(value: Any, kind: str, wanted: spark_types.DataType) -> Any:
    """Return what createDataFrame takes: Python's own types, not those of YSON."""
    if value is None:
        return None
    if wanted.typeName() == "datetime":
        return spyt.Datetime.from_seconds(int(value))
    if string_values.is_string(value):
        return string_columns.to_python(string_values.as_bytes(value))
    if kind in _UNITS:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value * _UNITS[kind])
        return time.date() if kind == "date" else time
    return {"float": float, "double": float, "bool": bool}.get(kind, int)(value)


def _without_key(
    path: str, columns: Sequence[Column], found: Sequence[Mapping[str, Any]], name: str
) -> str:
    """Return what to say of rows whose key is null. Raises JobError for a repeated key."""
    key = [column.name for column in columns if column.key]
    keys = Counter(tuple(row[part] for part in key) for row in found)
    repeated = [values for values, count in keys.items() if count > 1 and None not in values]
    if repeated:
        raise JobError(
            f"the reference {path} has {len(repeated)} keys ({', '.join(key)}) more than once, for "
            f"example ({', '.join(map(string_values.shown, repeated[0]))})",
            f"mark the table's whole key in {name} (key=True), or make the rows unique",
            code=ErrorCode.REFERENCE,
        )
    nameless = sum(count for values, count in keys.items() if None in values)
    return f" ({nameless} of them have no key and match nothing)" if nameless else ""

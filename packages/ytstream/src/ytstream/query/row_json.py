"""A row of the queues as JSON, and the row again.

JSON cannot hold every row: texts that are not UTF-8, and rows whose JSON a table does not take. It
then says so under a name that no column can have, and no row is made of it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

#: Why no row can be made of the JSON; absent where one can. No column's name begins with $.
INEXACT = "$inexact"
#: The longest value in a dynamic table (YTsaurus, client/table_client/public.h).
LONGEST = 16 * 1024**2
#: A longer JSON is cut to this many characters.
BEGINNING = 1_000
#: Timestamps to the microsecond.
_OPTIONS: Mapping[str, str] = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
#: Where from_json puts a text that it cannot read; without it such a row is one of nulls.
_DAMAGED = "$damaged"
#: What Java reads where bytes are not UTF-8.
_REPLACED = "\N{REPLACEMENT CHARACTER}"


def written(columns: StructType) -> Expression:
    """Return the columns of a row as JSON."""
    plain = _plain(columns)
    row = F.struct(*columns.names).cast(plain)
    text = F.to_json(row, {**_OPTIONS})
    again = F.from_json(text, plain, {**_OPTIONS})
    # Of the other types JSON keeps every value.
    same = (
        ~F.to_json(F.struct(row.getField(field.name))).contains(_REPLACED)
        if _has(MapType, field.dataType)  # cannot be compared
        else again.getField(field.name).eqNullSafe(row.getField(field.name))
        for field in plain
        if _has(StringType, field.dataType)
    )
    beginning = F.substring(text, 1, BEGINNING).alias("$beginning")
    return (
        F.when(F.octet_length(text) > LONGEST, _inexact("longer than 16 MiB as JSON", beginning))
        .when(
            ~reduce(Expression.__and__, same, F.lit(True)),
            _inexact("a text is not UTF-8", *(row.getField(n).alias(n) for n in plain.names)),
        )
        .otherwise(text)
    )


def plain(columns: StructType) -> Expression:
    """Return the columns of a row as JSON for a reader: null where Spark has no JSON of it."""
    names = (F.col(f"`{name}`") for name in columns.names)
    return F.to_json(F.struct(*names).cast(_plain(columns)), {**_OPTIONS})


def read(rows: DataFrame, column: str, columns: StructType, *others: str) -> DataFrame:
    """Return ``columns`` out of the JSON in ``column``, behind the columns ``others``.

    A row whose JSON is inexact or damaged is left out.
    """
    signs = [StructField(name, StringType()) for name in (INEXACT, _DAMAGED)]
    schema = StructType([*_plain(columns), *signs])
    options = {**_OPTIONS, "columnNameOfCorruptRecord": _DAMAGED}
    parsed = rows.select(*others, column, F.from_json(column, schema, options).alias("$parsed"))
    found = F.col("`$parsed`")
    is_whole = [found.getField(sign.name).isNull() for sign in signs]
    is_object = F.trim(column).startswith("{")  # null and [] give a row of nulls as well
    return parsed.filter(reduce(Expression.__and__, is_whole, is_object)).select(
        *others,
        *(found.getField(f.name).cast(_nullable(f.dataType)).alias(f.name) for f in columns),
    )


def is_inexact(text: str) -> bool:
    """Return whether ``text``, the JSON of a row, says that no row can be made of it."""
    return text.startswith(f'{{"{INEXACT}"')


def _inexact(why: str, *columns: Expression) -> Expression:
    return F.to_json(F.struct(F.lit(why).alias(INEXACT), *columns), {**_OPTIONS})


def _plain(columns: StructType) -> StructType:
    """Return the same with types that Spark's JSON knows: it does not know SPYT's uint64.

    The keys of a map are texts there.
    """
    plain = _mapped(columns, lambda kind: StringType() if kind.typeName() == "uint64" else kind)
    assert isinstance(plain, StructType)
    return plain


def _nullable(kind: DataType) -> DataType:
    return _mapped(kind, lambda inner: inner, lambda inner: inner)


def _mapped(
    kind: DataType,
    change: Callable[[DataType], DataType],
    change_key: Callable[[DataType], DataType] = lambda _: StringType(),
) -> DataType:
    """Return the type with its scalars changed, nullable in all its parts as JSON is."""
    if isinstance(kind, StructType):
        return StructType(
            [StructField(f.name, _mapped(f.dataType, change, change_key)) for f in kind]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_mapped(kind.elementType, change, change_key))
    if isinstance(kind, MapType):
        return MapType(change_key(kind.keyType), _mapped(kind.valueType, change, change_key))
    return change(kind)


def _has(part: type[DataType], kind: DataType) -> bool:
    return any(isinstance(inner, part) for inner in _walk(kind))


def _walk(kind: DataType) -> Iterator[DataType]:
    yield kind
    if isinstance(kind, StructType):
        for inner in kind:
            yield from _walk(inner.dataType)
    elif isinstance(kind, ArrayType):
        yield from _walk(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _walk(kind.keyType)
        yield from _walk(kind.valueType)

"""A row of the queues as JSON, and the row again.

A column with bytes that are not UTF-8 is named in a list under "$base64", and each string in it is
written in base64: {"$base64":["payload"],"id":"a","payload":"AP8fiw=="}. Strings of other columns
are texts. A value of `any` is its YSON in base64, of which a replay makes the same bytes. For a
person the values are in front as JSON: {"$json":{"payload":{"n":1}},"id":"a","payload":"e249MX0="}.

JSON cannot hold a row whose JSON a table does not take. It then says so under a name
that no column can have, and no row is made of it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from ..connector.compile_java import unavailable
from ..connector.json_of import json_of
from .balanced import balanced
from .string_columns import each, has_string

INEXACT = "$inexact"
"""Why no row can be made of the JSON; absent where one can. No column's name begins with $."""
BASE64 = "$base64"
"""The columns whose strings are in base64; absent where all strings are texts."""
SHOWN = "$json"
"""The values of `any` for a reader; ``read`` skips them."""
_SHOWN_JSON = 10_000
"""The most characters of such a value."""
LONGEST = 16 * 1024**2
"""The longest value in a dynamic table (YTsaurus, client/table_client/public.h)."""
BEGINNING = 1_000
"""A longer JSON is cut to this many characters."""
TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""Timestamps to the microsecond."""
_OPTIONS: Mapping[str, str] = {"timestampFormat": TIME}
_DAMAGED = "$damaged"
"""Where from_json puts a text that it cannot read; without it such a row is one of nulls."""
_SHOWN_BYTES = 16
"""Bytes that a reader sees of a string that is not text."""
_REPLACED = "\N{REPLACEMENT CHARACTER}"
"""What Java reads where bytes are not UTF-8."""


def written(columns: StructType, *notes: Expression) -> Expression:
    """Return the columns of a row as JSON; of one that is too long for a table its beginning.

    ``notes`` are in front of them. Their names begin with $, so that ``read`` skips them.
    """

    def cut(text: Expression) -> Expression:
        beginning = F.substring(text, 1, BEGINNING).alias("$beginning")
        return F.when(
            F.octet_length(text) > LONGEST, _inexact("longer than 16 MiB as JSON", beginning)
        ).otherwise(text)

    # A function of Spark's own: the plan has the long expression once, and not three times.
    return F.transform(F.array(exact(columns, *notes)), cut).getItem(0)


def exact(columns: StructType, *notes: Expression) -> Expression:
    """Return the columns of a row as JSON of any length, behind the ``notes``."""
    return _with_shown(columns, _exact(columns, *notes))


def _with_shown(columns: StructType, text: Expression) -> Expression:
    """Return the JSON of a row with its values of `any` for a reader, where there are some."""
    names = [field.name for field in columns if field.dataType.typeName() == "yson"]
    if not names or unavailable(SparkSession.active()):
        return text
    # concat() is null for a null value, and concat_ws() leaves nulls out.
    values = F.concat_ws(",", *(F.concat(F.lit(f"{_quoted(n)}:"), _shown(n)) for n in names))
    shown = F.concat(F.lit(f'{{"{SHOWN}":{{'), values, F.lit("},"))
    # Of a row with such a value the text is not {}: something is behind the comma.
    return F.when(values == "", text).otherwise(F.concat(shown, F.substring(text, 2, 2**31 - 1)))


def _shown(name: str) -> Expression:
    """Return a value of `any` as JSON; of a long one only its length."""
    value = json_of(F.col(f"`{name}`"))
    length = F.concat(F.lit('"'), F.length(value).cast("string"), F.lit(' characters of JSON"'))
    return F.when(F.length(value) <= _SHOWN_JSON, value).otherwise(length)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _exact(columns: StructType, *notes: Expression) -> Expression:
    plain = _plain(columns)
    values = _values(plain)
    text = _as_json(values, *notes)
    # Of the other types JSON keeps every value.
    is_text = {
        field.name: _is_text(values[field.name], field.dataType)
        for field in plain
        if has_string(field.dataType)
    }
    if not is_text:
        return text
    every = balanced(Expression.__and__, _are_texts(values, plain, is_text))
    return F.when(every, text).otherwise(_with_base64(values, plain, is_text, *notes))


def _values(plain: StructType) -> dict[str, Expression]:
    """Return the columns of a row in the types of JSON.

    Not fields of one cast struct: Spark would generate the code of the whole struct for each field.
    """
    return {field.name: F.col(f"`{field.name}`").cast(field.dataType) for field in plain}


def _as_json(values: Mapping[str, Expression], *first: Expression) -> Expression:
    """Return columns as a JSON object, in their order behind the ``first`` ones."""
    columns = (value.alias(name) for name, value in values.items())
    return F.to_json(F.struct(*first, *columns), {**_OPTIONS})


def _are_texts(
    values: Mapping[str, Expression], plain: StructType, is_text: Mapping[str, Expression]
) -> Iterator[Expression]:
    """Yield conditions that are true if the values of all columns are texts.

    One for the strings that are columns: the zeros between them belong to no character.
    """
    strings = [field.name for field in plain if isinstance(field.dataType, StringType)]
    if strings:
        yield _is_utf8(F.concat_ws("\0", *(values[name] for name in strings)))
    yield from (is_text[name] for name in is_text if name not in strings)


def _is_text(value: Expression, kind: DataType) -> Expression:
    """Return whether JSON keeps the value of a column with strings in it."""
    if isinstance(kind, StringType):
        return F.coalesce(_is_utf8(value), F.lit(True))
    text = _json(value)
    if _has(MapType, kind):  # cannot be compared
        return ~text.contains(_REPLACED)
    again = F.from_json(text, StructType([StructField("value", kind)]), {**_OPTIONS})
    return again.getField("value").eqNullSafe(value)


def _is_utf8(text: Expression) -> Expression:
    if hasattr(F, "is_valid_utf8"):  # since Spark 4
        return F.is_valid_utf8(text)
    return F.decode(text.cast("binary"), "UTF-8") == text


def readable(columns: StructType, strings: Collection[str]) -> Expression:
    """Return the columns of a row as JSON for a reader, who cannot make a row of it again.

    ``strings`` are those with strings that need not be text: if one is not, its first bytes and its
    length are in its place.
    """
    plain = _plain(columns)
    values = _values(plain)
    for field in plain:
        if field.name in strings:
            values[field.name] = each(values[field.name], field.dataType, _beginning)
    return _as_json(values)


def _beginning(text: Expression) -> Expression:
    """Return a text, or of other bytes the first ones in hexadecimal."""
    beginning = F.hex(F.substring(text.cast("binary"), 1, _SHOWN_BYTES))
    said = F.format_string("0x%s (%d bytes)", beginning, F.octet_length(text))
    return F.when(_json(text).contains(_REPLACED), said).otherwise(text)


def read(rows: DataFrame, column: str, columns: StructType, *others: str) -> DataFrame:
    """Return ``columns`` out of the JSON in ``column``, behind the columns ``others``.

    Skip a row whose JSON is inexact or damaged.
    """
    plain, signs = _plain(columns), [StructField(n, StringType()) for n in (INEXACT, _DAMAGED)]
    schema = StructType([*plain, *signs, StructField(BASE64, ArrayType(StringType()))])
    options = {**_OPTIONS, "columnNameOfCorruptRecord": _DAMAGED}
    parsed = rows.select(*others, column, F.from_json(column, schema, options).alias("$parsed"))
    found = F.col("`$parsed`")
    listed = found.getField(BASE64)
    values = {field.name: found.getField(field.name) for field in plain}
    is_whole = [found.getField(sign.name).isNull() for sign in signs]
    for field in plain:
        if has_string(field.dataType):
            value, is_base64 = values[field.name], F.array_contains(listed, field.name)
            bytes_ = each(value, field.dataType, _from_base64)
            values[field.name] = F.when(is_base64, bytes_).otherwise(value)
            same = _json(each(bytes_, field.dataType, _to_base64)).eqNullSafe(_json(value))
            is_whole.append(F.when(is_base64, same).otherwise(True))
    is_object = F.trim(column).startswith("{")  # null and [] give a row of nulls as well
    # Not conditions joined by AND: Spark splits them, and joins them one by one (see balanced.py).
    return parsed.filter(F.forall(F.array(is_object, *is_whole), lambda holds: holds)).select(
        *others, *(values[f.name].cast(_nullable(f.dataType)).alias(f.name) for f in columns)
    )


def is_inexact(text: str) -> bool:
    """Return whether ``text``, the JSON of a row, says that no row can be made of it."""
    return text.startswith(f'{{"{INEXACT}"')


def _with_base64(
    values: Mapping[str, Expression],
    columns: StructType,
    is_text: Mapping[str, Expression],
    *notes: Expression,
) -> Expression:
    """Return a row as JSON, with base64 in its columns that are not text."""
    listed = (F.when(~is_text[name], name) for name in is_text)
    found = dict(values)
    for field in columns:
        if field.name in is_text:
            in_base64 = each(values[field.name], field.dataType, _to_base64)
            found[field.name] = F.when(is_text[field.name], values[field.name]).otherwise(in_base64)
    return _as_json(found, *notes, F.array_compact(F.array(*listed)).alias(BASE64))


def _to_base64(text: Expression) -> Expression:
    """Return base64 in one line: Spark's has lines of 76 characters (Base64, chunkBase64)."""
    return F.translate(F.base64(text.cast("binary")), "\r\n", "")


def _from_base64(text: Expression) -> Expression:
    """Return the bytes as a string; of what is not base64 the text, whose base64 differs from it.

    Not null, which cannot be the key of a map.
    """
    return F.coalesce(F.try_to_binary(text, F.lit("base64")).cast("string"), text)


def _json(value: Expression) -> Expression:
    """Return a value as a text that can be compared: maps cannot."""
    return F.to_json(F.struct(value.alias("value")), {**_OPTIONS})


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

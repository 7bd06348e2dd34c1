"""MERGE of transform.py: from the rows of a batch and those that the table has to its changes.

Two kinds. newest() compares the batch's newest row of a key, the table's row and the delete that is
remembered, and the greatest stays. That is a maximum over all rows that ever came, so neither the
order of rows nor the cuts between batches matter. A function of the user's gets all rows of the
keys, and what it returns is verified: a row of another key was not looked up in this transaction,
so a change of it by somebody else would be lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, StructField, StructType

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..schema.changes import DELETED, IS_STORED, Merge, Newest, remembers
from ..schema.columns import Column
from ..schema.spark_types import widest
from . import row_json
from .output_frames import computed, user_function, verify_columns

CHANGE = "__ytstream_change"
"""What happens to a key: see _change()."""
UNCHANGED, CHANGED, REMOVED, REMEMBERED = range(4)
_RANK, _OLD, _GONE = "__ytstream_rank", "__ytstream_old_", "__ytstream_gone_"
_BY, _IS_DELETE = "by", "is_delete"
_FLOATS = ("double", "float")
_MARKS = _RETURNED, _IS_ASKED, _IS_THERE = (
    "__ytstream_returned", "__ytstream_asked", "__ytstream_there",
)  # fmt: skip
"""Of a key: how many rows a function returns, and whether the batch and the table have it."""
_BEGIN, _END = "MERGE[", " (end of key)"
"""Around the message of a function that returns wrong rows, and what is wrong."""
_TWICE, _FOREIGN = "several rows of the key ", "a row of a key that the batch does not have: "


class Stored(Protocol):
    """What one output has, and the deletes that are remembered of it."""

    def newest(self, rows: DataFrame, key: Sequence[str], rank: str) -> DataFrame:
        """Return the row of each ``key`` that has the greatest value in the column ``rank``.

        The rows have no other columns, and are parted by the key.
        """

    def rows(self, asked: DataFrame, like: StructType, prefix: str) -> DataFrame:
        """Return ``asked`` with the columns of the output's rows, and whether each is there.

        Their names begin with ``prefix``, and the bare prefix names the last one.
        """

    def deletes(self, asked: DataFrame, like: StructType, prefix: str) -> DataFrame:
        """Return ``asked`` with the sequence value of the delete of each key in the same way."""


@dataclass(frozen=True)
class Changes:
    """What becomes of the keys of one batch: a row of each, with CHANGE."""

    rows: DataFrame
    key: tuple[str, ...]
    names: tuple[str, ...]
    """The columns of the table."""

    def written(self, rows: DataFrame) -> DataFrame:
        """Return the rows that are written or, with DELETED, deleted, out of all of them."""
        kept = rows.filter(f"{CHANGE} IN ({CHANGED}, {REMOVED})")
        return kept.selectExpr(*map(_quoted, self.names), f"{CHANGE} = {REMOVED} AS {DELETED}")

    def remembered(self, by: str) -> DataFrame:
        """Return key and sequence value of the deletes."""
        kept = self.rows.filter(f"{CHANGE} IN ({REMOVED}, {REMEMBERED})")
        return kept.selectExpr(*map(_quoted, (*self.key, by)))


@contextmanager
def changes(
    rows: DataFrame, name: str, columns: Sequence[Column], rule: Merge, stored: Stored
) -> Iterator[Changes]:
    """Give what MERGE makes of the rows of a batch, computed once if it is read more than once."""
    key = tuple(column.name for column in columns if column.key)
    names = tuple(column.name for column in columns)
    rows = widened(rows, columns)
    if isinstance(rule, Newest):
        decided = _newest(rows, columns, rule, stored)
        if not remembers(rule):
            yield Changes(decided, key, names)
            return
        with computed(decided) as done:
            yield Changes(done, key, names)
        return
    with computed(_asked(rows, columns, key, stored)) as asked:
        made = called(rule, _given(rows, asked, columns), name, columns)
        yield Changes(_decided(made, asked, columns, name), key, names)


def widened(rows: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return the rows with numbers of the table's width, in which those of the table come, too.

    A function may have added up what the rows bring, and a former transform() may have had more.
    """
    kinds = {c.name: widest(c, rows.schema[c.name].dataType) for c in columns}
    wider = {name: _column(name).cast(kind) for name, kind in kinds.items() if kind is not None}
    return rows.withColumns(wider) if wider else rows


def counts() -> Iterator[Expression]:
    """Yield what counts the keys that are changed, removed, and left as they are."""
    for kind in (f"{CHANGED}", f"{REMOVED}", f"{UNCHANGED}, {REMEMBERED}"):
        yield F.expr(f"count(CASE WHEN {CHANGE} IN ({kind}) THEN 1 END) AS of_{kind[0]}")


# -- newest()


def _newest(rows: DataFrame, columns: Sequence[Column], rule: Newest, stored: Stored) -> DataFrame:
    """Return the batch's newest row of each key, with what becomes of it."""
    key = [column.name for column in columns if column.key]
    values = [rule.sequence_by]
    values += [c.name for c in columns if not c.key and c.name != rule.sequence_by]
    flag = "false"
    if rule.apply_as_deletes is not None:
        flag = f"coalesce({_quoted(rule.apply_as_deletes)}, false)"
    kinds = [rows.schema[name].dataType for name in values]
    rank = _rank(values, kinds, flag, "")
    # A stream's session has 200 partitions for a shuffle, and on Spark 3.5 no adaptive plan.
    parts, names = rows.sparkSession.sparkContext.defaultParallelism, [*map(_quoted, key)]
    grouped = (_grouped(name, rows.schema[name].dataType) for name in key)
    ranked = rows.selectExpr(*grouped, f"{rank} AS {_RANK}").repartition(parts, *names)
    found = stored.rows(
        stored.newest(ranked, key, _RANK), StructType([rows.schema[n] for n in values]), _OLD
    )
    is_new = f"(NOT {_OLD} OR {_RANK} > {_rank(values, kinds, 'false', _OLD)})"
    is_alive = "true"
    if remembers(rule):
        found = stored.deletes(found, StructType([rows.schema[rule.sequence_by]]), _GONE)
        gone = _ordered(_quoted(f"{_GONE}{rule.sequence_by}"), kinds[0])
        is_alive = f"(NOT {_GONE} OR {_RANK}.{_BY} > {gone})"
    fields = [_field(at, kind) for at, kind in enumerate(kinds)]
    made = (f"{_RANK}.{f} AS {_quoted(n)}" for f, n in zip(fields, values, strict=True))
    return found.selectExpr(*names, *made, f"{_change(is_new, is_alive)} AS {CHANGE}")


def _grouped(name: str, kind: DataType) -> str:
    """Return a column of the key: -0.0 and 0.0 are one key of a table, in different bytes."""
    value = _quoted(name)
    if kind.typeName() not in _FLOATS:
        return value
    zero = f"CAST(0 AS {kind.simpleString()})"
    return f"CASE WHEN {value} = 0 THEN {zero} ELSE {value} END AS {value}"


def _change(is_new: str, is_alive: str) -> str:
    """Return what becomes of a key: a delete of a row that is not there is remembered, too."""
    return f"""CASE
        WHEN NOT {_RANK}.{_IS_DELETE} AND {is_new} AND {is_alive} THEN {CHANGED}
        WHEN {_RANK}.{_IS_DELETE} AND {_OLD} AND {is_new} THEN {REMOVED}
        WHEN {_RANK}.{_IS_DELETE} AND NOT {_OLD} AND {is_alive} THEN {REMEMBERED}
        ELSE {UNCHANGED} END"""


def _rank(values: Sequence[str], kinds: Sequence[DataType], flag: str, prefix: str) -> str:
    """Return what orders the rows of a key: Spark compares structs field by field, null first.

    By the first value, and at a tie by the others. ``kinds`` are their types. An expression as
    text: each part of one is a call of the JVM otherwise, in each batch.
    """
    by = _ordered(_quoted(f"{prefix}{values[0]}"), kinds[0])
    ranked = [(_BY, by), (_IS_DELETE, flag)]
    for at, (name, kind) in enumerate(zip(values, kinds, strict=True)):
        value = _quoted(f"{prefix}{name}")
        if _is_unsigned(kind):
            ranked.append((f"o{at}", _ordered(value, kind)))
        if _field(at, kind) != _BY:
            ranked.append((f"c{at}", value))
        if kind.typeName() in _FLOATS:
            # Spark takes -0.0 and 0.0 for equal, so the first one that comes would stay.
            ranked.append((f"z{at}", f"CASE WHEN {value} = 0 THEN CAST({value} AS STRING) END"))
    return "named_struct(" + ", ".join(f"'{name}', {value}" for name, value in ranked) + ")"


def _field(at: int, kind: DataType) -> str:
    """Return the field of a rank that is the value at that place, as the table gets it."""
    return _BY if at == 0 and not _is_unsigned(kind) else f"c{at}"


def _ordered(value: str, kind: DataType) -> str:
    """Return a value that Spark orders as the table does: SPYT's uint64 has a sign there."""
    return f"CAST(CAST({value} AS STRING) AS DECIMAL(20, 0))" if _is_unsigned(kind) else value


def _is_unsigned(kind: DataType) -> bool:
    return kind.typeName() == "uint64"


_SPYTS = ("uint64", "datetime", "date32", "datetime64", "timestamp64", "interval64")


def verify(rows: DataFrame, name: str) -> None:
    """Raise JobError for rows with types of SPYT's, which Spark 3.5 cannot aggregate.

    SpecificInternalRow gives them a MutableAny, and the generated code wants a MutableInt.
    """
    found = [field.name for field in rows.schema if field.dataType.typeName() in _SPYTS]
    if found and rows.sparkSession.version < "4":
        raise JobError(
            f"newest() of {name!r} gets columns of SPYT's own types ({', '.join(found)}), and "
            f"Spark {rows.sparkSession.version} cannot find the greatest of their values",
            "use Spark 4, cast them, or write a function; nothing was started",
            code=ErrorCode.TABLES,
        )


# -- a function


def _asked(
    rows: DataFrame, columns: Sequence[Column], key: Sequence[str], stored: Stored
) -> DataFrame:
    """Return the keys of the batch, with what the table has of each."""
    parts = rows.sparkSession.sparkContext.defaultParallelism
    keys = rows.select(*map(_column, key)).repartition(parts, *map(_column, key)).distinct()
    like = StructType([rows.schema[column.name] for column in columns if not column.key])
    return stored.rows(keys, like, _OLD)


def _given(rows: DataFrame, asked: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return the rows that a merge function gets."""
    there = asked.filter(F.col(_OLD)).select(
        *(_column(c.name if c.key else f"{_OLD}{c.name}").alias(c.name) for c in columns),
        F.lit(True).alias(IS_STORED),
    )
    return rows.withColumn(IS_STORED, F.lit(False)).unionByName(there, allowMissingColumns=True)


def called(
    rule: Callable[[DataFrame], DataFrame], given: DataFrame, name: str, columns: Sequence[Column]
) -> DataFrame:
    """Return the columns of the output and DELETED out of what a merge function makes of rows.

    Raises JobError for other rows than those that were wanted.
    """
    maker = f"MERGE[{name!r}]"
    with user_function(maker):
        made = rule(given)
    if not isinstance(made, DataFrame):
        raise JobError(
            f"{maker} returns {made!r}, wanted a DataFrame",
            "return at most one row of each key",
            code=ErrorCode.USER_CODE,
        )
    if DELETED not in made.columns:
        made = made.withColumn(DELETED, F.lit(False))
    elif not isinstance(made.schema[DELETED].dataType, BooleanType):
        raise JobError(
            f"{maker} returns {made.schema[DELETED].simpleString()}, wanted a boolean",
            "give DELETED true or false",
            code=ErrorCode.TABLES,
        )
    more = [column for column in (DELETED, IS_STORED) if column in made.columns]
    verify_columns(name, made.drop(*more), tuple(columns), maker)
    return made.drop(IS_STORED)


def given_schema(rows: StructType) -> StructType:
    """Return the schema of what a merge function gets, for rows of a batch with this one."""
    fields = (StructField(field.name, field.dataType, True) for field in rows)
    return StructType([*fields, StructField(IS_STORED, BooleanType(), False)])


def _decided(made: DataFrame, asked: DataFrame, columns: Sequence[Column], name: str) -> DataFrame:
    """Return the rows of all keys, of those that a function returns with what becomes of each.

    A key with two rows fails its task, and so does one that is not in the batch.
    """
    key = [column.name for column in columns if column.key]
    values = [column.name for column in columns if not column.key]
    keys, is_deleted = [*map(_column, key)], F.coalesce(F.col(DELETED), F.lit(False))
    row = F.struct(*map(_column, values), is_deleted.alias(DELETED))
    returned = made.select(*keys, row.alias(_RANK), F.lit(1), F.lit(0), F.lit(0))
    no_row = F.lit(None).cast(returned.schema[_RANK].dataType)
    known = asked.select(*keys, no_row, F.lit(0), F.lit(1), F.col(_OLD).cast("int"))
    marks = returned.toDF(*key, _RANK, *_MARKS).union(known)
    parts = made.sparkSession.sparkContext.defaultParallelism
    sums = (F.sum(one).alias(one) for one in _MARKS)
    first = F.first(_RANK, ignorenulls=True).alias(_RANK)
    found = marks.repartition(parts, *keys).groupBy(*keys).agg(first, *sums)
    wrong = F.when(F.col(_RETURNED) > 1, F.lit(_TWICE)).when(F.col(_IS_ASKED) == 0, F.lit(_FOREIGN))
    shown = row_json.readable(StructType([made.schema[part] for part in key]), {*()})
    said = F.concat(F.lit(f"{_BEGIN}{name!r}] returns "), wrong, shown, F.lit(_END))
    row = F.col(_RANK)
    deleted = F.when(F.col(_IS_THERE) > 0, REMOVED).otherwise(UNCHANGED)
    change = F.when(wrong.isNotNull(), F.raise_error(said).cast("int"))
    change = change.when(F.col(_RETURNED) == 0, UNCHANGED).when(row.getField(DELETED), deleted)
    made_of = [row.getField(part).alias(part) for part in values]
    return found.select(*keys, *made_of, change.otherwise(CHANGED).alias(CHANGE))


def job_error(error: Exception, batch: str) -> JobError | None:
    """Return the error of ``_decided`` as one line; None for any other one."""
    found = re.search(f"{re.escape(_BEGIN)}(.*?){re.escape(_END)}", str(error))
    if found is None:
        return None
    return JobError(
        f"the job cannot continue: in {batch} MERGE[{found[1]}: it may return one row of each key "
        "that it gets, and rows of no other key",
        "correct the function in transform.py, e.g. group by the key; committed rows are kept",
        code=ErrorCode.DUPLICATE_KEY,
    )


def _column(name: str) -> Expression:
    return F.col(_quoted(name))


def _quoted(name: str) -> str:
    return f"`{name}`"

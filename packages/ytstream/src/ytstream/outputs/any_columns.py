"""What a job with `any` columns needs: ``json_of`` in SQL, no other text of them, and valid bytes.

Spark holds YSON in a type of SPYT's (YsonType) whose value in Java prints as YsonBinary([B@1f2e3d).
Most functions on texts refuse the type. A cast and the functions of ``_PRINTING`` do not.

An output takes bytes as well. The cluster parses them, and refuses the whole request without a
name (client/table_client/unversioned_row.cpp, ValidateAnyValue).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import yt.type_info as ti
from pyspark.errors import PySparkException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from ..connector import json_of
from ..connector.compile_java import unavailable
from ..connector.spark_plan import Expression as PlanExpression
from ..connector.spark_plan import analysed
from ..declaration.user_errors import place
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import Job
from ..schema.columns import Column
from ..schema.spark_types import holds_any
from ..spark.spark_errors import cause

_PRINTING = ("format_string", "printf", "to_xml")
"""Functions that print what they are given."""
_CASTS = ("Cast", "TryCast")
_NAMED = ('the type UDT("BINARY")', 'the type "BINARY"')
"""What Spark calls the type where a function does not take it: since Spark 4, and before."""
_REMEDY = (
    "take the value of an `any` column as JSON text: json_of(column), by `from ytstream import "
    "json_of` in Python and by its name in SQL"
)
_BEGIN, _END = "bytes that are not YSON in column ", " (end of value)"
"""Around the message: Spark puts its error condition before it, and the stack behind."""


@contextmanager
def prepared(
    spark: SparkSession, job: Job, maker: str, code: ErrorCode = ErrorCode.PLAN
) -> Iterator[None]:
    """Let the SQL of ``maker`` call ``json_of``.

    Raises JobError where it does and cannot, and for a function that does not read the raw column.
    """
    if _has_any(job):
        json_of.register(spark)
    try:
        yield
    except PySparkException as error:
        text = str(error)
        if "UNRESOLVED_ROUTINE" in text and "`json_of`" in text:
            json_of.verify_available(spark)
        if _has_any(job) and any(named in text for named in _NAMED):
            raise JobError(f"{maker}: {cause(text)}{place(error)}", _REMEDY, code=code) from error
        raise


def verify(rows: DataFrame, job: Job, maker: str, code: ErrorCode = ErrorCode.PLAN) -> None:
    """Raise JobError if the plan of ``rows``, which ``maker`` gives, prints a value of `any`."""
    printed = next(_printed(rows), None) if _has_any(job) else None
    if printed is not None:
        raise JobError(
            f"{maker}: {printed.sql} prints the Java object that holds an `any` value, such as "
            "YsonBinary([B@1f2e3d)",
            _REMEDY,
            code=code,
        )


def checked(rows: DataFrame, output: str, columns: Sequence[Column]) -> DataFrame:
    """Return the rows of ``output``. Bytes for an `any` column that it refuses fail their task.

    A column of SPYT's type is not checked: its values come out of a table, or of SPYT's own cast,
    which checks them.
    """
    names = {column.name for column in columns if column.type == ti.Yson}
    given = [field.name for field in rows.schema if isinstance(field.dataType, BinaryType)]
    if names.isdisjoint(given) or unavailable(rows.sparkSession):
        return rows
    return rows.withColumns({n: _checked(rows, n, output) for n in given if n in names})


def _checked(rows: DataFrame, name: str, output: str) -> Expression:
    value = F.col(f"`{name}`")
    problem = json_of.problem_of(rows.sparkSession, value)
    said = F.concat(F.lit(f"{_BEGIN}{name} of {output!r}: "), problem, F.lit(_END))
    return F.when(problem != "", F.raise_error(said).cast("binary")).otherwise(value)


def job_error(error: Exception, batch: str) -> JobError | None:
    """Return the error of ``checked`` as one line; None for any other one."""
    found = re.search(f"{_BEGIN}(.*?) of (.*?){re.escape(_END)}", str(error))
    if found is None:
        return None
    return JobError(
        f"the job cannot continue: {batch} has bytes that are not YSON in column {found[1]} of "
        f"{found[2]}",
        "let transform.py give bytes of valid YSON, without attributes of the value itself, or the "
        "`any` column of a queue as it is; or store text in a column of another type; `capture "
        "failed` keeps the rows of the batch; committed rows are kept",
        code=ErrorCode.BATCH_FAILED,
    )


def _has_any(job: Job) -> bool:
    looked_up = (column for columns in job.lookup_columns.values() for column in columns)
    return holds_any((*job.queue_columns, *job.reference_columns, *looked_up))


def _printed(rows: DataFrame) -> Iterator[PlanExpression]:
    """Yield the expressions that print a value of `any`, of the whole plan."""
    pending = [expression for node in analysed(rows).walk() for expression in node.expressions]
    while pending:
        expression = pending.pop()
        if _is_printed(expression):
            yield expression
        pending += expression.children


def _is_printed(expression: PlanExpression) -> bool:
    if expression.name in _CASTS:
        return _prints(expression.children[0].type, expression.type)
    given = expression.children if expression.function in _PRINTING else ()
    return any(_has_yson(child.type) for child in given)


def _prints(given: DataType, wanted: DataType) -> bool:
    """Return whether a cast makes a text of YSON, in any part of the type."""
    if isinstance(wanted, StringType):
        return _has_yson(given)
    return any(_prints(*pair) for pair in zip(_parts(given), _parts(wanted), strict=False))


def _has_yson(kind: DataType) -> bool:
    return kind.typeName() == "yson" or any(_has_yson(part) for part in _parts(kind))


def _parts(kind: DataType) -> list[DataType]:
    if isinstance(kind, StructType):
        return [field.dataType for field in kind]
    if isinstance(kind, ArrayType):
        return [kind.elementType]
    return [kind.keyType, kind.valueType] if isinstance(kind, MapType) else []

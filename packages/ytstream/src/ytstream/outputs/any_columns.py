"""What a job with `any` columns needs: ``json_of`` in SQL, and no text of such a column but that.

Spark holds YSON in a type of SPYT's (YsonType) whose value in Java prints as YsonBinary([B@1f2e3d).
Most functions on texts refuse the type. A cast and the functions of ``_PRINTING`` do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from ..connector import json_of
from ..connector.spark_plan import Expression, analysed
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import Job
from ..schema.spark_types import holds_any

#: Functions that print what they are given.
_PRINTING = ("format_string", "printf", "to_xml")
_CASTS = ("Cast", "TryCast")


@contextmanager
def prepared(spark: SparkSession, job: Job) -> Iterator[None]:
    """Let the SQL of the job call ``json_of``. Raises JobError where it does, and it cannot run."""
    if _has_any(job):
        json_of.register(spark)
    try:
        yield
    except PySparkException as error:
        if "UNRESOLVED_ROUTINE" in (text := str(error)) and "`json_of`" in text:
            json_of.verify_available(spark)
        raise


def verify(rows: DataFrame, job: Job, maker: str, code: ErrorCode = ErrorCode.PLAN) -> None:
    """Raise JobError if the plan of ``rows``, which ``maker`` gives, prints a value of `any`."""
    printed = next(_printed(rows), None) if _has_any(job) else None
    if printed is not None:
        raise JobError(
            f"{maker}: {printed.sql} prints the Java object that holds an `any` value, such as "
            "YsonBinary([B@1f2e3d)",
            "take the value as JSON text: json_of(column), by `from ytstream import json_of` in "
            "Python and by its name in SQL",
            code=code,
        )


def _has_any(job: Job) -> bool:
    return holds_any((*job.queue_columns, *job.reference_columns))


def _printed(rows: DataFrame) -> Iterator[Expression]:
    """Yield the expressions that print a value of `any`, of the whole plan."""
    pending = [expression for node in analysed(rows).walk() for expression in node.expressions]
    while pending:
        expression = pending.pop()
        if _is_printed(expression):
            yield expression
        pending += expression.children


def _is_printed(expression: Expression) -> bool:
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

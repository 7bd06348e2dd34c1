"""``json_of``: an `any` column as JSON text, computed in the JVM (``jvm/JsonOf.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import JobError
from ..errors.error_codes import ErrorCode

if TYPE_CHECKING:  # a job can be declared without Spark
    from pyspark.sql import Column, SparkSession

_EXPRESSION = "ytstream.JsonOf"
"""The expression of Spark's, in Java."""


def json_of(column: Column | str) -> Column:
    """Return the JSON text of an `any` column, or of the column with that name.

    Null gives null. Integers keep all digits. The text is in YTsaurus' JSON format: a value with
    attributes is ``{"$attributes": {...}, "$value": ...}``, a key that begins with ``$`` gets one
    more ``$``, and infinities and NaN are the texts ``"inf"``, ``"-inf"`` and ``"nan"``. A string
    that is not UTF-8 is ``{"$bytes": "<base64>"}``, and such a key is ``"$bytes:<base64>"``.

    Read the text with Spark's functions: ``get_json_object``, ``from_json``, or ``parse_json``
    since Spark 4. REJECT and other SQL call the function by the same name.

    Args:
        column: a column of type `any`, or its name
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    spark = SparkSession.active()
    verify_available(spark)
    return _computed(spark, F.col(column) if isinstance(column, str) else column)


def problem_of(spark: SparkSession, column: Column) -> Column:
    """Return why an `any` column takes no such bytes: empty if it does, null for null."""
    return _computed(spark, column, True)


def _computed(spark: SparkSession, column: Column, *arguments: object) -> Column:
    from .java import Java, jvm_of
    from .pyspark_internals import computed

    return computed(column, _EXPRESSION, Java(jvm_of(spark)), *arguments)


def register(spark: SparkSession) -> None:
    """Let SQL call ``json_of`` in this session, where it is available."""
    from .compile_java import unavailable
    from .java import Java, jvm_of

    if not unavailable(spark):
        registry = spark._jsparkSession.sessionState().functionRegistry()
        Java(jvm_of(spark))[f"{_EXPRESSION}.register"](registry)


def verify_available(spark: SparkSession) -> None:
    """Raise JobError unless this session can compute ``json_of``."""
    from .compile_java import unavailable

    if problem := unavailable(spark):
        raise JobError(
            f"json_of() does not run here, since its Java cannot be compiled: {problem}",
            "let the job run on a Spark that carries Janino, as each release does; or read the "
            "column with a Python function (F.udf), which gets its value",
            code=ErrorCode.NOT_INSTALLED,
        )

"""The schema of a Python state, as Spark 4.2's workers can read it: see StateSchema.java."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from .compile_java import STATE_SCHEMA, unavailable
from .java import Java, jvm_of
from .spark_plan import analysed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def readable(rows: DataFrame) -> DataFrame:
    """Return the same rows; each state of applyInPandasWithState() has a schema workers can read.

    Raises JobError where this Spark needs the compiled class and it cannot be made.
    """
    spark = rows.sparkSession
    plan = analysed(rows)
    if spark.version < "4.2" or not any(node.state_function for node in plan.walk()):
        return rows
    if problem := unavailable(spark):
        raise JobError(
            f"applyInPandasWithState() does not work on Spark {spark.version} here: {problem}",
            "run this job on Spark 4.1: `cruft update` with spark_version 4.1",
            code=ErrorCode.PLAN,
        )
    java = Java(jvm_of(spark))
    made = java[f"{STATE_SCHEMA}.inPlan"](plan.jvm)
    return type(rows)(java[f"{_DATASET}.ofRows"](spark._jsparkSession, made), spark)


_DATASET = "org.apache.spark.sql.classic.Dataset"

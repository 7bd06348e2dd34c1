"""Archives without `by`: when a row of the queue was written, at hand where its rows are finished.

transform() and outputs() do not see the column, and a select() of theirs would drop it. So it is
carried through their plans.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..connector.carried_rows import is_lost_at, with_column
from ..connector.java import Java, jvm_of
from ..connector.spark_plan import analysed
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED, Job
from ..spark.source import ARRIVED

_MARK = "ytstream_arrived"
"""What is observed of the rows that outputs() gets."""


def streamed(rows: DataFrame, job: Job) -> DataFrame:
    """Return the finished rows of a stream with the time at which their rows were written.

    Raises JobError where nobody can tell it.
    """
    if not job.arrivals:
        return rows
    _verify(rows, job.arrivals[0], REJECTED, "transform()")
    return _carried(rows, REJECTED)


def visible(rows: DataFrame, job: Job) -> DataFrame:
    """Return finished rows as outputs() gets them."""
    if not job.arrivals:
        return rows
    return rows.observe(_MARK, F.count(F.lit(1)).alias("rows")).drop(ARRIVED)


def verify(frame: DataFrame, name: str) -> None:
    """Raise JobError where nobody can tell that time of the rows that outputs() returns."""
    _verify(frame, name, _MARK, "outputs()")


def of_output(frame: DataFrame, name: str, job: Job) -> DataFrame:
    """Return the rows of an output of ``visible`` rows, with that time if it is an archive by it.

    Raises JobError where nobody can tell it.
    """
    if name not in job.arrivals:
        return frame
    verify(frame, name)
    return _carried(frame, _MARK)


def _verify(rows: DataFrame, name: str, mark: str, function: str) -> None:
    if lost := is_lost_at(analysed(rows), mark, runs_once=True):
        raise JobError(
            f"STATIC[{name!r}] has no by=: behind {lost} of {function}, the job cannot tell when "
            "the rows of the queue were written that a row was made of",
            "name a column of the output with by=",
            code=ErrorCode.PLAN,
        )


def _carried(rows: DataFrame, mark: str) -> DataFrame:
    return with_column(rows, mark, ARRIVED, Java(jvm_of(rows.sparkSession)))

"""From the rows of a micro-batch to the rows of each output, each of them computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from ..connector.pyspark_internals import QueryStartedError, free, without_queries
from ..connector.state_schema import readable
from ..connector.transform_plan import is_unique_by
from ..declaration.lookups import References, available
from ..declaration.user_errors import place
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED, Job, JobContext
from ..schema import string_values
from ..schema.changes import Merge, Newest
from ..schema.columns import Column, is_totals, key_of
from ..schema.spark_types import line_of_tables, unwritable
from . import any_columns, arrivals, column_values, string_columns

_ON_A_STREAM = (
    "Queries with streaming sources must be executed with writeStream.start()",
    "can not be called on streaming Dataset/DataFrame",
)
"""What Spark says of an action on a stream (Spark, UnsupportedOperationChecker), and of the calls
that it knows for one (Spark, Dataset)."""
Frames = Mapping[str, DataFrame]
"""Name of an output -> its rows."""


@dataclass(frozen=True)
class OutputFrames:
    """How the rows that the query streams become those of each output."""

    context: JobContext
    reference: DataFrame | None = None
    references: References | None = None
    """What lookup() reads."""
    unproven: frozenset[str] = frozenset()
    """Outputs in which two rows of a batch may share a key, as far as the plan shows."""

    @property
    def are_streamed(self) -> bool:
        """Whether the rows that the query streams are those of the one output, as they are."""
        job = self.context.job
        return not (self.are_computed_first or job.snapshots or job.merge)

    @property
    def are_computed_first(self) -> bool:
        """Whether the rows of a batch are computed before any output is written.

        So they are where a row is looked at more than once, and where it must be known how many
        rows were skipped: nothing removes what was written outside of a transaction.
        """
        job = self.context.job
        may_be_refused = job.rejects or job.kind.is_stateful
        is_judged_first = may_be_refused and not self.context.guarantee.in_transaction
        is_read_again = any(not isinstance(rule, Newest) for rule in job.merge.values())
        return is_judged_first or job.split is not None or bool(self.unproven) or is_read_again

    def remarks(self) -> Iterator[str]:
        """Yield a line for each output in which two rows of a batch may have one key."""
        for name in sorted(self.unproven):
            job = self.context.job
            key = ", ".join(key_of(job.output_columns[name]))
            yield (
                f"two rows of a micro-batch may have the same key ({key}) of {name!r}, as far as "
                f"the plan shows, and such a batch ends the job: {_for_one_row(job, name)}"
            )

    def transformed(self, events: DataFrame) -> DataFrame:
        """Return what transform() makes of the events."""
        more = [] if self.reference is None else [self.reference]
        job = self.context.job
        name = "transform()"
        with (
            available(self.references),
            any_columns.prepared(events.sparkSession, job, name),
            user_function(name),
        ):
            rows = job.transform(events, *more)
        if not isinstance(rows, DataFrame):
            raise JobError(
                f"transform() returns {rows!r}, wanted a DataFrame",
                "return the rows",
                code=ErrorCode.USER_CODE,
            )
        any_columns.verify(rows, job, name)
        return readable(rows) if job.kind.is_stateful else rows

    def split(self, rows: DataFrame) -> Frames:
        """Return what outputs() makes of the finished rows; without it all go to "output".

        Raises JobError unless it returns a DataFrame for each output, and for no other.
        """
        job = self.context.job
        if job.split is None:
            return {"output": rows}
        with available(self.references), user_function("outputs()"):
            frames = job.split(rows)
        wanted = job.outputs.keys() - {REJECTED if job.rejects else ""}
        if not isinstance(frames, Mapping):
            raise JobError(
                f"outputs() returns {frames!r}, wanted a dict of DataFrames by output",
                "correct transform.py",
                code=ErrorCode.USER_CODE,
            )
        problems = [f"{name}: not returned" for name in sorted(wanted - frames.keys())]
        problems += [f"{name}: not in OUTPUTS" for name in sorted(map(str, frames.keys() - wanted))]
        problems += [
            f"{n}: not a DataFrame" for n in frames if not isinstance(frames[n], DataFrame)
        ]
        if problems:
            raise JobError(
                "outputs() and OUTPUTS in tables.py disagree:\n  " + "\n  ".join(problems),
                "correct transform.py or tables.py",
                code=ErrorCode.TABLES,
            )
        return frames

    def finished(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        """Give the finished rows of transform() while they are needed, computed if need be."""
        return computed(rows) if self.are_computed_first else nullcontext(rows)

    def of(self, finished: DataFrame) -> Frames:
        """Return the rows of each output. Raises JobError if two share a key."""
        job = self.context.job
        frames = self.split(arrivals.visible(finished, job))
        # outputs() may have made another plan of these rows than of none, at the start.
        for name in self.unproven if job.split is None else unproven(self.context, frames):
            _verify_unique(job, name, frames[name])
        columns = job.output_columns
        return {
            name: column_values.verified(
                arrivals.of_output(rows, name, job), name, columns[name], ordering(job, name)
            )
            for name, rows in frames.items()
        }


@contextmanager
def user_function(name: str) -> Iterator[None]:
    """Raise JobError for an error in the user's function that is not Spark's.

    It must leave the stream alone: an action would need its rows, and a query of its own would
    read the queues past the ledger.
    """
    try:
        with without_queries():
            yield
    except QueryStartedError as error:
        raise JobError(
            f"{name} starts a query of its own{place(error)}. It was not started: the job has one "
            "query, and the ledger covers only that",
            "return the rows instead of writeStream...start(); for rows of another kind, name one "
            "more output in OUTPUTS and return it from outputs()",
            code=ErrorCode.PLAN,
        ) from error
    except PySparkException as error:
        if not any(said in str(error) for said in _ON_A_STREAM):
            raise
        raise JobError(
            f"{name} runs an action, such as count(), collect() or show(), on the rows of the "
            f"stream{place(error)}: there are none before a batch",
            "remove the action; outputs() may run one on the rows of each batch, and `preview` "
            "shows rows of the sample",
            code=ErrorCode.PLAN,
        ) from error
    except (JobError, Py4JError):
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}{place(error)}"
        raise JobError(
            f"{name} failed: {problem}", "correct transform.py", code=ErrorCode.USER_CODE
        ) from error


@contextmanager
def computed(rows: DataFrame) -> Iterator[DataFrame]:
    """Run the plan of ``rows`` now, and yield its rows until the end.

    A local checkpoint, not a cache: what an executor loses with it is not computed again, with
    other values or from a state that has moved on; the batch fails and runs again.
    """
    done = rows.localCheckpoint(eager=True)
    try:
        yield done
    finally:
        free(done)


def ordering(job: Job, name: str) -> str:
    """Return the column that says which row of a key is the newest; empty without one."""
    rule = job.merge.get(name)
    return rule.sequence_by if isinstance(rule, Newest) else ""


def verify_columns(
    name: str, rows: DataFrame, columns: tuple[Column, ...], maker: str, merge: Merge | None = None
) -> None:
    """Raise JobError unless ``rows`` has exactly the output's columns, in types it can hold.

    A missing column would be written as null in every row; an extra one ends the first batch. The
    rows that MERGE gets may have more: it says which of them the table gets.
    """
    table = {column.name: column for column in columns}
    found = {field.name: field.dataType for field in rows.schema.fields}
    missing, extra = table.keys() - found.keys(), found.keys() - table.keys()
    flag = merge.apply_as_deletes if isinstance(merge, Newest) else None
    if merge is not None:
        extra = extra - {flag} if isinstance(merge, Newest) else set()
    problems = [f"column {name}: not returned by {maker}" for name in missing]
    if flag is not None and found.get(flag) != BooleanType():
        gives = found[flag].simpleString() if flag in found else "no such column"
        problems.append(f"apply_as_deletes={flag!r}: {maker} gives {gives}, wanted a boolean")
    for column in extra:
        # Of a column of totals nobody but the owner knows the function.
        line = None if is_totals(columns) else line_of_tables(column, found[column])
        more = f"; to keep it, add {line} there" if line is not None else ""
        problems.append(f"column {column}: returned by {maker}, not in OUTPUTS{more}")
    shared = table.keys() & found.keys()
    problems += filter(None, (unwritable(table[name], found[name], maker) for name in shared))
    if len(found) != len(rows.columns):
        problems.append(f"duplicate column name: {', '.join(rows.columns)}")
    if problems:
        raise JobError(
            f"{maker} and OUTPUTS[{name!r}] in tables.py disagree:\n  "
            + "\n  ".join(sorted(problems)),
            "correct transform.py or tables.py; nothing was started",
            code=ErrorCode.TABLES,
        )


def unproven(context: JobContext, frames: Frames) -> frozenset[str]:
    """Return the outputs in which, by the plan, two rows of a batch may share a key."""
    position = context.guarantee.key(len(context.settings.queues))
    keys = {name: key_of(context.job.output_columns[name]) for name in frames}
    return frozenset(
        name
        for name, rows in frames.items()
        if keys[name] and keys[name] != position
        if name not in context.job.totals and name not in context.job.merge
        if not is_unique_by(rows, keys[name])
    )


def _verify_unique(job: Job, name: str, rows: DataFrame) -> None:
    """Raise JobError for a key that two rows of the batch share: it is undefined which is kept."""
    key, spark = key_of(job.output_columns[name]), rows.sparkSession
    # In as many parts as there are cores: a stream has no adaptive plan on Spark 3.5.
    parted = rows.select(*key).repartition(spark.sparkContext.defaultParallelism, *key)
    repeated = parted.groupBy(*key).agg(F.count(F.lit(1)).alias("rows")).filter("rows > 1")
    twice = string_columns.crossing(repeated).head(1)
    if twice:
        values = ", ".join(f"{column}={_shown(twice[0][column])}" for column in key)
        raise JobError(
            f"{twice[0]['rows']} rows of one micro-batch have the key {values} of {name!r}: it "
            "is undefined which one is kept",
            _for_one_row(job, name),
            code=ErrorCode.DUPLICATE_KEY,
        )


def _shown(value: object) -> str:
    """Return a value of ``crossing`` for a message."""
    if isinstance(value, str):
        value = string_values.canonical(string_columns.from_python(value))
    return string_values.shown(value)


def _for_one_row(job: Job, name: str) -> str:
    """Return what to do so that a batch has one row of each key of the output."""
    if job.kind.output_mode == "update" and job.split is None:
        key = ", ".join(key_of(job.output_columns[name]))
        return f"group by the key in transform(), by nothing else: {key}"
    return (
        "let one row of each key through in outputs() of transform.py, for instance "
        "latest(rows, key, by) of ytstream"
    )

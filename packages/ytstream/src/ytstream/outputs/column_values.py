"""Finds a value that its column cannot hold before the row goes to the cluster.

The cluster refuses a null in a required column, and names no row. A negative number in an unsigned
column it never sees: SPYT sends its bits as those of a positive one
(DynTableRowConverter.toUnsignedLong).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..schema.columns import Column, key_of, spelled
from . import any_columns, row_json
from .unsigned_values import outside, span

_BEGIN, _END = "a value that its column cannot hold: ", " (end of row)"
"""Around the message: Spark puts its error condition before it, and the stack behind."""
_NULL = "a null in column "
_SHOWN_COLUMNS, _SHOWN = 10, 300
"""The message shows this many columns of a row without a key, and characters: Spark generates code
for each column, and compiles it with the query."""


def verified(
    rows: DataFrame, output: str, columns: Sequence[Column], ordering: str = ""
) -> DataFrame:
    """Return the rows of ``output``. A row with a value that its column cannot hold fails its task.

    The message has the key of the row, or the row: its position under `idempotent`. A column that
    holds all values that the plan gives it is not checked. A null in the column ``ordering`` is
    such a value. Columns that the table does not have are for MERGE.
    """
    rows = any_columns.checked(rows, output, columns)
    found = [*_problems(rows.schema, columns, output, ordering)]
    if not found:
        return rows
    # Not one condition of them all: its levels would be as many, see balanced.py.
    problem = F.coalesce(*found)
    shown = F.concat(F.lit(_BEGIN), problem, F.lit(": "), _row(rows.schema, columns), F.lit(_END))
    name = rows.columns[0]
    first = F.col(f"`{name}`")
    checked = F.when(problem.isNotNull(), F.raise_error(shown)).otherwise(first).alias(name)
    # Not a filter: Spark moves one below a projection, and computes the columns a second time.
    return rows.select(checked, *(F.col(f"`{other}`") for other in rows.columns[1:]))


def _problems(
    row: StructType, columns: Sequence[Column], output: str, ordering: str
) -> Iterator[Expression]:
    """Yield for each column that is checked what is wrong with its value, null if nothing is."""
    table = {column.name: column for column in columns}
    for field in (field for field in row if field.name in table):
        column, value = table[field.name], F.col(f"`{field.name}`")
        if field.nullable and field.name == ordering:
            said = F.lit(f"a null in column {field.name} of {output!r}, by which MERGE orders rows")
            yield F.when(value.isNull(), said)
        elif field.nullable and column.required:
            said = F.lit(f"a null in column {field.name} of {output!r}, which is required")
            yield F.when(value.isNull(), said)
        is_float = field.dataType.typeName() in ("double", "float")
        if is_float and (column.key or field.name == ordering):
            use = "is a key" if column.key else "orders the rows of a key"
            said = F.lit(f"NaN in column {field.name} of {output!r}, which {use}")
            yield F.when(F.isnan(value), said)
        if column.aggregate is not None and is_float:
            # A sum keeps it for ever, and min and max depend on the order (YTsaurus,
            # builtin_function_profiler.cpp).
            said = F.lit(f"NaN in column {field.name} of {output!r}, which has aggregate=")
            yield F.when(F.isnan(value), said)
        if (is_outside := outside(column.type, field.dataType)) is not None:
            where = f" in column {field.name} of {output!r}, which has {spelled(column.type)}"
            said = F.concat(_shown(field, value), F.lit(f"{where}{span(column.type)}"))
            yield F.when(is_outside(value), said)


def _shown(field: StructField, value: Expression) -> Expression:
    """Return a value for the message."""
    is_plain = field.dataType.typeName() not in ("array", "map", "struct")
    text = value.cast("string") if is_plain else row_json.readable(StructType([field]), {})
    return F.substring(text, 1, _SHOWN)


def _row(row: StructType, columns: Sequence[Column]) -> Expression:
    """Return the key of a row for the message, or the beginning of a row without a key."""
    key = key_of(columns)
    strings = {column.name for column in columns if "string" in str(column.type).lower()}
    fields = [field for field in row if not key or field.name in key]
    shown = StructType(fields if key else fields[:_SHOWN_COLUMNS])
    return F.substring(row_json.readable(shown, strings), 1, _SHOWN)


def job_error(error: Exception, batch: str) -> JobError | None:
    """Return the error of ``verified`` as one line; None for any other one."""
    found = re.search(f"{_BEGIN}(.*?){re.escape(_END)}", str(error))
    if found is None:
        return any_columns.job_error(error, batch)
    is_null = found[1].startswith(_NULL)
    remedy = (
        "give the column a value in transform.py (coalesce), or keep such rows out with REJECT; or "
        "let it hold null: required=False in tables.py, and a table whose column is optional"
        if is_null
        else "keep such rows out with REJECT, or make the value null in transform.py, e.g. "
        "when(n >= 0, n); or store it in a column of another type; `capture failed` keeps the rows "
        "of the batch"
    )
    return JobError(
        f"the job cannot continue: {batch} has {found[1]}",
        f"{remedy}; committed rows are kept",
        code=ErrorCode.REQUIRED_NULL if is_null else ErrorCode.BATCH_FAILED,
    )

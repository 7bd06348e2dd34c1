"""Finds a null in a required column before the row goes to the cluster, which would name no row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..schema.columns import Column, key_of
from . import any_columns, row_json

#: Around the message: Spark puts its error condition before it, and the stack behind.
_BEGIN, _END = "null in a required column: ", " (end of row)"
#: The message shows this many columns of a row without a key, and characters: Spark generates code
#: for each column, and compiles it with the query.
_SHOWN_COLUMNS, _SHOWN = 10, 300


def verified(rows: DataFrame, output: str, columns: Sequence[Column]) -> DataFrame:
    """Return the rows of ``output``. A row with a null in a required column fails its task.

    The message has the key of the row, or the row: its position under `idempotent`. A column that
    cannot be null by the plan is not looked at.
    """
    rows = any_columns.checked(rows, output, columns)
    required = {column.name for column in columns if column.required}
    names = [field.name for field in rows.schema if field.nullable and field.name in required]
    if not names:
        return rows
    is_null = {name: F.col(f"`{name}`").isNull() for name in names}
    column = F.coalesce(*(F.when(null, F.lit(name)) for name, null in is_null.items()))
    key = key_of(columns)
    strings = {column.name for column in columns if "string" in str(column.type).lower()}
    fields = [field for field in rows.schema if not key or field.name in key]
    shown = StructType(fields if key else fields[:_SHOWN_COLUMNS])
    row = row_json.readable(shown, strings)
    said = F.concat(F.lit(f"{_BEGIN}{output!r}, column "), column, F.lit(", row "))
    failed = F.raise_error(F.concat(said, F.substring(row, 1, _SHOWN), F.lit(_END)))
    first, any_null = F.col(f"`{names[0]}`"), reduce(Expression.__or__, is_null.values())
    checked = {names[0]: F.when(any_null, failed).otherwise(first).alias(names[0])}
    # Not a filter: Spark moves one below a projection, and computes the columns a second time.
    return rows.select(*(checked.get(name, F.col(f"`{name}`")) for name in rows.columns))


def explained(error: Exception, batch: str) -> JobError | None:
    """Return the error of ``verified`` as one line; None for any other one."""
    found = re.search(f"{_BEGIN}(.*?){re.escape(_END)}", str(error))
    if found is None:
        return any_columns.explained(error, batch)
    output, _, where = found[1].partition(", column ")
    column, _, row = where.partition(", row ")
    return JobError(
        f"the job cannot continue: {batch} has a null in column {column} of {output}, which is "
        f"required: {row}",
        "give the column a value in transform.py (coalesce), or keep such rows out with REJECT; or "
        "let it hold null: required=False in tables.py, and a table whose column is optional; "
        "committed rows are kept",
        code=ErrorCode.REQUIRED_NULL,
    )

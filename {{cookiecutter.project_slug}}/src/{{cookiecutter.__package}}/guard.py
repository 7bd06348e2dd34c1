"""Refuses, before the query starts, what would break in some later batch."""

from pyspark.sql import DataFrame

from .errors import JobError
from .guarantee import KEY
from .schema import columns, unwritable
from .tables import OUTPUT


def verify(rows: DataFrame) -> None:
    """Raise JobError unless ``rows`` has exactly the output table's columns, in types it can hold.

    A column that is missing would be written as null in every row; one too many ends the first
    batch.
    """
    table = {column.name: column for column in [*KEY, *columns("OUTPUT", OUTPUT)]}
    found = {field.name: field.dataType for field in rows.schema.fields}
    missing, extra = table.keys() - found.keys(), found.keys() - table.keys()
    problems = [f"column {name}: not returned by transform()" for name in missing]
    problems += [f"column {name}: returned by transform(), not in OUTPUT" for name in extra]
    shared = table.keys() & found.keys()
    problems += filter(None, (unwritable(table[name], found[name]) for name in shared))
    if len(found) != len(rows.columns):
        problems.append(f"a column name stands twice: {', '.join(rows.columns)}")
    if problems:
        raise JobError(
            "transform() and tables.OUTPUT disagree:\n  " + "\n  ".join(sorted(problems)),
            "correct transform.py or tables.py; nothing was started",
        )

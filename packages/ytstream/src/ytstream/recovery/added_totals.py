"""Tables that get aggregate functions: their rows become what later ones are added to.

The cluster adds a function to a column of a table that is unmounted. It never changes one, and
never takes it away (YTsaurus, ytlib/table_client/schema.cpp, ValidateColumnSchemaUpdate).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cluster.table_extremes import extremes
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger.ledger_rows import Head
from ..schema.sums import Known, sums_of
from ..schema.table_schema import with_functions

_SECONDS = 600.0
"""Time for a table to say its greatest values: the job is stopped."""

Lacking = Mapping[str, tuple[list[str], Any]]
"""Output -> the columns that lack their function, and the schema with all of them."""


def lacking(context: JobContext) -> Lacking:
    """Return the outputs whose tables lack functions that tables.py names."""
    found = {}
    for name in context.job.totals:
        schema = context.client.get(f"{context.settings.outputs[name]}/@schema")
        columns, wanted = with_functions(context.job.output_columns[name], schema)
        if columns:
            found[name] = columns, wanted
    return found


def told(context: JobContext, wanted: Lacking) -> list[str]:
    """Return a line for each of these tables."""
    return [
        f"{context.settings.outputs[name]} adds up {', '.join(columns)} from now on: what its rows "
        "have there is where they begin. The table cannot lose this"
        for name, (columns, _) in wanted.items()
    ]


def add(context: JobContext, wanted: Lacking) -> None:
    """Give the tables their functions, and mount them. Each step may be repeated."""
    client, outputs = context.client, context.settings.outputs
    for name, (_, schema) in wanted.items():
        client.unmount_table(outputs[name], sync=True)
        client.alter_table(outputs[name], schema=schema)
    for name in context.job.totals:
        if client.get(f"{outputs[name]}/@tablet_state") != "mounted":
            client.mount_table(outputs[name], sync=True)


def bounds(context: JobContext, head: Head) -> Mapping[str, Known]:
    """Return the bounds of all sums. Tables that have got their functions are read whole.

    One that does not answer is not in it: see outputs/sum_bounds.py.
    """
    found = dict(head.sums)
    for name in context.job.totals:
        path, ends = context.settings.outputs[name], sums_of(context.job.output_columns[name])
        if found.get(path, {}).keys() != ends.keys() and (
            known := extremes(context.settings, path, ends, _SECONDS)
        ):
            found[path] = known
    return found


def verify_state(context: JobContext, head: Head) -> None:
    """Raise JobError for a job whose table had the totals, and whose state is to have them."""
    if "output" in head.marker.get("totals", ()) and context.job.kind.is_stateful:
        raise JobError(
            "the totals of this job were in its table, and without aggregate= on the columns of "
            "OUTPUTS['output'] they would be in a state, which begins empty",
            "restore aggregate= in tables.py; or name a new table for `output` in [outputs], run "
            "`provision`, and `rewind earliest`, which makes all totals again",
            code=ErrorCode.JOB_CHANGED,
        )

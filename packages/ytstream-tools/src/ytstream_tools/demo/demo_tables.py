"""Rows into the queues, rows out of the output table, and the count of what came through."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ytstream.cluster.client import Client
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger import archive_rows
from ytstream.schema.columns import Column
from ytstream.schema.periods import begin_of
from ytstream.settings.addresses import is_loopback
from ytstream.staging.staged_tables import NAME

from . import sample_types
from .job_sample import REASON, Counted, Float32, Sample, compared, counted, is_rejected

CHUNK = 5_000


def produce(
    client: Client, queue: str, rows: Sequence[Mapping[str, Any]], tablets: int, first: int = 0
) -> None:
    """Append ``rows`` to ``queue``, dealt out evenly over its ``tablets``."""
    dealt = [
        {**row, "$tablet_index": (first + number) % tablets} for number, row in enumerate(rows)
    ]
    for start in range(0, len(dealt), CHUNK):
        client.insert_rows(queue, dealt[start : start + CHUNK])


def fill(context: JobContext, sample: Sample, count: int, *, is_dry: bool = False) -> str:
    """Append ``count`` sample rows to each queue and, for a join, write the reference.

    Returns what was done, or would be. Raises JobError for a cluster that is not on this machine.
    """
    client, settings = context.client, context.settings
    if not is_loopback(settings.proxy):
        raise JobError(
            f"{settings.proxy} is not this machine: sample rows stay out of its queues",
            "start `python -m minicluster` here, and use the configuration config/local.toml",
            code=ErrorCode.OTHER_CLUSTER,
        )
    done: list[str] = []
    if not is_dry:
        fill_reference(context, sample)
    for number, queue in enumerate(settings.queues):
        tablets = int(client.get(f"{queue}/@tablet_count"))
        made = sample.make(count, number + 1)
        sample_types.verify("rows() in sample/rows.py", context.job.queue_columns, made)
        if not is_dry:
            produce(client, queue, made, tablets)
        done.append(f"{len(made)} sample rows{' would go' if is_dry else ''} into {queue}")
    return "\n".join([*done, "nothing was changed"] if is_dry else done)


def fill_reference(context: JobContext, sample: Sample) -> None:
    """Write the sample's rows into the reference table, if the job has one."""
    if context.settings.reference is not None:
        columns = context.job.reference_columns
        sample_types.verify("REFERENCE in sample/rows.py", columns, sample.reference)
        context.client.insert_rows(context.settings.reference, list(sample.reference))
    for name, path in context.settings.references.items():
        rows = sample.references_of(name)
        what = f"REFERENCES[{name!r}] in sample/rows.py"
        sample_types.verify(what, context.job.lookup_columns[name], rows)
        context.client.insert_rows(path, [*rows])


def rows_in(client: Client, queue: str) -> int:
    """Return the number of rows ever put into ``queue``, by its tablets' own count."""
    tablets = range(int(client.get(f"{queue}/@tablet_count")))
    infos = client.get_tablet_infos(queue, list(tablets))["tablets"]
    return sum(int(info["total_row_count"]) for info in infos)


def snapshots(client: Client, folder: str) -> list[str]:
    """Return the paths of our tables in the folder of a static output, in the order of time."""
    found = map(str, client.list(folder))
    names = sorted(name for name in found if NAME.fullmatch(name) or begin_of(name) is not None)
    return [f"{folder}/{name}" for name in names]


def static_tables(client: Client, ledger: str, output: str, folder: str) -> list[str]:
    """Return where all rows of a static output are: its tables, and what waits for its period."""
    rows = client.select_rows(archive_rows.pieces_query(ledger, output))
    pieces = sorted(archive_rows.piece_of(row).piece.path for row in rows)
    return [*snapshots(client, folder), *pieces]


def row_count(context: JobContext, output: str = "output") -> int:
    """Return how many rows the output has; a static one has those of all its tables."""
    client, path = context.client, context.settings.outputs[output]
    is_static = output in context.job.static
    ledger = context.settings.ledger
    paths = static_tables(client, ledger, output, path) if is_static else [path]
    return sum(int(client.get(f"{path}/@row_count")) for path in paths)


def read(client: Client, path: str, columns: Sequence[Column]) -> Counted:
    """Read all rows of a table as tuples of ``columns``, and how often each is there."""
    names = ", ".join(f"[{column.name}]" for column in columns)
    return counted(client.select_rows(f"{names} from [{path}]"), columns)


def read_output(context: JobContext, output: str) -> Counted:
    """Read an output: of a static one all tables; of rejected rows the queue's rows themselves."""
    client, settings, job = context.client, context.settings, context.job
    columns, path = compared(job, output), settings.outputs[output]
    if output in job.static:
        tables = static_tables(client, settings.ledger, output, path)
        return counted((row for table in tables for row in client.read_table(table)), columns)
    if not is_rejected(job, output):
        return read(client, path, columns)
    names = ", ".join(f"[{column.name}]" for column in job.queue_columns)
    sources = {
        (queue, row["$tablet_index"], row["$row_index"]): row
        for queue in settings.queues
        for row in client.select_rows(f"[$tablet_index], [$row_index], {names} from [{queue}]")
    }
    found = []
    for row in client.select_rows(f"* from [{path}]"):
        place = row.get("queue_id", settings.queues[0]), row["tablet_index"], row["row_index"]
        found.append({REASON: row["reason"], **sources[place]})
    return counted(found, columns)


def outcomes(
    context: JobContext, sample: Sample, sent: Sequence[Mapping[str, Any]]
) -> dict[str, OutputCounts]:
    """Compare each output with what must come of the rows ``sent``."""
    job = context.job
    return {
        name: compare(
            sample.wanted(job, sent, name),
            sample.leveled(job, name, read_output(context, name)),
        )
        for name in job.outputs
    }


FLOAT_TOLERANCE = 1e-9
"""Floats are equal when they differ by less than this part of the larger one: sums of the same
numbers in another order differ in their last digits."""
SINGLE_TOLERANCE = 1e-6
"""The same for a column of type float, which has seven digits."""


@dataclass(frozen=True)
class OutputCounts:
    """The rows that came out, and where they differ from the expected ones."""

    rows_out: int
    missing: Counted
    unexpected: Counted

    @property
    def lost(self) -> int:
        """Expected appearances that are missing."""
        return self.missing.total()

    @property
    def duplicated(self) -> int:
        """Appearances too many."""
        return self.unexpected.total()


def compare(expected: Counted, found: Counted) -> OutputCounts:
    """Compare row by row; a row with a wrong value is one lost and one too many."""
    missing, unexpected = expected - found, found - expected
    # Compare a row with those alike only: of thousands that differ in a last digit, with one.
    alike: defaultdict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for other in unexpected:
        alike[_without_floats(other)].append(other)
    for row in missing:
        for other in filter(partial(_is_close, row), alike.get(_without_floats(row), ())):
            both = min(missing[row], unexpected[other])
            missing[row] -= both
            unexpected[other] -= both
    return OutputCounts(rows_out=found.total(), missing=+missing, unexpected=+unexpected)


def together(outcomes: Mapping[str, OutputCounts]) -> OutputCounts:
    """Return one outcome of all outputs, whose rows begin with the output; rows_out is the first's.

    So ``lost`` and ``duplicated`` count everything.
    """
    missing, unexpected = Counted(), Counted()
    for name, one in outcomes.items():
        missing.update({(name, *row): count for row, count in one.missing.items()})
        unexpected.update({(name, *row): count for row, count in one.unexpected.items()})
    return OutputCounts(outcomes["output"].rows_out, missing, unexpected)


def _without_floats(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_without_floats, value))
    return float if isinstance(value, float) else value


def _is_close(value: Any, other: Any) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        is_single = isinstance(value, Float32) or isinstance(other, Float32)
        tolerance = SINGLE_TOLERANCE if is_single else FLOAT_TOLERANCE
        is_close = math.isclose(value, other, rel_tol=tolerance)
        return is_close or value == other or (math.isnan(value) and math.isnan(other))
    if isinstance(value, tuple) and isinstance(other, tuple):
        return len(value) == len(other) and all(map(_is_close, value, other))
    return bool(value == other)

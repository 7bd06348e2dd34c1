"""A batch that the cluster refuses, since too many of its rows belong to one tablet.

The batch of a job with state is planned again at every start, so nothing but tables that are cut
again lets it pass. How to reshard them: rows without a key are counted, keys are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..cluster import resharding
from ..errors import JobError, RestartableError
from ..errors.error_codes import ErrorCode
from ..guarantees import sizing
from ..job import REJECTED, JobContext
from ..log import warn
from ..provisioning.capacity import enough
from ..schema.columns import key_of
from ..settings.job_settings import ROWS_PER_TABLET_AND_TRANSACTION as LIMIT
from ..text_table import counted
from .output_frames import Frames

_CODE, _ITS_LIMIT = re.compile(r'"code"=1717\b'), re.compile(r'"limit"=(\d+)')
""""Transaction affects too many rows in tablet" (YTsaurus, client/tablet_client/public.h,
TooManyRowsInTransaction). The error has the limit of the cluster, and no server names the table."""
_SAMPLE = 100_000
"""The driver reads at most this many keys of a batch."""
_NEARLY = 0.9
"""A sample tells about as much: a tablet this full may be the one that was refused."""


@dataclass(frozen=True)
class TabletShortage:
    """An output whose tablets are too few, and the commands that give it more."""

    text: str
    commands: str


@dataclass(frozen=True)
class TabletOverflow:
    """A refused batch: its name, the rows that it wrote by output, the limit of a tablet."""

    name: str
    written: Mapping[str, int]
    limit: int = LIMIT

    def keyed(self, context: JobContext) -> list[str]:
        """Return the outputs with a key that may be the refused ones."""
        columns = context.job.output_columns
        return [
            name
            for name, rows in _dynamic(context, self.written)
            if rows > self.limit and key_of(columns[name])
        ]


def overflow_of(error: str, name: str, written: Mapping[str, int]) -> TabletOverflow | None:
    """Return what the text of ``error`` says of the batch; None for any other error."""
    if not _CODE.search(error):
        return None
    limit = _ITS_LIMIT.search(error)
    return TabletOverflow(name, written, int(limit[1]) if limit else LIMIT)


def judged(context: JobContext, overflow: TabletOverflow) -> TabletOverflow | None:
    """Return the batch if its keys must be checked, None when the next try may pass.

    Raises JobError when the counts say all.
    """
    if overflow.keyed(context):
        warn(f"batch {overflow.name} is run once more, to find the pivot keys")
        return overflow
    if problems := [*_without_key(context, overflow)]:
        raise _refusal(context, overflow, problems)
    return None


def overflow_error(context: JobContext, overflow: TabletOverflow, frames: Frames) -> Exception:
    """Return what to do, by the keys of the batch: ``frames`` are its rows.

    A JobError; RestartableError for a batch that has none of those rows any more.
    """
    found: list[tuple[int, TabletShortage]] = []
    for name in overflow.keyed(context):
        if name in frames:
            found.append(_with_key(context, overflow, name, frames[name]))
    problems = [*_without_key(context, overflow)]
    problems += [problem for rows, problem in found if rows > _NEARLY * overflow.limit]
    if not problems:
        if not found:
            return RestartableError(
                f"batch {overflow.name} is another one now", code=ErrorCode.OTHER_ROWS
            )
        problems = [max(found, key=lambda pair: pair[0])[1]]
    return _refusal(context, overflow, problems)


def _without_key(context: JobContext, overflow: TabletOverflow) -> Iterator[TabletShortage]:
    """Yield the outputs without a key that such a batch overflows by more than a rare chance."""
    settings = context.settings
    assert settings.dyn_batch_size is not None
    for name, rows in _dynamic(context, overflow.written):
        if key_of(context.job.output_columns[name]):
            continue
        path, write, limit = settings.outputs[name], settings.dyn_batch_size, overflow.limit
        tablets = int(context.client.get(f"{path}/@tablet_count"))
        if sizing.overflow_risk(rows, write, tablets, limit) <= sizing.RISK:
            continue
        count = enough(rows, settings, limit)
        yield TabletShortage(
            f"{rows} rows into {path}, which has {counted(tablets, 'tablet')}",
            resharding.by_count(settings, path, count)
            if count is not None
            else f"set dyn_batch_size = {max(1, limit // 50)} in the configuration, and start "
            "again to get the number of tablets",
        )


def _with_key(
    context: JobContext, overflow: TabletOverflow, name: str, frame: DataFrame
) -> tuple[int, TabletShortage]:
    """Return the rows of the fullest tablet of the output, and the problem that it may be."""
    settings, columns = context.settings, context.job.output_columns[name]
    path, part = settings.outputs[name], min(1.0, _SAMPLE / overflow.written[name])
    keys = _keys(frame, key_of(columns), part)
    rows = round(len(keys) / part)  # a job without state may have planned more of them
    pivots = [resharding.key(pivot) for pivot in context.client.get(f"{path}/@pivot_keys")]
    fullest = sizing.fullest(keys, pivots, rows)
    cut = sizing.split(keys, pivots, rows, overflow.limit)
    text = (
        f"{rows} rows into {path}, which has {counted(len(pivots), 'tablet')}: about {fullest} of "
        "them belong to one"
    )
    return fullest, TabletShortage(text, resharding.by_pivots(settings, path, columns, cut))


def _refusal(
    context: JobContext, overflow: TabletOverflow, problems: list[TabletShortage]
) -> JobError:
    said = "\n  ".join(problem.text for problem in problems)
    remedy = "with the job stopped, reshard the table, then start the job again"
    if context.job.kind.is_stateful:
        remedy += "; the batch is planned, and a smaller max_rows_per_partition does not help"
    else:
        remedy += "; or lower max_rows_per_partition"
    if REJECTED in overflow.keyed(context) and context.job.rejects:
        remedy += f"; rows of {REJECTED} have growing keys: lower max_rows_per_partition, too"
    commands = "\n".join(problem.commands for problem in problems)
    return JobError(
        f"batch {overflow.name} is too large for its tables: a transaction may touch "
        f"{overflow.limit} rows of one tablet, and it has\n  {said}",
        f"{remedy}; committed rows are kept:\n{commands}",
        code=ErrorCode.BATCH_TOO_LARGE,
    )


def _dynamic(context: JobContext, written: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name, rows) for name, rows in written.items() if name not in context.job.static]


def _keys(rows: DataFrame, columns: Sequence[str], part: float) -> list[sizing.Key]:
    """Return the keys of the rows in their order, or of a random part of them."""
    chosen = rows.select(*(_number(rows, column) for column in columns))
    if part < 1:
        chosen = chosen.sample(part)
    return sorted({resharding.key(row) for row in chosen.collect()})


def _number(rows: DataFrame, column: str) -> Expression:
    """Return a column as YTsaurus stores it: times independent of time zones, strings as bytes."""
    kind, value = rows.schema[column].dataType.typeName(), F.col(column)
    if kind in ("timestamp", "timestamp_ntz"):
        value = F.unix_micros(value.cast("timestamp"))
    elif kind == "date":
        value = F.unix_date(value)
    elif kind == "string":  # Python gets U+FFFD for bytes that are not UTF-8
        value = value.cast("binary")
    return value.alias(column)

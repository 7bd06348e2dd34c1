"""The rows that a micro-batch had to read, compared with those that it has read.

SPYT asks for rows by their numbers and does not compare the numbers of those that come: in the
place of trimmed rows it reads as many later ones, without an error (YtQueueUtils). The audit
compares them once the rows were read, before anything commits.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from ..cluster.client import Client
from ..connector.spark_plan import analysed
from ..connector.transform_plan import observed_name
from ..connector.transform_plan import queues as queues_of
from ..errors import JobError, RestartableError
from ..errors.error_codes import ErrorCode
from ..ledger.batch_row_ranges import Ranges
from ..ledger.ledger_rows import Head
from ..ledger.positions import is_moved, queue
from ..ledger.queue_layout import QueueLayout, layout_of
from ..outputs.batch_metrics import Metrics
from ..schema.columns import Column
from ..schema.table_schema import unlike


def audit(client: Client, name: str, planned: Ranges, metrics: Metrics) -> None:
    """Raise RestartableError unless the batch has read the rows that were planned.

    The next start then says which rows are missing, and heeds ``on_data_loss``. A queue that is
    absent in ``metrics`` was not counted.
    """
    for path, partitions in planned.items():
        wanted = sum(rows.count for rows in partitions.values())
        seen = metrics.get(observed_name(path))
        if not wanted or seen == (wanted, sum(rows.sum for rows in partitions.values())):
            continue
        # Trimming only grows, so a look after the reading is exact.
        infos = client.get_tablet_infos(path, list(partitions))["tablets"]
        for (partition, rows), info in zip(partitions.items(), infos, strict=True):
            if int(info["trimmed_row_count"]) > rows.first:
                raise RestartableError(
                    f"{path}, partition {partition} was trimmed to row "
                    f"{info['trimmed_row_count']} while batch {name} read from row {rows.first}",
                    code=ErrorCode.ROWS_TRIMMED,
                )
        # More rows than planned: Spark has computed a part a second time, after a lost executor.
        # The plan reads no others: see verify_start().
        if seen is not None and seen[1] is not None and seen[0] <= wanted:
            raise RestartableError(
                f"batch {name} read {seen[0]} rows of {path}, planned were {wanted}, or others",
                code=ErrorCode.OTHER_ROWS,
            )


def verify_queues(
    client: Client, name: str, head: Head, planned: Ranges, columns: Sequence[Column]
) -> dict[str, QueueLayout]:
    """Return the queues' layouts, unless rows may have been read under others.

    Asked once all rows of the batch were read: none of these changes happens to a mounted table, so
    what is as it was now was so at each read. Raises JobError for columns that are not those of
    QUEUE any more, RestartableError for what the next start has to judge.
    """
    found = {path: _unchanged(client, name, head, path, columns) for path in planned}
    return {**head.layouts, **found}


def _unchanged(
    client: Client, name: str, head: Head, path: str, columns: Sequence[Column]
) -> QueueLayout:
    now = client.get(f"{path}/@", attributes=["id", "schema", "tablets"])
    if str(now["id"]) != head.ids[path]:
        raise RestartableError(
            f"{path} was dropped and recreated before batch {name} ended",
            code=ErrorCode.QUEUE_RECREATED,
        )
    if lines := unlike(columns, now["schema"]):
        raise JobError(
            f"the columns of queue {path} were altered while the job ran, so batch {name} may have "
            f"read other values than the queue holds: {'; '.join(lines)}",
            "correct QUEUE in tables.py, and start again: the rows of this batch are read again",
            code=ErrorCode.QUEUE_ALTERED,
        )
    layout = layout_of(now["tablets"])
    if (known := head.layouts.get(path, layout)) == layout:
        return layout
    # New tablets, which the next batch may read; under numbers of former ones a start has to judge.
    is_first = all(partition >= layout.tablets for partition in head.retired.get(path, {}))
    if is_first and not is_moved(head, queue(client, path, {}, head)):
        return layout
    raise RestartableError(
        f"{path} was resharded from {known.tablets} to {layout.tablets} tablets before batch "
        f"{name} ended: its rows have other numbers now",
        code=ErrorCode.QUEUE_RESHARDED,
    )


def uncounted(rows: DataFrame, queues: Sequence[str]) -> frozenset[str]:
    """Return the queues that the plan does not read exactly once: their counts mean nothing."""
    read = queues_of(analysed(rows))
    return frozenset(path for path in queues if read.count(path) != 1)

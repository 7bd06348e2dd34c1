"""The checkpoint folder of an epoch: each start of a query has its own.

An older driver keeps the folder it knows. In a shared one SPYT, cleaning up after a refused commit,
would remove its successor's commits (MicroBatchExecutionDecorators: ``CommitLog.purgeAfter``).
"""

import json
from uuid import uuid4

from yt.common import YtError

from ..cluster.client import Client, cluster_name
from ..ledger.ledger_rows import Head
from ..ledger.offsets import ByQueue, Rows
from ..settings.job_settings import Settings
from . import spark_logs

_PARTS = ("metadata", "offsets", "commits", "state", "sources")
"""What Spark keeps in a checkpoint; ``metadata`` holds the query's id."""


def path_of(settings: Settings, epoch: int) -> str:
    """Return the folder of ``epoch``."""
    return f"{settings.checkpoint}/{epoch}"


def new_folder(
    client: Client, settings: Settings, head: Head, epoch: int, rows: Rows, *, stateful: bool
) -> int:
    """Make the folder of ``epoch``; return the batch that it ends with, -1 if it is empty.

    Without state it is empty, and stays so: the consumer is where the next batch begins, and Spark
    writes to the driver's disk (spark/local_checkpoint.py). It says that there was that epoch,
    should the ledger be lost (repositioning.py). Else it is a copy of the
    head's folder, repaired so that it ends with the head's batch at ``rows``, those of the queues
    in the settings. All in one master transaction: a crash leaves no folder, or one that no head
    names.
    """
    path = path_of(settings, epoch)
    with client.Transaction():
        client.remove(path, recursive=True, force=True)
        client.create("map_node", path, recursive=True)
        if not stateful or head.batch < 0 or head.folder is None:
            return -1
        copy(client, path_of(settings, head.folder), path)
        _repair(client, path, head, dict(zip(settings.queues, rows, strict=True)))
    return head.batch


def remove_old(client: Client, settings: Settings, epoch: int, kept: int | None) -> None:
    """Remove the folders of epochs before ``epoch`` but for ``kept``; a locked one stays for now.

    Not those of later ones: a driver that was frozen since its start may have a successor.
    """
    for name in client.list(settings.checkpoint):
        if str(name).isdigit() and int(name) < epoch and int(name) != kept:
            try:
                client.remove(f"{settings.checkpoint}/{name}", recursive=True, force=True)
            except YtError:
                continue


def copy(client: Client, source: str, path: str) -> None:
    """Copy a checkpoint into an empty folder, and give the query an id if it has lost it.

    Spark made a new one, and from 4.2 on refuses a log of offsets without one
    (STREAMING_CHECKPOINT_MISSING_METADATA_FILE, SPARK-55058). The job knows its batches by epochs.
    """
    for part in _PARTS:
        if client.exists(f"{source}/{part}"):
            client.copy(f"{source}/{part}", f"{path}/{part}")
    if not client.exists(f"{path}/metadata"):
        query = json.dumps({"id": str(uuid4())})
        client.write_file(f"{path}/metadata", query.encode(), force_create=True)


def _repair(client: Client, path: str, head: Head, rows: ByQueue) -> None:
    """Make the logs end with the head's batch at ``rows``; a later one stays planned if it fits.

    Its state does not: Spark prefers a snapshot that it finds to a new delta, and the batch may run
    again with other code.
    """
    batch = head.batch
    for log in ("offsets", "commits"):
        if client.exists(f"{path}/{log}"):
            for name in client.list(f"{path}/{log}"):
                if not str(name).isdigit():  # a file that Spark was writing when it died
                    client.remove(f"{path}/{log}/{name}")
    last, log = spark_logs.planned(client, path, batch), f"{path}/commits"
    commits = spark_logs.numbers(client, log)
    for number in commits:
        if number > batch:
            client.remove(f"{log}/{number}")
    if batch not in commits or not spark_logs.is_whole_commit(client, path, batch):
        client.create("map_node", log, recursive=True, ignore_existing=True)
        client.write_file(f"{log}/{batch}", last.commit_text().encode(), force_create=True)
    is_moved = _move(client, path, head, rows)
    offsets = spark_logs.numbers(client, f"{path}/offsets")
    later = [number for number in offsets if number > batch]
    if later and (is_moved or not _fits(client, path, later[0], [*rows.values()])):
        for number in later:
            client.remove(f"{path}/offsets/{number}")
    remove_states(client, path, batch + 1)


def _move(client: Client, path: str, head: Head, rows: ByQueue) -> bool:
    """Move the offset log to ``rows``; return whether they are others than those of the head.

    Spark compares the number of sources with that of the last entry, and of the one before it
    (OffsetSeq.toStreamProgress), and knows a source by its position in them.
    """
    batch, queues = head.batch, head.queues
    has_others = queues != tuple(rows)
    if not has_others and all(dict(head.ends[queue]) == dict(rows[queue]) for queue in queues):
        return False
    entries = {batch: rows}
    if has_others and client.exists(f"{path}/offsets/{batch - 1}"):
        before = spark_logs.planned(client, path, batch - 1).ends
        ends = dict(zip(queues, spark_logs.by_queue(before, len(queues)), strict=True))
        entries[batch - 1] = {**rows, **{queue: ends[queue] for queue in rows if queue in ends}}
    cluster = cluster_name(client)
    for number, to in entries.items():
        text = spark_logs.planned(client, path, number).moved(queues, to, cluster)
        client.write_file(f"{path}/offsets/{number}", text.encode(), force_create=True)
    return True


def _fits(client: Client, path: str, number: int, rows: Rows) -> bool:
    """Return whether the planned batch ends after ``rows``, where it begins.

    One that was planned while the consumer was behind the head would move it back.
    """
    ends = spark_logs.planned(client, path, number).ends
    return all(
        end.get(partition, row) >= row
        for end, begins in zip(spark_logs.by_queue(ends, len(rows)), rows, strict=True)
        for partition, row in begins.items()
    )


def remove_states(client: Client, path: str, version: int) -> None:
    """Remove later versions of the state, and files that Spark was writing when it died.

    Spark never looks at the latter again: they would be in every copy.
    """
    state = f"{path}/state"
    if not client.exists(state):
        return
    for operator, partitions in client.get(state).items():
        for partition in filter(str.isdigit, partitions):
            for name in partitions[partition]:
                number = str(name).partition(".")[0]
                if not number or (number.isdigit() and int(number) > version):
                    client.remove(f"{state}/{operator}/{partition}/{name}")

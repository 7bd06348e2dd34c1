"""Steps that several tests share; the ones that need Spark take a Stream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError

from minicluster.client import Fault
from minicluster.testing import Running
from tests.support.examples import example, settings_of
from tests.support.server_errors import UNAVAILABLE, denied
from tests.support.simulated_driver import Driver
from ytstream import JobError, RestartableError
from ytstream.cluster.client import Client
from ytstream.errors import code_of
from ytstream.errors.error_codes import ErrorCode
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.ledger.ledger_rows import Head
from ytstream.log import Event
from ytstream.provisioning import job_objects
from ytstream.recovery.epoch import Epoch
from ytstream.settings import spark_conf
from ytstream.version import version_of
from ytstream_tools.testing.job_stream import Stream, wait, wait_for_failure

ContextOf = Callable[..., JobContext]
"""Makes the context of a job: guarantee, processing, number of queues."""
StreamOf = Callable[..., Stream]
"""Makes a provisioned job with a session: guarantee, processing, number of queues."""
DriverOf = Callable[..., Driver]
"""Makes a provisioned job whose batches need no Spark: guarantee, processing, number of queues."""

SILENT = SimpleNamespace(recentProgress=list)
"""Spark's side of a query that has told of no trigger."""

MIGRATED = "done: the next start continues where the job stopped"
"""The last line of a `migrate` that has changed something."""

_SESSION_KEYS = {
    conf.key
    for part in (
        spark_conf.COMMON,
        spark_conf.STATELESS,
        spark_conf.STATEFUL,
        *spark_conf.GUARANTEES.values(),
        *spark_conf.STATE_STORES.values(),
    )
    for conf in part
}
"""Every setting that some job gives its session."""


def sampled(cases: Iterable[tuple[Any, ...]], sample: Collection[tuple[Any, ...]]) -> list[Any]:
    """Return the cases; those that are not in ``sample`` are left to `make journeys`."""
    journey = pytest.mark.journey
    return [pytest.param(*case, marks=() if case in sample else journey) for case in cases]


def unconnected(guarantee: str, processing: str = "map", queues: int = 1) -> JobContext:
    """Return a context for functions that do not call the cluster."""
    job = example(guarantee, processing, queues).job
    settings = settings_of(job, "//home/job", queues=queues)
    return JobContext(cast(Client, None), settings, job, guarantee_of(job))


def refusal(run: Callable[[], object]) -> str:
    """Return the text of the JobError that ``run`` raises."""
    with pytest.raises(JobError) as caught:
        run()
    return str(caught.value)


def refusal_code(run: Callable[[], object]) -> ErrorCode:
    """Return the code of the JobError that ``run`` raises."""
    with pytest.raises(JobError) as caught:
        run()
    return caught.value.code


@contextmanager
def fails_with(code: ErrorCode) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Wait for an error of this code; its message is the matter of one test only."""
    with pytest.raises((JobError, RestartableError)) as caught:
        yield cast(Any, caught)
    assert code_of(caught.value) == code


def has_said(caplog: pytest.LogCaptureFixture, event: Event) -> bool:
    """Return whether the job's log has a line of this event."""
    return any(line.startswith(event) for line in caplog.messages)


def adopt(spark: SparkSession, context: JobContext) -> None:
    """Give the shared session the settings of that job, as far as a session has them.

    A streaming query clones the session's settings when it starts. The settings of the Spark
    context stay those of a transactional job. Not by spark.conf, which takes no static ones; of
    these a query reads what manages the files of its checkpoint.
    """
    wanted = context.session_settings(version_of("pyspark"))
    conf = spark._jsparkSession.sessionState().conf()
    for key in sorted(_SESSION_KEYS):
        if not key.startswith(("spark.sql.", "spark.yt.")):
            continue
        if key in wanted:
            conf.setConfString(key, wanted[key])
        else:
            conf.unsetConf(key)


def reshard(client: Client, path: str, *counts: int) -> None:
    """Give the table one number of tablets after the other, as its owner would."""
    any_client: Any = client
    any_client.unmount_table(path, sync=True)
    for number in counts:
        any_client.reshard_table(path, tablet_count=number, sync=True)
    any_client.mount_table(path, sync=True)


def begin_at(queue: str, client: Any, first: int) -> None:
    """Let an empty queue have one tablet, whose first row has this number."""
    client.unmount_table(queue, sync=True)
    client.reshard_table(queue, tablet_count=1, trimmed_row_counts=[first], sync=True)
    client.mount_table(queue, sync=True)


def recreate(queue: str, client: Any) -> None:
    """Drop a queue and make it again, as its owner would."""
    found = client.get(f"{queue}/@", attributes=["schema", "tablet_count"])
    client.remove(queue)
    client.create("table", queue, attributes={"dynamic": True, **found})
    client.mount_table(queue, sync=True)


def several_triggers(query: StreamingQuery, stream: Stream, cluster: Running) -> None:
    """Let the query look ten times at the queues' ends, as it does at every trigger."""
    faults = cluster.client.faults
    where = {"path": f"{stream.settings.queues[0]}/@queue_partitions"}
    look = faults.add(method="GetNode", where=where, times=None, action="delay", seconds=0)
    wait(lambda: faults.get(look).hits >= 10, query)
    faults.remove(look)


def another_process(stream: Stream) -> Stream:
    """Return the same job as a second process runs it: its first start raises the epoch."""
    return replace(stream, epoch=Epoch())


def run_until_it_fails(stream: Stream) -> str:
    """Run the query; return the text of the exception that ends it."""
    with stream.running() as query:
        return wait_for_failure(query)


def at_a_commit(stream: Stream, cluster: Running, action: str, after: int = 0) -> Fault:
    """Order ``action`` for the commit of one batch from now on, behind ``after`` others."""
    faults = cluster.client.faults
    # The consumer moves in the transaction, right before it commits.
    moved = faults.add(
        method="AdvanceConsumer", skip=_moves(stream) * after, action="delay", seconds=0
    )
    return faults.add(method="CommitTransaction", armed_by=moved, action=action)


def _moves(stream: Stream) -> int:
    """Return how often a batch that reads every partition moves the consumer."""
    return sum(job_objects.queue_tablets(stream.client, stream.settings).values())


def die_between_the_logs(stream: Stream, cluster: Running, after: int = 0) -> int:
    """Run until ``after`` batches are through and the next one dies; return the latter's number.

    Its ``commits/N`` is written, its transaction is gone. The last requests of the batch and of
    SPYT's clean-up fail instead of a driver's death: the cluster is left the same, and the session
    serves the next test.
    """
    stream.recover()
    faults, batch = cluster.client.faults, head_of(stream).batch + 1 + after
    commit = f"{stream.folder}/commits/{batch}"
    # SPYT moves it once the commit log has the batch.
    moved = faults.add(
        method="AdvanceConsumer", skip=_moves(stream) * after, times=None, action="fail",
        error=UNAVAILABLE,
    )  # fmt: skip
    # SPYT removes the entry when it can: a driver that is dead cannot.
    faults.add(
        method="RemoveNode", where={"path": commit}, times=None, action="fail", error=UNAVAILABLE
    )
    run_until_it_fails(stream)
    assert faults.get(moved).hits
    faults.clear()
    # Without state the log was on the driver's disk, and is gone with the query.
    assert stream.client.exists(commit) or not stream.context.job.kind.is_stateful
    return batch


def lose_the_commits_reply(stream: Stream, cluster: Running) -> None:
    """Run until a batch's transaction has committed without an answer to the driver."""
    stream.recover()
    before = head_of(stream).number
    at_a_commit(stream, cluster, "lose_reply")
    run_until_it_fails(stream)
    cluster.client.faults.clear()
    assert head_of(stream).number == before + 1


def fail_in_the_middle_of_a_batch(stream: Stream, cluster: Running, skip: int) -> None:
    """Run until writes fail for ever after ``skip`` writes into the output."""
    cluster.client.faults.add(
        method="ModifyRows",
        where={"path": stream.settings.output},
        skip=skip,
        times=None,
        action="fail",
        error=UNAVAILABLE,
    )
    run_until_it_fails(stream)
    cluster.client.faults.clear()


_WRITES = [
    "start_transaction", "create", "copy", "remove", "set", "write_file", "commit_transaction",
    "StartTransaction", "ModifyRows", "AdvanceConsumer", "CommitTransaction",
]  # fmt: skip
"""Requests that change something, of a start or of an operator's command."""


STRIDES = pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.journey)])
"""`make journeys` cuts off at every write."""


def cut_off(cluster: Running, writes: int, run: Callable[[], object]) -> bool:
    """Run until so many writes were done and no further request gets through.

    Returns whether there was a further one: False when ``run`` came to its end.
    """
    faults = cluster.client.faults
    always: dict[str, Any] = {"times": None, "action": "fail", "error": denied("write", "//home")}
    first = faults.add(method=_WRITES, skip=writes, **always)
    faults.add(armed_by=first, **always)
    try:
        run()
    except (JobError, RestartableError, YtError):
        return True
    else:
        return False
    finally:
        faults.clear()


def cut_off_at_writes(
    cluster: Running,
    driver: Driver,
    folder: Path,
    run: Callable[[], object],
    standing: Callable[[int], tuple[Any, ...]],
    stride: int,
) -> None:
    """Cut ``run`` off at every so many writes, each time on the cluster as it is now.

    ``standing`` finishes what was left, after so many writes, and returns where all then stands: as
    if nothing had been cut off.
    """
    cluster.client.save(str(folder / "before"))
    wanted = standing(0)
    for writes in count(stride - 1, stride):
        cluster.client.load(str(folder / "before"))
        driver.epoch = Epoch()
        if not cut_off(cluster, writes, run):
            break
        assert standing(writes) == wanted
    assert writes >= 8


def trim_unread(stream: Stream, count: int) -> None:
    """Send rows into the first queue and trim those of partition 0, unread: nobody awaits them."""
    queue, before = stream.settings.queues[0], len(stream.sent)
    tablets = int(stream.client.get(f"{queue}/@tablet_count"))
    stream.send(tablets * count, queues=(0,))
    (info,) = stream.client.get_tablet_infos(queue, [0])["tablets"]
    stream.client.trim_rows(queue, 0, int(info["total_row_count"]))
    del stream.sent[before::tablets]  # rows are dealt out over the tablets in turn


def head_of(stream: Stream) -> Head:
    """Return the head of the ledger after the first start."""
    head = positions.read(stream.client, stream.settings).begun
    assert head is not None
    return head


def last_request(cluster: Running) -> int:
    """Return the number of the last request in the journal: its counts may have been cleared."""
    entries = cluster.client.journal()
    return entries[-1].n if entries else 0

"""A table is remounted between a batch's writes and its commit, as in a maintenance.

A tablet has another mount revision then, or another id, and the cluster refuses the commit
(YTsaurus, server/node/tablet_node/tablet_service.cpp, GetTabletSnapshotOrThrow). A job waits as for
any table that is away, and runs the batch again.
"""

from __future__ import annotations

from itertools import product

import pytest

from minicluster.client import Fault
from minicluster.testing import Running
from tests.support.examples import CONNECTOR
from tests.support.helpers import StreamOf, adopt, sampled
from tests.support.job_thread import supervised
from tests.support.remounts import nothing, one_more_tablet, remount
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import SPYT
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream

ROWS, WRITE = 80, 40
"""Of one batch, from one partition; and of one write into the output."""
GUARANTEES = ("transactional", "idempotent", "at_least_once")
TABLES = ("queue", "consumer", "output", "ledger")
REFUSED = {1701, 1704}
""""No such tablet" and "Invalid mount revision" (yt/yt/client/tablet_client/public.h)."""
WAITS, COUNTED = "waiting for the cluster", "failure 1 of"
HOW = ("remount", "reshard")


def said(guarantee: str, name: str) -> str:
    """Return what a job's log says of the refusal."""
    if name == "queue":  # read, and not written: nothing is refused
        return ""
    if guarantee == "transactional" or name in ("consumer", "ledger"):
        return WAITS
    return ""  # SPYT writes the same rows again, without a word (DynUtils: three tries)


def repeated(guarantee: str, name: str, connector: str) -> int:
    """Return how many rows are written twice: those of a batch whose head was refused.

    Our own connector moves the consumer with the head, SPYT's moves it a batch later.
    """
    with_the_head = ("ledger",) if connector == SPYT else ("ledger", "consumer")
    return ROWS if guarantee == "at_least_once" and name in with_the_head else 0


@pytest.mark.spark
@pytest.mark.parametrize(
    ("guarantee", "name", "how", "connector"),
    sampled(
        [
            *product(GUARANTEES, TABLES, HOW, [CONNECTOR]),
            # Which moves it beside the job: a batch later, and with a commit whose error it hides.
            *product(GUARANTEES[1:], ["consumer"], HOW, [SPYT]),
        ],
        [
            ("transactional", "output", "reshard", CONNECTOR),
            ("transactional", "ledger", "remount", CONNECTOR),
            ("idempotent", "output", "reshard", CONNECTOR),
            ("at_least_once", "ledger", "reshard", CONNECTOR),
        ],
    ),
    indirect=["connector"],
)
def test_a_table_is_remounted_between_the_writes_and_the_commit(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    guarantee: str,
    name: str,
    how: str,
    connector: str,
) -> None:
    caplog.set_level("INFO", logger="job")
    monkeypatch.setattr(job_objects, "LOCAL_QUEUE_TABLETS", 1)
    stream = stream_of(guarantee)
    adopt(stream.spark, stream.context)
    # In the batch's transaction, so many rows go to each tablet with one request.
    tablets = stream.context.output_tablets["output"] if guarantee == "transactional" else 1
    stream.configure(dyn_batch_size=WRITE // tablets)
    faults = cluster.client.faults
    with supervised(stream) as wait:
        stream.send(ROWS)
        wait(drained(stream.context))
        commit = _hold_a_commit(stream, cluster, name)
        stream.send(ROWS)
        wait(lambda: faults.get(commit).hits > 0)
        path = stream.settings.queues[0] if name == "queue" else getattr(stream.settings, name)
        remount(stream.client, path, one_more_tablet if how == "reshard" else nothing)
        (entry,) = faults.release(commit)
        stream.send(ROWS)
        wait(drained(stream.context))
    assert (entry.error is None) == (name == "queue")
    assert entry.error is None or entry.error["code"] in REFUSED
    heard = [words for words in (WAITS, COUNTED) if words in caplog.text]
    assert "".join(heard) == said(guarantee, name)
    named = "Invalid mount revision" in caplog.text or "is not known" in caplog.text
    is_hidden = connector == SPYT and guarantee != "transactional" and name == "consumer"
    assert named == (heard == [WAITS] and not is_hidden)
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, repeated(guarantee, name, connector))


def _hold_a_commit(stream: Stream, cluster: Running, name: str) -> Fault:
    """Hold the commit of the next rows for that table; for the queue, of rows for the output.

    Of the writes into the output it is the second one, which is the last one of a batch.
    """
    faults, settings = cluster.client.faults, stream.settings
    path = settings.ledger if name == "ledger" else settings.output
    method = "AdvanceConsumer" if name == "consumer" else "ModifyRows"
    where = {} if name == "consumer" else {"path": path}
    skip = 0 if name in ("consumer", "ledger") else 1
    written = faults.add(method=method, where=where, skip=skip, action="delay", seconds=0)
    return faults.add(method="CommitTransaction", armed_by=written, action="hold")

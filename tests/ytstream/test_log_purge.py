"""Spark's asynchronous removal of old log entries, and SPYT's file system.

Spark writes an entry of a log as a temporary file and renames it. SPYT lists a folder and then asks
for each name in it (YtFileSystemBase.listYtDirectory, YtFileSystem.getFileStatus): a name that was
renamed in between is an error. A thread of its own that removes old entries (AsyncLogPurge) lists
the folder when more than three have to go (HDFSMetadataLog.purge), and its errors end the query.
Without it the thread that writes the entries removes them, and nothing is renamed meanwhile.
"""

from __future__ import annotations

import pytest

from minicluster.client import Fault
from minicluster.testing import Running
from tests.ytstream.helpers import StreamOf, another_process
from ytstream.demo.scenario import drained
from ytstream.testing.stream import wait, wait_for_failure

pytestmark = pytest.mark.spark

PURGE = "spark.sql.streaming.asyncLogPurge.enabled"
RETAINED = "spark.sql.streaming.minBatchesToRetain"


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_old_entries_are_listed_while_a_new_one_is_renamed(
    stream_of: StreamOf, cluster: Running, cured: bool
) -> None:
    stream = stream_of("transactional", "window")
    with stream.running() as query:
        for _ in range(5):
            stream.send(50)
            wait(drained(stream.connection), query)
    # A new query knows of no removal before: its first one has many entries to remove.
    stream.spark.conf.set(RETAINED, "1")
    if not cured:
        assert stream.spark.conf.get(PURGE) == "false"
        stream.spark.conf.set(PURGE, "true")
    stream.recover()
    commits, faults = f"{stream.folder}/commits", cluster.client.faults
    temporary = f"{commits}/.[0-9]*.tmp"

    def barrier(method: str, path: str, armed_by: Fault, name: str = "path") -> Fault:
        return faults.add(method=method, where={name: path}, armed_by=armed_by, action="delay")

    # At the start of a query the folder is listed too, before a batch is planned.
    where = {"destination_path": f"{stream.folder}/offsets/*"}
    planned = faults.add(method="MoveNode", where=where, action="delay", seconds=0)
    listing = barrier("ListNode", commits, planned)
    asking = barrier("ExistsNode", temporary, listing)
    renaming = barrier("MoveNode", f"{commits}/*", listing, "destination_path")
    stream.send(50)
    with stream.running() as query:
        faults.wait(listing)
        if cured:
            faults.remove(listing)
            faults.remove(renaming)
            wait(drained(stream.connection), query)
            assert faults.get(asking).seen == 0
        else:
            number = faults.wait(renaming)
            assert number
            faults.remove(listing)
            faults.wait(asking)
            faults.remove(renaming)
            wait(lambda: len(stream.client.list(commits)) == 0, query)
            faults.remove(asking)
            assert "is not found" in wait_for_failure(query)
    faults.clear()
    another_process(stream).close()
    assert stream.is_exact()

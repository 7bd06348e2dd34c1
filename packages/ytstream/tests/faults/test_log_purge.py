"""Spark's asynchronous removal of old log entries, and SPYT's file system.

Spark writes an entry of a log as a temporary file and renames it. SPYT lists a folder and then asks
for each name in it (YtFileSystemBase.listYtDirectory, YtFileSystem.getFileStatus): a name that was
renamed in between is an error. A thread of its own that removes old entries (AsyncLogPurge) lists
the folder when more than three have to go (HDFSMetadataLog.purge), and its errors end the query.
Without it the thread that writes the entries removes them, and nothing is renamed meanwhile.
"""

from __future__ import annotations

import re

import pytest

from minicluster.client import Fault
from minicluster.testing import Running
from tests.support.helpers import StreamOf, another_process, head_of
from ytstream.recovery import spark_logs
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import wait, wait_for_failure

pytestmark = pytest.mark.spark

PURGE = "spark.sql.streaming.asyncLogPurge.enabled"
RETAINED = "spark.sql.streaming.minBatchesToRetain"
ENOUGH = 4
"""The last batch before a new query's first one has more than three entries to remove."""


@pytest.mark.thorough
@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "bare"])
def test_old_entries_are_listed_while_a_new_one_is_renamed(
    stream_of: StreamOf, cluster: Running, fixed: bool
) -> None:
    stream = stream_of("transactional", "deduplicate")
    with stream.running() as query:
        stream.send(50)
        wait(drained(stream.context), query)
        while head_of(stream).batch < ENOUGH:
            stream.send(50)
            wait(drained(stream.context), query)
    # A new query knows of no removal before: its first one has many entries to remove.
    stream.spark.conf.set(RETAINED, "1")
    assert stream.spark.conf.get(PURGE) == "false"
    if not fixed:
        stream.spark.conf.set(PURGE, "true")
    stream.recover()
    commits, faults = f"{stream.folder}/commits", cluster.client.faults
    newest = max(spark_logs.numbers(stream.client, commits))
    # The start of a query lists the folder too, before it plans a batch.
    where = {"destination_path": f"{stream.folder}/offsets/*"}
    planned = faults.add(method="MoveNode", where=where, action="delay", seconds=0)

    def barrier(method: str, armed_by: Fault, **where: str) -> Fault:
        return faults.add(method=method, where=where, armed_by=armed_by, action="delay")

    listing = barrier("ListNode", planned, path=commits)
    stream.send(50)
    if fixed:
        with stream.running() as query:
            faults.wait(listing)
            faults.remove(listing)
            wait(drained(stream.context), query)
        # Who writes a file asks for it once.
        pattern = re.compile(rf"{commits}/\..*\.tmp/@")
        paths = [str(call.args["path"]) for call in cluster.client.journal("ExistsNode")]
        asked = [path for path in paths if pattern.fullmatch(path)]
        assert len(asked) == len({*asked}) > 0
    else:
        renaming = barrier("MoveNode", planned, destination_path=f"{commits}/*")
        asking = barrier("ExistsNode", renaming, path=f"{commits}/.*.tmp/@")
        with stream.running() as query:
            faults.wait(listing)
            faults.wait(renaming)  # the temporary file is there
            faults.remove(listing)
            faults.wait(asking)  # it was in the list
            faults.remove(renaming)
            wait(lambda: max(spark_logs.numbers(stream.client, commits)) > newest, query)
            faults.remove(asking)
            assert re.search(r"/commits/\.\d+\..*\.tmp is not found", wait_for_failure(query))
        faults.clear()
        another_process(stream).drain()
    assert stream.is_exact()

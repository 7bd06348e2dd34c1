"""A cluster that stumbles while a job with state runs: the job waits, and the state stays as it is.

SPYT's client repeats no request for a file of the state, and Spark puts its own condition around
the answer (RocksDBStateStoreProvider, loadStateStore).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from minicluster.client import Fault
from minicluster.testing import Running
from tests.support.examples import CONNECTOR, STATEFUL
from tests.support.helpers import StreamOf, adopt, sampled
from tests.support.job_thread import end_of, supervised
from tests.support.server_errors import TOKEN, UNAVAILABLE, full_chunks
from ytstream.errors.error_codes import ErrorCode
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

FULL = full_chunks('Account "default" is over chunk count limit')
"""A file needs a chunk."""
CLUSTER, ACCOUNT = "waiting for the cluster", "waiting for room in the account"

CASES = [(one, "rocksdb", CONNECTOR) for one in STATEFUL]
CASES += [("window", "memory", CONNECTOR), ("window", "rocksdb", "spyt")]
for_each = pytest.mark.parametrize(
    ("processing", "store", "connector"),
    sampled(CASES, [("window", "rocksdb", CONNECTOR)]),
    indirect=["connector"],
)


@pytest.fixture
def stream(stream_of: StreamOf, processing: str, store: str) -> Stream:
    """Provision a job whose state is in that store."""
    made = stream_of("transactional", processing)
    made.configure(state_store=store)
    adopt(made.spark, made.context)
    made.send(200)
    return made


def _at_the_state(stream: Stream, cluster: Running, **order: Any) -> Fault:
    """Order a fault for the next write of a file of the state."""
    where = {"path": f"{stream.settings.checkpoint}/*/state/*"}
    return cluster.client.faults.add(method="WriteFile", where=where, **order)


def _said(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [line for line in caplog.messages if line.startswith(words)]


@pytest.mark.thorough
@for_each
def test_a_cluster_that_stumbles_is_waited_for(
    stream: Stream, cluster: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="job")
    faults = cluster.client.faults
    once: tuple[Mapping[str, Any], ...] = (
        {"action": "fail", "error": UNAVAILABLE},
        {"action": "hang_up"},
        {"action": "lose_reply"},
    )
    with supervised(stream) as wait:
        wait(drained(stream.context))

        def meets(fault: Fault, words: str) -> None:
            """Send rows; when the job has said that it waits, let the fault end."""
            before = len(_said(caplog, words))
            stream.send(100)
            wait(lambda: len(_said(caplog, words)) > before)
            faults.remove(fault)
            wait(drained(stream.context))

        for order in once:
            meets(_at_the_state(stream, cluster, **order), CLUSTER)
        meets(_at_the_state(stream, cluster, action="fail", error=FULL, times=None), ACCOUNT)
        write = _at_the_state(stream, cluster, action="hang_up")
        meets(faults.add(times=None, armed_by=write, action="hang_up"), CLUSTER)
    assert not _said(caplog, "failure")
    assert re.search(r"chunk count limit: \d+ of 1000000 chunk_count$", _said(caplog, ACCOUNT)[0])
    stream.close()
    assert stream.is_exact()


@for_each
def test_an_expired_token_ends_the_job_in_its_own_words(stream: Stream, cluster: Running) -> None:
    def expire() -> None:
        _at_the_state(stream, cluster, action="fail", error=TOKEN, times=None)
        stream.send(100)

    error = end_of(stream, lambda: True, expire)
    assert error.code == ErrorCode.TOKEN
    assert "Token is missing in Cypress" in error.message

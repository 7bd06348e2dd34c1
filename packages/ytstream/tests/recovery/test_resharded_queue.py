"""A queue gets fewer tablets, other ones or more, under a running job and a stopped one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from minicluster.testing import Running
from tests.support.helpers import (
    MIGRATED,
    DriverOf,
    StreamOf,
    another_process,
    head_of,
    refusal,
    refusal_code,
    reshard,
    sampled,
)
from tests.support.simulated_driver import BID, Driver
from tests.support.verdict import EXACT
from ytstream.cluster.client import Client
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import batch_row_ranges, positions
from ytstream.ledger.ledger_rows import head_row
from ytstream.provisioning import job_objects
from ytstream.query import batch
from ytstream.recovery import migration
from ytstream.recovery.start import preview
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait, wait_for_failure

pytestmark = pytest.mark.spark

GUARANTEES = ("transactional", "idempotent", "at_least_once")
each_guarantee = pytest.mark.parametrize("guarantee", GUARANTEES)


def _verify_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Believe that the queues are as they were when the batch was planned."""
    monkeypatch.setattr(batch, "verify_queues", lambda client, name, head, *_: head.layouts)
    monkeypatch.setattr(batch_row_ranges, "verify_partitions", lambda *_: None)


# -- a running job -------------------------------------------------------------------------------


def _resharded_under(stream: Stream, *counts: int) -> str:
    """Let a job read 80 rows, and reshard its queue; return what ends the query."""
    with stream.running() as query:
        stream.send(80)
        wait(drained(stream.context), query)
        reshard(stream.client, stream.settings.queues[0], *counts)
        stream.send(80)
        return wait_for_failure(query)


@pytest.mark.parametrize(
    ("guarantee", "counts"),
    sampled(
        [(guarantee, counts) for guarantee in GUARANTEES for counts in ((2,), (2, 4))],
        [("transactional", (2,)), ("transactional", (2, 4)), ("at_least_once", (2,))],
    ),
)
def test_a_running_job_records_no_batch_of_a_queue_that_was_resharded(
    stream_of: StreamOf, guarantee: str, counts: tuple[int, ...]
) -> None:
    stream = stream_of(guarantee)
    (queue,) = stream.settings.queues
    said = _resharded_under(stream, *counts)
    assert "was resharded" in said or "consumer" in said
    assert head_of(stream).ends[queue] == dict.fromkeys(range(4), 20)
    if guarantee == "transactional":
        assert stream.found().total() == 80
    said = refusal(stream.recover)
    assert f"queue {queue} was resharded from 4 to {counts[-1]} tablets" in said
    assert "80 rows of it were not read" in said
    assert "80 rows" in refusal(lambda: migration.migrate(stream.context, stream.tablets))


@pytest.mark.thorough
def test_without_the_check_rows_of_removed_tablets_are_read_a_second_time(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    _verify_nothing(monkeypatch)
    stream = stream_of("transactional")
    with stream.running() as query:
        stream.send(80)
        wait(drained(stream.context), query)
        reshard(stream.client, stream.settings.queues[0], 2)
        wait(lambda: stream.found().total() == 120, query)
    assert stream.outcome().duplicated == 40


@pytest.mark.thorough
def test_a_queue_is_resharded_right_before_the_check(stream_of: StreamOf, cluster: Running) -> None:
    stream = stream_of("transactional")
    (queue,) = stream.settings.queues
    faults = cluster.client.faults
    with stream.running() as query:
        stream.send(80)
        wait(drained(stream.context), query)
        held = faults.add(method="get", where={"path": f"{queue}/@"}, action="hold")
        stream.send(80)
        faults.wait(held)
        reshard(stream.client, queue, 2)
        faults.clear()
        wait_for_failure(query)
    assert stream.found().total() == 80
    assert "80 rows of it were not read" in refusal(stream.recover)


@pytest.mark.parametrize("guarantee", sampled([(name,) for name in GUARANTEES], [("idempotent",)]))
def test_more_tablets_and_a_remount_go_on(stream_of: StreamOf, guarantee: str) -> None:
    stream = stream_of(guarantee)
    (queue,) = stream.settings.queues
    with stream.running() as query:
        for counts in ((), (), (6,)):
            stream.send(80)
            wait(drained(stream.context), query)
            reshard(stream.client, queue, *counts)
        stream.send(120)
        wait(drained(stream.context), query)
    assert head_of(stream).layouts[queue].tablets == 6
    reshard(stream.client, queue, 8)
    stream.send(80)
    another_process(stream).drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)


# -- a stopped job -------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("guarantee", "processing", "queues"),
    [
        ("transactional", "map", 1),
        ("idempotent", "map", 1),
        ("at_least_once", "map", 2),
        ("transactional", "window", 1),
    ],
)
def test_a_drained_queue_shrinks_exactly(
    stream_of: StreamOf, guarantee: str, processing: str, queues: int
) -> None:
    stream = stream_of(guarantee, processing, queues)
    queue = stream.settings.queues[0]
    stream.send(400)
    stream.drain()
    reshard(stream.client, queue, 2)
    assert refusal_code(lambda: preview(stream.context)) == ErrorCode.QUEUE_RESHARDED
    said = migration.migrate(stream.context, stream.tablets)
    assert said[-1] == MIGRATED
    assert any("was resharded" in line for line in said)
    assert migration.migrate(stream.context, stream.tablets)[0].startswith("nothing to do")
    stream.send(400)
    another_process(stream).drain()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)


@pytest.mark.thorough
def test_rows_of_new_tablets_replace_none_of_removed_ones(stream_of: StreamOf) -> None:
    """Both have the same positions: the keys of an idempotent output and of "rejected"."""
    stream = stream_of("idempotent", rejects=True)
    context, job, sample = stream.context, stream.context.job, stream.sample
    stream.send(400)
    stream.drain()
    before = {path: _rows(stream.client, path) for path in stream.settings.outputs.values()}
    reshard(stream.client, stream.settings.queues[0], 2, 4)
    said = refusal(lambda: migration.migrate(context, stream.tablets))
    assert all(path in said for path in before)
    assert "new paths in [outputs]" in said
    stream.configure(outputs={name: f"{path}-2" for name, path in stream.settings.outputs.items()})
    job_objects.provision(stream.context)
    migration.migrate(stream.context, stream.tablets)
    stream.send(400)
    another_process(stream).drain()
    for name in job.outputs:
        found = demo_tables.read_output(stream.context, name)
        assert found == sample.wanted(job, stream.sent[400:], name)
    assert {path: _rows(stream.client, path) for path in before} == before


def _rows(client: Client, path: str) -> list[dict[str, Any]]:
    rows = [dict(row) for row in client.select_rows(f"* from [{path}]")]
    assert rows
    return rows


def _ends(driver: Driver) -> dict[int, int]:
    """Return where the job is in its first queue, which ledger and consumer agree about."""
    found = positions.read(driver.client, driver.settings)
    assert found.head is not None
    ends = dict(found.head.ends[driver.settings.queues[0]])
    assert dict(found.queues[0].consumed) == {p: row for p, row in ends.items() if row}
    return ends


@pytest.mark.thorough
@each_guarantee
def test_migrate_refuses_a_queue_that_is_not_drained(driver_of: DriverOf, guarantee: str) -> None:
    driver = driver_of(guarantee)
    driver.run(4)
    driver.send(3)
    reshard(driver.client, driver.settings.queues[0], 1)
    before = positions.read(driver.client, driver.settings)
    assert "6 rows of it were not read" in refusal(driver.migrate)
    assert "6 rows of it were not read" in refusal(lambda: driver.start(new_process=True))
    assert positions.read(driver.client, driver.settings) == before
    driver.rewind("latest")
    assert _ends(driver) == {0: 14}


@pytest.mark.thorough
@each_guarantee
def test_a_queue_that_has_shrunk_grows_again(driver_of: DriverOf, guarantee: str) -> None:
    """The consumer has no offset of a tablet that was removed: its rows are numbered from 0."""
    driver = driver_of(guarantee)
    queue = driver.settings.queues[0]
    driver.run(4)
    reshard(driver.client, queue, 1)
    driver.migrate()
    assert _ends(driver) == {0: 8}
    driver.run(2, new_process=True)
    assert _ends(driver) == {0: 10}
    reshard(driver.client, queue, 2)
    driver.run(2, new_process=True)
    assert _ends(driver) == {0: 12, 1: 2}


def _fill(driver: Driver, partition: int, count: int) -> None:
    """Append rows to one partition of the first queue."""
    client: Any = driver.client
    client.insert_rows(driver.settings.queues[0], [{**BID, "$tablet_index": partition}] * count)


def test_migrate_refuses_unread_rows_as_many_as_were_trimmed(driver_of: DriverOf) -> None:
    """The counts are those of a drained queue: removed tablets of trimmed rows add nothing."""
    driver = driver_of("transactional")
    client, queue = driver.client, driver.settings.queues[0]
    driver.run(4)
    reshard(client, queue)
    client.trim_rows(queue, 1, 4)
    _fill(driver, 0, 4)
    reshard(client, queue, 1)
    found = positions.read(client, driver.settings)
    assert found.queues[0].upper == (8,)
    said = refusal(driver.migrate)
    assert "the job has read 8 rows, and the queue counts 8" in said
    assert "newer than the job's last batch" in said


@pytest.mark.thorough
@each_guarantee
def test_a_tablet_that_was_made_again_and_filled_is_noticed(
    driver_of: DriverOf, guarantee: str
) -> None:
    """No count tells: it holds more rows than the job has read of the one before it."""
    driver = driver_of(guarantee)
    queue = driver.settings.queues[0]
    driver.run(4)
    reshard(driver.client, queue, 1, 3)
    _fill(driver, 1, 6)
    before = positions.read(driver.client, driver.settings)
    said = refusal(lambda: driver.start(new_process=True))
    assert "was resharded from 2 to 3 tablets" in said
    assert refusal_code(driver.migrate) == ErrorCode.QUEUE_RESHARDED
    assert positions.read(driver.client, driver.settings) == before


@pytest.mark.thorough
@each_guarantee
def test_a_queue_that_grows_goes_on_whatever_was_trimmed_or_waits(
    driver_of: DriverOf, guarantee: str
) -> None:
    driver = driver_of(guarantee)
    client, queue = driver.client, driver.settings.queues[0]
    driver.run(4)
    client.trim_rows(queue, 0, 4)
    driver.send(3)
    reshard(client, queue, 3)
    driver.send(2)
    driver.start(new_process=True)
    driver.batch()
    assert _ends(driver) == {0: 9, 1: 9, 2: 2}
    assert driver.outcome() == EXACT


def test_a_head_of_an_older_version_is_judged_by_the_counts(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    queue = driver.settings.queues[0]
    driver.run(4)
    head = positions.read(driver.client, driver.settings).head
    assert head is not None
    assert head.timestamp is not None
    row = head_row(replace(head, timestamp=None))
    driver.client.insert_rows(driver.settings.ledger, [row])
    reshard(driver.client, queue, 3)
    driver.send(2)
    driver.start(new_process=True)
    assert positions.read(driver.client, driver.settings).queues[0].newer == frozenset()

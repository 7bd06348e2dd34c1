"""A job that ran before there was a ledger: its logs and its consumer are judged once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest

from minicluster.testing import Running
from packages.ytstream.tests.driver import Driver, offsets_text, put, write
from packages.ytstream.tests.helpers import (
    STRIDES,
    DriverOf,
    cut_off_at_writes,
    refusal,
    unconnected,
)
from ytstream.cluster import Client
from ytstream.job import Connection
from ytstream.positions import Queue
from ytstream.recovery import before_ledger, snapshot
from ytstream.recovery.before_start import decide
from ytstream.recovery.snapshot import MARKER, Snapshot

TRANSACTIONAL = [("transactional", "map"), ("transactional", "window")]
REPLAYING = [("at_least_once", "map"), ("at_least_once", "window"), ("idempotent", "map")]
STATELESS = [("transactional", "map"), ("at_least_once", "map"), ("idempotent", "map")]
STATEFUL = [("transactional", "window"), ("at_least_once", "window")]
Kind = tuple[str, str]


def _marker(connection: Connection, queues: list[dict[str, str]]) -> dict[str, Any]:
    """Return what such a job wrote on its consumer."""
    return {
        "job": connection.job.name,
        "guarantee": connection.guarantee.name,
        "processing": connection.job.processing,
        "output": connection.settings.output,
        "schema": "a hash",
        "queues": queues,
    }


class _Logs:
    """The part of a client that is asked about the former checkpoint."""

    def __init__(self, offsets: Mapping[int, int], commits: tuple[int, ...], marker: Any) -> None:
        self.names = {"offsets": [*map(str, offsets), ".9.tmp"], "commits": [*map(str, commits)]}
        self.offsets, self.marker = offsets, marker

    def exists(self, path: str) -> bool:
        return True

    def list(self, path: str) -> list[str]:
        return self.names[path.rpartition("/")[2]]

    def read_file(self, path: str) -> BytesIO:
        end = self.offsets[int(path.rpartition("/")[2])]
        return BytesIO(offsets_text([{0: end, 1: 0}]).encode())

    def get_attribute(self, path: str, name: str, default: object) -> object:
        assert (path.rpartition("/")[2], name) == ("checkpoint", MARKER)
        return self.marker


def _former_job(
    kind: Kind,
    offsets: Mapping[int, int],
    commits: tuple[int, ...],
    consumed: int,
    begun: object,
    **marker: Any,
) -> tuple[Connection, Snapshot]:
    """Return what such a job left; ``begun`` is what its checkpoint's marker says, if any."""
    connection = unconnected(*kind)
    logs = _Logs(offsets, commits, None if begun is None else {"begun": begun})
    connection = replace(connection, client=cast(Client, logs))
    path = connection.settings.queues[0]
    queue = Queue(path, "1-2-3-4", (0, 0), (100, 100), {0: consumed})
    mine = _marker(connection, [{"path": path, "id": "1-2-3-4"}])
    return connection, Snapshot((queue,), None, {**mine, **marker})


#: name: (kinds, offsets, commits, consumed, begun) -> (batch, row)
JUDGED: dict[str, Any] = {
    "not a batch yet": (TRANSACTIONAL + REPLAYING, {}, (), 5, 5, (-1, 5)),
    "clean": (TRANSACTIONAL, {0: 10, 1: 20}, (0, 1), 20, 0, (1, 20)),
    "clean, long ago": (TRANSACTIONAL, {7: 10, 8: 20}, (7, 8), 20, 0, (8, 20)),
    "planned": (TRANSACTIONAL, {0: 10, 1: 20}, (0,), 10, 0, (0, 10)),
    "died between the logs": (TRANSACTIONAL, {0: 10, 1: 20}, (0, 1), 10, 0, (0, 10)),
    "reply lost": (TRANSACTIONAL, {0: 10, 1: 20}, (0,), 20, 0, (1, 20)),
    "first planned": (TRANSACTIONAL, {0: 10}, (), 5, 5, (-1, 5)),
    "first died between the logs": (TRANSACTIONAL, {0: 10}, (0,), 5, 5, (-1, 5)),
    "first reply lost": (TRANSACTIONAL, {0: 10}, (), 10, 5, (0, 10)),
    "batch without rows, planned": (TRANSACTIONAL, {0: 10, 1: 10}, (0,), 10, 0, (0, 10)),
    "batch without rows, done": (TRANSACTIONAL, {0: 10, 1: 10}, (0, 1), 10, 0, (1, 10)),
    "first without rows, planned": (TRANSACTIONAL, {0: 5}, (), 5, 5, (-1, 5)),
    "a batch behind": (REPLAYING, {0: 10, 1: 20}, (0, 1), 10, 0, (1, 20)),
    "moved forward": (REPLAYING, {0: 10, 1: 20}, (0, 1), 30, 0, (1, 20)),
    "a batch behind, planned": (REPLAYING, {0: 10, 1: 20}, (0,), 10, 0, (0, 10)),
    "a batch behind, long ago": (REPLAYING, {7: 10, 8: 20}, (7, 8), 20, 0, (8, 20)),
    "first, a batch behind": (REPLAYING, {0: 10}, (0,), 5, 5, (0, 10)),
    "first planned, no transaction": (REPLAYING, {0: 10}, (), 5, 5, (-1, 5)),
    "commits lost": (REPLAYING, {7: 10, 8: 20}, (), 10, 0, (7, 10)),
    "checkpoint lost": (STATELESS, {}, (), 20, None, (-1, 20)),
}


@pytest.mark.parametrize(
    ("kind", "offsets", "commits", "consumed", "begun", "wanted"),
    [
        pytest.param(kind, *case, id="-".join((*kind, name)))
        for name, (kinds, *case) in JUDGED.items()
        for kind in kinds
    ],
)
def test_a_job_continues_behind_the_last_batch_that_happened(
    kind: Kind,
    offsets: dict[int, int],
    commits: tuple[int, ...],
    consumed: int,
    begun: int | None,
    wanted: tuple[int, int],
) -> None:
    noted = None if begun is None else [{"0": begun}]
    connection, found = _former_job(kind, offsets, commits, consumed, noted)
    head = before_ledger.head_of(connection, found)
    assert head is not None
    ends = {p: row for p, row in head.ends[connection.settings.queues[0]].items() if row}
    assert (head.batch, ends, head.folder) == (wanted[0], {0: wanted[1]}, 0)
    assert decide(connection, found).rows == [{0: wanted[1], 1: 0}]


#: name: (kinds, offsets, commits, consumed, begun, marker) -> what is said
REFUSED: dict[str, Any] = {
    "moved": (TRANSACTIONAL, {7: 10, 8: 20}, (7, 8), 15, 0, {}, "at no end of the last batches"),
    "moved, first": (STATEFUL[:1], {0: 10}, (0,), 7, 5, {}, "at no end of the last batches"),
    "commits lost": (STATEFUL[1:], {7: 10, 8: 20}, (), 7, 0, {}, "at no end of the last batches"),
    "state lost": (STATEFUL, {}, (), 20, 5, {}, "the state with it"),
    "checkpoint lost": (STATEFUL, {}, (), 20, None, {}, "the state with it"),
    "another job": (STATELESS, {}, (), 5, 5, {"job": "another"}, "belongs to another job"),
    "guarantee": (STATELESS, {}, (), 5, 5, {"guarantee": "another"}, "run `migrate`"),
    "output": (STATELESS, {}, (), 5, 5, {"output": "//home/other"}, "run `migrate`"),
    "no queues": (STATELESS, {}, (), 5, 5, {"queues": []}, "has read the queues"),
    "damaged": (STATELESS, {}, (), 5, 5, {"queues": "x"}, "is not as a job writes it"),
    "damaged too": (STATELESS, {}, (), 5, 5, {"queues": [1]}, "is not as a job writes it"),
}


@pytest.mark.parametrize(
    ("kind", "offsets", "commits", "consumed", "begun", "marker", "said"),
    [
        pytest.param(kind, *case, id="-".join((*kind, name)))
        for name, (kinds, *case) in REFUSED.items()
        for kind in kinds
    ],
)
def test_what_does_not_fit_is_refused(
    kind: Kind,
    offsets: dict[int, int],
    commits: tuple[int, ...],
    consumed: int,
    begun: int | None,
    marker: dict[str, Any],
    said: str,
) -> None:
    noted = None if begun is None else [{"0": begun}]
    connection, found = _former_job(kind, offsets, commits, consumed, noted, **marker)
    assert said in refusal(lambda: decide(connection, found))


@pytest.mark.parametrize("begun", [[5], 5, [{"x": 1}]], ids=str)
def test_a_damaged_marker_of_the_checkpoint_is_refused(begun: object) -> None:
    connection, found = _former_job(("transactional", "window"), {0: 10}, (0,), 10, begun)
    assert "is not as a job writes it" in refusal(lambda: decide(connection, found))


def test_a_job_that_has_never_run_has_no_head() -> None:
    connection, found = _former_job(("transactional", "map"), {}, (), 0, [{}])
    new = replace(found, consumer_marker=None)
    assert before_ledger.head_of(connection, new) is None


# -- the start that makes the ledger ---------------------------------------------------------------


def _former(driver: Driver) -> None:
    """Leave a job whose batch 1 has happened, up to row 4, and whose batch 2 was planned."""
    driver.send(6)
    client, settings = driver.client, driver.settings
    queue, path = settings.queues[0], settings.checkpoint
    for number in range(3):
        write(client, f"{path}/offsets/{number}", offsets_text([{0: 2 * number + 2, 1: 0}]))
        if driver.connection.job.kind.is_stateful:
            put(client, f"{path}/state/0/0/{number + 1}.delta", "[]")
    for number in range(2):
        put(client, f"{path}/commits/{number}")
    marker = _marker(driver.connection, [{"path": queue, "id": str(client.get(f"{queue}/@id"))}])
    client.set(f"{settings.consumer}/@{MARKER}", marker)
    client.set(f"{path}/@{MARKER}", {**marker, "begun": [{}]})
    consumed = 4 if driver.connection.guarantee.in_transaction else 2  # SPYT is a batch behind
    client.advance_queue_consumer(settings.consumer, queue, 0, None, consumed)


@pytest.mark.spark  # it needs Spark's JVM, though no session
@pytest.mark.parametrize("kind", TRANSACTIONAL + REPLAYING, ids="-".join)
def test_the_first_start_with_a_ledger_goes_on_and_is_the_only_one_to_judge(
    driver_of: DriverOf, kind: Kind
) -> None:
    driver = driver_of(*kind)
    queue = driver.settings.queues[0]
    _former(driver)
    assert driver.start(anew=True) == []
    assert driver.client.get(f"{driver.settings.consumer}/@{MARKER}") == {
        "job": driver.connection.job.name,
        "ledger": driver.settings.ledger,
    }
    found = snapshot.read(driver.client, driver.settings)
    assert before_ledger.head_of(driver.connection, found) is None
    assert dict(found.queues[0].consumed) == {0: 4}
    driver.batch()
    if kind[1] == "window":  # the batch that was planned; it had planned nothing for partition 1
        assert driver.read() == [(queue, 0, 4, 6)]
        driver.batch()
        assert driver.read() == [(queue, 0, 4, 6), (queue, 1, 0, 6)]
    else:
        assert driver.read() == [(queue, 0, 4, 6), (queue, 1, 0, 6)]
    assert driver.start(anew=True) == []


@pytest.mark.spark
@STRIDES
@pytest.mark.parametrize("kind", STATEFUL, ids="-".join)
def test_that_start_may_be_cut_off_at_any_write(
    driver_of: DriverOf, cluster: Running, tmp_path: Path, kind: Kind, stride: int
) -> None:
    driver = driver_of(*kind)
    _former(driver)

    def standing(_: int) -> tuple[Any, ...]:
        driver.start(anew=True)
        return driver.standing()

    cut_off_at_writes(cluster, driver, tmp_path, driver.start, standing, stride)


@pytest.mark.spark
def test_such_a_job_can_be_migrated_and_rewound(driver_of: DriverOf) -> None:
    driver = driver_of("transactional", "window")
    _former(driver)
    driver.redeclare(guarantee="at_least_once")
    said = driver.migrate()
    assert said[0] == "the job's guarantee was transactional and is at_least_once now"
    driver.start(anew=True)
    driver.batch()
    assert driver.read() == [(driver.settings.queues[0], 0, 4, 6)]
    assert driver.rewind("earliest")
    assert driver.start(anew=True) == []

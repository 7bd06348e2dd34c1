"""Markers and logs on the cluster, and the commands of an operator; no Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.ytstream.examples import PAIRS
from tests.ytstream.helpers import ConnectionOf, refusal
from ytstream.demo.tables import produce
from ytstream.job import Connection
from ytstream.recovery import snapshot
from ytstream.recovery.before_start import prepare
from ytstream.recovery.operator import migrate, rewind
from ytstream.status import status

for_all = pytest.mark.parametrize(("guarantee", "processing"), PAIRS)


def _configured(connection: Connection, **changes: Any) -> Connection:
    return replace(connection, settings=replace(connection.settings, **changes))


def _send(connection: Connection, count: int) -> None:
    """Append bids, dealt out over the four tablets of the first queue."""
    row = {"event_id": "e", "auction": 1, "bidder": 1, "price": 1, "date_time": 1}
    produce(connection.client, connection.settings.queues[0], [row] * count, 4)


@for_all
def test_changed_columns_are_said_once(
    provisioned_of: ConnectionOf, guarantee: str, processing: str
) -> None:
    connection = provisioned_of(guarantee, processing)
    prepare(connection)
    consumer = connection.settings.consumer
    connection.client.set(f"{consumer}/@{snapshot.MARKER}/schema", "of other columns")
    assert prepare(connection)[0] == ["tables.py has changed: rows written before stay as they are"]
    assert prepare(connection)[0] == []


@pytest.mark.parametrize("guarantee", ["transactional", "idempotent", "at_least_once"])
def test_a_checkpoint_of_another_job_is_refused_and_not_rewound(
    provisioned_of: ConnectionOf, guarantee: str
) -> None:
    connection = provisioned_of(guarantee)
    prepare(connection)
    connection.client.set(f"{connection.settings.checkpoint}/@{snapshot.MARKER}/job", "another")
    assert "belongs to another job" in refusal(lambda: prepare(connection))
    assert "belongs to another job" in refusal(lambda: rewind(connection, "latest", []))


@pytest.mark.parametrize(
    "damage",
    [{"queues": "nonsense"}, {"guarantee": None, "queues": [1]}, {"begun": [5]}, {"begun": 5}],
    ids=["queues", "no guarantee", "rows", "begun"],
)
def test_a_damaged_marker_is_refused_in_one_line(
    provisioned_of: ConnectionOf, damage: dict[str, Any]
) -> None:
    connection = provisioned_of("transactional")
    prepare(connection)
    path = f"{connection.settings.checkpoint}/@{snapshot.MARKER}"
    connection.client.set(path, {**connection.client.get(path), **damage})
    assert "not as the job writes it" in refusal(lambda: prepare(connection))


@pytest.mark.parametrize(
    "text",
    [b"garbage", b"\xff\xfe", b"v1\n{}\n{}", b"v1\n{oops\n[1]", b"v1\n[]\n-"],
    ids=["short", "not text", "no partitions", "not JSON", "not a map"],
)
def test_a_damaged_log_is_refused_and_rewind_is_the_way_out(
    provisioned_of: ConnectionOf, text: bytes
) -> None:
    connection = provisioned_of("transactional")
    client, checkpoint = connection.client, connection.settings.checkpoint
    client.create("map_node", f"{checkpoint}/offsets")
    client.write_file(f"{checkpoint}/offsets/0", text, force_create=True)
    assert "rewind" in refusal(lambda: prepare(connection))
    rewind(connection, "earliest", [])
    prepare(connection)
    assert client.list(checkpoint) == []


@pytest.mark.parametrize(
    ("to", "rows", "said"),
    [
        ("rows", [], "rows go with `rewind rows`"),
        ("latest", ["{queue}:0=1"], "rows go with `rewind rows`"),
        ("rows", ["nonsense"], "cannot read 'nonsense'"),
        ("rows", ["//home/other:0=1"], "cannot read"),
        ("rows", ["{queue}:0=100000"], "is not in the queue"),
        ("rows", ["{queue}:9=0"], "is not in the queue"),
    ],
)
def test_a_wrong_target_of_rewind_is_refused_before_any_change(
    provisioned_of: ConnectionOf, to: str, rows: list[str], said: str
) -> None:
    connection = provisioned_of("at_least_once")
    prepare(connection)
    queue = connection.settings.queues[0]
    given = [row.format(queue=queue) for row in rows]
    assert said in refusal(lambda: rewind(connection, to, given))
    root = connection.settings.checkpoint.rpartition("/")[0]
    assert not any(".before-" in name for name in connection.client.list(root))


def test_rewind_moves_the_partitions_that_are_named(provisioned_of: ConnectionOf) -> None:
    connection = provisioned_of("transactional")
    _send(connection, 80)
    prepare(connection)
    queue = connection.settings.queues[0]
    assert rewind(connection, "rows", [f"{queue}:1=7"]) == [
        f"{queue}, partition 1: consumer from row 0 to 7"
    ]
    (found,) = snapshot.read(connection.client, connection.settings).queues
    assert found.consumed == {1: 7}
    rewind(connection, "latest", [])
    (found,) = snapshot.read(connection.client, connection.settings).queues
    assert found.consumed == dict.fromkeys(range(4), 20)
    assert prepare(connection)[0] == []


def test_migrate_without_a_change_says_so(provisioned_of: ConnectionOf) -> None:
    connection = provisioned_of("at_least_once")
    said = ["nothing to do: the job's guarantee is at_least_once"]
    assert migrate(connection) == said
    prepare(connection)
    assert migrate(connection) == said


def test_a_gap_before_the_first_batch_begins_the_checkpoint_behind_it(
    provisioned_of: ConnectionOf,
) -> None:
    connection = provisioned_of("transactional", "window")
    _send(connection, 80)
    prepare(connection)
    client: Any = connection.client
    client.trim_rows(connection.settings.queues[0], 0, 10)
    skipping = _configured(connection, on_data_loss="skip")
    assert any("trimmed" in note for note in prepare(skipping)[0])
    assert prepare(skipping)[0] == []


def test_status_shows_each_partition_and_the_lag(provisioned_of: ConnectionOf) -> None:
    connection = provisioned_of("at_least_once", "map", 2)
    _send(connection, 80)
    text = status(connection)
    lines = [line.split() for line in text.splitlines()]
    assert [connection.settings.queues[0], "3", "0", "20", "0", "0", "20"] in lines
    assert [connection.settings.queues[1], "3", "0", "0", "0", "0", "0"] in lines
    assert "lag: 80 rows; last batch: none yet" in text

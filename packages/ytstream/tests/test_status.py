"""The tables of `status`, and a command that is refused before Spark starts; no JVM."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from yt.yson import YsonUint64

from packages.ytstream.tests.driver import BID
from packages.ytstream.tests.helpers import ConnectionOf, refusal
from ytstream import cli
from ytstream.demo.tables import produce
from ytstream.job import Connection
from ytstream.ledger import BatchRow, Head, batch_row, head_row
from ytstream.recovery.epoch import Epoch
from ytstream.recovery.stopping import tell_end
from ytstream.status import SHOWN, status


def _send(connection: Connection, count: int) -> None:
    """Append bids, dealt out over the four tablets of the first queue."""
    produce(connection.client, connection.settings.queues[0], [BID] * count, 4)


def _lines(connection: Connection) -> list[list[str]]:
    return [line.split() for line in status(connection).splitlines()]


def test_status_before_the_first_start_shows_the_consumer(provisioned_of: ConnectionOf) -> None:
    connection = provisioned_of("at_least_once", "map", 2)
    _send(connection, 80)
    lines, queues = _lines(connection), connection.settings.queues
    assert [queues[0], "3", "0", "20", "0", "0", "20"] in lines
    assert [queues[1], "3", "0", "0", "0", "0", "0"] in lines
    text = status(connection)
    assert "lag: 80 rows" in text
    assert "the job has not started yet" in text


def test_status_shows_the_ledger_and_a_queue_that_it_does_not_know(
    provisioned_of: ConnectionOf,
) -> None:
    connection = provisioned_of("transactional", "window", 2)
    first, second = connection.settings.queues
    _send(connection, 80)
    head = Head(7, "process 1 on host", 7, 41, 42, {first: {3: 15}}, {first: "1-2-3-4"})
    connection.client.insert_rows(connection.settings.ledger, [head_row(head)])
    lines = _lines(connection)
    assert [first, "3", "0", "20", "0", "15", "5"] in lines
    assert [second, "3", "0", "0", "0", "0", "0"] in lines
    text = status(connection)
    assert "lag: 65 rows" in text
    assert "epoch 7 of process 1 on host: it has not said that it ended; 42 batches" in text
    tell_end(connection, Epoch(7, "process 1 on host"), "stopped")
    assert "epoch 7 of process 1 on host: stopped; 42 batches" in status(connection)
    gone = replace(head, ids={first: "1-2-3-4", "//home/x": "1-2"}, removed=frozenset({"//home/x"}))
    connection.client.insert_rows(connection.settings.ledger, [head_row(gone)])
    assert "//home/x is not read any more" in status(connection)
    one = head_row(replace(head, number=1, ends={first: {0: 20, 1: 20, 2: 19, 3: 20}}))
    connection.client.insert_rows(connection.settings.ledger, [one])
    text = status(connection)
    assert "lag: 1 row\n" in text
    assert "stopped; 1 batch until now" in text


def test_status_shows_what_the_last_batches_did_and_how_fast(provisioned_of: ConnectionOf) -> None:
    """Batches of 2.5 s, one each ten seconds; an older one knows of no rejected rows."""
    connection = provisioned_of("transactional", rejects=True)
    start = datetime(2024, 2, 3, 23, 59, 50, tzinfo=UTC)
    assert "rows/s" not in status(connection)
    for number in range(1, SHOWN + 3):
        written = {"output": 99, "rejected": 1} if number > 3 else {"output": 100}
        begun = start + timedelta(0, 10 * number)
        queue = connection.settings.queues[0]
        done = BatchRow({queue: {0: (0, 100)}}, written, begun, begun + timedelta(0, 2.5))
        row = batch_row(Head(epoch=3, batch=number - 1, number=number), done)
        row |= {name: YsonUint64(row[name]) for name in ("started", "ended")}
        connection.client.insert_rows(connection.settings.ledger, [row])
    lines = _lines(connection)
    header = ["batch", "ended", "(UTC)", "rows", "read", "output", "rejected", "seconds"]
    first = lines.index(header) + 2
    assert lines[first] == ["3-2", "2024-02-04", "00:00:22", "100", "100", "0", "2.5"]
    assert lines[first + 1] == ["3-3", "2024-02-04", "00:00:32", "100", "99", "1", "2.5"]
    assert lines[first + SHOWN - 1][0] == f"3-{SHOWN + 1}"
    said = "the last 10 batches: 1000 rows in 25.0 s of work (40 rows/s), 92.5 s with the pauses"
    assert f"{said} (11 rows/s)" in status(connection)


def test_status_refuses_a_damaged_ledger(provisioned_of: ConnectionOf) -> None:
    connection = provisioned_of("transactional")
    row = {**head_row(replace(Head(), epoch=1)), "queues": 5}
    connection.client.insert_rows(connection.settings.ledger, [row])
    assert "is not as the job writes it" in refusal(lambda: status(connection))


def test_a_replay_beside_a_static_output_is_refused_before_sparks_start(
    provisioned_of: ConnectionOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = provisioned_of("transactional", rejects=True)
    job = replace(connection.job, static=("output",))
    monkeypatch.setattr("ytstream.query.session.opened", lambda _: pytest.fail("Spark was started"))
    command = cli.ON_THE_CLUSTER["replay-rejected"]
    text = refusal(lambda: command(replace(connection, job=job), Namespace()))
    assert "the outputs output are static" in text

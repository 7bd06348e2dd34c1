"""The whole job on the minicluster: queues, SPYT, checkpoint, output table."""

from __future__ import annotations

from typing import Any


def test_every_row_arrives_once_and_right(stream: Any) -> None:
    stream.send(3_000)
    stream.recover()
    stream.close()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)
    assert outcome.rows_out > 0


def test_a_second_run_goes_on_where_the_first_one_stopped(stream: Any) -> None:
    for _ in range(2):
        stream.send(1_000)
        stream.recover()
        stream.drain()
    stream.close()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)


def test_changed_columns_are_said_once(stream: Any) -> None:
    stream.recover()
    stream.client.set(f"{stream.settings.consumer}/@ytstream_job/schema", "of other columns")
    assert stream.recover() == [
        "tables.py has changed: rows that were written before stay as they are"
    ]
    assert stream.recover() == []

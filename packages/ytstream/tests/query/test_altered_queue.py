"""A queue's column gets another type while a job runs: no value comes out that the queue lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yt.type_info as ti

from tests.support.helpers import StreamOf, head_of, refusal, sampled
from ytstream import Column
from ytstream.provisioning import job_objects
from ytstream.query.batch_outcome import failed_of
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait, wait_for_failure

pytestmark = pytest.mark.spark

GUARANTEES = ("transactional", "idempotent", "at_least_once")
CHANGES: dict[str, tuple[dict[str, Any], int | None, str]] = {
    "wider": ({"type_v3": "int64"}, 2**40 + 7, "the table has int64, tables.py says int32"),
    "null": (
        {"type_v3": {"type_name": "optional", "item": "int32"}}, None, "the table may hold null",
    ),
}  # fmt: skip
"""What SPYT would read as 7, and as 0."""


def _small_prices(stream: Stream) -> Stream:
    """Return a job whose queue has prices of type int32, which must not be null."""
    job = stream.context.job
    price = Column("price", ti.Int32, required=True)
    queue = [price if column.name == "price" else column for column in job.queue_columns]
    context = replace(stream.context, job=replace(job, queue=queue))
    (path,) = stream.settings.queues
    stream.client.remove(path)
    job_objects.provision(context)
    return replace(stream, context=context)


def _alter(stream: Stream, change: dict[str, Any]) -> None:
    (queue,), client = stream.settings.queues, stream.client
    any_client: Any = client
    schema = client.get(f"{queue}/@schema")
    altered = [
        {"name": column["name"], **(change if column["name"] == "price" else _type(column))}
        for column in schema
    ]
    any_client.unmount_table(queue, sync=True)
    any_client.alter_table(queue, schema=altered)
    any_client.mount_table(queue, sync=True)


def _type(column: dict[str, Any]) -> dict[str, Any]:
    return {"type_v3": column["type_v3"]}


@pytest.mark.parametrize(
    ("guarantee", "name"),
    sampled(
        [(guarantee, name) for guarantee in GUARANTEES for name in CHANGES],
        [("transactional", "wider"), ("transactional", "null"), ("at_least_once", "wider")],
    ),
)
def test_a_value_that_the_declared_column_cannot_hold_ends_the_job(
    stream_of: StreamOf, guarantee: str, name: str
) -> None:
    """Without a transaction the batch has written its rows, and it is not recorded."""
    change, value, said = CHANGES[name]
    stream = _small_prices(stream_of(guarantee))
    rows = [{**row, "price": 5} for row in stream.sample.make(8)]
    with stream.running() as query:
        stream.publish(rows)
        wait(drained(stream.context), query)
        head = head_of(stream)
        _alter(stream, change)
        stream.publish([{**row, "price": value} for row in rows])
        wait_for_failure(query)
    failed = failed_of(stream.batch.outcomes)
    assert failed is not None
    failure = str(failed.failure)
    assert "were altered while the job ran" in failure
    assert said in failure
    assert head_of(stream) == head
    wanted = stream.sample.wanted(stream.context.job, rows)
    assert not wanted - stream.found()
    assert guarantee != "transactional" or stream.found() == wanted
    assert said in refusal(lambda: job_objects.require(stream.context, "the job cannot start"))

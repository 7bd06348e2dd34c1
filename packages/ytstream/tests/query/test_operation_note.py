"""The operation's page shows the last batch and the lag, at a low rate; no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from yt.wrapper import VanillaSpecBuilder

from minicluster import testing as minicluster
from tests.support.examples import example, settings_of
from tests.support.status_steps import head_of_batch, send, write_rows
from ytstream.cluster import operation
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.ledger.ledger_rows import head_row
from ytstream.provisioning import job_objects
from ytstream.query.operation_note import OperationNote


@pytest.fixture(scope="module")
def running() -> Iterator[minicluster.Running]:
    """Start a minicluster that runs operations."""
    with minicluster.start(operations=True) as cluster:
        yield cluster


def test_the_description_of_the_operation_follows_the_batches(
    running: minicluster.Running, root: str
) -> None:
    job = example("transactional", "map").job
    settings = settings_of(job, root, proxy=running.http)
    context = JobContext(connect(settings), settings, job, guarantee_of(job))
    job_objects.provision(context)
    send(context, 40)
    client: Any = context.client
    spec = VanillaSpecBuilder().begin_task("driver").command("sleep 600").job_count(1).end_task()
    links = {"annotations": {"description": {"Runbook": "https://git.example.com/bids"}}}
    id_ = str(client.run_operation(spec.spec(links), sync=False).id)
    try:
        ends = {settings.queues[0]: {0: 10, 1: 10, 2: 10, 3: 7}}
        head = head_of_batch(context, 12, ends=ends)
        write_rows(context, head_row(head))
        note = OperationNote(context, lambda: positions.read(client, settings).queues, id_)

        def description() -> Any:
            found = operation.get(client, id_)
            assert found is not None
            return found.description

        note.tick(100.0)
        assert description()["Last batch"].startswith("3-11, seen ")
        assert description()["Lag"] == "3 rows"
        assert description()["Runbook"] == "https://git.example.com/bids"
        write_rows(context, head_row(replace(head, batch=12, number=13)))
        note.tick(130.0)
        assert description()["Last batch"].startswith("3-11, seen ")
        note.tick(161.0)
        assert description()["Last batch"].startswith("3-12, seen ")
        since = len(running.client.journal())
        note.tick(300.0)  # no batch since: nothing is written
        asked = [entry.method for entry in running.client.journal()[since:]]
        assert "update_op_parameters" not in asked
        assert "update_operation_parameters" not in asked
    finally:
        client.abort_operation(id_)


def test_a_process_outside_of_an_operation_asks_nothing() -> None:
    OperationNote(None, tuple, None).tick(1.0)  # type: ignore[arg-type]

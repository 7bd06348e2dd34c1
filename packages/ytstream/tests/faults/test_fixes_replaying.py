"""Faults that break jobs without transactions, with the job's fix and without it.

Trimmed rows break transactional jobs in the same way.
"""

from __future__ import annotations

import pytest

from minicluster.testing import Running
from tests.support import without_fix
from tests.support.helpers import (
    StreamOf,
    fail_in_the_middle_of_a_batch,
    fails_with,
)
from ytstream.errors.error_codes import ErrorCode
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

with_and_without = pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "bare"])


@with_and_without
@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_rows_trimmed_before_they_were_read(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, guarantee: str, fixed: bool
) -> None:
    """SPYT asks for trimmed rows, gets the first ones left, and counts from the asked offset.

    A start that does not look at the queue's first rows is stopped by the audit of its first batch.
    Without both, rows come twice.
    """
    stream = stream_of(guarantee)
    stream.send(400)
    stream.client.trim_rows(stream.settings.queues[0], 0, 50)
    if not fixed:
        without_fix.begin_at_row_zero(monkeypatch)
        with fails_with(ErrorCode.ROWS_TRIMMED):
            stream.drain()
        without_fix.audit_nothing(monkeypatch)
    stream.drain()
    outcome = stream.outcome()
    if fixed:
        assert (outcome.lost, outcome.duplicated) == (50, 0)
    else:
        assert outcome.duplicated >= 50


@with_and_without
@pytest.mark.parametrize("queues", [1, 2])
def test_an_idempotent_batch_that_runs_again_changes_nothing(
    stream_of: StreamOf, cluster: Running, queues: int, fixed: bool
) -> None:
    """A write fails in the second batch; first writes of that batch are in the output already.

    The key of the output is the fix: a table without a key takes every repeat as a new row.
    """
    stream = stream_of("idempotent", "map", queues)
    stream.configure(max_rows_per_partition=100)
    if not fixed:
        _make_ordered(stream)
    stream.send(1_200)
    # The first batch writes once for each tablet. The second is gathered: one write of its two.
    fail_in_the_middle_of_a_batch(stream, cluster, skip=4 * queues + 1)
    stream.drain()
    outcome = stream.outcome()
    assert outcome.lost == 0
    assert (outcome.duplicated > 0) == (not fixed)


def _make_ordered(stream: Stream) -> None:
    """Replace the output by a table of the same columns without a key."""
    client, output = stream.client, stream.settings.output
    schema = [
        {name: value for name, value in column.items() if name != "sort_order"}
        for column in client.get(f"{output}/@schema")
    ]
    client.remove(output)
    client.create("table", output, attributes={"dynamic": True, "schema": schema})
    client.mount_table(output, sync=True)

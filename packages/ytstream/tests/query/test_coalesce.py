"""Micro-batches in few tasks: whether that is faster, and that no row is lost in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from minicluster.testing import Running
from tests.support.helpers import StreamOf
from ytstream.query.coalesce import START_ROWS, is_faster, sizes_of
from ytstream_tools.testing.job_stream import Stream

LARGE = 10 * START_ROWS


def test_the_sizes_of_sparks_partitions() -> None:
    begins = [{0: 10, 1: 5}, {0: 3}, {0: 7}]
    ends = [{1: 5, 0: 12, 2: 4}, {0: 3}, {0: 8}]
    assert sizes_of(begins, ends) == [2, 0, 4, 1]  # the second queue has no new row
    assert sizes_of((), ends) == []


@pytest.mark.parametrize(
    ("sizes", "cores", "wanted"),
    [
        ([LARGE] * 8, 2, True),
        ([LARGE] * 8, 8, False),
        ([], 2, False),
        ([0, 0, 0, 7], 2, True),  # no task has much to do
        # A queue or some tablets with a backlog, beside others without one.
        ([LARGE] * 4 + [0] * 4, 2, False),
        ([LARGE, LARGE, 0, 0], 2, False),
        ([LARGE, 0, LARGE, 0], 2, True),
        ([3 * LARGE, LARGE, LARGE, LARGE], 2, False),
        ([3 * LARGE, 0, 0, LARGE], 2, True),  # the largest partition is one task's in any case
    ],
)
def test_few_tasks_are_faster_unless_one_has_much_more_to_do(
    sizes: list[int], cores: int, wanted: bool
) -> None:
    assert is_faster(sizes, cores) == wanted


@contextmanager
def _writers(stream: Stream, cluster: Running) -> Iterator[list[int]]:
    """Yield a list that has the number of tasks that wrote at the end: a batch has few rows."""
    cluster.client.journal.clear()
    found: list[int] = []
    yield found
    written = cluster.client.journal("ModifyRows")
    found.append(sum(entry.args.get("path") == stream.settings.output for entry in written))


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("queues", [1, 2])
def test_an_even_batch_has_a_task_for_each_core(
    stream_of: StreamOf, cluster: Running, queues: int
) -> None:
    stream = stream_of("transactional", queues=queues)
    cores = stream.spark.sparkContext.defaultParallelism
    tablets = queues * int(stream.client.get(f"{stream.settings.queues[0]}/@tablet_count"))
    assert cores < tablets
    stream.configure(max_rows_per_partition=100)
    stream.send(1_200)
    with _writers(stream, cluster) as found:
        stream.drain()
    first = tablets  # where it begins is not known yet
    assert found == [first + cores + cores]
    assert stream.is_exact()


@pytest.mark.thorough
@pytest.mark.spark
def test_the_parts_that_a_transform_asks_for_stay(stream_of: StreamOf, cluster: Running) -> None:
    """They are others than the queues' partitions, so nothing is known of their sizes."""
    stream = stream_of("transactional")
    made = stream.context.job.transform
    stream.redeclare(transform=lambda events: made(events).repartition(3))
    stream.configure(max_rows_per_partition=100)
    stream.send(800)
    with _writers(stream, cluster) as found:
        stream.drain()
    assert found == [3 + 3]
    assert stream.is_exact()

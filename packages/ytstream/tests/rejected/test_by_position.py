"""Few rejected rows are selected by their positions; for many ones all rows are read once more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from minicluster.testing import Running
from tests.support.helpers import ON_STRIKE, StreamOf
from ytstream import RestartableError
from ytstream.connector.java import jvm_of
from ytstream.connector.tablet_transactions import Tablets
from ytstream.outputs.audit import RowRange
from ytstream.rejected import by_position
from ytstream_tools.demo.demo_tables import row_count
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark


class Figures:
    """What a batch has observed, as Spark's rows give it: two reasons, the positions, the bytes."""

    def __init__(self, bins: Sequence[tuple[int, float]], size: int | None) -> None:
        self._bins, self._size = bins, size

    def get(self, index: int) -> Any:
        """Return a figure."""
        return {2: self, 3: self._size}[index]

    def mkString(self) -> str:  # noqa: N802
        """Return the bins as Scala shows a sequence of rows."""
        return "".join(f"[{float(x):.15E},{y}]" for x, y in self._bins)


PLANNED = {
    "//a": {0: RowRange(0, 50), 3: RowRange((5 << 27) - 2, (5 << 27) + 2)},
    "//b": {1: RowRange(7, 9)},
}


def _bin(queue: int, tablet: int, row: int) -> tuple[int, float]:
    return ((queue << 14 | tablet) << 27 | row % (1 << 27), 1.0)


def test_positions_are_those_that_were_observed() -> None:
    bins = [_bin(0, 0, 49), _bin(0, 3, (5 << 27) - 1), _bin(0, 3, 5 << 27), _bin(1, 1, 8)]
    assert by_position.positions(Figures(bins, 400), {"a": 1, "b": 3}, PLANNED) == {
        "//a": {0: [49], 3: [(5 << 27) - 1, 5 << 27]},
        "//b": {1: [8]},
    }


@pytest.mark.parametrize(
    ("bins", "size", "counts", "planned"),
    [
        pytest.param([_bin(0, 0, 4)], by_position.MOST_BYTES + 1, [0, 1], PLANNED, id="bytes"),
        pytest.param([_bin(0, 0, 4)], 40, [0, by_position.MOST_ROWS + 1], PLANNED, id="rows"),
        pytest.param([], None, [0, 0], PLANNED, id="none"),
        pytest.param([(4, 2.0)], 80, [0, 2], PLANNED, id="two attempts at a task"),
        pytest.param([(4, 2.0), (5, 1.0)], 80, [1, 1], PLANNED, id="two in one bin"),
        pytest.param([_bin(0, 2, 4)], 40, [1, 0], PLANNED, id="another tablet"),
        pytest.param([_bin(2, 0, 4)], 40, [1, 0], PLANNED, id="another queue"),
        pytest.param([_bin(1, 1, 9)], 40, [1, 0], PLANNED, id="another row"),
        pytest.param(
            [_bin(0, 0, 4)], 40, [1, 0], {"//a": {0: RowRange(0, 1 << 28)}}, id="too long"
        ),
        pytest.param(
            [_bin(0, 0, 4)],
            40,
            [1, 0],
            {"//a": {0: RowRange(0, 9), 1 << 14: RowRange(0, 9)}},
            id="too many tablets",
        ),
        pytest.param(
            [_bin(0, 0, 4)],
            40,
            [1, 0],
            {f"//{n}": {0: RowRange(0, 9)} for n in range(4097)},
            id="too many queues",
        ),
    ],
)
def test_positions_that_are_not_all_known_are_none(
    bins: Sequence[tuple[int, float]], size: int | None, counts: Sequence[int], planned: Any
) -> None:
    assert (
        by_position.positions(Figures(bins, size), dict(zip("ab", counts, strict=True)), planned)
        is None
    )


# -- in a stream -----------------------------------------------------------------------------------


@contextmanager
def _requests(cluster: Running, queues: Sequence[str]) -> Iterator[dict[str, int]]:
    """Count pulls and selects of the queues inside the block."""
    found = {"pulled": 0, "selected": 0}
    cluster.client.journal.clear()
    yield found
    for entry in cluster.client.journal():
        found["pulled"] += entry.method == "PullConsumer"
        query = str(entry.args.get("query", ""))
        found["selected"] += "[$row_index] in (" in query and any(q in query for q in queues)


def _is_exact(stream: Stream) -> bool:
    return all((one.lost, one.duplicated) == (0, 0) for one in stream.outcomes().values())


@pytest.mark.parametrize(
    ("guarantee", "processing", "queues"),
    [
        pytest.param("transactional", "map", 1, marks=pytest.mark.journey),
        ("idempotent", "map", 3),
        pytest.param("at_least_once", "map", 2, marks=pytest.mark.journey),
        pytest.param("transactional", "window", 2, marks=pytest.mark.journey),
    ],
)
def test_few_are_selected_and_many_are_read_once_more(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
    processing: str,
    queues: int,
) -> None:
    stream = stream_of(guarantee, processing, queues, rejects=True)
    stream.send(300)
    stream.drain()
    # Rows behind others, and a queue without new ones.
    stream.send(300, queues=range(max(1, queues - 1)))
    with _requests(cluster, stream.settings.queues) as found:
        stream.drain()
    pulled = found["pulled"]
    assert 0 < found["selected"] <= pulled  # one at most for each partition
    stream.send(300, queues=range(max(1, queues - 1)))
    monkeypatch.setattr(by_position, "MOST_BYTES", 0)
    with _requests(cluster, stream.settings.queues) as found:
        stream.drain()
    assert (found["selected"], found["pulled"]) == (0, 2 * pulled)
    stream.close()
    assert _is_exact(stream)


def test_a_queue_whose_rows_all_pass_is_not_read_again(
    stream_of: StreamOf, cluster: Running
) -> None:
    stream = stream_of("transactional", "map", 2, rejects=True)
    passing = stream.sample.passing(stream.context.job, stream.sample.make(60))
    stream.publish([dict(row) for row in passing], 0)
    stream.send(300, queues=[1])
    with _requests(cluster, stream.settings.queues) as found:
        stream.drain()
    assert found["selected"] > 0
    assert found["pulled"] == sum(
        int(stream.client.get(f"{queue}/@tablet_count")) for queue in stream.settings.queues
    )
    assert _is_exact(stream)


def test_a_cluster_that_refuses_the_query_gives_all_rows(
    stream_of: StreamOf, cluster: Running
) -> None:
    stream = stream_of("transactional", "map", rejects=True)
    stream.send(300)
    where = {"query": "*$row_index*"}
    cluster.client.faults.add(method="SelectRows", where=where, action="fail", error=ON_STRIKE)
    with _requests(cluster, stream.settings.queues) as found:
        stream.drain()
    assert found["selected"] > 0
    assert _is_exact(stream)


def test_an_answer_that_lacks_a_row_is_not_taken(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of("transactional", "map", rejects=True)
    stream.send(300)
    whole = Tablets.rowsets
    monkeypatch.setattr(Tablets, "rowsets", lambda *given: whole(*given)[1:])
    stream.drain()
    assert _is_exact(stream)


def test_rows_that_are_gone_by_then_end_the_query(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of("transactional", "map", rejects=True)
    stream.send(300)
    queue, select = stream.settings.queues[0], by_position.selected

    def trimmed(*given: Any) -> Any:
        for tablet in range(int(stream.client.get(f"{queue}/@tablet_count"))):
            stream.client.trim_rows(queue, tablet, 70)
        return select(*given)

    monkeypatch.setattr(by_position, "selected", trimmed)
    with pytest.raises(RestartableError, match=r"read other rows of //.* for 'rejected' than"):
        stream.drain()
    assert [row_count(stream.context, name) for name in stream.settings.outputs] == [0, 0]


@pytest.mark.parametrize(("kind", "is_selected"), [("int64", True), ("string", False)])
def test_columns_that_the_job_does_not_read_may_be_of_any_size(
    stream_of: StreamOf, cluster: Running, kind: str, is_selected: bool
) -> None:
    """The rows pass through the driver with all columns, and the size is that of declared ones."""
    stream = stream_of("transactional", "map", 1, rejects=True)
    (queue,) = stream.settings.queues
    schema = [dict(column) for column in stream.client.get(f"{queue}/@schema")]
    client: Any = stream.client
    client.unmount_table(queue, sync=True)
    client.alter_table(queue, schema=[*schema, {"name": "more", "type": kind}])
    client.mount_table(queue, sync=True)
    stream.send(300)
    with _requests(cluster, stream.settings.queues) as found:
        stream.drain()
    assert bool(found["selected"]) == is_selected
    assert _is_exact(stream)


def test_rows_that_spyt_cannot_read_are_read_with_all_others(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of("transactional", "map", 1, rejects=True)

    def failing(*_: object) -> None:
        jvm_of(stream.spark).java.lang.Long.parseLong("no number")

    monkeypatch.setattr(by_position, "selected_rdd", failing)
    stream.send(300)
    with _requests(cluster, stream.settings.queues) as found:
        stream.drain()
    assert found["selected"]
    assert _is_exact(stream)


@pytest.mark.parametrize("most", [0, by_position.MOST_BYTES])
def test_rows_whose_numbers_have_no_sum(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Spark's sum is null then (try_sum, source.py)."""
    monkeypatch.setattr(by_position, "MOST_BYTES", most)
    stream = stream_of("transactional", "map", 1, rejects=True)
    (queue,) = stream.settings.queues
    client: Any = stream.client
    client.unmount_table(queue, sync=True)
    client.reshard_table(queue, tablet_count=1, trimmed_row_counts=[1 << 62], sync=True)
    client.mount_table(queue, sync=True)
    stream.send(300)
    stream.drain()
    assert _is_exact(stream)

"""Which layouts of a queue a start goes on with, and which `migrate` applies: values alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest
import yt.type_info as ti

from tests.support.helpers import (
    fails_with,
    refusal,
    unconnected,
)
from ytstream import RestartableError
from ytstream.cluster.client import Client
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger.batch_row_ranges import RowRange
from ytstream.ledger.ledger_rows import Head, head_of, head_row
from ytstream.ledger.offsets import Queue
from ytstream.ledger.positions import Snapshot
from ytstream.ledger.queue_layout import QueueLayout, is_drained, is_grown, layout_of, telling_rows
from ytstream.ownership.job_marker import marker_of
from ytstream.ownership.output_marks import replaceable
from ytstream.query.read_audit import verify_queues
from ytstream.recovery.start import StartPlan, _retired, decide
from ytstream.schema.columns import Column
from ytstream.schema.table_schema import table_schema

QUEUE, ID = "//home/job/queue-0", "1-2-3-4"
COLUMNS = (Column("id", ti.Int64, required=True), Column("price", ti.Int32, required=True))
FOUR, TWO, SIX = QueueLayout(4, "a"), QueueLayout(2, "b"), QueueLayout(6, "c")
FOUR_AGAIN = QueueLayout(4, "d")
HEAD_TIME = 1 << 60


def _tablets(*ids: str, revision: int = 1) -> list[dict[str, Any]]:
    return [{"tablet_id": id_, "mount_revision": revision, "cell_id": "x"} for id_ in ids]


def test_a_layout_is_the_ids_of_its_tablets_in_their_order() -> None:
    one = layout_of(_tablets("1-a", "1-b"))
    assert one.tablets == 2
    assert one == layout_of(_tablets("1-a", "1-b", revision=2))  # remounted, on another cell
    assert one != layout_of(_tablets("1-b", "1-a"))
    assert one != layout_of(_tablets("1-c", "1-d"))


@pytest.mark.parametrize(
    ("now", "ends", "upper", "grown"),
    [
        (SIX, {0: 5, 3: 7}, [5, 0, 0, 7, 0, 0], True),
        (SIX, {0: 5, 3: 7}, [9, 0, 0, 8, 1, 0], True),
        # The last one was removed in between: it counts from 0 again.
        (SIX, {0: 5, 3: 7}, [5, 7, 0, 6, 0, 0], False),
        (FOUR_AGAIN, {}, [0, 0, 0, 0], False),
        (TWO, {}, [0, 0], False),
    ],
)
def test_a_queue_that_has_grown(
    now: QueueLayout, ends: dict[int, int], upper: list[int], grown: bool
) -> None:
    assert is_grown(FOUR, now, ends, upper, ()) == grown


def test_a_tablet_that_was_made_again_and_filled_is_told_by_the_age_of_its_rows() -> None:
    """As long as before: 4 tablets, then 2, then 6, and as many new rows in the third one."""
    ends, upper = {0: 5, 2: 7, 3: 0}, [5, 7, 9, 0, 0, 0]
    newer = [(0, 5), (2, 7), (2, 8)]
    assert is_grown(FOUR, SIX, ends, upper, newer)
    assert not is_grown(FOUR, SIX, ends, upper, [*newer, (2, 6)])
    assert {(0, 4), (2, 6)} <= telling_rows(ends, [0] * 6, upper)


@pytest.mark.parametrize(
    ("ends", "upper", "drained"),
    [
        ({0: 10, 1: 20, 2: 3, 3: 4}, [10, 27], True),
        ({0: 10, 1: 20, 2: 3, 3: 4}, [37], True),
        # All rows of the removed tablets were trimmed before.
        ({0: 10, 1: 20, 2: 3, 3: 4}, [10, 20], True),
        ({0: 10, 1: 20, 2: 3, 3: 4}, [10, 28], False),
        ({0: 10, 1: 20, 2: 3, 3: 4}, [11, 27], False),
        # Some were.
        ({0: 10, 1: 20, 2: 3, 3: 4}, [10, 25], False),
        # 4 to 2 to 4 tablets.
        ({0: 10, 1: 20, 2: 3, 3: 4}, [10, 27, 0, 0], True),
        ({0: 10, 1: 20, 2: 3, 3: 4}, [10, 27, 1, 0], False),
        ({0: 10, 1: 20, 2: 3, 3: 4}, [10, 20, 3, 4], True),
        ({0: 10, 1: 20, 2: 3, 3: 4}, [10, 20, 3, 5], False),
        ({}, [0, 0], True),
        ({}, [0, 1], False),
    ],
)
def test_a_queue_that_is_drained(ends: dict[int, int], upper: list[int], drained: bool) -> None:
    assert is_drained(ends, [0] * len(upper), upper, ()) == drained


def test_where_rows_were_trimmed_those_of_removed_tablets_may_have_been() -> None:
    ends = {0: 10, 1: 20, 2: 3, 3: 4}
    assert is_drained(ends, [10, 20], [10, 20], ())
    assert not is_drained(ends, [10, 0], [10, 27], ())


_TABLET = [
    (read, unread, trimmed)
    for read in range(3)
    for unread in range(3)
    for trimmed in range(read + unread + 1)
]


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(1, 3), (1,), (2,), (1, 4), (2, 3)])
def test_no_queue_with_unread_rows_counts_as_drained(counts: tuple[int, ...]) -> None:
    """As many rows may be trimmed in removed tablets as are unread; new tablets may be filled."""
    for tablets in product(_TABLET, repeat=3):
        # Of each tablet its rows: None if it is trimmed, else whether it was not read.
        queue: list[list[bool | None]] = [
            [None] * trimmed + [*([False] * read), *([True] * unread)][trimmed:]
            for read, unread, trimmed in tablets
        ]
        ends = {partition: read for partition, (read, _, _) in enumerate(tablets)}
        for count in counts:
            removed = [row for tablet in queue[count:] for row in tablet if row is not None]
            queue = [*queue[:count], *([] for _ in range(count - len(queue)))]
            queue[-1] += removed
        filled = [
            [*tablet, *([True] * (ends.get(partition, 0) - len(tablet) if partition else 0))]
            for partition, tablet in enumerate(queue)
        ]
        for found in (queue, filled):
            lower, upper = [tablet.count(None) for tablet in found], [*map(len, found)]
            telling = telling_rows(ends, lower, upper)
            newer = {(p, row) for p, row in telling if row < upper[p] and found[p][row]}
            is_exact = is_drained(ends, lower, upper, newer)
            assert not is_exact or not any(map(any, found)), (tablets, found)
            if not any(trimmed or unread for _, unread, trimmed in tablets) and found is queue:
                assert is_exact


def test_the_head_keeps_the_layout_and_one_of_1_0_0_has_none() -> None:
    head = Head(3, "p", 3, ends={QUEUE: {0: 1}}, ids={QUEUE: ID}, layouts={QUEUE: FOUR})
    head = replace(head, retired={QUEUE: {5: 8}})
    row = head_row(head)
    assert head_of("//l", iter([row])) == head
    del row["queues"][0]["layout"], row["queues"][0]["retired"]
    assert head_of("//l", iter([row])) == replace(head, layouts={}, retired={})


# -- a start ---------------------------------------------------------------------------------------

KINDS = [
    *(("transactional", "map"), ("transactional", "window")),
    *(("at_least_once", "map"), ("at_least_once", "window"), ("idempotent", "map")),
]
for_all = pytest.mark.parametrize("kind", KINDS, ids="-".join)
READ = {0: 10, 1: 20, 2: 3, 3: 4}


def _decided(
    kind: tuple[str, str],
    now: QueueLayout,
    upper: Sequence[int],
    known: QueueLayout | None = FOUR,
    *,
    migrating: bool = False,
) -> StartPlan:
    nothing_there = SimpleNamespace(select_rows=lambda _: iter(()))
    context = replace(unconnected(*kind), client=cast(Client, nothing_there))
    layouts = {QUEUE: known} if known else {}
    head = Head(3, "p", 3, ends={QUEUE: READ}, ids={QUEUE: ID}, layouts=layouts)
    head = replace(head, marker=marker_of(context))
    queue = Queue(QUEUE, ID, (0,) * len(upper), tuple(upper), READ, now)
    return decide(context, Snapshot((queue,), head, None), migrating=migrating)


@for_all
def test_a_start_notices_a_queue_that_was_resharded(kind: tuple[str, str]) -> None:
    said = refusal(lambda: _decided(kind, TWO, [10, 27]))
    assert f"{QUEUE} was resharded from 4 to 2 tablets" in said
    assert "run `migrate`" in said
    # No count differs: the ids alone tell.
    said = refusal(lambda: _decided(kind, FOUR_AGAIN, [10, 20, 3, 4]))
    assert "was resharded from 4 to 4 tablets" in said


@for_all
def test_migrate_applies_the_tablets_of_a_drained_queue(kind: tuple[str, str]) -> None:
    plan = _decided(kind, TWO, [10, 27], migrating=True)
    assert plan.rows == [{0: 10, 1: 27}]
    assert not plan.warnings
    plan = _decided(kind, FOUR_AGAIN, [10, 27, 0, 0], migrating=True)
    assert plan.rows == [{0: 10, 1: 27, 2: 0, 3: 0}]


@for_all
@pytest.mark.parametrize("migrating", [False, True])
@pytest.mark.parametrize(
    ("now", "upper", "said"),
    [
        (TWO, [10, 127], "100 rows of it were not read before"),
        (TWO, [11, 27], "1 row of it was not read before"),
        (FOUR_AGAIN, [10, 27, 100, 0], "100 rows of it were not read before"),
        (TWO, [10, 25], "the job has read 37 rows, and the queue counts 35"),
    ],
)
def test_rows_that_were_not_read_are_counted(
    kind: tuple[str, str], migrating: bool, now: QueueLayout, upper: list[int], said: str
) -> None:
    found = refusal(lambda: _decided(kind, now, upper, migrating=migrating))
    assert said in found
    assert "stop its producers" in found


@for_all
@pytest.mark.parametrize(
    ("known", "now", "upper"),
    [
        (FOUR, FOUR, [15, 20, 3, 4]),
        (FOUR, SIX, [15, 20, 3, 4, 9, 0]),
        (None, FOUR, [15, 20, 3, 4]),  # a ledger of 1.0.0
    ],
)
def test_other_starts_go_on_where_they_were(
    kind: tuple[str, str], known: QueueLayout | None, now: QueueLayout, upper: list[int]
) -> None:
    rows = dict.fromkeys(range(len(upper)), 0) | READ
    assert _decided(kind, now, upper, known).rows == [rows]


@pytest.mark.parametrize(
    ("now", "upper", "retired", "reused"),
    [
        (TWO, [10, 27], {}, False),
        (FOUR_AGAIN, [10, 27, 0, 0], {}, True),
        (SIX, [10, 20, 3, 4, 0, 0], {}, False),
        # It had eight tablets once: new rows would have the positions of those of the fifth.
        (SIX, [10, 20, 3, 4, 0, 0], {4: 9}, True),
        (SIX, [10, 20, 3, 4, 0, 0], {7: 9}, False),
        (FOUR, [10, 20, 3, 4], {4: 9}, False),
    ],
)
def test_rows_of_a_removed_tablet_have_the_positions_of_rows_of_a_new_one(
    now: QueueLayout, upper: list[int], retired: dict[int, int], reused: bool
) -> None:
    """Positions are the keys of `idempotent` and of `rejected`: such outputs need new paths."""
    context = unconnected("idempotent")
    head = Head(3, "p", 3, ends={QUEUE: READ}, ids={QUEUE: ID}, layouts={QUEUE: FOUR})
    head = replace(head, marker=marker_of(context), retired={QUEUE: retired})
    queue = Queue(QUEUE, ID, (0,) * len(upper), tuple(upper), READ, now)
    output = context.settings.output
    marks = {output: {"ledger": context.settings.ledger, "queues": {QUEUE: ID}}}
    found = Snapshot((queue,), head, None, None, marks)
    assert replaceable(context, found) == ([output] if reused else [])
    keyless = unconnected("transactional")
    assert replaceable(keyless, found) == []


def test_a_start_remembers_the_partitions_that_a_queue_has_lost() -> None:
    head = Head(3, ends={QUEUE: READ}, ids={QUEUE: ID}, retired={QUEUE: {3: 1, 5: 8}})
    queue = Queue(QUEUE, ID, (0, 0), (10, 27), READ, TWO)
    assert _retired(head, queue) == {2: 3, 3: 4, 5: 8}
    assert _retired(head, replace(queue, upper=(0,) * 6)) == {}
    assert _retired(head, replace(queue, id="5-6-7-8")) == {}


# -- a batch ---------------------------------------------------------------------------------------


class _Cluster:
    """The part of a client that the check asks, about one queue."""

    def __init__(
        self, *ids: str, columns: Sequence[Column] = COLUMNS, upper: int = 9,
        newer: Sequence[tuple[int, int]] = (),
    ) -> None:  # fmt: skip
        self.ids, self.columns, self.upper, self.newer = ids, columns, upper, newer
        self.asked = 0

    def get(self, path: str, attributes: list[str]) -> dict[str, Any]:
        self.asked += 1
        schema = table_schema(self.columns).to_yson_type()
        return {"id": ID, "schema": schema, "tablets": _tablets(*self.ids)}

    def get_tablet_infos(self, path: str, tablets: list[int]) -> dict[str, list[dict[str, int]]]:
        self.asked += 1
        info = {"trimmed_row_count": 0, "total_row_count": self.upper}
        return {"tablets": [info for _ in tablets]}

    def select_rows(self, query: str) -> list[dict[str, int]]:
        asked = [(int(p), int(row)) for p, row in re.findall(r"\((\d+), (\d+)\)", query)]
        return [
            {
                "$tablet_index": p,
                "$row_index": row,
                "$timestamp": HEAD_TIME + ((p, row) in self.newer),
            }
            for p, row in asked
        ]


def _verified(
    cluster: _Cluster, retired: Mapping[int, int] = MappingProxyType({})
) -> dict[str, QueueLayout]:
    """Verify a batch that was planned over the tablets "a" and "b"."""
    known = layout_of(_tablets("a", "b"))
    head = Head(3, ids={QUEUE: ID}, ends={QUEUE: {0: 5}}, layouts={QUEUE: known})
    head = replace(head, retired={QUEUE: retired}, timestamp=HEAD_TIME)
    planned = {QUEUE: {0: RowRange(5, 8)}}
    return verify_queues(cast(Client, cluster), "3-7", head, planned, COLUMNS)


def test_a_batch_asks_once_for_each_queue() -> None:
    cluster = _Cluster("a", "b")
    assert _verified(cluster) == {QUEUE: layout_of(_tablets("a", "b"))}
    assert cluster.asked == 1


@pytest.mark.parametrize("ids", [("c",), ("c", "d"), ("a",)])
def test_a_batch_of_a_queue_that_was_resharded_ends(ids: tuple[str, ...]) -> None:
    with pytest.raises(RestartableError, match=f"from 2 to {len(ids)} tablets before batch 3-7"):
        _verified(_Cluster(*ids))


def test_a_batch_of_a_queue_that_has_grown_goes_on() -> None:
    now = _Cluster("c", "d", "e")
    assert _verified(now) == {QUEUE: layout_of(_tablets("c", "d", "e"))}
    with fails_with(ErrorCode.QUEUE_RESHARDED):
        _verified(_Cluster("c", "d", "e", upper=4))
    _verified(_Cluster("c", "d", "e", newer=[(0, 5)]))
    with fails_with(ErrorCode.QUEUE_RESHARDED):  # removed, made again and filled
        _verified(_Cluster("c", "d", "e", newer=[(0, 4)]))
    with fails_with(ErrorCode.QUEUE_RESHARDED):  # under the number of a former tablet
        _verified(now, retired={2: 1})


@pytest.mark.parametrize(
    ("altered", "said"),
    [
        ((COLUMNS[0], Column("price", ti.Int64, required=True)), "column price"),
        ((COLUMNS[0], Column("price", ti.Int32, required=False)), "column price"),
        (COLUMNS[:1], "column price: the table lacks it"),
    ],
)
def test_a_batch_of_altered_columns_ends_the_job(altered: Sequence[Column], said: str) -> None:
    with fails_with(ErrorCode.QUEUE_ALTERED) as caught:
        _verified(_Cluster("a", "b", columns=altered))
    assert said in str(caught.value)


def test_more_columns_and_another_order_are_compatible() -> None:
    more = (COLUMNS[1], Column("note", ti.Utf8, required=False), COLUMNS[0])
    assert _verified(_Cluster("a", "b", columns=more))

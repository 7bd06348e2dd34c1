"""Dynamic and static tables: writing, reading, keys, tablets, schema changes, attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from yt import yson

from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.rows import wire
from minicluster.rows.from_wire import DELETE, UPDATE, WRITE
from packages.minicluster.tests.support.tables_lab import (
    KEYED,
    PLAIN,
    delete,
    lookup,
    pull,
    select,
    table,
    write,
)
from tests.support import codes

T = "//tmp/t"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


# Sorted tables


def test_a_whole_row_replaces_and_its_missing_columns_become_null(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1, "v": "a", "n": 1})
    write(cluster, T, {"k": 1, "v": "b"})
    assert lookup(cluster, T, {"k": 1}) == [{"k": 1, "v": b"b", "n": None}]


def test_an_update_keeps_what_it_does_not_name(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1, "v": "a", "n": 1})
    write(cluster, T, {"k": 1, "n": 2}, {"k": 2, "n": 5}, kind=UPDATE)
    assert lookup(cluster, T, {"k": 1}, {"k": 2}) == [
        {"k": 1, "v": b"a", "n": 2},
        {"k": 2, "v": None, "n": 5},
    ]


def test_modifications_of_one_key_in_one_request_come_one_after_the_other(
    cluster: Cluster,
) -> None:
    table(cluster, T, KEYED)
    names, (row, key, part) = cluster.tables.encode(
        T, [{"k": 1, "v": "a", "n": 1}, {"k": 1}, {"k": 1, "n": 3}]
    )
    cluster.tables.modify(T, [(WRITE, row), (DELETE, key), (UPDATE, part)], names)
    assert lookup(cluster, T, {"k": 1}) == [{"k": 1, "v": None, "n": 3}]


def test_deleted_rows_are_gone_and_may_come_back(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1}, {"k": 2})
    delete(cluster, T, {"k": 1}, {"k": 7})
    assert [row["k"] for row in select(cluster, f"* from [{T}]")] == [2]
    assert cluster.cypress.get(f"{T}/@row_count") == 1
    write(cluster, T, {"k": 1})
    assert [row["k"] for row in select(cluster, f"* from [{T}]")] == [1, 2]


def test_rows_come_in_key_order_null_first(cluster: Cluster) -> None:
    key = {"type": "string", "sort_order": "ascending"}
    columns = [{"name": "a", **key}, {"name": "b", **key}, {"name": "v", "type": "int64"}]
    table(cluster, T, columns)
    keys = [("b", "a"), ("a", "b"), (None, "z"), ("a", None), ("", ""), ("a", "a")]
    write(cluster, T, *({"a": a, "b": b, "v": 0} for a, b in keys))
    assert [(row["a"], row["b"]) for row in select(cluster, f"a, b from [{T}]")] == [
        (None, b"z"),
        (b"", b""),
        (b"a", None),
        (b"a", b"a"),
        (b"a", b"b"),
        (b"b", b"a"),
    ]


def test_lookup_keeps_order_and_can_keep_missing_rows(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1, "v": "a"}, {"k": 3, "v": "c"})
    keys = [{"k": 3}, {"k": 2}, {"k": 1}]
    assert lookup(cluster, T, *keys, columns=["v"]) == [{"v": b"c"}, {"v": b"a"}]
    assert lookup(cluster, T, *keys, columns=["v", "k"], keep_missing=True) == [
        {"v": b"c", "k": 3},
        None,
        {"v": b"a", "k": 1},
    ]
    with pytest.raises(YtError, match='Invalid column "w" in column filter'):
        lookup(cluster, T, {"k": 1}, columns=["w"])


def test_reads_at_a_timestamp_see_what_was_there_then(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1, "v": "old"})
    then = cluster.clock.timestamp()
    write(cluster, T, {"k": 1, "v": "new"}, {"k": 2})
    assert lookup(cluster, T, {"k": 1}, columns=["v"], timestamp=then) == [{"v": b"old"}]
    assert len(select(cluster, f"* from [{T}]", then)) == 1
    assert len(select(cluster, f"* from [{T}]")) == 2


def test_old_versions_are_dropped_after_a_while_but_never_the_last(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1, "v": "a"})
    then = cluster.clock.timestamp()
    for value in "bc":
        cluster.clock.advance(3600)
        write(cluster, T, {"k": 1, "v": value})
    assert lookup(cluster, T, {"k": 1}, columns=["v"]) == [{"v": b"c"}]
    with pytest.raises(YtError, match="retained timestamp"):
        lookup(cluster, T, {"k": 1}, timestamp=then)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"k": 1, "x": 1}, 'Unexpected column "x"'),
        ({"k": "a"}, 'Error validating column "k"'),
        ({"k": 1, "v": 1}, 'Error validating column "v"'),
    ],
)
def test_a_refused_row_leaves_nothing_of_its_request(
    cluster: Cluster, row: dict[str, Any], message: str
) -> None:
    table(cluster, T, KEYED)
    with pytest.raises(YtError, match=message):
        write(cluster, T, {"k": 5}, row, {"k": 6})
    assert select(cluster, f"* from [{T}]") == []


def test_required_columns(cluster: Cluster) -> None:
    table(cluster, T, [KEYED[0], {"name": "v", "type": "string", "required": True}, KEYED[2]])
    with pytest.raises(YtError, match='Missing required column "v"'):
        write(cluster, T, {"k": 1})
    with pytest.raises(YtError, match='Required column "v" cannot have "null" value'):
        write(cluster, T, {"k": 1, "v": None})
    with pytest.raises(YtError, match='Missing required column "v"'):
        write(cluster, T, {"k": 1, "n": 1}, kind=UPDATE)
    write(cluster, T, {"k": 1, "v": "a"})
    write(cluster, T, {"k": 1, "n": 1}, kind=UPDATE)
    assert lookup(cluster, T, {"k": 1}) == [{"k": 1, "v": b"a", "n": 1}]


def test_a_key_is_all_key_columns_and_nothing_else(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    with pytest.raises(YtError, match="Invalid number of key columns: expected 1, actual 2"):
        delete(cluster, T, {"k": 1, "v": "a"})


def test_column_ids_outside_the_name_table_are_refused(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    row = wire.encode([(0, wire.INT64, 1), (9, wire.INT64, 1)])
    with pytest.raises(YtError, match=r"expected in range \[0, 1\), got 9"):
        cluster.tables.modify(T, [(WRITE, row)], ["k"])


# Ordered tables


def test_rows_in_table_order_are_stored_byte_for_byte(cluster: Cluster) -> None:
    table(cluster, T, PLAIN)
    row = wire.encode([(0, wire.INT64, 1), (1, wire.STRING, b"x")])
    cluster.tables.modify(T, [(WRITE, row)], ["a", "b"])
    _, stored = cluster.tables.node(T)
    assert stored.tablets[0].data.rows == [row]


def test_what_spyt_writes_into_a_queue_is_stored_without_its_nulls(cluster: Cluster) -> None:
    system = [{"name": "$timestamp", "type": "uint64"}]
    table(cluster, T, [*PLAIN, *system], mount=False)
    row: list[tuple[int, int, wire.Value]] = [(0, wire.INT64, 1), (1, wire.STRING, b"x")]
    reader = cluster.tables.node(T)[1].reader(["a", "b", "$timestamp"], T)
    complete = wire.encode([*row, (2, wire.NULL, None)])
    assert reader.modification(WRITE, complete) == (WRITE, None, wire.encode(row))
    wrong: list[tuple[int, int, wire.Value]] = [
        (2, wire.UINT64, 1),
        (1, wire.NULL, None),
        (3, wire.NULL, None),
    ]
    for value in wrong:
        with pytest.raises(YtError):
            reader.modification(WRITE, wire.encode([*row, value]))


def test_a_column_twice_is_refused(cluster: Cluster) -> None:
    table(cluster, T, PLAIN)
    values: list[tuple[int, int, wire.Value]] = [(0, wire.INT64, 1), (1, wire.INT64, 2)]
    with pytest.raises(YtError, match='Duplicate column "a"'):
        cluster.tables.modify(T, [(WRITE, wire.encode(values))], ["a", "a"])
    with pytest.raises(YtError, match='Duplicate column "a"'):
        cluster.tables.modify(T, [(WRITE, wire.encode([values[0]] * 2))], ["a", "b"])


def test_rows_under_another_name_table_are_renumbered(cluster: Cluster) -> None:
    table(cluster, T, PLAIN)
    row = wire.encode([(0, wire.STRING, b"x"), (3, wire.INT64, 1)])
    cluster.tables.modify(T, [(WRITE, row)], ["b", "unused", "also unused", "a"])
    assert pull(cluster, T, 0, 0) == [{"a": 1, "b": b"x", "$tablet_index": 0, "$row_index": 0}]


def test_missing_columns_are_stored_as_null(cluster: Cluster) -> None:
    table(cluster, T, PLAIN)
    write(cluster, T, {"b": "x"})
    assert pull(cluster, T, 0, 0)[0]["a"] is None


def test_one_request_goes_to_one_tablet_and_many_to_all(cluster: Cluster) -> None:
    table(cluster, T, PLAIN, tablet_count=4)
    for _ in range(60):
        write(cluster, T, *({"a": i} for i in range(3)))
    counts = [info["total_row_count"] for info in cluster.tables.tablet_infos(T, range(4))]
    assert sum(counts) == 180
    assert all(count and count % 3 == 0 for count in counts)


def test_rows_may_name_their_tablet(cluster: Cluster) -> None:
    table(cluster, T, PLAIN, tablet_count=3)
    write(cluster, T, {"a": 1, "$tablet_index": 2}, {"a": 2, "$tablet_index": 0})
    assert [len(pull(cluster, T, index, 0)) for index in range(3)] == [1, 0, 1]
    with pytest.raises(YtError, match=r"Invalid tablet index .*in range \[0,2\], got 3"):
        write(cluster, T, {"a": 3, "$tablet_index": 3})


def test_only_mounted_tablets_are_drawn(cluster: Cluster) -> None:
    table(cluster, T, PLAIN, tablet_count=3)
    cluster.tables.unmount(T, 0, 1)
    assert cluster.cypress.get(f"{T}/@tablet_state") == "mixed"
    for _ in range(10):
        write(cluster, T, {"a": 1})
    assert len(pull(cluster, T, 2, 0)) == 10
    with pytest.raises(YtError, match='is in "unmounted" state') as caught:
        write(cluster, T, {"a": 1, "$tablet_index": 0})
    assert caught.value.contains(codes.TABLET_NOT_MOUNTED)


def test_the_server_fills_in_time_and_weight(cluster: Cluster) -> None:
    system = [
        {"name": "$timestamp", "type": "uint64"},
        {"name": "$cumulative_data_weight", "type": "int64"},
    ]
    table(cluster, T, [*PLAIN, *system])
    write(cluster, T, {"a": 1, "b": "x" * 101}, {"a": 2})
    # What SPYT writes: explicit nulls for the columns it has no values for.
    write(cluster, T, {"a": 3, "$timestamp": None, "$cumulative_data_weight": None})
    first, second, third = pull(cluster, T, 0, 0)
    assert first["$timestamp"] == second["$timestamp"] < third["$timestamp"]
    assert first["$timestamp"] >> 30 == int(cluster.clock.now())
    weights = [row["$cumulative_data_weight"] for row in (first, second, third)]
    assert weights == [126, 151, 176]  # 1, int64, the text, and both system columns
    with pytest.raises(YtError, match=r"Cannot write to column"):
        write(cluster, T, {"a": 1, "$timestamp": yson.YsonUint64(5)})


def test_ordered_tables_only_grow(cluster: Cluster) -> None:
    table(cluster, T, PLAIN)
    with pytest.raises(YtError, match=f"Cannot perform deletes in a non-sorted table {T}"):
        delete(cluster, T, {"a": 1})
    with pytest.raises(YtError, match="is not sorted"):
        lookup(cluster, T, {"a": 1})


# Tablets


def test_unmounted_tables_refuse_rows_both_ways(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    table(cluster, "//tmp/q", PLAIN)
    cluster.tables.unmount(T)
    cluster.tables.unmount("//tmp/q")
    refused: list[Callable[[], object]] = [
        lambda: write(cluster, T, {"k": 1}),
        lambda: lookup(cluster, T, {"k": 1}),
        lambda: select(cluster, f"* from [{T}]"),
        lambda: write(cluster, "//tmp/q", {"a": 1}),
        lambda: pull(cluster, "//tmp/q", 0, 0),
        lambda: cluster.tables.trim("//tmp/q", 0, 0),
        lambda: cluster.tables.tablet_infos("//tmp/q", [0]),
    ]
    for action in refused:
        with pytest.raises(YtError) as caught:
            action()
        assert caught.value.contains(codes.TABLET_NOT_MOUNTED)


def test_frozen_tables_can_be_read_only(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1})
    cluster.tables.freeze(T)
    assert len(lookup(cluster, T, {"k": 1})) == 1
    with pytest.raises(YtError, match='is in "frozen" state'):
        write(cluster, T, {"k": 1})
    cluster.tables.unfreeze(T)
    write(cluster, T, {"k": 2})


def test_trimming_is_absolute_and_final(cluster: Cluster) -> None:
    table(cluster, T, PLAIN)
    write(cluster, T, *({"a": i} for i in range(10)))
    cluster.tables.trim(T, 0, 4)
    cluster.tables.trim(T, 0, 2)
    (info,) = cluster.tables.tablet_infos(T, [0])
    assert (info["trimmed_row_count"], info["total_row_count"]) == (4, 10)
    assert [row["$row_index"] for row in pull(cluster, T, 0, 0)] == [4, 5, 6, 7, 8, 9]
    with pytest.raises(YtError, match="at row 11 since it only has 10 row"):
        cluster.tables.trim(T, 0, 11)
    cluster.tables.trim(T, 0, 10)
    assert pull(cluster, T, 0, 0) == []
    write(cluster, T, {"a": 10})
    assert pull(cluster, T, 0, 0)[0]["$row_index"] == 10


def test_added_tablets_are_empty_and_removed_ones_move_their_rows(cluster: Cluster) -> None:
    table(cluster, T, PLAIN, tablet_count=2)
    write(cluster, T, *({"a": i, "$tablet_index": i % 2} for i in range(4)))
    with pytest.raises(YtError, match=r"Cannot reshard table since tablet .* is not unmounted"):
        cluster.tables.reshard(T, tablet_count=3)
    cluster.tables.unmount(T)
    cluster.tables.reshard(T, tablet_count=3)
    cluster.tables.mount(T)
    assert [len(pull(cluster, T, index, 0)) for index in range(3)] == [2, 2, 0]
    cluster.tables.unmount(T)
    cluster.tables.reshard(T, tablet_count=1)
    cluster.tables.mount(T)
    assert [row["a"] for row in pull(cluster, T, 0, 0)] == [0, 2, 1, 3]


def test_a_queue_made_anew_can_keep_its_row_numbers(cluster: Cluster) -> None:
    table(cluster, T, PLAIN, tablet_count=2, trimmed_row_counts=[100, 0])
    write(cluster, T, {"a": 1, "$tablet_index": 0})
    assert pull(cluster, T, 0, 0)[0]["$row_index"] == 100


def test_pivot_keys_decide_about_tablets(cluster: Cluster) -> None:
    table(cluster, T, KEYED, pivot_keys=[[], [10], [20]])
    assert cluster.cypress.get(f"{T}/@pivot_keys") == [[], [10], [20]]
    cluster.tables.unmount(T, 1, 1)
    write(cluster, T, {"k": 9}, {"k": 20})
    with pytest.raises(YtError, match='is in "unmounted" state'):
        write(cluster, T, {"k": 10})
    cluster.tables.unmount(T)
    cluster.tables.reshard(T, pivot_keys=[[], [5]])
    cluster.tables.mount(T)
    assert [row["k"] for row in select(cluster, f"k from [{T}]")] == [9, 20]


def test_a_part_of_a_sorted_table_is_cut_anew(cluster: Cluster) -> None:
    table(cluster, T, KEYED, pivot_keys=[[], [10], [20]])
    cluster.tables.unmount(T, 1, 1)
    with pytest.raises(YtError, match="First pivot key must match"):
        cluster.tables.reshard(T, pivot_keys=[[], [15]], first=1, last=1)
    with pytest.raises(YtError, match="Last pivot key must be strictly less"):
        cluster.tables.reshard(T, pivot_keys=[[10], [20]], first=1, last=1)
    with pytest.raises(YtError, match="not supported by minicluster"):
        cluster.tables.reshard(T, tablet_count=2, first=1, last=1)
    cluster.tables.reshard(T, pivot_keys=[[10], [15]], first=1, last=1)
    assert cluster.cypress.get(f"{T}/@pivot_keys") == [[], [10], [15], [20]]


@pytest.mark.parametrize(
    "pivots", [[[1]], [[], [2], [1]], [[], [1], [1]], [[], ["a"]], [[], [1, 2]]]
)
def test_refused_pivot_keys(cluster: Cluster, pivots: list[list[Any]]) -> None:
    with pytest.raises(YtError):
        table(cluster, T, KEYED, pivot_keys=pivots)
    assert not cluster.cypress.exists(T)


# Schema changes


def test_columns_can_be_added_and_reordered(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1, "v": "a", "n": 5})
    cluster.tables.unmount(T)
    changed = [KEYED[0], {"name": "new", "type": "double"}, KEYED[2], KEYED[1]]
    schema = yson.to_yson_type(changed, attributes={"strict": True, "unique_keys": True})
    cluster.tables.alter(T, schema=schema)
    cluster.tables.mount(T)
    write(cluster, T, {"k": 2, "new": 0.5})
    assert lookup(cluster, T, {"k": 1}, {"k": 2}) == [
        {"k": 1, "new": None, "n": 5, "v": b"a"},
        {"k": 2, "new": 0.5, "n": None, "v": None},
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (KEYED[:2], 'Cannot remove column "n" from a strict schema'),
        ([*KEYED, {"name": "x", "type": "int64", "required": True}], "new required column"),
        ([*KEYED[:2], {"name": "n", "type": "string"}], 'Type mismatch for column "n"'),
        ([{"name": "k", "type": "int64"}, *KEYED[1:]], "from sorted to ordered"),
    ],
)
def test_refused_schema_changes(
    cluster: Cluster, columns: list[dict[str, Any]], message: str
) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1})
    before = cluster.cypress.get(f"{T}/@schema")
    sorted_ = "sort_order" in columns[0]
    schema = yson.to_yson_type(columns, attributes={"strict": True, "unique_keys": sorted_})
    with pytest.raises(YtError, match="not all of its tablets"):
        cluster.tables.alter(T, schema=schema)
    cluster.tables.unmount(T)
    with pytest.raises(YtError, match="Table schemas are incompatible") as caught:
        cluster.tables.alter(T, schema=schema)
    assert message in caught.value.inner[0].message
    assert cluster.cypress.get(f"{T}/@schema") == before


def test_a_sorted_static_table_becomes_dynamic_and_static_again(cluster: Cluster) -> None:
    schema = yson.to_yson_type(KEYED, attributes={"strict": True, "unique_keys": True})
    cluster.cypress.create("table", T, attributes={"schema": schema})
    cluster.tables.write(T, [{"k": 1, "v": "a"}, {"k": 2}])
    cluster.tables.alter(T, dynamic=True)
    assert cluster.cypress.get(f"{T}/@dynamic")
    cluster.tables.mount(T)
    write(cluster, T, {"k": 1, "v": "b"})
    assert lookup(cluster, T, {"k": 1}, columns=["v"]) == [{"v": b"b"}]
    cluster.tables.unmount(T)
    cluster.tables.alter(T, dynamic=False)
    assert not cluster.cypress.get(f"{T}/@dynamic")
    assert cluster.cypress.get(f"{T}/@row_count") == 2


# Static tables


def test_static_tables_check_order_keys_and_types(cluster: Cluster) -> None:
    schema = yson.to_yson_type(KEYED, attributes={"strict": True, "unique_keys": True})
    cluster.cypress.create("table", T, attributes={"schema": schema})
    for items, code in (
        ([{"k": 2}, {"k": 1}], 301),
        ([{"k": 1}, {"k": 1}], 306),
        ([{"k": "a"}], 307),
        ([{"k": 1, "x": 1}], 307),
    ):
        with pytest.raises(YtError) as caught:
            cluster.tables.write(T, items)
        assert caught.value.code == code
    cluster.tables.write(T, [{"k": 1}])
    cluster.tables.write(T, [{"k": 3}], attributes={"append": True})
    assert cluster.cypress.get(f"{T}/@row_count") == 2
    cluster.tables.write(T, [])
    assert cluster.cypress.get(f"{T}/@row_count") == 0


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"append": True, "schema": KEYED}, '"append" and "schema" are not compatible'),
        ({"sorted_by": "k"}, 'Error parsing YPath attribute "sorted_by"'),
        ({"sorted_by": ["k", "k"]}, 'Duplicate key column name "k"'),
        ({"sorted_by": ["v"]}, 'in the key column "v"'),
        ({"optimize_for": "scan"}, "not supported by minicluster"),
    ],
)
def test_what_a_path_cannot_ask_of_a_write(
    cluster: Cluster, attributes: dict[str, Any], message: str
) -> None:
    cluster.cypress.create("table", T)
    with pytest.raises(YtError, match=message):
        cluster.tables.write(T, [{"k": 1, "v": [1]}], attributes=attributes)
    assert cluster.cypress.get(f"{T}/@row_count") == 0


def test_a_static_table_written_in_a_transaction_changes_at_its_commit(cluster: Cluster) -> None:
    cluster.cypress.create("table", T)
    tx = cluster.transactions.start()
    cluster.tables.write(T, [{"anything": 1}], tx=tx)
    assert cluster.cypress.get(f"{T}/@row_count") == 0
    assert cluster.cypress.get(f"{T}/@row_count", tx=tx) == 1
    cluster.transactions.commit(tx)
    assert cluster.cypress.get(f"{T}/@row_count") == 1


# Attributes


def test_attributes_of_a_sorted_table(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1})
    get = cluster.cypress.get
    expected = {
        "dynamic": True,
        "sorted": True,
        "key_columns": ["k"],
        "tablet_state": "mounted",
        "tablet_count": 1,
        "atomicity": "full",
        "row_count": 1,
        "type": "table",
        "schema_mode": "strong",
    }
    assert {name: get(f"{T}/@{name}") for name in expected} == expected
    assert get(f"{T}/@schema").attributes == {"strict": True, "unique_keys": True}
    assert get(f"{T}/@schema/@unique_keys") is True
    assert get(f"{T}/@tablets/0/state") == "mounted"
    cell = get(f"{T}/@tablets/0/cell_id")
    assert get(f"//sys/tablet_cells/{cell}/@health") == "good"
    assert not cluster.cypress.exists(f"{T}/@queue_partitions")


def test_all_attributes_of_every_kind_of_table_can_be_asked_for(cluster: Cluster) -> None:
    table(cluster, "//tmp/sorted", KEYED)
    table(cluster, "//tmp/queue", PLAIN)
    cluster.cypress.create("table", "//tmp/static")
    cluster.cypress.create("queue_consumer", "//tmp/consumer")
    cluster.cypress.create("queue_producer", "//tmp/producer")
    for name in ("sorted", "queue", "static", "consumer", "producer"):
        attributes = cluster.cypress.get(f"//tmp/{name}/@")
        assert attributes["type"] == "table"
        for attribute in attributes:
            cluster.cypress.get(f"//tmp/{name}/@{attribute}")
    assert "tablet_count" not in cluster.cypress.get("//tmp/static/@")
    assert cluster.cypress.get("//tmp/consumer/@treat_as_queue_consumer") is True


def test_atomicity_changes_only_while_unmounted(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    with pytest.raises(YtError, match="Cannot change table atomicity mode"):
        cluster.cypress.set(f"{T}/@atomicity", "none")
    cluster.tables.unmount(T)
    cluster.cypress.set(f"{T}/@atomicity", "none")
    assert cluster.cypress.get(f"{T}/@atomicity") == "none"


def test_moving_keeps_a_table_and_copying_makes_another(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    write(cluster, T, {"k": 1})
    with pytest.raises(YtError, match="Cannot copy dynamic table"):
        cluster.cypress.copy(T, "//tmp/copy")
    with pytest.raises(YtError, match="Cannot move dynamic table"):
        cluster.cypress.move(T, "//tmp/moved")
    cluster.tables.unmount(T)
    cluster.cypress.move(T, "//tmp/moved")
    cluster.tables.mount("//tmp/moved")
    write(cluster, "//tmp/moved", {"k": 2})
    cluster.tables.unmount("//tmp/moved")
    cluster.cypress.copy("//tmp/moved", "//tmp/copy")
    for path in ("//tmp/moved", "//tmp/copy"):
        cluster.tables.mount(path)
    write(cluster, "//tmp/copy", {"k": 3})
    assert [row["k"] for row in select(cluster, "k from [//tmp/moved]")] == [1, 2]
    assert [row["k"] for row in select(cluster, "k from [//tmp/copy]")] == [1, 2, 3]


def test_what_is_no_dynamic_table_says_so(cluster: Cluster) -> None:
    cluster.cypress.create("table", T)
    with pytest.raises(YtError, match=f"Table {T} is not dynamic"):
        cluster.tables.mount(T)
    with pytest.raises(YtError, match='expected "table", actual "map_node"'):
        cluster.tables.mount("//tmp")

"""Ordered dynamic tables: tablets, row indexes, trimming."""

from __future__ import annotations

from typing import Any

import pytest
import yt.wrapper as yt
from yt.wrapper.errors import YtResponseError

from packages.minicluster.tests.conformance.conftest import (
    Row,
    eventually,
    make_table,
)

PLAIN: list[Row] = [{"name": "a", "type": "int64"}, {"name": "b", "type": "string"}]
STAMPED: list[Row] = [
    *PLAIN,
    {"name": "$timestamp", "type": "uint64"},
    {"name": "$cumulative_data_weight", "type": "int64"},
]


@pytest.fixture
def table(client: Any, root: str) -> str:
    return make_table(client, f"{root}/t", PLAIN, tablet_count=3)


def append(client: Any, table: str, tablet: int, *values: int) -> None:
    client.insert_rows(table, [{"$tablet_index": tablet, "a": value} for value in values])


def positions(client: Any, table: str, tablet: int) -> list[tuple[int, int]]:
    query = f"[$row_index], a from [{table}] where [$tablet_index] = {tablet}"
    return [(row["$row_index"], row["a"]) for row in client.select_rows(query)]


def test_rows_go_to_the_tablet_that_they_name(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (writing rows)"""
    append(client, table, 1, 10, 11)
    append(client, table, 2, 20)
    append(client, table, 1, 12)
    assert positions(client, table, 0) == []
    assert positions(client, table, 1) == [(0, 10), (1, 11), (2, 12)]
    assert positions(client, table, 2) == [(0, 20)]


def test_rows_that_name_none_go_anywhere(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (writing rows)"""
    client.insert_rows(table, [{"a": value} for value in range(10)])
    found = [row["a"] for row in client.select_rows(f"a from [{table}]")]
    assert sorted(found) == list(range(10))


def test_a_tablet_that_does_not_exist_takes_no_row(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (writing rows)"""
    for tablet in (3, -1):
        with pytest.raises(yt.YtError):
            append(client, table, tablet, 1)
    assert list(client.select_rows(f"* from [{table}]")) == []


def test_a_row_appears_with_its_position(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (reading rows)"""
    append(client, table, 1, 5)
    assert list(client.select_rows(f"* from [{table}]")) == [
        {"$tablet_index": 1, "$row_index": 0, "a": 5, "b": None}
    ]


def test_ranges_of_rows_are_selected(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (reading rows)"""
    append(client, table, 0, *range(100))
    query = f"a from [{table}] where [$tablet_index] = 0 and [$row_index] between 10 and 20"
    assert [row["a"] for row in client.select_rows(query)] == list(range(10, 21))


def test_rows_are_neither_deleted_nor_looked_up(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (trim; data model)"""
    append(client, table, 0, 5)
    with pytest.raises(yt.YtError):
        client.delete_rows(table, [{"a": 5}])
    assert positions(client, table, 0) == [(0, 5)]


def test_trimmed_rows_are_gone_and_the_others_keep_their_numbers(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (trim)"""
    append(client, table, 0, *range(10))
    append(client, table, 1, 100)
    client.trim_rows(table, 0, 7)
    eventually(lambda: positions(client, table, 0), [(7, 7), (8, 8), (9, 9)])
    append(client, table, 0, 10)
    assert positions(client, table, 0)[-1] == (10, 10)
    assert positions(client, table, 1) == [(0, 100)]


def test_trimming_counts_from_the_first_row_there_ever_was(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (trim)"""
    append(client, table, 0, *range(10))
    client.trim_rows(table, 0, 3)
    client.trim_rows(table, 0, 5)
    client.trim_rows(table, 0, 4)
    eventually(lambda: [index for index, _ in positions(client, table, 0)], [5, 6, 7, 8, 9])


def test_the_numbers_outlive_an_unmount(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (trim)"""
    append(client, table, 0, *range(10))
    client.trim_rows(table, 0, 10)
    client.unmount_table(table, sync=True)
    client.mount_table(table, sync=True)
    append(client, table, 0, 99)
    assert positions(client, table, 0) == [(10, 99)]


def test_what_is_not_there_is_not_trimmed(client: Any, table: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_trim_failure)"""
    with pytest.raises(yt.YtError, match="Invalid tablet index for table"):
        client.trim_rows(table, 3, 0)
    with pytest.raises(yt.YtError, match="Cannot trim tablet"):
        client.trim_rows(table, 0, 100)


def test_tablets_count_their_rows(client: Any, table: str) -> None:
    """Source: client, yt/wrapper/dynamic_table_commands.py (get_tablet_infos)"""
    append(client, table, 0, *range(10))
    client.trim_rows(table, 0, 4)

    def counts() -> list[tuple[int, int]]:
        tablets = client.get_tablet_infos(table, [0, 1])["tablets"]
        return [(info["total_row_count"], info["trimmed_row_count"]) for info in tablets]

    eventually(counts, [(10, 4), (0, 0)])


def test_a_table_may_begin_at_given_numbers(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (creating)"""
    table = make_table(client, f"{root}/t", PLAIN, tablet_count=2, trimmed_row_counts=[10, 20])
    append(client, table, 0, 1)
    append(client, table, 1, 2)
    assert positions(client, table, 0) == [(10, 1)]
    assert positions(client, table, 1) == [(20, 2)]


def test_the_numbers_given_are_one_a_tablet(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (creating)"""
    with pytest.raises(YtResponseError):
        make_table(client, f"{root}/t", PLAIN, tablet_count=2, trimmed_row_counts=[10])
    assert not client.exists(f"{root}/t")


def test_more_tablets_leave_the_old_ones_alone(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (resharding)"""
    append(client, table, 2, 1, 2)
    client.unmount_table(table, sync=True)
    client.reshard_table(table, tablet_count=5, sync=True)
    client.mount_table(table, sync=True)
    append(client, table, 4, 3)
    assert positions(client, table, 2) == [(0, 1), (1, 2)]
    assert positions(client, table, 4) == [(0, 3)]


def test_fewer_tablets_are_merged_into_the_last(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (resharding)"""
    for tablet in range(3):
        append(client, table, tablet, tablet)
    client.unmount_table(table, sync=True)
    client.reshard_table(table, tablet_count=2, sync=True)
    client.mount_table(table, sync=True)
    assert positions(client, table, 0) == [(0, 0)]
    assert positions(client, table, 1) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_reshard_gives_every_tablet_a_new_id(client: Any, table: str, count: int) -> None:
    """Source: server source, master/tablet_server/tablet_manager.cpp (ReshardTableImpl)"""

    def ids() -> list[str]:
        return [str(tablet["tablet_id"]) for tablet in client.get(f"{table}/@tablets")]

    before = ids()
    client.unmount_table(table, sync=True)
    assert ids() == before
    client.reshard_table(table, tablet_count=count, sync=True)
    client.mount_table(table, sync=True)
    assert len(ids()) == count
    assert not {*before} & {*ids()}


def test_the_system_fills_its_columns(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables ($timestamp,
    $cumulative_data_weight)"""
    table = make_table(client, f"{root}/t", STAMPED)
    before = client.generate_timestamp()
    append(client, table, 0, 1, 2)
    append(client, table, 0, 3)
    rows = list(client.select_rows(f"* from [{table}]"))
    stamps = [row["$timestamp"] for row in rows]
    weights = [row["$cumulative_data_weight"] for row in rows]
    assert before < stamps[0] == stamps[1] < stamps[2] < client.generate_timestamp()
    assert 0 < weights[0] < weights[1] < weights[2]


def flush(client: Any, table: str) -> None:
    """Only rows that have left the memory of their tablet can go by themselves."""
    client.freeze_table(table, sync=True)
    client.unfreeze_table(table, sync=True)


def trimmed(client: Any, table: str, index: int = 0) -> int:
    (tablet,) = client.get_tablet_infos(table, [index])["tablets"]
    return int(tablet["trimmed_row_count"])


OLD_AT_ONCE = {"min_data_versions": 0, "min_data_ttl": 0, "max_data_ttl": 0}


def test_old_rows_go_by_themselves(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_data_ttl)"""
    table = make_table(client, f"{root}/t", PLAIN, **OLD_AT_ONCE)
    append(client, table, 0, 1, 2)
    flush(client, table)
    eventually(lambda: trimmed(client, table), 2)
    append(client, table, 0, 3)
    assert client.get(f"{table}/@tablets/0/trimmed_row_count") == 2


def test_a_number_of_old_rows_is_kept(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_row_count_to_keep)"""
    table = make_table(client, f"{root}/t", PLAIN, **OLD_AT_ONCE, row_count_to_keep=2)
    for values in ((0, 1), (2,), (3,), (4,)):
        append(client, table, 0, *values)
        flush(client, table)
    eventually(lambda: positions(client, table, 0), [(3, 3), (4, 4)])
    assert trimmed(client, table) == 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    "settings",
    [
        {"min_data_versions": 1, "min_data_ttl": 0, "max_data_ttl": 0},
        {"min_data_ttl": 0, "max_data_ttl": 0},
        {"min_data_versions": 0, "min_data_ttl": 0},
        {"min_data_versions": 0, "max_data_ttl": 0},
        {"min_data_versions": 0, "min_data_ttl": 0, "max_data_ttl": 86_400_000},
    ],
    ids=["versions", "default versions", "default maximum", "default minimum", "young"],
)
def test_rows_that_the_settings_keep_stay(client: Any, root: str, settings: Row) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (automatic deletion
    of old rows)"""
    kept = make_table(client, f"{root}/kept", PLAIN, **settings)
    other = make_table(client, f"{root}/other", PLAIN, **OLD_AT_ONCE)
    for table in (kept, other):
        append(client, table, 0, 1)
        flush(client, table)
    eventually(lambda: trimmed(client, other), 1)
    assert positions(client, kept, 0) == [(0, 1)]


def test_rows_are_appended_and_nothing_else(client: Any, table: str) -> None:
    """Source: server source, client/driver/table_commands.cpp (TInsertRowsCommand,
    TDeleteRowsCommand)"""
    with pytest.raises(yt.YtError, match='Cannot use "update" mode for ordered tables'):
        client.insert_rows(table, [{"a": 1}], update=True)
    with pytest.raises(yt.YtError, match="is not sorted"):
        client.delete_rows(table, [{"a": 1}])
    assert list(client.select_rows(f"* from [{table}]")) == []


def test_a_frozen_table_takes_no_rows(client: Any, table: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_access_to_frozen)"""
    append(client, table, 0, 1)
    client.freeze_table(table, sync=True)
    assert positions(client, table, 0) == [(0, 1)]
    with pytest.raises(yt.YtError, match="has no mounted tablets"):
        client.insert_rows(table, [{"a": 2}])


def test_a_table_becomes_static_with_its_rows(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_dynamic_to_static)"""
    table = make_table(client, f"{root}/t", PLAIN)
    rows = [{"a": value, "b": str(value)} for value in range(10)]
    client.insert_rows(table, rows)
    client.unmount_table(table, sync=True)
    client.alter_table(table, dynamic=False)
    assert not client.get(f"{table}/@dynamic")
    assert list(client.read_table(table)) == rows


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("[$tablet_index] = 0", [0, 2]),
        ("0 = [$tablet_index] and a > 0", [2]),
        ("[$tablet_index] in (0, 2) and [$row_index] = 1", [2, 22]),
        ("[$tablet_index] = 0 or [$tablet_index] > 1 and a < 22", [0, 2, 20]),
        ("[$tablet_index] between 2 and 9", [20, 22]),
        ("([$tablet_index], [$row_index]) >= (2, 1)", [22]),
    ],
)
def test_a_query_looks_into_the_tablets_that_it_names(
    client: Any, root: str, condition: str, expected: list[int]
) -> None:
    """Source: documentation, user-guide/dynamic-tables/dyn-query-language (cutting off input
    data)"""
    path = make_table(client, f"{root}/t", [{"name": "a", "type": "int64"}], tablet_count=3)
    client.insert_rows(
        path,
        [{"a": 10 * tablet + row, "$tablet_index": tablet} for tablet in (0, 2) for row in (0, 2)],
    )
    client.unmount_table(path, first_tablet_index=1, last_tablet_index=1, sync=True)
    found = client.select_rows(f"a from [{path}] where {condition}")
    assert sorted(row["a"] for row in found) == expected
    with pytest.raises(yt.YtError):
        list(client.select_rows(f"a from [{path}] where a = 2"))


def weights(client: Any, table: str) -> list[int]:
    rows = client.select_rows(f"[$cumulative_data_weight] from [{table}]")
    return [row["$cumulative_data_weight"] for row in rows]


def test_the_weight_of_a_row_is_that_of_its_values(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_cumulative_data_weight_column)"""
    weight = {"name": "$cumulative_data_weight", "type": "int64"}
    columns = [{"name": "text", "type": "string"}, {"name": "yes", "type": "boolean"}, weight]
    table = make_table(client, f"{root}/t", columns)
    client.insert_rows(table, [{"text": "aaa"}])
    client.insert_rows(table, [{"text": "bb"}, {"text": "", "yes": True}])
    assert weights(client, table) == [12, 23, 33]
    client.unmount_table(table, sync=True)
    client.mount_table(table, sync=True)
    client.trim_rows(table, 0, 2)
    client.insert_rows(table, [{}])
    eventually(lambda: weights(client, table), [33, 42])


def test_the_weight_of_a_row_includes_its_timestamp(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_cumulative_data_weight_includes_timestamp)"""
    system = [
        {"name": "$cumulative_data_weight", "type": "int64"},
        {"name": "$timestamp", "type": "uint64"},
    ]
    table = make_table(client, f"{root}/t", [{"name": "text", "type": "string"}, *system])
    client.insert_rows(table, [{"text": "hey you"}])
    client.insert_rows(table, [{"text": "hello world!"}])
    assert weights(client, table) == [24, 53]


def reshard(client: Any, table: str, count: int, **options: int) -> None:
    client.unmount_table(table, sync=True)
    client.reshard_table(table, tablet_count=count, sync=True, **options)
    client.mount_table(table, sync=True)


def test_some_tablets_become_more(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_reshard_adds_tablets)"""
    table = make_table(client, f"{root}/t", PLAIN, tablet_count=4)
    for tablet in range(4):
        append(client, table, tablet, tablet, 100 + tablet)
        client.trim_rows(table, tablet, 1)
    reshard(client, table, 3, first_tablet_index=1, last_tablet_index=2)
    assert [positions(client, table, tablet) for tablet in range(5)] == [
        [(1, 100)],
        [(1, 101)],
        [(1, 102)],
        [],
        [(1, 103)],
    ]


def test_some_tablets_become_fewer(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_reshard_joins_tablets)"""
    table = make_table(client, f"{root}/t", PLAIN, tablet_count=4)
    for tablet in range(4):
        append(client, table, tablet, tablet, 100 + tablet)
    client.trim_rows(table, 0, 1)
    client.trim_rows(table, 3, 1)
    reshard(client, table, 1, first_tablet_index=1, last_tablet_index=2)
    assert [positions(client, table, tablet) for tablet in range(3)] == [
        [(1, 100)],
        [(0, 1), (1, 101), (2, 2), (3, 102)],
        [(1, 103)],
    ]


def test_a_tablet_that_lost_a_part_of_a_chunk_does_not_go(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_reshard_join_fails_on_trimmed_rows)"""
    table = make_table(client, f"{root}/t", PLAIN, tablet_count=2)
    append(client, table, 1, 1, 2)
    client.trim_rows(table, 1, 1)
    with pytest.raises(yt.YtError, match="are not fully trimmed"):
        reshard(client, table, 1)
    client.mount_table(table, sync=True)
    assert positions(client, table, 1) == [(1, 2)]


def test_a_tablet_that_lost_whole_chunks_goes(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_reshard_trimmed_shared_yt_6948)"""
    table = make_table(client, f"{root}/t", PLAIN, tablet_count=2)
    append(client, table, 1, 1, 2)
    flush(client, table)
    append(client, table, 1, 3)
    client.trim_rows(table, 1, 2)
    eventually(lambda: trimmed(client, table, 1), 2)

    def merged() -> list[tuple[int, int]]:
        """Raises YtError while the tablet has not noticed that a chunk has no rows left."""
        try:
            reshard(client, table, 1)
        finally:
            client.mount_table(table, sync=True)
        return positions(client, table, 0)

    eventually(merged, [(0, 3)])


def test_commit_ordering_is_weak_or_strong(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_change_commit_ordering, test_no_commit_ordering_change_for_mounted,
    test_set_commit_ordering_upon_construction)"""
    table = make_table(client, f"{root}/t", PLAIN, commit_ordering="strong")
    assert client.get(f"{table}/@commit_ordering") == "strong"
    with pytest.raises(yt.YtError, match="Cannot change table commit ordering mode"):
        client.set(f"{table}/@commit_ordering", "weak")
    client.unmount_table(table, sync=True)
    with pytest.raises(yt.YtError, match="Error parsing"):
        client.set(f"{table}/@commit_ordering", "cool")
    client.set(f"{table}/@commit_ordering", "weak")
    assert client.get(f"{table}/@commit_ordering") == "weak"
    with pytest.raises(yt.YtError, match="Error parsing"):
        make_table(client, f"{root}/u", PLAIN, commit_ordering="cool")

"""Tablet transactions: atomic writes, snapshots, conflicts.

Over HTTP the client makes them sticky: they live in one proxy's memory. The documentation
(dynamic-tables/faq) does not promise that this works, so a cluster where it does not is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import yt.wrapper as yt
from yt.wrapper.errors import YtTabletTransactionLockConflict

from packages.minicluster.tests.conformance.conftest import (
    GIVEN,
    Register,
    Row,
    make_table,
    within,
)

KEYED: list[Row] = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "string"},
]
PLAIN: list[Row] = [{"name": "v", "type": "string"}]

Start = Callable[[], str]


@pytest.fixture
def table(client: Any, root: str) -> str:
    return make_table(client, f"{root}/t", KEYED)


@pytest.fixture
def start(client: Any, table: str) -> Iterator[Start]:
    """Starts tablet transactions by hand."""
    if GIVEN:
        _require_sticky_transactions(client, table)
    started: list[str] = []

    def one() -> str:
        started.append(client.start_transaction(type="tablet", sticky=True, timeout=60_000))
        return started[-1]

    yield one
    for identifier in started:
        with suppress(yt.YtError):
            client.abort_transaction(identifier)


def _require_sticky_transactions(client: Any, table: str) -> None:
    try:
        with client.Transaction(type="tablet"):
            client.insert_rows(table, [{"k": -1, "v": "probe"}])
        client.delete_rows(table, [{"k": -1}])
    except yt.YtError as error:
        pytest.skip(f"no tablet transactions over this cluster's HTTP proxies: {error.message}")


def write(client: Any, identifier: str, table: str, *rows: Row) -> None:
    with within(client, identifier):
        client.insert_rows(table, rows)


def contents(client: Any, table: str) -> list[str]:
    return [row["v"] for row in client.select_rows(f"v from [{table}] limit 100")]


def test_a_request_is_a_transaction_of_its_own(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (atomicity)"""
    with pytest.raises(yt.YtError):
        client.insert_rows(table, [{"k": 1, "v": "right"}, {"k": 2, "v": 5}])
    assert contents(client, table) == []


def test_writes_are_seen_after_the_commit(client: Any, table: str, start: Start) -> None:
    """Source: server test, integration/dynamic_tables/test_tablet_transactions.py"""
    tx = start()
    write(client, tx, table, {"k": 1, "v": "a"})
    assert contents(client, table) == []
    client.commit_transaction(tx)
    assert contents(client, table) == ["a"]


def test_an_aborted_transaction_leaves_nothing(client: Any, table: str, start: Start) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (aborting a transaction)"""
    tx = start()
    write(client, tx, table, {"k": 1, "v": "a"})
    client.abort_transaction(tx)
    assert contents(client, table) == []
    with pytest.raises(yt.YtError):
        client.commit_transaction(tx)


def test_a_transaction_does_not_see_its_own_writes(client: Any, table: str, start: Start) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (timestamps)"""
    client.insert_rows(table, [{"k": 1, "v": "old"}])
    tx = start()
    write(client, tx, table, {"k": 1, "v": "new"})
    with within(client, tx):
        assert [row["v"] for row in client.lookup_rows(table, [{"k": 1}])] == ["old"]
        assert contents(client, table) == ["old"]


def test_a_transaction_reads_a_snapshot_of_its_start(client: Any, table: str, start: Start) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (timestamps)"""
    client.insert_rows(table, [{"k": 1, "v": "old"}])
    tx = start()
    client.insert_rows(table, [{"k": 1, "v": "new"}, {"k": 2, "v": "new"}])
    with within(client, tx):
        assert [row["v"] for row in client.lookup_rows(table, [{"k": 1}, {"k": 2}])] == ["old"]
        assert contents(client, table) == ["old"]


def test_the_second_writer_of_a_key_fails(client: Any, table: str, start: Start) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (modification lock)"""
    first, second = start(), start()
    write(client, first, table, {"k": 1, "v": "first"})
    write(client, second, table, {"k": 1, "v": "second"}, {"k": 2, "v": "second"})
    client.commit_transaction(first)
    with pytest.raises(YtTabletTransactionLockConflict):
        client.commit_transaction(second)
    assert contents(client, table) == ["first"]


def test_a_write_in_between_is_a_conflict_too(client: Any, table: str, start: Start) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (modification lock)"""
    tx = start()
    client.insert_rows(table, [{"k": 1, "v": "between"}])
    write(client, tx, table, {"k": 1, "v": "late"})
    with pytest.raises(YtTabletTransactionLockConflict):
        client.commit_transaction(tx)
    assert contents(client, table) == ["between"]


def test_deleting_conflicts_as_writing_does(client: Any, table: str, start: Start) -> None:
    """Source: server test, integration/dynamic_tables/test_tablet_transactions.py"""
    tx = start()
    with within(client, tx):
        client.delete_rows(table, [{"k": 1}])
    client.insert_rows(table, [{"k": 1, "v": "a"}])
    with pytest.raises(yt.YtError):
        client.commit_transaction(tx)
    assert contents(client, table) == ["a"]


def test_different_keys_do_not_conflict(client: Any, table: str, start: Start) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (checking conflicts)"""
    first, second = start(), start()
    write(client, first, table, {"k": 1, "v": "first"})
    write(client, second, table, {"k": 2, "v": "second"})
    client.commit_transaction(second)
    client.commit_transaction(first)
    assert contents(client, table) == ["first", "second"]


def test_appending_never_conflicts(client: Any, root: str, start: Start) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (data model)"""
    queue = make_table(client, f"{root}/q", PLAIN)
    first, second = start(), start()
    write(client, first, queue, {"v": "first"})
    write(client, second, queue, {"v": "second"})
    client.commit_transaction(second)
    client.commit_transaction(first)
    assert sorted(contents(client, queue)) == ["first", "second"]


def test_tables_of_both_kinds_change_together(
    client: Any, root: str, table: str, start: Start
) -> None:
    """Source: documentation, user-guide/dynamic-tables/ordered-dynamic-tables (writing rows)"""
    queue = make_table(client, f"{root}/q", PLAIN)
    tx, spoilt = start(), start()
    for identifier in (tx, spoilt):
        write(client, identifier, queue, {"v": "row"})
        write(client, identifier, table, {"k": 1, "v": "state"})
    client.commit_transaction(tx)
    with pytest.raises(YtTabletTransactionLockConflict):
        client.commit_transaction(spoilt)
    assert (contents(client, queue), contents(client, table)) == (["row"], ["state"])


def test_rows_and_the_consumers_position_change_together(
    client: Any, root: str, table: str, register: Register, start: Start
) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (working with a consumer)"""
    queue = make_table(client, f"{root}/q", PLAIN)
    client.create("queue_consumer", f"{root}/c")
    client.mount_table(f"{root}/c", sync=True)
    register(queue, f"{root}/c")
    tx = start()
    with within(client, tx):
        client.insert_rows(table, [{"k": 1, "v": "a"}])
        client.advance_queue_consumer(f"{root}/c", queue, 0, 0, 1)
    assert list(client.select_rows(f"* from [{root}/c]")) == []
    client.commit_transaction(tx)
    assert list(client.select_rows(f"[offset] from [{root}/c]")) == [{"offset": 1}]
    assert contents(client, table) == ["a"]


def test_a_finished_transaction_takes_nothing_more(client: Any, table: str, start: Start) -> None:
    """Source: server test, integration/dynamic_tables/test_tablet_transactions.py"""
    tx = start()
    client.commit_transaction(tx)
    with pytest.raises(yt.YtError):
        client.commit_transaction(tx)
    with pytest.raises(yt.YtError):
        write(client, tx, table, {"k": 1, "v": "late"})
    assert contents(client, table) == []


def test_dynamic_tables_are_not_written_under_a_master_transaction(client: Any, table: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (creating a transaction)"""
    with client.Transaction(), pytest.raises(yt.YtError):
        client.insert_rows(table, [{"k": 1, "v": "a"}])
    assert contents(client, table) == []

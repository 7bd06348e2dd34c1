"""When a batch may begin to look keys up in a table: a lookup before that finds nothing."""

from __future__ import annotations

from ytstream.cluster import built_reference
from ytstream.cluster.client import Client


def test_a_finished_table_can_be_used_from_the_moment_that_its_mark_names(
    client: Client, root: str
) -> None:
    client.create("map_node", root, recursive=True)
    table = f"{root}/t"
    client.create("table", table)
    before = int(client.generate_timestamp())
    built_reference.finish(client, table, "//home/source", ("a",))
    found = client.get(f"{table}/@", attributes=[*built_reference.ASKED])
    assert before < built_reference.earliest(found) < int(client.generate_timestamp())


def test_another_table_can_be_used_from_the_second_after_its_creation() -> None:
    assert built_reference.earliest({"creation_time": "1970-01-01T00:00:02.500000Z"}) == 3 << 30
    assert not built_reference.is_frozen({"tablet_state": "frozen"})
    mark = built_reference.mark(1, "//home/source", ("a",))
    assert built_reference.is_frozen({"tablet_state": "frozen", built_reference.MARK: mark})
    assert not built_reference.is_frozen({"tablet_state": "mounted", built_reference.MARK: mark})

"""The tree of nodes, without transactions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from yt import yson

from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.cypress.commands import Cypress


def refused(code: int, text: str) -> Any:
    """Return the error that has the text inside: clients match both."""

    def matches(error: BaseException) -> bool:
        assert isinstance(error, YtError)
        return error.code == code and re.search(text, str(error)) is not None

    return pytest.raises(YtError, check=matches)


def test_a_fresh_cluster(cypress: Cypress, cluster: Cluster) -> None:
    assert cypress.get("//sys/@cluster_name") == cluster.name
    assert set(cypress.list("/")) == {"sys", "home", "tmp"}
    (cell,) = cypress.list("//sys/tablet_cells", attributes=["health"])
    assert cell.attributes["health"] == "good"
    assert cypress.get(f"#{cell}/@type") == "tablet_cell"
    assert cypress.get("//sys/tablet_cell_bundles/default/@health") == "good"


def test_settings_of_the_masters_are_what_holds_here(cypress: Cypress) -> None:
    """integration/queues/test_queue_agent.py sets `default_queue_agent_stage`"""
    stage = "//sys/@config/queue_agent_server/default_queue_agent_stage"
    assert cypress.get(stage) == "production"
    cypress.set(stage, "production")
    for path in (stage, "//sys/@config/tablet_manager/other"):
        with refused(1, "not supported by minicluster: changing //sys/@config"):
            cypress.set(path, "another")
    assert cypress.get("//sys/@type") == "sys_node"
    assert "config" in cypress.get("//sys/@")


def test_create_and_its_flags(cypress: Cypress) -> None:
    made = cypress.create("map_node", "//tmp/a", attributes={"x": 1})
    assert cypress.get("//tmp/a/@id") == made
    with refused(501, "Node //tmp/a already exists"):
        cypress.create("map_node", "//tmp/a")
    assert cypress.create("map_node", "//tmp/a", ignore_existing=True) == made
    with refused(501, 'has type "map_node" while node of "file" type'):
        cypress.create("file", "//tmp/a", ignore_existing=True)
    again = cypress.create("file", "//tmp/a", force=True)
    assert again != made
    assert cypress.get("//tmp/a/@type") == "file"
    assert not cypress.exists(f"#{made}")


def test_create_needs_its_parent(cypress: Cypress) -> None:
    with refused(500, 'Node //tmp has no child with key "a"'):
        cypress.create("document", "//tmp/a/b")
    cypress.create("document", "//tmp/a/b", recursive=True)
    assert cypress.get("//tmp/a/@type") == "map_node"
    with refused(500, "Node //tmp/f cannot have children"):
        cypress.create("file", "//tmp/f")
        cypress.create("file", "//tmp/f/g", recursive=True)


def test_a_failed_create_leaves_nothing(cypress: Cypress) -> None:
    before = set(cypress.nodes)
    with refused(1, 'Builtin attribute "id" cannot be set'):
        cypress.create("map_node", "//tmp/a/b/c", recursive=True, attributes={"id": "x"})
    with refused(1, "EObjectType"):
        cypress.create("nonsense", "//tmp/a", recursive=True)
    assert set(cypress.nodes) == before
    assert not cypress.exists("//tmp/a")


def test_names_of_any_alphabet(cypress: Cypress) -> None:
    for name in ["жук", "a b", '"', "emoji😀", "\\/", "\\@x", "\\\\"]:
        cypress.create("document", f"//tmp/{name}", attributes={"value": name})
        path = cypress.get(f"//tmp/{name}/@path")
        assert cypress.get(path) == name
    assert "a/b" not in cypress.list("//tmp")
    assert "/" in cypress.list("//tmp")


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (1, "int64_node"),
        (yson.YsonUint64(1), "uint64_node"),
        (1.5, "double_node"),
        (True, "boolean_node"),
        ("x", "string_node"),
        ({"a": {"b": 1}}, "map_node"),
        ([1, 2], "list_node"),
    ],
)
def test_set_makes_nodes_of_values(cypress: Cypress, value: Any, type: str) -> None:
    cypress.set("//tmp/x", value)
    assert cypress.get("//tmp/x/@type") == type
    assert cypress.get("//tmp/x") == value


def test_set_does_not_replace_by_another_type(cypress: Cypress) -> None:
    cypress.set("//tmp/x", 1)
    with refused(1, 'Cannot update "int64" node with "string" value'):
        cypress.set("//tmp/x", "a")
    cypress.create("map_node", "//tmp/m")
    with refused(1, '"set" command without "force" flag'):
        cypress.set("//tmp/m", {})
    cypress.set("//tmp/m", {"k": 1}, force=True)
    assert cypress.get("//tmp/m") == {"k": 1}
    cypress.create("file", "//tmp/f")
    with refused(103, '"Set" method is not supported'):
        cypress.set("//tmp/f", 1)


def test_documents_are_addressed_inside(cypress: Cypress) -> None:
    cypress.create("document", "//tmp/d", attributes={"value": {"a": {"b": [1, 2]}}})
    assert cypress.get("//tmp/d/a/b/1") == 2
    cypress.set("//tmp/d/a/b/0", 7)
    cypress.set("//tmp/d/a/b/end", 9)
    assert cypress.get("//tmp/d") == {"a": {"b": [7, 2, 9]}}
    assert cypress.list("//tmp/d/a") == ["b"]
    cypress.remove("//tmp/d/a/b/1")
    assert cypress.get("//tmp/d/a/b") == [7, 9]
    assert not cypress.exists("//tmp/d/x")
    with refused(500, 'has no child with key "x"'):
        cypress.set("//tmp/d/x/y", 1)
    cypress.set("//tmp/d/x/y", 1, recursive=True)
    assert cypress.get("//tmp/d/x") == {"y": 1}


def test_attributes(cypress: Cypress) -> None:
    cypress.create("map_node", "//tmp/a")
    cypress.set("//tmp/a/@x", {"deep": [1, {"y": 2}]})
    assert cypress.get("//tmp/a/@x/deep/1/y") == 2
    cypress.set("//tmp/a/@x/deep/0", 5)
    assert cypress.get("//tmp/a/@x/deep") == [5, {"y": 2}]
    with refused(500, 'Attribute "nope" is not found'):
        cypress.get("//tmp/a/@nope")
    with refused(1, 'Builtin attribute "type" cannot be set'):
        cypress.set("//tmp/a/@type", "file")
    with refused(1, 'Attribute "id" cannot be removed'):
        cypress.remove("//tmp/a/@id")
    assert cypress.exists("//tmp/a/@x/deep/1")
    assert not cypress.exists("//tmp/a/@x/other")
    cypress.remove("//tmp/a/@x")
    assert not cypress.exists("//tmp/a/@x")
    assert {"id", "type", "creation_time"} <= set(cypress.list("//tmp/a/@"))


def test_attributes_of_an_attributes_value(cypress: Cypress) -> None:
    cypress.set("//tmp/@s", yson.to_yson_type([1], attributes={"strict": True}))
    assert cypress.get("//tmp/@s/@strict") is True


def test_times_have_six_digits_and_revisions_grow(cypress: Cypress) -> None:
    cypress.create("map_node", "//tmp/a")
    shown = cypress.get("//tmp/a/@")
    for name in ("creation_time", "modification_time", "access_time"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", shown[name])
    cypress.set("//tmp/a/b", 1)
    changed = cypress.get("//tmp/a/@")
    assert changed["revision"] > shown["revision"]
    assert changed["content_revision"] > changed["attribute_revision"]
    cypress.set("//tmp/a/@x", 1)
    assert cypress.get("//tmp/a/@attribute_revision") > changed["content_revision"]


def test_a_refused_multiset_changes_nothing(cypress: Cypress) -> None:
    cypress.multiset_attributes("//tmp/@", {"a": 1, "b": 2})
    assert (cypress.get("//tmp/@a"), cypress.get("//tmp/@b")) == (1, 2)
    with refused(1, "cannot be set"):
        cypress.multiset_attributes("//tmp/@", {"a": 5, "id": "x"})
    assert cypress.get("//tmp/@a") == 1


def test_remove(cypress: Cypress) -> None:
    cypress.set("//tmp/a", {"b": {"c": 1}})
    with refused(1, "Cannot remove non-empty composite node"):
        cypress.remove("//tmp/a")
    with refused(500, "has no child"):
        cypress.remove("//tmp/x")
    cypress.remove("//tmp/x", force=True)
    cypress.remove("//tmp/x/y", force=True)
    inner = cypress.get("//tmp/a/b/c/@id")
    cypress.remove("//tmp/a", recursive=True)
    assert cypress.list("//tmp") == []
    assert inner not in cypress.nodes
    with refused(1, "Node / cannot be removed"):
        cypress.remove("/", recursive=True)
    cypress.set("//tmp/a", {"b": 1})
    cypress.remove("//tmp/*")
    assert cypress.list("//tmp") == []


def test_listing(cypress: Cypress) -> None:
    cypress.set("//tmp/a", {"b": 1, "c": 2})
    found = cypress.list("//tmp/a", attributes=["type"])
    assert {str(name): name.attributes["type"] for name in found} == dict.fromkeys(
        "bc", "int64_node"
    )
    part = cypress.list("//tmp/a", max_size=1)
    assert len(part) == 1
    assert part.attributes["incomplete"] is True
    with refused(103, '"List" method is not supported'):
        cypress.list("//tmp/a/b")


def test_get_shows_asked_attributes_through_the_tree(cypress: Cypress) -> None:
    cypress.set("//tmp/a", {"b": 1})
    cypress.create("file", "//tmp/a/f", attributes={"x": 3})
    found = cypress.get("//tmp/a", attributes=["type", "x"])
    assert found["b"].attributes == {"type": "int64_node"}
    assert found["f"].attributes == {"type": "file", "x": 3}


def test_links(cypress: Cypress) -> None:
    cypress.set("//tmp/a", {"b": 1})
    cypress.link("//tmp/a", "//tmp/l")
    assert cypress.get("//tmp/l/b") == 1
    assert cypress.get("//tmp/l/@type") == "map_node"
    assert cypress.get("//tmp/l&/@type") == "link"
    assert cypress.get("//tmp/l&/@target_path") == "//tmp/a"
    assert cypress.get("//tmp/l&/@broken") is False
    cypress.set("//tmp/l/c", 2)
    assert cypress.get("//tmp/a/c") == 2
    assert cypress.resolve("//tmp/l").path == "//tmp/a"
    with refused(500, "has no child"):
        cypress.link("//tmp/nope", "//tmp/l2")
    cypress.remove("//tmp/l")
    assert cypress.exists("//tmp/a")
    cypress.link("//tmp/a", "//tmp/l")
    cypress.remove("//tmp/a", recursive=True)
    assert cypress.get("//tmp/l&/@broken") is True
    assert not cypress.exists("//tmp/l")
    with refused(1, "link is cyclic"):
        cypress.link("//tmp/l", "//tmp/l", force=True)


def test_copy(cypress: Cypress) -> None:
    cypress.set("//tmp/a", {"b": {"c": 1}})
    cypress.set("//tmp/a/b/@x", 5)
    made = cypress.copy("//tmp/a", "//tmp/z/y", recursive=True)
    assert cypress.get("//tmp/z/y") == {"b": {"c": 1}}
    assert cypress.get("//tmp/z/y/b/@x") == 5
    assert made == cypress.get("//tmp/z/y/@id") != cypress.get("//tmp/a/@id")
    cypress.set("//tmp/z/y/b/c", 2)
    assert cypress.get("//tmp/a/b/c") == 1
    with refused(501, "already exists"):
        cypress.copy("//tmp/a", "//tmp/z")
    assert cypress.copy("//tmp/a", "//tmp/z", ignore_existing=True) == cypress.get("//tmp/z/@id")
    cypress.copy("//tmp/a", "//tmp/z", force=True)
    assert cypress.get("//tmp/z") == {"b": {"c": 1}}
    with refused(1, "descendant"):
        cypress.copy("//tmp/a", "//tmp/a/b/a")


def test_move_as_a_file_system_renames(cypress: Cypress) -> None:
    """Spark's checkpoint files are written under another name and moved into place."""
    for name in "ab":
        cypress.create("file", f"//tmp/{name}")
        cypress.write_file(f"//tmp/{name}", name.encode())
    with refused(501, "Node //tmp/b already exists"):
        cypress.move("//tmp/a", "//tmp/b")
    assert cypress.read_file("//tmp/a") == b"a"
    cypress.move("//tmp/a", "//tmp/b", force=True)
    assert cypress.list("//tmp") == ["b"]
    assert cypress.read_file("//tmp/b") == b"a"
    with refused(500, "has no child"):
        cypress.move("//tmp/nope", "//tmp/c")
    for source, destination in [("//tmp/b", "//tmp/b"), ("//tmp", "//tmp/b/c")]:
        with pytest.raises(YtError):
            cypress.move(source, destination, force=True)
    assert cypress.read_file("//tmp/b") == b"a"


def test_files(cypress: Cypress) -> None:
    cypress.create("file", "//tmp/f")
    cypress.write_file("//tmp/f", b"hello")
    cypress.write_file("<append=%true>//tmp/f", b" world", compute_md5=True)
    assert cypress.read_file("//tmp/f", offset=4, length=3) == b"o w"
    shown = cypress.get("//tmp/f/@")
    assert shown["uncompressed_data_size"] == shown["compressed_data_size"] == 11
    assert shown["md5"] == "5eb63bbbe01eeed093cb22bb8f5acdc3"
    with refused(1, 'expected "file", actual "map_node"'):
        cypress.write_file("//tmp", b"")
    with refused(1, "negative"):
        cypress.read_file("//tmp/f", offset=-1)


def test_accounts(cypress: Cypress) -> None:
    cypress.create("map_node", "//tmp/a", attributes={"account": "tmp"})
    assert cypress.get("//tmp/a/@account") == "tmp"
    with refused(1, "No such account"):
        cypress.set("//tmp/a/@account", "nobodys")

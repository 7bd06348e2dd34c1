"""The kinds of Cypress nodes: what a node type adds to what all nodes have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yt import yson
from yt.yson import yson_types

from ..core import ids
from ..core.errors import generic, not_supported
from .model import Node

MAP_NODE = 303

Getter = Callable[[Node], Any]
Setter = Callable[[Node, Any], None]


def _no_payload(attributes: dict[str, Any]) -> Any:
    return None


def _same_payload(node: Node, move: bool) -> Any:
    return node.payload


def _itself(payload: Any) -> Any:
    return payload


def _nothing_saved(payload: Any) -> Any:
    return None


def _nothing_restored(payload: Any, saved: Any) -> None:
    pass


@dataclass(frozen=True)
class Kind:
    """One node type.

    `create` makes the payload and removes from `attributes` those it has used; what is left is
    applied through `settable` or kept as user attributes. `copy` makes the payload of a clone; with
    `move` the original disappears. `builtin` computes read-only or settable attributes. `save` and
    `restore` undo what a setter has done to the payload when the rest of a change is refused.
    """

    type: str
    code: int
    stored_as: str = ""
    """The type of the node that `create` makes; empty for the kind's own.

    `create queue_consumer`, for one, makes a node whose `@type` is `table`.
    """
    create: Callable[[dict[str, Any]], Any] = _no_payload
    copy: Callable[[Node, bool], Any] = _same_payload
    builtin: Mapping[str, Getter] = field(default_factory=dict)
    settable: Mapping[str, Setter] = field(default_factory=dict)
    removable: frozenset[str] = frozenset()
    """Builtins that can be removed: their setter is given MISSING, and they have a default."""
    composite: bool = False
    """Has children that are nodes themselves."""
    virtual: Callable[[Node], dict[str, Node]] | None = None
    """Children that are computed, as those of `//sys/transactions`."""
    freeze: Callable[[Any], Any] = _itself
    """A copy of the payload for a snapshot lock; payloads that never change need none."""
    save: Callable[[Any], Any] = _nothing_saved
    restore: Callable[[Any, Any], None] = _nothing_restored
    identify: Callable[[str], str] | None = None
    """The id of a node of that name; None for a fresh one."""
    absent: Callable[[Node], frozenset[str]] = lambda node: frozenset()
    """Builtins that this very node does not have; those that answer MISSING need no mention."""
    opaque: frozenset[str] = frozenset()
    """Builtins that `get` of all attributes shows as an entity, because they are costly."""

    @property
    def stored_type(self) -> str:
        return self.stored_as or self.type

    def new_id(self, name: str) -> str:
        return ids.new(self.code) if self.identify is None else self.identify(name)


class Kinds(dict[str, Kind]):
    """Kinds by type; each room adds its own when the cluster is put together."""

    def __init__(self) -> None:
        for kind in PLAIN:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Register a kind, or replace the one of its type."""
        self[kind.type] = kind

    def named(self, type: str) -> Kind:
        """Return the kind of a type. Raises YtError if there is none."""
        if type in LACKING:
            raise not_supported(f'creating an object of type "{type}"')
        if type not in self:
            raise generic(f'Error parsing EObjectType value "{type}"')
        return self[type]

    def type_of_code(self, code: int) -> str:
        """Return the object type with this number on the wire. Raises YtError if there is none."""
        for kind in self.values():
            if kind.code == code:
                return kind.type
        raise not_supported(f"creating an object of type {code}")


LACKING = frozenset(
    {
        "access_control_object",
        "access_control_object_namespace",
        "account_resource_usage_lease",
        "area",
        "chaos_cell",
        "chaos_cell_bundle",
        "chaos_replicated_table",
        "chaos_table_replica",
        "data_center",
        "domestic_medium",
        "host",
        "http_proxy_role",
        "hunk_storage",
        "journal",
        "network_project",
        "orchid",
        "pipeline",
        "portal_entrance",
        "portal_exit",
        "rack",
        "replicated_table",
        "replication_card",
        "replication_card_collocation",
        "replication_log_table",
        "rootstock",
        "rpc_proxy_role",
        "s3_medium",
        "scheduler_pool",
        "scheduler_pool_tree",
        "scion",
        "secondary_index",
        "table_collocation",
        "table_replica",
        "tablet_action",
        "zookeeper_shard",
    }
)
"""Types that only a real cluster can create (client/object_client/public.h, EObjectType)."""


# Lists are kept as one value: real list nodes are deprecated (documentation, "Cypress"), and no
# client addresses their items as nodes.
PLAIN = (
    Kind("map_node", MAP_NODE, composite=True),
    Kind("string_node", 300, create=lambda attributes: ""),
    Kind("int64_node", 301, create=lambda attributes: 0),
    Kind("double_node", 302, create=lambda attributes: 0.0),
    Kind("list_node", 304, create=lambda attributes: []),
    Kind("boolean_node", 305, create=lambda attributes: False),
    Kind("uint64_node", 306, create=lambda attributes: yson.YsonUint64(0)),
    Kind("document", 421, create=lambda attributes: attributes.pop("value", None)),
)

INHERITED = frozenset(
    {
        "commit_ordering",
        "compression_codec",
        "erasure_codec",
        "in_memory_mode",
        "optimize_for",
        "primary_medium",
        "replication_factor",
        "tablet_cell_bundle",
    }
)
"""Settings that a table or a file takes from the folders above it when it is created."""

SCALARS = frozenset({"string_node", "int64_node", "uint64_node", "double_node", "boolean_node"})
VALUES = SCALARS | {"document", "list_node"}
"""Types whose payload is the value that `get` answers."""


def type_of_value(value: Any) -> str:
    """Return the node type that `set` makes of a value."""
    match value:
        case bool() | yson.YsonBoolean():
            return "boolean_node"
        case yson.YsonUint64():
            return "uint64_node"
        case int():
            return "int64_node"
        case float():
            return "double_node"
        case str() | bytes() | yson_types.YsonStringProxy():
            return "string_node"
        case dict():
            return "map_node"
        case list():
            return "list_node"
    raise generic("Cannot make a node of an entity; use a document")


def expect(node: Node, path: str, *types: str) -> None:
    """Raise YtError when the node is of none of the types."""
    if node.type not in types:
        raise generic(f'Invalid type of {path}: expected "{types[0]}", actual "{node.type}"')

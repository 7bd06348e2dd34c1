"""Cypress nodes, and the registry of what kinds of node there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from yt import yson
from yt.yson import yson_types

from ..errors import generic

if TYPE_CHECKING:
    from .cluster import Cluster
    from .locks import Lock

ADMIN = "root"
DEFAULT_ACCOUNT = "default"


@dataclass(eq=False, slots=True)
class Node:
    """One Cypress node as it is outside any transaction.

    A node never changes its place: moving makes a new one, as in YT. `attributes` are the ones
    users set (everything computed is a builtin of the kind); `children` is used by map nodes only;
    `payload` belongs to the kind: a scalar's or document's value, a file's bytes, a link's target,
    a table.
    """

    id: str
    type: str
    parent: Node | None
    name: str
    attributes: dict[str, Any] = field(default_factory=dict)
    payload: Any = None
    children: dict[str, Node] = field(default_factory=dict)
    created: float = 0.0
    modified: float = 0.0
    accessed: float = 0.0
    revision: int = 0
    attribute_revision: int = 0
    content_revision: int = 0
    owner: str = ADMIN
    account: str = DEFAULT_ACCOUNT
    locks: list[Lock] = field(default_factory=list)
    made_in: str | None = None
    """The transaction that made the node and has not been committed to the trunk yet."""

    @property
    def path(self) -> str:
        """The canonical path, which a detached node has no longer."""
        names: list[str] = []
        node = self
        while node.parent is not None:
            names.append(escape(node.name))
            node = node.parent
        return "/" + "".join(f"/{name}" for name in reversed(names))

    def saved(self) -> tuple[Any, ...]:
        """What setting an attribute may change outside a branch; `restore` puts it back."""
        payload = getattr(self.payload, "atomicity", None)
        return dict(self.attributes), self.owner, self.account, payload

    def restore(self, saved: tuple[Any, ...]) -> None:
        self.attributes, self.owner, self.account, atomicity = saved
        if atomicity is not None:
            self.payload.atomicity = atomicity


def escape(name: str) -> str:
    """A child's name as it stands in a path (documentation, "YPath")."""
    return "".join(f"\\{char}" if char in "/@&*[{\\" else char for char in name)


def _no_payload(cluster: Cluster, attributes: dict[str, Any]) -> Any:
    return None


def _same_payload(cluster: Cluster, node: Node, move: bool) -> Any:
    return node.payload


def _itself(payload: Any) -> Any:
    return payload


@dataclass(frozen=True)
class Kind:
    """What a node type adds to what all nodes have.

    `create` makes the payload and removes from `attributes` those it has used; what is left is
    applied through `settable` or kept as user attributes. `copy` makes the payload of a clone; with
    `move` the original disappears. `builtin` computes read-only or settable attributes.
    """

    type: str
    code: int
    stored_as: str
    create: Callable[[Cluster, dict[str, Any]], Any] = _no_payload
    copy: Callable[[Cluster, Node, bool], Any] = _same_payload
    builtin: Mapping[str, Callable[[Cluster, Node], Any]] = field(default_factory=dict)
    settable: Mapping[str, Callable[[Cluster, Node, Any], None]] = field(default_factory=dict)
    composite: bool = False
    """Has children that are nodes themselves."""
    virtual: Callable[[Cluster, Node], dict[str, Node]] | None = None
    """Children that are computed, as those of `//sys/transactions`."""
    freeze: Callable[[Any], Any] = _itself
    """A copy of the payload for a snapshot lock; payloads that never change need none."""
    absent: Callable[[Node], frozenset[str]] = lambda node: frozenset()
    """Builtins that this very node does not have; those that answer MISSING need no mention."""
    opaque: frozenset[str] = frozenset()
    """Builtins that `get` of all attributes shows as an entity, because they are costly."""


KINDS: dict[str, Kind] = {}


def kind(type: str, code: int, *, stored_as: str | None = None, **parts: Any) -> Kind:
    """Registers a node type; `stored_as` makes it a mere way to create another one.

    `create queue_consumer`, for one, makes a node whose `@type` is `table`.
    """
    KINDS[type] = made = Kind(type, code, stored_as or type, **parts)
    return made


def kind_of(node: Node) -> Kind:
    return KINDS[node.type]


def expect(node: Node, path: str, *types: str) -> None:
    """Raises: YtError when the node is of none of the types."""
    if node.type not in types:
        raise generic(f'Invalid type of {path}: expected "{types[0]}", actual "{node.type}"')


# The plain kinds. Lists are kept as one value: real list nodes are deprecated (documentation,
# "Cypress"), and nobody addresses their items as nodes.
kind("map_node", 303, composite=True)
kind("string_node", 300, create=lambda cluster, attributes: "")
kind("int64_node", 301, create=lambda cluster, attributes: 0)
kind("double_node", 302, create=lambda cluster, attributes: 0.0)
kind("list_node", 304, create=lambda cluster, attributes: [])
kind("boolean_node", 305, create=lambda cluster, attributes: False)
kind("uint64_node", 306, create=lambda cluster, attributes: yson.YsonUint64(0))
kind("document", 421, create=lambda cluster, attributes: attributes.pop("value", None))

SCALARS = frozenset({"string_node", "int64_node", "uint64_node", "double_node", "boolean_node"})
VALUES = SCALARS | {"document", "list_node"}
"""Types whose payload is the value that `get` answers."""


def type_of_value(value: Any) -> str:
    """The node type that `set` makes of a value."""
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

"""Attributes of nodes: those every node has, those its kind adds, and those a user has set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from yt import yson

from .. import ids
from ..clock import iso
from ..errors import YtError, generic, not_supported, resolve
from ..ypath import Attr
from . import values
from .branches import MISSING, View
from .nodes import KINDS, Node, escape, kind_of

if TYPE_CHECKING:
    from .cluster import Cluster

Getter = Callable[["Cluster", Node], Any]


def _resource_usage(cluster: Cluster, node: Node) -> dict[str, Any]:
    builtin = kind_of(node).builtin

    def value(name: str) -> int:
        found: Any = builtin[name](cluster, node) if name in builtin else 0
        return 0 if found is MISSING else int(found)

    size = value("uncompressed_data_size")
    return {
        "node_count": 1,
        "chunk_count": value("chunk_count"),
        "tablet_count": value("tablet_count"),
        "tablet_static_memory": 0,
        "disk_space": size,
        "disk_space_per_medium": {"default": size} if size else {},
        "master_memory": 0,
    }


def _recursive_resource_usage(cluster: Cluster, node: Node) -> dict[str, Any]:
    total = _resource_usage(cluster, node)
    for child in node.children.values():
        for name, value in _recursive_resource_usage(cluster, child).items():
            if isinstance(value, dict):
                total[name] = {
                    medium: total[name].get(medium, 0) + value.get(medium, 0)
                    for medium in {*total[name], *value}
                }
            else:
                total[name] += value
    return total


def _user_attributes(cluster: Cluster, node: Node) -> dict[str, Any]:
    return dict(node.attributes)


def _key(cluster: Cluster, node: Node) -> Any:
    return node.name if node.parent is not None else MISSING


def _parent_id(cluster: Cluster, node: Node) -> Any:
    return node.parent.id if node.parent is not None else MISSING


COMMON: dict[str, Getter] = {
    "id": lambda cluster, node: node.id,
    "type": lambda cluster, node: node.type,
    "path": lambda cluster, node: node.path,
    "key": _key,
    "parent_id": _parent_id,
    "builtin": lambda cluster, node: node.parent is None,
    "owner": lambda cluster, node: node.owner,
    "account": lambda cluster, node: node.account,
    "creation_time": lambda cluster, node: iso(node.created),
    "modification_time": lambda cluster, node: iso(node.modified),
    "access_time": lambda cluster, node: iso(node.accessed),
    "access_counter": lambda cluster, node: 0,
    "revision": lambda cluster, node: yson.YsonUint64(node.revision),
    "attribute_revision": lambda cluster, node: yson.YsonUint64(node.attribute_revision),
    "content_revision": lambda cluster, node: yson.YsonUint64(node.content_revision),
    "native_cell_tag": lambda cluster, node: yson.YsonUint64(ids.CELL_TAG),
    "external": lambda cluster, node: False,
    "foreign": lambda cluster, node: False,
    "ref_counter": lambda cluster, node: 1,
    "weak_ref_counter": lambda cluster, node: 0,
    "lock_mode": lambda cluster, node: "none",
    "locks": lambda cluster, node: [lock.to_yson() for lock in node.locks],
    "lock_count": lambda cluster, node: len(node.locks),
    "resource_usage": _resource_usage,
    "recursive_resource_usage": _recursive_resource_usage,
    "user_attributes": _user_attributes,
    "user_attribute_keys": lambda cluster, node: list(node.attributes),
}
"""What every node answers; of these, `owner` and `account` can be set."""

COMPOSITE: dict[str, Getter] = {
    "count": lambda cluster, node: len(node.children),
}

DEFAULTS: dict[str, Any] = {
    "acl": [],
    "inherit_acl": True,
    "opaque": False,
}
"""Settable attributes that a node answers even if nobody has set them."""

OPAQUE = frozenset(
    {"locks", "resource_usage", "recursive_resource_usage", "user_attributes", "acl"}
)
"""Shown as an entity among all attributes, as on a real cluster; asked for by name they answer."""


def _set_owner(cluster: Cluster, node: Node, value: Any) -> None:
    node.owner = str(value)


def _set_account(cluster: Cluster, node: Node, value: Any) -> None:
    if not isinstance(value, str):
        raise generic('Attribute "account" must be a string')
    if not cluster.cypress.exists(f"//sys/accounts/{escape(value)}"):
        raise resolve(f"//sys/accounts/{value}", f'No such account "{value}"')
    node.account = str(value)


SETTABLE: dict[str, Callable[[Cluster, Node, Any], None]] = {
    "owner": _set_owner,
    "account": _set_account,
}


def getter(node: Node, name: str) -> Getter | None:
    """The function that computes a builtin attribute; None when it is none."""
    kind = kind_of(node)
    found = kind.builtin.get(name) or COMMON.get(name)
    return found or (COMPOSITE.get(name) if kind.composite else None)


def read(cluster: Cluster, node: Node, name: str) -> Any:
    """The value of one attribute of an effective node, or MISSING."""
    compute = getter(node, name)
    if compute is not None:
        return compute(cluster, node)
    if name in node.attributes:
        return node.attributes[name]
    return DEFAULTS.get(name, MISSING)


def _found(cluster: Cluster, node: Node, name: str) -> Any:
    """Like `read`, where what this one node cannot answer is simply not there."""
    try:
        return read(cluster, node, name)
    except YtError:
        return MISSING


def has(cluster: Cluster, node: Node, steps: Sequence[str]) -> bool:
    """Whether `get` would answer."""
    if not steps[0]:
        return True
    value = _found(cluster, node, steps[0])
    return value is not MISSING and values.exists(value, steps[1:])


def names(cluster: Cluster, node: Node) -> list[str]:
    kind = kind_of(node)
    composite = COMPOSITE if kind.composite else {}
    candidates = [*COMMON, *composite, *kind.builtin, *DEFAULTS, *node.attributes]
    absent = kind.absent(node)
    return [name for name in dict.fromkeys(candidates) if name not in absent]


def read_all(cluster: Cluster, node: Node) -> dict[str, Any]:
    """Every attribute; costly ones as entities."""
    opaque = OPAQUE | kind_of(node).opaque
    found = {
        name: None if name in opaque else _found(cluster, node, name)
        for name in names(cluster, node)
    }
    return {name: value for name, value in found.items() if value is not MISSING}


def read_named(cluster: Cluster, node: Node, wanted: Sequence[str]) -> dict[str, Any]:
    """Those of the attributes that the node has; a name may be a path into one (`a/b`)."""
    found = {}
    for name in wanted:
        head, *rest = name.split("/")
        value = _found(cluster, node, head)
        if value is not MISSING and values.exists(value, rest):
            found[name] = values.get(value, rest, name)
    return found


def get(cluster: Cluster, node: Node, steps: Sequence[str], path: str) -> Any:
    """What a path with `@` answers; `steps` starts with the `Attr`. Raises: YtError 500."""
    name, rest = steps[0], steps[1:]
    if not name:
        return read_all(cluster, node)
    value = read(cluster, node, name)
    if value is MISSING:
        raise resolve(path, f'Attribute "{name}" is not found')
    return values.get(value, rest, path)


def prepare(
    cluster: Cluster, node: Node, steps: Sequence[str], value: Any, path: str, *, recursive: bool
) -> tuple[str, Any]:
    """(attribute, whole new value) of a `set`; a part is put into what is there.

    Raises: YtError for what cannot be set.
    """
    name, rest = str(steps[0]), steps[1:]
    check_name(name)
    if rest:
        current = read(cluster, node, name)
        if current is MISSING:
            if not recursive:
                raise resolve(path, f'Attribute "{name}" is not found')
            current = {}
        value = values.replaced(current, rest, value, path, recursive=recursive)
    if getter(node, name) is not None and setter(node, name) is None:
        raise generic(f'Builtin attribute "{name}" cannot be set')
    return name, value


def check_name(name: str) -> None:
    values.require_text(name)
    if not name:
        raise generic("Attribute key cannot be empty")


def setter(node: Node, name: str) -> Callable[[Cluster, Node, Any], None] | None:
    return kind_of(node).settable.get(name) or SETTABLE.get(name)


def set_builtin(cluster: Cluster, view: View, node: Node, name: str, value: Any) -> bool:
    """Sets what is no plain user attribute; False leaves it to the caller.

    Builtins are not versioned here, so inside a transaction only a node it has made takes them.
    """
    apply = setter(node, name)
    if apply is None:
        return False
    if view.transaction is not None and node.made_in is None:
        raise not_supported(f'Setting attribute "{name}" inside a transaction')
    apply(cluster, node, value)
    return True


def initial(cluster: Cluster, node: Node, given: dict[str, Any]) -> None:
    """Applies the attributes that a `create` leaves after its kind has used its own.

    Raises: YtError for what cannot be set.
    """
    for name, value in given.items():
        check_name(name)
        apply = setter(node, name)
        if apply is not None:
            apply(cluster, node, value)
        elif getter(node, name) is not None:
            raise generic(f'Builtin attribute "{name}" cannot be set')
        else:
            node.attributes[name] = value


def is_attribute(steps: Sequence[str]) -> bool:
    return bool(steps) and isinstance(steps[0], Attr)


def known_type(type: str) -> str:
    """Raises: YtError for a type that has no kind."""
    if type not in KINDS:
        raise generic(f'Error parsing EObjectType value "{type}"')
    return type

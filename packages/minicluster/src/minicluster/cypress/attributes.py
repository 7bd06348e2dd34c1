"""Attributes of nodes: those every node has, those its kind adds, and those a user has set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from yt import yson

from ..core import ids
from ..core.clock import iso
from ..core.errors import (
    RESOLVE,
    RefusedError,
    YtError,
    around,
    generic,
    not_supported,
    resolve,
)
from . import documents
from .kinds import Getter, Kinds, Setter
from .model import MISSING, Node
from .view import View
from .ypath import Attr


def _effective_acl(node: Node) -> list[Any]:
    """Return the entries that hold for a node: its own, and those it inherits."""
    found: list[Any] = []
    current: Node | None = node
    while current is not None:
        found += current.attributes.get("acl") or []
        current = current.parent if current.attributes.get("inherit_acl", True) else None
    return found


def _key(node: Node) -> Any:
    return node.name if node.parent is not None else MISSING


def _parent_id(node: Node) -> Any:
    return node.parent.id if node.parent is not None else MISSING


COMMON: dict[str, Getter] = {
    "id": lambda node: node.id,
    "type": lambda node: node.type,
    "path": lambda node: node.path,
    "key": _key,
    "parent_id": _parent_id,
    "builtin": lambda node: node.parent is None,
    "owner": lambda node: node.owner,
    "account": lambda node: node.account,
    "creation_time": lambda node: iso(node.created),
    "modification_time": lambda node: iso(node.modified),
    "access_time": lambda node: iso(node.accessed),
    "access_counter": lambda node: 0,
    "revision": lambda node: yson.YsonUint64(node.revision),
    "attribute_revision": lambda node: yson.YsonUint64(node.attribute_revision),
    "content_revision": lambda node: yson.YsonUint64(node.content_revision),
    "native_cell_tag": lambda node: yson.YsonUint64(ids.CELL_TAG),
    "external": lambda node: False,
    "foreign": lambda node: False,
    "ref_counter": lambda node: 1,
    "weak_ref_counter": lambda node: 0,
    "lock_mode": lambda node: "none",
    "locks": lambda node: [lock.to_yson() for lock in node.locks],
    "lock_count": lambda node: len(node.locks),
    "effective_acl": lambda node: _effective_acl(node),
    "user_attributes": lambda node: dict(node.attributes),
    "user_attribute_keys": lambda node: list(node.attributes),
}
"""Attributes of every node, besides its use of resources."""

COMPOSITE: dict[str, Getter] = {
    "count": lambda node: len(node.children),
}

DEFAULTS: dict[str, Any] = {
    "acl": [],
    "inherit_acl": True,
    "opaque": False,
}
"""Settable attributes that a node answers even before they are set."""

OPAQUE = frozenset(
    {
        "locks",
        "path",
        "resource_usage",
        "recursive_resource_usage",
        "user_attributes",
        "acl",
        "effective_acl",
    }
)
"""Shown as an entity among all attributes, as on a real cluster; asked for by name they answer."""


class Attributes:
    """Reads and sets the attributes of nodes; `has_account` tells which accounts there are."""

    def __init__(self, kinds: Kinds, has_account: Callable[[str], bool]) -> None:
        self._kinds = kinds
        self._has_account = has_account
        self._common: dict[str, Getter] = {
            **COMMON,
            "resource_usage": self._resource_usage,
            "recursive_resource_usage": self._recursive_resource_usage,
        }
        self._settable: dict[str, Setter] = {
            "owner": _set_owner,
            "account": self._set_account,
        }

    def getter(self, node: Node, name: str) -> Getter | None:
        """Return the function that computes a builtin attribute; None if it is not builtin."""
        kind = self._kinds[node.type]
        found = kind.builtin.get(name) or self._common.get(name)
        return found or (COMPOSITE.get(name) if kind.composite else None)

    def read(self, node: Node, name: str) -> Any:
        """Return the value of one attribute of an effective node, or MISSING."""
        compute = self.getter(node, name)
        if compute is not None:
            return compute(node)
        if name in node.attributes:
            return node.attributes[name]
        return DEFAULTS.get(name, MISSING)

    def _found(self, node: Node, name: str) -> Any:
        """Return the value as `read` does, or MISSING for an attribute this node cannot compute."""
        try:
            return self.read(node, name)
        except YtError:
            return MISSING

    def has(self, node: Node, steps: Sequence[str]) -> bool:
        """Return whether `get` would answer."""
        if not steps[0]:
            return True
        value = self._found(node, steps[0])
        return value is not MISSING and documents.exists(value, steps[1:])

    def names(self, node: Node) -> list[str]:
        kind = self._kinds[node.type]
        composite = COMPOSITE if kind.composite else {}
        candidates = [*self._common, *composite, *kind.builtin, *DEFAULTS, *node.attributes]
        absent = kind.absent(node)
        return [name for name in dict.fromkeys(candidates) if name not in absent]

    def read_all(self, node: Node) -> dict[str, Any]:
        """Return every attribute, the costly ones as entities."""
        opaque = OPAQUE | self._kinds[node.type].opaque
        found = {
            name: None if name in opaque else self._found(node, name) for name in self.names(node)
        }
        return {name: value for name, value in found.items() if value is not MISSING}

    def read_named(self, node: Node, wanted: Sequence[str]) -> dict[str, Any]:
        """Return those of the attributes that the node has; a name may be a path into one."""
        found = {}
        for name in wanted:
            head, *rest = name.split("/")
            value = self._found(node, head)
            if value is not MISSING and documents.exists(value, rest):
                found[name] = documents.get(value, rest, name)
        return found

    def get(self, node: Node, steps: Sequence[str], path: str) -> Any:
        """Return the answer to a path with `@`; `steps` starts with the `Attr`.

        Raises YtError RESOLVE for an attribute that is not there.
        """
        name, rest = steps[0], steps[1:]
        if not name:
            return self.read_all(node)
        value = self.read(node, name)
        if value is MISSING:
            raise resolve(path, f'Attribute "{name}" is not found')
        return documents.get(value, rest, path)

    def prepare(
        self, node: Node, steps: Sequence[str], value: Any, path: str, *, recursive: bool
    ) -> tuple[str, Any]:
        """Return (attribute, whole new value) for a `set`; a part is put into the present value.

        Raises YtError for an attribute that cannot be set.
        """
        name, rest = str(steps[0]), steps[1:]
        check_name(name)
        if rest:
            current = self.read(node, name)
            if current is MISSING:
                if not recursive:
                    raise YtError(RESOLVE, f'Custom attribute "{name}" is not found')
                current = {}
            value = documents.replaced(current, rest, value, path, recursive=recursive)
        if self.getter(node, name) is not None and self.setter(node, name) is None:
            raise generic(f'Builtin attribute "{name}" cannot be set')
        return name, value

    def setter(self, node: Node, name: str) -> Setter | None:
        return self._kinds[node.type].settable.get(name) or self._settable.get(name)

    def set_builtin(self, view: View, node: Node, name: str, value: Any) -> bool:
        """Set a builtin attribute; return False for a user attribute, which the caller sets.

        Builtins are not versioned here: in a transaction only the nodes it has made take them.
        """
        apply = self.setter(node, name)
        if apply is None:
            return False
        if view.transaction is not None and node.made_in is None:
            raise not_supported(f'setting attribute "{name}" inside a transaction')
        try:
            apply(node, value)
        except RefusedError:
            raise
        except YtError as error:
            # core/ytree/ypath_detail.cpp, GuardedSetBuiltinAttribute
            raise around(f'Error setting builtin attribute "{name}"', error) from None
        return True

    def initial(self, node: Node, given: dict[str, Any]) -> None:
        """Apply the attributes of a `create` that its kind has not used.

        Raises YtError for an attribute that cannot be set.
        """
        for name, value in given.items():
            check_name(name)
            apply = self.setter(node, name)
            if apply is not None:
                apply(node, value)
            elif name == "external":
                # Said at creation only, of the master cell that keeps the content.
                if value:
                    raise not_supported("external nodes")
            elif self.getter(node, name) is not None:
                raise generic(f'Builtin attribute "{name}" cannot be set')
            else:
                node.attributes[name] = value

    def _resource_usage(self, node: Node) -> dict[str, Any]:
        builtin = self._kinds[node.type].builtin

        def value(name: str) -> int:
            found: Any = builtin[name](node) if name in builtin else 0
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

    def _recursive_resource_usage(self, node: Node) -> dict[str, Any]:
        total = self._resource_usage(node)
        for child in node.children.values():
            for name, value in self._recursive_resource_usage(child).items():
                if isinstance(value, dict):
                    total[name] = {
                        medium: total[name].get(medium, 0) + value.get(medium, 0)
                        for medium in {*total[name], *value}
                    }
                else:
                    total[name] += value
        return total

    def _set_account(self, node: Node, value: Any) -> None:
        if not isinstance(value, str):
            raise generic('Attribute "account" must be a string')
        if not self._has_account(value):
            raise resolve(f"//sys/accounts/{value}", f'No such account "{value}"')
        node.account = str(value)


def _set_owner(node: Node, value: Any) -> None:
    node.owner = str(value)


def check_name(name: str) -> None:
    documents.require_text(name)
    if not name:
        raise generic("Attribute key cannot be empty")


def is_attribute(steps: Sequence[str]) -> bool:
    return bool(steps) and isinstance(steps[0], Attr)

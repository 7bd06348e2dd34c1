"""Changing nodes: locks first, then a branch of the node or, outside a transaction, the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from yt import yson

from ..core import ids
from ..core.clock import Clock
from ..core.errors import YtError, generic, resolve
from . import documents, locks
from .kinds import Kind, Kinds, type_of_value
from .model import EXCLUSIVE, MISSING, SHARED, Addition, Branch, Node, Request
from .reading import Spot, Tree
from .store import Store
from .view import View
from .ypath import Attr, Path

MAX_NAME_LENGTH = 4096
"""`max_map_node_key_length` of the master's default configuration."""

ONLY_IF_ASKED = {
    "acl": "preserve_acl",
    "inherit_acl": "preserve_acl",
    "expiration_time": "preserve_expiration_time",
    "expiration_timeout": "preserve_expiration_timeout",
}
"""Attribute -> the option of a copy that keeps it; a move keeps the access control list anyway."""


class Editor:
    """The steps that every command that changes Cypress is made of."""

    def __init__(self, clock: Clock, kinds: Kinds, store: Store, tree: Tree) -> None:
        self._clock = clock
        self._kinds = kinds
        self._store = store
        self._tree = tree
        self._attributes = tree.attributes

    # Locks and branches

    def claim(self, view: View, node: Node, request: Request) -> None:
        """Take the lock that a change needs; without a transaction, refuse if another has it."""
        if self._kinds[node.type].virtual is not None:
            raise generic(f"Node {node.path} cannot be changed")
        if view.transaction is None:
            locks.check(node, None, request)
        else:
            now = self._clock.now()
            locks.take(node, view.transaction, request, now, implicit=True)

    def claim_subtree(self, view: View, node: Node) -> None:
        for below in view.walk(node):
            self.claim(view, below, Request(EXCLUSIVE))

    @contextmanager
    def change(self, view: View, node: Node, request: Request) -> Iterator[Branch]:
        """Give the branch to change; outside a transaction the changes are applied at once.

        If the change fails half-way, its effects on the node are undone.
        """
        transaction = view.transaction
        held = set(transaction.locks) if transaction else set()
        undo = self._undo(node)
        branch = Branch(node)
        if transaction is not None and node.id in transaction.branches:
            branch = transaction.branches[node.id].copy()
        try:
            self.claim(view, node, request)
            yield branch
        except BaseException:
            undo()
            if transaction is not None:
                for lock_id in set(transaction.locks) - held:
                    locks.release(transaction.locks[lock_id])
            raise
        if transaction is not None:
            transaction.branches[node.id] = branch
        branch.modified = self._clock.now()
        branch.revision = self._store.next_revision()
        if view.transaction is None:
            branch.apply()

    def _undo(self, node: Node) -> Callable[[], None]:
        """Undo what a setter may change outside of a branch."""
        kind = self._kinds[node.type]
        attributes, owner, account = dict(node.attributes), node.owner, node.account
        payload = kind.save(node.payload)

        def undo() -> None:
            node.attributes, node.owner, node.account = attributes, owner, account
            kind.restore(node.payload, payload)

        return undo

    # Values and attributes

    def set_payload(self, view: View, node: Node, payload: Any) -> None:
        with self.change(view, node, Request(EXCLUSIVE)) as branch:
            branch.replace_payload(payload)

    def add_payload(self, view: View, node: Node, addition: Addition) -> None:
        """Add to the content under a shared lock: others may do the same at the same time."""
        with self.change(view, node, Request(SHARED)) as branch:
            if view.transaction is not None and branch.payload is MISSING and not branch.added:
                branch.base = view.payload(node)
            branch.added += (addition,)

    def set_attribute(
        self,
        view: View,
        node: Node,
        steps: Sequence[str],
        value: Any,
        path: str,
        *,
        recursive: bool,
    ) -> None:
        effective = view.effective(node)
        if not steps[0]:
            self._set_all_attributes(view, node, value)
            return
        name, whole = self._attributes.prepare(effective, steps, value, path, recursive=recursive)
        request = Request(SHARED, attribute_key=name)
        with self.change(view, node, request) as branch:
            if not self._attributes.set_builtin(view, node, name, whole):
                branch.attributes[name] = whole

    def _set_all_attributes(self, view: View, node: Node, value: Any) -> None:
        documents.require_map(value)
        effective = view.effective(node)
        for name in value:
            self._attributes.prepare(effective, [name], value[name], node.path, recursive=False)
        with self.change(view, node, Request(EXCLUSIVE)) as branch:
            branch.attributes.update(dict.fromkeys(effective.attributes, MISSING))
            for name, item in value.items():
                if not self._attributes.set_builtin(view, node, name, item):
                    branch.attributes[name] = item

    def remove_attribute(
        self, view: View, node: Node, steps: Sequence[str], path: str, *, force: bool
    ) -> None:
        effective = view.effective(node)
        name, rest = str(steps[0]), steps[1:]
        builtin = bool(name) and self._attributes.getter(node, name) is not None
        if name and not builtin and name not in effective.attributes:
            if force:
                return
            raise resolve(path, f'Attribute "{name}" is not found')
        if builtin or (name and self._attributes.setter(node, name) is not None):
            self._remove_setting(view, node, steps, path, builtin=builtin)
            return
        with self.change(view, node, Request(SHARED, attribute_key=name or None)) as branch:
            if not name:
                branch.attributes.update(dict.fromkeys(effective.attributes, MISSING))
            elif rest:
                branch.attributes[name] = documents.removed(effective.attributes[name], rest, path)
            else:
                branch.attributes[name] = MISSING

    def _remove_setting(
        self, view: View, node: Node, steps: Sequence[str], path: str, *, builtin: bool
    ) -> None:
        """Remove an attribute that has a setter, or set it without one of its parts."""
        name, rest = str(steps[0]), steps[1:]
        value: Any = MISSING
        if rest:
            value = documents.removed(self._attributes.get(node, steps[:1], path), rest, path)
        fixed = builtin and not rest and name not in self._kinds[node.type].removable
        if fixed or self._attributes.setter(node, name) is None:
            raise generic(f'Attribute "{name}" cannot be removed')
        with self.change(view, node, Request(SHARED, attribute_key=name)):
            self._attributes.set_builtin(view, node, name, value)

    def set_map(self, view: View, node: Node, value: Any) -> None:
        if not isinstance(value, dict):
            raise cannot_update(node, type_of_value(value))
        made = {name: self.value_node(name, item) for name, item in value.items()}
        self.remove_children(view, node)
        for name, child in made.items():
            self.insert(view, Spot(node, (name,)), child)

    # Making nodes

    def check_insertion(self, path: Path, spot: Spot, *, recursive: bool) -> None:
        """Raise YtError unless a node may be made where the path leads."""
        if any(isinstance(step, Attr) for step in spot.rest) or path.star:
            raise generic(f"Path {path.text} does not name a node")
        if not spot.rest:
            if spot.node.parent is None:
                raise generic("Root node cannot be replaced")
            return
        if not self._kinds[spot.node.type].composite or (len(spot.rest) > 1 and not recursive):
            raise self._tree.missing(path, spot)
        for name in spot.rest:
            check_child_name(name)

    def make(self, kind: Kind, name: str, given: dict[str, Any]) -> Node:
        """Return a node that is not in the tree yet."""
        now = self._clock.now()
        payload = kind.create(given)
        type = kind.stored_type
        node = Node(self._kinds[type].new_id(name), type, None, name, payload=payload)
        node.created = node.modified = node.accessed = now
        self._attributes.initial(node, given)
        return node

    def value_node(self, name: str, value: Any) -> Node:
        check_child_name(name)
        node = self.make(self._kinds[type_of_value(value)], name, {})
        attributes = getattr(value, "attributes", None) or {}
        documents.require_map(attributes)
        node.attributes.update(attributes)
        if node.type == "map_node":
            for key, item in value.items():
                child = self.value_node(key, item)
                child.parent, node.children[key] = node, child
        else:
            node.payload = value
        return node

    def copy_tree(
        self, view: View, original: Node, name: str, move: bool, preserve: dict[str, bool]
    ) -> Node:
        source = view.effective(original)
        now = self._clock.now()
        kind = self._kinds[source.type]
        node = Node(
            ids.new(kind.code),
            source.type,
            None,
            name,
            _kept(source.attributes, move, preserve),
            kind.copy(source, move),
            created=source.created if preserve.get("preserve_creation_time") else now,
            modified=source.modified if preserve.get("preserve_modification_time") else now,
            accessed=now,
        )
        if move or preserve.get("preserve_account"):
            node.account = source.account
        if move or preserve.get("preserve_owner"):
            node.owner = source.owner
        if kind.virtual is None:
            for key, child in view.children(original).items():
                clone = self.copy_tree(view, child, key, move, preserve)
                clone.parent, node.children[key] = node, clone
        return node

    # Putting nodes into the tree and taking them out

    def insert(self, view: View, spot: Spot, node: Node) -> None:
        """Put a new node where `spot` says, with the map nodes that are missing on the way."""
        if spot.rest:
            parent = spot.node
            for name in reversed(spot.rest[:-1]):
                between = self.make(self._kinds["map_node"], name, {})
                between.children[node.name] = node
                node.parent, node = between, between
        else:
            assert spot.node.parent is not None
            parent = spot.node.parent
            self.claim_subtree(view, spot.node)
        with self.change(view, parent, Request(SHARED, child_key=node.name)) as branch:
            node.parent = parent
            branch.children[node.name] = node
            self._adopt(view, node)
        if not spot.rest and view.transaction is None:
            self._store.destroy(spot.node)

    def _adopt(self, view: View, node: Node) -> None:
        """Make a new subtree known; inside a transaction it belongs to that transaction alone."""
        node.revision = node.attribute_revision = node.content_revision = (
            self._store.next_revision()
        )
        self._store.nodes[node.id] = node
        if view.transaction is not None:
            node.made_in = view.transaction.id
            view.transaction.made.append(node)
            self.claim(view, node, Request(EXCLUSIVE))
        for child in node.children.values():
            self._adopt(view, child)

    def detach(self, view: View, node: Node) -> None:
        assert node.parent is not None
        self.claim_subtree(view, node)
        with self.change(view, node.parent, Request(SHARED, child_key=node.name)) as branch:
            branch.children[node.name] = None
        if view.transaction is None:
            self._store.destroy(node)

    def remove_children(self, view: View, node: Node) -> None:
        children = list(view.children(node).values())
        for child in children:
            self.claim_subtree(view, child)
        for child in children:
            self.detach(view, child)


def _kept(attributes: dict[str, Any], move: bool, preserve: Mapping[str, bool]) -> dict[str, Any]:
    """Return the attributes that a clone gets."""
    return {
        name: value
        for name, value in attributes.items()
        if name not in ONLY_IF_ASKED
        or preserve.get(ONLY_IF_ASKED[name])
        or (move and ONLY_IF_ASKED[name] == "preserve_acl")
    }


def check_child_name(name: Any) -> None:
    """Raise YtError for a name that no child may have; names in a YSON map can be any bytes."""
    if not isinstance(name, str):
        raise generic("Map node key must be a valid UTF-8 string")
    if len(name.encode()) > MAX_NAME_LENGTH:
        raise generic(f"Map node cannot contain items with key longer than {MAX_NAME_LENGTH}")


def scalar(node: Node, value: Any) -> Any:
    """Convert a number for a node of another number type if nothing is lost; others must match.

    Source: core/ytree/ypath_detail.cpp, TNodeSetterBase.
    """
    given = type_of_value(value)
    if given == node.type:
        return value
    if node.type == "uint64_node" and given == "int64_node" and value >= 0:
        return yson.YsonUint64(value)
    if node.type == "int64_node" and given == "uint64_node" and value < 1 << 63:
        return int(value)
    if node.type == "double_node" and given in ("int64_node", "uint64_node"):
        return float(value)
    raise cannot_update(node, given)


def cannot_update(node: Node, given: str) -> YtError:
    expected, actual = (type.removesuffix("_node") for type in (node.type, given))
    return generic(f'Cannot update "{expected}" node with "{actual}" value; types must match')

"""Finding nodes by path, and reading what is there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

from yt import yson

from ..core.clock import Clock
from ..core.errors import RESOLVE, YtError, generic, resolve
from . import documents, objects
from .attributes import Attributes, is_attribute
from .kinds import SCALARS, VALUES, Kinds, type_of_value
from .model import EXCLUSIVE, SHARED, SNAPSHOT, Node, Transaction, escape
from .store import Store
from .transactions import Transactions
from .view import View
from .ypath import Attr, Path, parse

MAX_LINK_DEPTH = 255
UNSUPPORTED_METHOD = 103


@dataclass(frozen=True, slots=True)
class Spot:
    """How far a path leads: the last node that exists, and the steps left from there."""

    node: Node
    rest: tuple[str, ...]

    @property
    def path(self) -> str:
        """The canonical path of what is there, or may be made there."""
        return "/".join([self.node.path, *map(escape, self.rest)])


class Tree:
    """The ways through the nodes; what a transaction sees is a View."""

    def __init__(
        self, clock: Clock, kinds: Kinds, store: Store, transactions: Transactions
    ) -> None:
        self._clock = clock
        self._kinds = kinds
        self._store = store
        self._transactions = transactions
        self.attributes = Attributes(kinds, self._has_account)

    # Reading

    def get(self, path: str, *, tx: str | None = None, attributes: Any = None) -> Any:
        """Return the value at `path`: maps for map nodes, an entity for a node without a value.

        `attributes` names those that every node of the tree is to carry, or, of `path/@`, those
        that are read.
        """
        view, parsed = self.open(path, tx)
        spot = self.walk(parsed, view)
        spot.node.touched = self._clock.now()
        node = view.effective(spot.node)
        if is_attribute(spot.rest):
            if attributes is not None and not spot.rest[0]:
                return self.attributes.read_named(node, wanted_names(attributes))
            if spot.rest == ("lock_mode",) and view.transaction is not None:
                return _lock_mode(spot.node, view.transaction)
            return self.attributes.get(node, spot.rest, path)
        if spot.rest:
            if node.type in ("document", "list_node"):
                return documents.get(node.payload, spot.rest, path)
            raise self.missing(parsed, spot)
        node.accessed = self._clock.now()
        return self._tree(view, spot.node, wanted_names(attributes), root=True)

    def exists(self, path: str, *, tx: str | None = None) -> bool:
        view, parsed = self.open(path, tx)
        try:
            spot = self.walk(parsed, view)
        except YtError as error:
            if error.code == RESOLVE:
                return False
            raise
        node = view.effective(spot.node)
        if is_attribute(spot.rest):
            return self.attributes.has(node, spot.rest)
        if spot.rest and node.type in ("document", "list_node"):
            return documents.exists(node.payload, spot.rest)
        return not spot.rest

    def list(
        self,
        path: str,
        *,
        tx: str | None = None,
        attributes: Any = None,
        max_size: int | None = None,
    ) -> Any:
        """Return the names of children, unordered; cut at `max_size` and marked incomplete then."""
        view, parsed = self.open(path, tx)
        spot = self.walk(parsed, view)
        node = view.effective(spot.node)
        if is_attribute(spot.rest):
            if not spot.rest[0]:
                return self.attributes.names(node)
            return _keys(self.attributes.get(node, spot.rest, path))
        if node.type in ("document", "list_node"):
            return _keys(documents.get(node.payload, spot.rest, path))
        if spot.rest:
            raise self.missing(parsed, spot)
        if not self._kinds[node.type].composite:
            raise YtError(UNSUPPORTED_METHOD, '"List" method is not supported')
        children = view.children(node)
        wanted = wanted_names(attributes)
        found: list[Any] = []
        for name, child in children.items():
            if max_size is not None and len(found) >= max_size:
                return yson.to_yson_type(found, attributes={"incomplete": True})
            if wanted:
                shown = self.attributes.read_named(view.effective(child), wanted)
                found.append(yson.to_yson_type(name, attributes=shown))
            else:
                found.append(name)
        return found

    def resolve(self, path: str, *, tx: str | None = None, follow: bool = True) -> Node:
        """Return the node at `path` as the transaction sees it.

        Links are followed, the last one only with `follow`. Raises YtError RESOLVE.
        """
        view, parsed = self.open(path, tx)
        return view.effective(self.node(parsed, view, follow=follow))

    def _tree(self, view: View, node: Node, wanted: Sequence[str], *, root: bool = False) -> Any:
        effective = view.effective(node)
        shown = self.attributes.read_named(effective, wanted) if wanted else {}
        value: Any = None
        if self._kinds[node.type].composite:
            if not root and effective.attributes.get("opaque"):
                return yson.to_yson_type(None, attributes={**shown, "opaque": True})
            value = {
                name: self._tree(view, child, wanted) for name, child in view.children(node).items()
            }
        elif node.type == "list_node" and "type" in wanted:
            value = _typed(effective.payload)
        elif node.type in SCALARS:
            value = _bare(effective.payload)
        elif node.type in VALUES:
            value = effective.payload
        return yson.to_yson_type(value, attributes=shown) if shown else value

    def _has_account(self, name: str) -> bool:
        return self.exists(f"//sys/accounts/{escape(name)}")

    # Finding

    def open(self, path: str, tx: str | None) -> tuple[View, Path]:
        """Return the view of a transaction, and the parsed path. Raises YtError."""
        try:
            transaction = self._transactions.find(tx)
        except YtError as error:
            raise YtError(
                RESOLVE, f"Error resolving path {path}", {"path": path}, [error]
            ) from None
        return View(self._kinds, transaction), parse(path)

    def walk(
        self,
        path: Path,
        view: View,
        *,
        follow: bool = True,
        depth: int = 0,
        trace: set[str] | None = None,
    ) -> Spot:
        """Follow a path as far as it leads, links included, the last one only with `follow`.

        `trace` takes the paths of the links, and of the place where each one leads.
        """
        node, steps = self._root_of(path, view), path.steps
        for position in range(len(steps) + 1):
            rest = steps[position:]
            if node.type == "link" and position not in path.raw and (rest or follow):
                node = self._target(node, view, depth, trace)
            if not rest or isinstance(rest[0], Attr) or not self._kinds[node.type].composite:
                return Spot(node, rest)
            child = view.child(node, rest[0])
            if child is None:
                return Spot(node, rest)
            node = child
        raise AssertionError("unreachable")

    def _root_of(self, path: Path, view: View) -> Node:
        if path.root == "/":
            return self._store.root
        node = self._store.nodes.get(path.root)
        if node is not None and view.visible(node):
            return node
        found = objects.find(self._transactions, path.root)
        if found is None:
            raise resolve(path.text, f"No such object {path.root}")
        return found

    def passed(self, target: str, view: View) -> set[str]:
        """Return the paths of the links on the way to a target, and of where the way ends."""
        trace: set[str] = set()
        with suppress(YtError):  # a link of a circle, or one that leads nowhere, ends the way
            trace.add(self.walk(parse(target), view, trace=trace).path)
        return trace

    def _target(self, link: Node, view: View, depth: int, trace: set[str] | None) -> Node:
        target = parse(view.payload(link))
        if depth > MAX_LINK_DEPTH:
            raise resolve(target.text, "Too many levels of symbolic links")
        if trace is not None:
            trace.add(link.path)
        spot = self.walk(target, view, depth=depth + 1, trace=trace)
        if trace is not None:
            trace.add(spot.path)
        if spot.rest:
            raise self.missing(target, spot)
        return spot.node

    def node(self, path: Path, view: View, *, follow: bool = True) -> Node:
        """Return the node at a path. Raises YtError RESOLVE."""
        spot = self.walk(path, view, follow=follow)
        if spot.rest:
            raise self.missing(path, spot)
        return spot.node

    def missing(self, path: Path, spot: Spot) -> YtError:
        """Return the error about a path that leads no farther than `spot`."""
        if not spot.rest:
            return resolve(path.text, f"Node {spot.node.path} is not what the path asks for")
        if not self._kinds[spot.node.type].composite:
            return resolve(path.text, f"Node {spot.node.path} cannot have children")
        name = escape(spot.rest[0])
        return resolve(path.text, f'Node {spot.node.path} has no child with key "{name}"')


def wanted_names(attributes: Any) -> list[str]:
    """Return the `attributes` option of get and list: a list of names, or {keys, paths}."""
    given = [attributes]
    if isinstance(attributes, dict):
        given = [attributes.get("keys"), attributes.get("paths")]
    names: list[str] = []
    for part in given:
        if part is not None and not isinstance(part, list):
            raise generic("Error parsing attribute filter: a list of names is expected")
        names += [] if part is None else part
    if not all(isinstance(name, str) for name in names):
        raise generic("Error parsing attribute filter: a name is a string")
    return [str(name).lstrip("/@") for name in names]


def _typed(value: Any) -> Any:
    """Return an item of a list node as a node with a type, which clients expect in a tree."""
    if isinstance(value, dict):
        items: Any = {name: _with_type(item) for name, item in value.items()}
    elif isinstance(value, list):
        items = [_with_type(item) for item in value]
    else:
        items = value
    return items


def _bare(value: Any) -> Any:
    """Return a value without the attributes that it was set with: these are the node's."""
    if getattr(value, "attributes", None):
        value = copy(value)
        value.attributes = {}
    return value


def _lock_mode(node: Node, transaction: Transaction) -> str:
    """Return the strongest mode in which a transaction has locked a node.

    Source: server test, integration/tests/master/test_locks.py::test_lock_mode_* ("@lock_mode").
    """
    held = [lock.request.mode for lock in node.locks if lock.transaction is transaction]
    return next((mode for mode in (EXCLUSIVE, SHARED, SNAPSHOT) if mode in held), "none")


def _with_type(value: Any) -> Any:
    type = "document" if value is None else type_of_value(value)
    return yson.to_yson_type(_typed(value), attributes={"type": type})


def _keys(value: Any) -> list[str]:
    if not isinstance(value, dict):
        raise YtError(UNSUPPORTED_METHOD, '"List" method is not supported')
    return list(value)

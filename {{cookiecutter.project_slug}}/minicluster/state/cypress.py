"""Cypress, the tree of nodes: every command that reads or changes it by path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yt import yson

from .. import ids
from ..errors import ALREADY_EXISTS, YtError, already_exists, generic, resolve
from ..ypath import Attr, Path, parse, parse_rich
from . import attributes as attrs
from . import locks, objects, values
from .branches import MISSING, Branch, View, freeze
from .files import File
from .locks import EXCLUSIVE, SHARED, Request
from .nodes import (
    KINDS,
    SCALARS,
    VALUES,
    Kind,
    Node,
    escape,
    expect,
    kind_of,
    type_of_value,
)

if TYPE_CHECKING:
    from .cluster import Cluster

MAX_LINK_DEPTH = 255
MAX_NAME_LENGTH = 4096
"""`max_map_node_key_length` of the master's default configuration."""
NOT_COMPOSITE_METHOD = 103


@dataclass(frozen=True, slots=True)
class Spot:
    """How far a path leads: the last node that exists, and the steps left from there."""

    node: Node
    rest: tuple[str, ...]


class Cypress:
    """`cluster.cypress`. Paths are str; `tx` is a master transaction's id; failures are YtError."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        now = cluster.clock.now()
        self.root = Node(ids.new(KINDS["map_node"].code), "map_node", None, "")
        self.root.created = self.root.modified = self.root.accessed = now
        self.nodes: dict[str, Node] = {self.root.id: self.root}

    # Reading

    def get(self, path: str, *, tx: str | None = None, attributes: Any = None) -> Any:
        """The value at `path`: a tree of maps for map nodes, an entity for what is no value.

        `attributes` names those that every node of the tree is to carry.
        """
        view, parsed = self._open(path, tx)
        spot = self._walk(parsed, view)
        node = view.effective(spot.node)
        if attrs.is_attribute(spot.rest):
            return attrs.get(self._cluster, node, spot.rest, path)
        if spot.rest:
            if node.type in ("document", "list_node"):
                return values.get(node.payload, spot.rest, path)
            raise self._missing(parsed, spot)
        node.accessed = self._cluster.clock.now()
        return self._tree(view, spot.node, wanted_names(attributes), root=True)

    def exists(self, path: str, *, tx: str | None = None) -> bool:
        view, parsed = self._open(path, tx)
        try:
            spot = self._walk(parsed, view)
        except YtError as error:
            if error.code == 500:
                return False
            raise
        node = view.effective(spot.node)
        if attrs.is_attribute(spot.rest):
            return attrs.has(self._cluster, node, spot.rest)
        if spot.rest and node.type in ("document", "list_node"):
            return values.exists(node.payload, spot.rest)
        return not spot.rest

    def list(
        self,
        path: str,
        *,
        tx: str | None = None,
        attributes: Any = None,
        max_size: int | None = None,
    ) -> Any:
        """Names of children, in no promised order; cut at `max_size` and then marked incomplete."""
        view, parsed = self._open(path, tx)
        spot = self._walk(parsed, view)
        node = view.effective(spot.node)
        if attrs.is_attribute(spot.rest):
            if not spot.rest[0]:
                return attrs.names(self._cluster, node)
            return self._keys(attrs.get(self._cluster, node, spot.rest, path))
        if node.type in ("document", "list_node"):
            return self._keys(values.get(node.payload, spot.rest, path))
        if spot.rest:
            raise self._missing(parsed, spot)
        if not kind_of(node).composite:
            raise YtError(NOT_COMPOSITE_METHOD, '"List" method is not supported')
        children = view.children(node)
        wanted = wanted_names(attributes)
        found: list[Any] = []
        for name, child in children.items():
            if max_size is not None and len(found) >= max_size:
                return yson.to_yson_type(found, attributes={"incomplete": True})
            if wanted:
                shown = attrs.read_named(self._cluster, view.effective(child), wanted)
                found.append(yson.to_yson_type(name, attributes=shown))
            else:
                found.append(name)
        return found

    def resolve(self, path: str, *, tx: str | None = None, follow: bool = True) -> Node:
        """The node at `path` as the transaction sees it.

        Links are followed, the last one only with `follow`. Raises: YtError 500.
        """
        view, parsed = self._open(path, tx)
        return view.effective(self._node(parsed, view, follow=follow))

    # Changing values and attributes

    def set(
        self,
        path: str,
        value: Any,
        *,
        tx: str | None = None,
        recursive: bool = False,
        force: bool = False,
    ) -> None:
        """Sets an attribute, a part of a document, or a node of a plain value."""
        view, parsed = self._open(path, tx)
        spot = self._walk(parsed, view)
        node = spot.node
        if attrs.is_attribute(spot.rest):
            self._set_attribute(view, node, spot.rest, value, path, recursive=recursive)
        elif node.type in ("document", "list_node"):
            old = view.payload(node)
            new = values.replaced(old, spot.rest, value, path, recursive=recursive)
            self._set_payload(view, node, new)
        elif spot.rest:
            self._check_insertion(parsed, spot, recursive=recursive)
            self._insert(view, spot, self._value_node(spot.rest[-1], value))
        elif node.type in SCALARS:
            self._set_payload(view, node, _scalar(node, value))
        elif node.type == "map_node":
            if not force:
                raise generic('Command "set" is forbidden in Cypress, use "create" instead')
            self._set_map(view, node, value)
        else:
            raise YtError(NOT_COMPOSITE_METHOD, '"Set" method is not supported')

    def multiset_attributes(self, path: str, given: dict[str, Any], *, tx: str | None = None) -> None:
        """Sets several attributes of one node, or none of them."""
        view, parsed = self._open(path.removesuffix("/@"), tx)
        node = self._node(parsed, view)
        effective = view.effective(node)
        for name, value in given.items():
            attrs.prepare(self._cluster, effective, [name], value, path, recursive=False)
            self._claim(view, node, Request(SHARED, attribute_key=name))
        for name, value in given.items():
            self._set_attribute(view, node, [Attr(name)], value, path, recursive=False)

    def remove(
        self, path: str, *, tx: str | None = None, recursive: bool = False, force: bool = False
    ) -> None:
        """Removes a node (a link itself, not its target), an attribute, or a part of a document."""
        view, parsed = self._open(path, tx)
        try:
            spot = self._walk(parsed, view, follow=parsed.star)
        except YtError as error:
            if force and error.code == 500:
                return
            raise
        node = spot.node
        if parsed.star and not spot.rest:
            self._remove_children(view, node)
        elif attrs.is_attribute(spot.rest):
            self._remove_attribute(view, node, spot.rest, path, force=force)
        elif spot.rest and node.type in ("document", "list_node"):
            if force and not values.exists(view.payload(node), spot.rest):
                return
            self._set_payload(view, node, values.removed(view.payload(node), spot.rest, path))
        elif spot.rest:
            if not force:
                raise self._missing(parsed, spot)
        elif node.parent is None:
            raise generic("Root node cannot be removed")
        else:
            if kind_of(node).composite and view.children(node) and not recursive:
                raise generic("Cannot remove non-empty composite node")
            self._detach(view, node)

    # Making, copying and moving nodes

    def create(
        self,
        type: str,
        path: str,
        *,
        tx: str | None = None,
        attributes: dict[str, Any] | None = None,
        recursive: bool = False,
        ignore_existing: bool = False,
        force: bool = False,
        lock_existing: bool = False,
        ignore_type_mismatch: bool = False,
    ) -> str:
        """The id of the new node, or with `ignore_existing` of the one that is there."""
        kind = KINDS[attrs.known_type(type)]
        view, parsed = self._open(path, tx)
        spot = self._walk(parsed, view, follow=False)
        if not spot.rest and not force:
            if not ignore_existing:
                raise already_exists(spot.node.path)
            if spot.node.type != kind.stored_as and not ignore_type_mismatch:
                raise YtError(
                    ALREADY_EXISTS,
                    f'{spot.node.path} already exists and has type "{spot.node.type}" while node '
                    f'of "{kind.stored_as}" type is about to be created',
                )
            if lock_existing:
                self._claim(view, spot.node, Request(EXCLUSIVE))
            return spot.node.id
        self._check_insertion(parsed, spot, recursive=recursive)
        node = self._make(kind, (spot.rest or (spot.node.name,))[-1], dict(attributes or {}))
        self._insert(view, spot, node)
        return node.id

    def link(
        self,
        target: str,
        path: str,
        *,
        tx: str | None = None,
        attributes: dict[str, Any] | None = None,
        recursive: bool = False,
        ignore_existing: bool = False,
        force: bool = False,
        lock_existing: bool = False,
    ) -> str:
        """Makes a symbolic link at `path`; its target must exist unless `force` is given."""
        if not force and not self.exists(target, tx=tx):
            view, parsed = self._open(target, tx)
            raise self._missing(parsed, self._walk(parsed, view))
        return self.create(
            "link",
            path,
            tx=tx,
            attributes={**(attributes or {}), "target_path": target},
            recursive=recursive,
            ignore_existing=ignore_existing,
            force=force,
            lock_existing=lock_existing,
        )

    def copy(self, source: str, destination: str, *, tx: str | None = None, **options: Any) -> str:
        """The id of the clone. Options: recursive, force, ignore_existing, lock_existing,
        preserve_{account,owner,creation_time,modification_time}."""
        return self._clone(source, destination, tx, move=False, **options)

    def move(self, source: str, destination: str, *, tx: str | None = None, **options: Any) -> str:
        """Like `copy`, and the source is removed; the moved node has a new id, as in YT."""
        return self._clone(source, destination, tx, move=True, **options)

    def _clone(
        self,
        source: str,
        destination: str,
        tx: str | None,
        *,
        move: bool,
        recursive: bool = False,
        force: bool = False,
        ignore_existing: bool = False,
        lock_existing: bool = False,
        **preserve: bool,
    ) -> str:
        view, parsed = self._open(source, tx)
        # A move takes the link itself, since that is what disappears (model).
        original = self._node(parsed, view, follow=not move)
        target = parse(destination)
        spot = self._walk(target, view, follow=False)
        if not spot.rest:
            if ignore_existing and not force:
                if lock_existing:
                    self._claim(view, spot.node, Request(EXCLUSIVE))
                return spot.node.id
            if not force:
                raise already_exists(spot.node.path)
        if original.parent is None:
            raise generic("Cannot copy or move the root")
        parent = spot.node if spot.rest else spot.node.parent
        if _inside(parent, original) or (not spot.rest and _inside(original, spot.node)):
            raise generic("Cannot copy or move a node to its descendant or ancestor")
        self._check_insertion(target, spot, recursive=recursive)
        name = (spot.rest or (spot.node.name,))[-1]
        clone = self._copy_tree(view, original, name, move, preserve)
        if move:
            assert original.parent is not None
            self._claim_subtree(view, original)
            self._claim(view, original.parent, Request(SHARED, child_key=original.name))
        self._insert(view, spot, clone)
        if move:
            self._detach(view, original)
        return clone.id

    def _copy_tree(
        self, view: View, original: Node, name: str, move: bool, preserve: dict[str, bool]
    ) -> Node:
        source = view.effective(original)
        now = self._cluster.clock.now()
        kind = kind_of(source)
        node = Node(
            ids.new(kind.code),
            source.type,
            None,
            name,
            dict(source.attributes),
            kind.copy(self._cluster, source, move),
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
                clone = self._copy_tree(view, child, key, move, preserve)
                clone.parent, node.children[key] = node, clone
        return node

    # Locks

    def lock(
        self,
        path: str,
        mode: str = EXCLUSIVE,
        *,
        tx: str | None,
        waitable: bool = False,
        child_key: str | None = None,
        attribute_key: str | None = None,
    ) -> dict[str, Any]:
        """{lock_id, node_id, revision}; a waitable lock that has to wait has revision 0."""
        view, parsed = self._open(path, tx)
        transaction = view.transaction
        if transaction is None:
            raise generic("A valid master transaction is required")
        node = self._node(parsed, view)
        request = Request(mode, child_key, attribute_key)
        frozen = freeze(view, node) if mode == locks.SNAPSHOT else None
        lock = locks.take(
            node, transaction, request, self._cluster.clock.now(), waitable=waitable
        )
        if frozen is not None:
            self._cluster.transactions.branch(transaction, node).frozen = frozen
        return {
            "lock_id": lock.id,
            "node_id": node.id,
            "revision": node.revision if lock.state == locks.ACQUIRED else 0,
        }

    def unlock(self, path: str, *, tx: str | None) -> None:
        """Gives back the explicit locks, acquired and pending, that a transaction has on a node."""
        view, parsed = self._open(path, tx)
        if view.transaction is None:
            raise generic("A valid master transaction is required")
        node = self._node(parsed, view)
        branch = view.transaction.branches.get(node.id)
        if branch is not None and branch.changed:
            raise generic(f"Node {node.path} is modified by transaction and cannot be unlocked")
        for lock in [lock for lock in node.locks if lock.transaction is view.transaction]:
            if not lock.implicit:
                locks.release(lock)
        view.transaction.branches.pop(node.id, None)
        self.serve_lock_queues([node])

    def serve_lock_queues(self, nodes: Iterable[Node]) -> None:
        """Grants what has become free; lets go of removed nodes that only locks kept."""
        now = self._cluster.clock.now()
        for node in nodes:
            locks.serve_queue(node, now)
            if not node.locks and not self._attached(node):
                self.forget(node)

    # Files

    def read_file(
        self, path: str, *, tx: str | None = None, offset: int = 0, length: int | None = None
    ) -> bytes:
        view, parsed = self._open(parse_rich(path).path, tx)
        node = view.effective(self._node(parsed, view))
        expect(node, path, "file")
        if offset < 0 or (length is not None and length < 0):
            raise generic("Offset and length cannot be negative")
        data: bytes = node.payload.data
        return data[offset : None if length is None else offset + length]

    def write_file(
        self,
        path: str,
        data: bytes,
        *,
        tx: str | None = None,
        append: bool = False,
        compute_md5: bool = False,
    ) -> None:
        """Replaces the content of a file that exists, or appends (also by `<append=%true>` in path)."""
        rich = parse_rich(path)
        view, parsed = self._open(rich.path, tx)
        node = self._node(parsed, view)
        expect(node, rich.path, "file")
        if append or rich.attributes.get("append"):
            data = view.payload(node).data + data
        self._set_payload(view, node, File.of(data, compute_md5))

    def set_payload(self, path: str, payload: Any, *, tx: str | None = None) -> None:
        """Replaces what a node holds, isolated in `tx` and under the exclusive lock."""
        view, parsed = self._open(path, tx)
        self._set_payload(view, self._node(parsed, view), payload)

    # Finding nodes

    def _open(self, path: str, tx: str | None) -> tuple[View, Path]:
        transaction = self._cluster.transactions.find(tx)
        return View(self._cluster, transaction), parse(path)

    def _walk(self, path: Path, view: View, *, follow: bool = True, depth: int = 0) -> Spot:
        node, steps = self._root_of(path, view), path.steps
        for position in range(len(steps) + 1):
            rest = steps[position:]
            if node.type == "link" and position not in path.raw and (rest or follow):
                node = self._target(node, view, depth)
            if not rest or isinstance(rest[0], Attr) or not kind_of(node).composite:
                return Spot(node, rest)
            child = view.child(node, rest[0])
            if child is None:
                return Spot(node, rest)
            node = child
        raise AssertionError("unreachable")

    def _root_of(self, path: Path, view: View) -> Node:
        if path.root == "/":
            return self.root
        node = self.nodes.get(path.root)
        if node is not None and view.visible(node):
            return node
        found = objects.find(self._cluster, path.root)
        if found is None:
            raise resolve(path.text, f"No such object {path.root}")
        return found

    def _target(self, link: Node, view: View, depth: int) -> Node:
        target = parse(view.payload(link))
        if depth > MAX_LINK_DEPTH:
            raise resolve(target.text, "Too many levels of symbolic links")
        spot = self._walk(target, view, depth=depth + 1)
        if spot.rest:
            raise self._missing(target, spot)
        return spot.node

    def _node(self, path: Path, view: View, *, follow: bool = True) -> Node:
        spot = self._walk(path, view, follow=follow)
        if spot.rest:
            raise self._missing(path, spot)
        return spot.node

    @staticmethod
    def _missing(path: Path, spot: Spot) -> YtError:
        if not spot.rest:
            return resolve(path.text, f"Node {spot.node.path} is not what the path asks for")
        if not kind_of(spot.node).composite:
            return resolve(path.text, f"Node {spot.node.path} cannot have children")
        name = escape(spot.rest[0])
        return resolve(path.text, f'Node {spot.node.path} has no child with key "{name}"')

    # What the public methods are made of

    def _tree(self, view: View, node: Node, wanted: Sequence[str], *, root: bool = False) -> Any:
        effective = view.effective(node)
        shown = attrs.read_named(self._cluster, effective, wanted) if wanted else {}
        value: Any = None
        if kind_of(node).composite:
            if not root and effective.attributes.get("opaque"):
                return yson.to_yson_type(None, attributes={**shown, "opaque": True})
            value = {
                name: self._tree(view, child, wanted)
                for name, child in view.children(node).items()
            }
        elif node.type in VALUES:
            value = effective.payload
        return yson.to_yson_type(value, attributes=shown) if shown else value

    @staticmethod
    def _keys(value: Any) -> list[str]:
        if not isinstance(value, dict):
            raise YtError(NOT_COMPOSITE_METHOD, '"List" method is not supported')
        return list(value)

    def _claim(self, view: View, node: Node, request: Request) -> None:
        """Takes the lock that a change needs; outside a transaction checks that nobody has it."""
        if kind_of(node).virtual is not None:
            raise generic(f"Node {node.path} cannot be changed")
        if view.transaction is None:
            locks.check(node, None, request)
        else:
            now = self._cluster.clock.now()
            locks.take(node, view.transaction, request, now, implicit=True)

    def _claim_subtree(self, view: View, node: Node) -> None:
        for below in view.walk(node):
            self._claim(view, below, Request(EXCLUSIVE))

    @contextmanager
    def _change(self, view: View, node: Node, request: Request) -> Iterator[Branch]:
        """The branch to put a change of `node` into; outside a transaction it is applied at once."""
        self._claim(view, node, request)
        if view.transaction is None:
            branch = Branch(node)
        else:
            branch = self._cluster.transactions.branch(view.transaction, node)
        yield branch
        branch.modified = self._cluster.clock.now()
        branch.revision = self._cluster.next_revision()
        if view.transaction is None:
            branch.apply()

    def _set_payload(self, view: View, node: Node, payload: Any) -> None:
        with self._change(view, node, Request(EXCLUSIVE)) as branch:
            branch.payload = payload

    def _set_attribute(
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
        name, whole = attrs.prepare(
            self._cluster, effective, steps, value, path, recursive=recursive
        )
        request = Request(SHARED, attribute_key=name)
        with self._change(view, node, request) as branch:
            if not attrs.set_builtin(self._cluster, view, node, name, whole):
                branch.attributes[name] = whole

    def _set_all_attributes(self, view: View, node: Node, value: Any) -> None:
        if not isinstance(value, dict):
            raise generic("Attributes are set from a map")
        effective = view.effective(node)
        for name in value:
            attrs.prepare(self._cluster, effective, [name], value[name], node.path, recursive=False)
        with self._change(view, node, Request(EXCLUSIVE)) as branch:
            branch.attributes.update(dict.fromkeys(effective.attributes, MISSING))
            for name, item in value.items():
                if not attrs.set_builtin(self._cluster, view, node, name, item):
                    branch.attributes[name] = item

    def _remove_attribute(
        self, view: View, node: Node, steps: Sequence[str], path: str, *, force: bool
    ) -> None:
        effective = view.effective(node)
        name, rest = str(steps[0]), steps[1:]
        if name and attrs.getter(node, name) is not None:
            raise generic(f'Builtin attribute "{name}" cannot be removed')
        if name and name not in effective.attributes:
            if force:
                return
            raise resolve(path, f'Attribute "{name}" is not found')
        with self._change(view, node, Request(SHARED, attribute_key=name or None)) as branch:
            if not name:
                branch.attributes.update(dict.fromkeys(effective.attributes, MISSING))
            elif rest:
                branch.attributes[name] = values.removed(effective.attributes[name], rest, path)
            else:
                branch.attributes[name] = MISSING

    def _check_insertion(self, path: Path, spot: Spot, *, recursive: bool) -> None:
        """Whether a node may be made where the path leads."""
        if any(isinstance(step, Attr) for step in spot.rest) or path.star:
            raise generic(f"Path {path.text} does not name a node")
        if not spot.rest:
            if spot.node.parent is None:
                raise generic("Root node cannot be replaced")
            return
        if not kind_of(spot.node).composite or (len(spot.rest) > 1 and not recursive):
            raise self._missing(path, spot)
        for name in spot.rest:
            if len(name.encode()) > MAX_NAME_LENGTH:
                raise generic(f"Map node cannot contain items with key longer than {MAX_NAME_LENGTH}")

    def _make(self, kind: Kind, name: str, given: dict[str, Any]) -> Node:
        """A node that is not in the tree yet."""
        now = self._cluster.clock.now()
        payload = kind.create(self._cluster, given)
        type = kind.stored_as
        # Tablet cells are listed under their ids.
        identifier = name if type == "tablet_cell" else ids.new(KINDS[type].code)
        node = Node(identifier, type, None, name, payload=payload)
        node.created = node.modified = node.accessed = now
        attrs.initial(self._cluster, node, given)
        return node

    def _value_node(self, name: str, value: Any) -> Node:
        node = self._make(KINDS[type_of_value(value)], name, {})
        node.attributes.update(getattr(value, "attributes", None) or {})
        if node.type == "map_node":
            for key, item in value.items():
                child = self._value_node(key, item)
                child.parent, node.children[key] = node, child
        else:
            node.payload = value
        return node

    def _set_map(self, view: View, node: Node, value: Any) -> None:
        if not isinstance(value, dict):
            raise generic(f'Cannot set "{node.type}" node {node.path} from another type')
        made = {name: self._value_node(name, item) for name, item in value.items()}
        self._remove_children(view, node)
        for name, child in made.items():
            self._insert(view, Spot(node, (name,)), child)

    def _insert(self, view: View, spot: Spot, node: Node) -> None:
        """Puts a new node where `spot` says, with the map nodes that are missing on the way."""
        if spot.rest:
            parent = spot.node
            for name in reversed(spot.rest[:-1]):
                between = self._make(KINDS["map_node"], name, {})
                between.children[node.name] = node
                node.parent, node = between, between
        else:
            assert spot.node.parent is not None
            parent = spot.node.parent
            self._claim_subtree(view, spot.node)
        with self._change(view, parent, Request(SHARED, child_key=node.name)) as branch:
            node.parent = parent
            branch.children[node.name] = node
            self._adopt(view, node)
        if not spot.rest and view.transaction is None:
            self.destroy(spot.node)

    def _adopt(self, view: View, node: Node) -> None:
        """Makes a new subtree known; in a transaction it belongs to that one alone."""
        node.revision = node.attribute_revision = node.content_revision = (
            self._cluster.next_revision()
        )
        self.nodes[node.id] = node
        if view.transaction is not None:
            node.made_in = view.transaction.id
            view.transaction.made.append(node)
            self._claim(view, node, Request(EXCLUSIVE))
        for child in node.children.values():
            self._adopt(view, child)

    def _detach(self, view: View, node: Node) -> None:
        assert node.parent is not None
        self._claim_subtree(view, node)
        with self._change(view, node.parent, Request(SHARED, child_key=node.name)) as branch:
            branch.children[node.name] = None
        if view.transaction is None:
            self.destroy(node)

    def _remove_children(self, view: View, node: Node) -> None:
        children = list(view.children(node).values())
        for child in children:
            self._claim_subtree(view, child)
        for child in children:
            self._detach(view, child)

    # The life of nodes

    def destroy(self, node: Node) -> None:
        """Lets go of a subtree that was taken out of the tree; snapshot locks keep their nodes."""
        for child in node.children.values():
            self.destroy(child)
        for lock in list(node.locks):
            if lock.state == locks.PENDING:
                locks.release(lock)
        if not node.locks:
            self.forget(node)

    def forget(self, node: Node) -> None:
        self.nodes.pop(node.id, None)

    def _attached(self, node: Node) -> bool:
        while node.parent is not None:
            if node.made_in is None and node.parent.children.get(node.name) is not node:
                return False
            node = node.parent
        return node is self.root


def wanted_names(attributes: Any) -> list[str]:
    """The `attributes` option of get and list: a list of names, or {keys, paths}."""
    if not attributes:
        return []
    if isinstance(attributes, dict):
        attributes = [*(attributes.get("keys") or ()), *(attributes.get("paths") or ())]
    return [str(name).lstrip("/@") for name in attributes]


def _scalar(node: Node, value: Any) -> Any:
    """Numbers convert into each other's nodes when nothing is lost; all else must match."""
    given = type_of_value(value)
    if given == node.type:
        return value
    if node.type == "uint64_node" and given == "int64_node" and value >= 0:
        return yson.YsonUint64(value)
    if node.type == "int64_node" and given == "uint64_node" and value < 1 << 63:
        return int(value)
    if node.type == "double_node" and given in ("int64_node", "uint64_node"):
        return float(value)
    raise generic(
        f'Cannot update {node.path}: expected "{node.type}", actual "{given}"',
    )


def _inside(node: Node | None, tree: Node) -> bool:
    while node is not None:
        if node is tree:
            return True
        node = node.parent
    return False

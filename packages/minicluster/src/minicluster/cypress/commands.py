"""`cluster.cypress`: the commands on nodes, attributes, locks and files."""

from __future__ import annotations

from typing import Any

from ..core.clock import Clock
from ..core.errors import ALREADY_EXISTS, RESOLVE, YtError, already_exists, generic
from . import documents, locks
from .attributes import is_attribute
from .editing import Editor, scalar
from .files import File
from .kinds import INHERITED, SCALARS, Kind, Kinds, expect
from .model import ACQUIRED, EXCLUSIVE, SHARED, SNAPSHOT, Addition, Node, Request
from .reading import UNSUPPORTED_METHOD, Spot, Tree
from .store import Store
from .transactions import Transactions
from .view import View
from .ypath import parse, parse_rich


class Cypress:
    """Paths are str; `tx` is a master transaction's id; all failures are YtError.

    `get`, `list`, `exists` and `resolve` are those of the Tree.
    """

    def __init__(
        self, clock: Clock, kinds: Kinds, store: Store, transactions: Transactions
    ) -> None:
        self._clock = clock
        self._kinds = kinds
        self._store = store
        self._transactions = transactions
        self._tree = tree = Tree(clock, kinds, store, transactions)
        self._editor = Editor(clock, kinds, store, tree)
        self.get = tree.get
        self.list = tree.list
        self.exists = tree.exists
        self.resolve = tree.resolve

    @property
    def nodes(self) -> dict[str, Node]:
        """Every node by its id."""
        return self._store.nodes

    # Values and attributes

    def set(
        self,
        path: str,
        value: Any,
        *,
        tx: str | None = None,
        recursive: bool = False,
        force: bool = False,
    ) -> None:
        """Set an attribute, a part of a document, or a node with a plain value."""
        view, parsed = self._tree.open(path, tx)
        spot = self._tree.walk(parsed, view)
        node = spot.node
        if is_attribute(spot.rest):
            self._editor.set_attribute(view, node, spot.rest, value, path, recursive=recursive)
        elif node.type in ("document", "list_node"):
            old = view.payload(node)
            new = documents.replaced(old, spot.rest, value, path, recursive=recursive)
            self._editor.set_payload(view, node, new)
        elif spot.rest:
            self._editor.check_insertion(parsed, spot, recursive=recursive)
            self._editor.insert(view, spot, self._editor.value_node(spot.rest[-1], value))
        elif node.type in SCALARS:
            self._editor.set_payload(view, node, scalar(node, value))
        elif node.type == "map_node":
            if not force:
                raise generic(
                    '"set" command without "force" flag is forbidden; use "create" instead'
                )
            self._editor.set_map(view, node, value)
        else:
            raise YtError(UNSUPPORTED_METHOD, '"Set" method is not supported')

    def multiset_attributes(
        self, path: str, given: dict[str, Any], *, tx: str | None = None
    ) -> None:
        """Set several attributes of one node, or none of them."""
        if not path.endswith("/@"):
            # server/master/cypress_server/node_proxy_detail.cpp, MultisetAttributes
            raise generic(f'Path {path} of "multiset_attributes" must end with "/@"')
        view, parsed = self._tree.open(path.removesuffix("/@"), tx)
        node = self._tree.node(parsed, view)
        effective = view.effective(node)
        documents.require_map(given)
        for name, value in given.items():
            self._tree.attributes.prepare(effective, [name], value, path, recursive=False)
        if not given:
            return
        with self._editor.change(
            view, node, Request(SHARED, attribute_key=next(iter(given)))
        ) as branch:
            for name, value in given.items():
                self._editor.claim(view, node, Request(SHARED, attribute_key=name))
                if not self._tree.attributes.set_builtin(view, node, name, value):
                    branch.attributes[name] = value

    def remove(
        self, path: str, *, tx: str | None = None, recursive: bool = False, force: bool = False
    ) -> None:
        """Remove a node (a link itself, not its target), an attribute, or a part of a document."""
        view, parsed = self._tree.open(path, tx)
        try:
            spot = self._tree.walk(parsed, view, follow=parsed.star)
        except YtError as error:
            if force and error.code == RESOLVE:
                return
            raise
        node = spot.node
        if parsed.star and not spot.rest:
            self._editor.remove_children(view, node)
        elif is_attribute(spot.rest):
            self._editor.remove_attribute(view, node, spot.rest, path, force=force)
        elif spot.rest and node.type in ("document", "list_node"):
            if force and not documents.exists(view.payload(node), spot.rest):
                return
            self._editor.set_payload(
                view, node, documents.removed(view.payload(node), spot.rest, path)
            )
        elif spot.rest:
            if not force:
                raise self._tree.missing(parsed, spot)
        elif node.parent is None:
            raise generic("Node / cannot be removed")
        else:
            if self._kinds[node.type].composite and view.children(node) and not recursive:
                raise generic("Cannot remove non-empty composite node")
            self._editor.detach(view, node)

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
        """Return the id of the new node or, with `ignore_existing`, of the one that is there."""
        kind = self._kinds.named(type)
        view, parsed = self._tree.open(path, tx)
        spot = self._tree.walk(parsed, view, follow=False)
        if not spot.rest and not force:
            if not ignore_existing:
                raise already_exists(spot.node.path)
            if spot.node.type != kind.stored_type and not ignore_type_mismatch:
                raise YtError(
                    ALREADY_EXISTS,
                    f'{spot.node.path} already exists and has type "{spot.node.type}" while node '
                    f'of "{kind.stored_type}" type is about to be created',
                )
            if lock_existing:
                self._editor.claim(view, spot.node, Request(EXCLUSIVE))
            return spot.node.id
        self._editor.check_insertion(parsed, spot, recursive=recursive)
        if type == "link":
            self._refuse_circle(spot, (attributes or {}).get("target_path"), view)
        parent = spot.node if spot.rest else spot.node.parent
        given = {**self._inherited(kind, view, parent), **(attributes or {})}
        node = self._editor.make(kind, (spot.rest or (spot.node.name,))[-1], given)
        self._editor.insert(view, spot, node)
        return node.id

    def _inherited(self, kind: Kind, view: View, parent: Node | None) -> dict[str, Any]:
        """Return the settings of a table or file that the folders above it have.

        Source: server/master/cypress_server/node_detail.cpp, TInheritedAttributes.
        """
        found: dict[str, Any] = {}
        while parent is not None:
            above = view.effective(parent).attributes
            for name in INHERITED & above.keys() & kind.settable.keys():
                found.setdefault(name, above[name])
            parent = parent.parent
        return found

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
        """Make a symbolic link at `path`; its target must exist unless `force` is given."""
        if not force and not self.exists(target, tx=tx):
            view, parsed = self._tree.open(target, tx)
            raise self._tree.missing(parsed, self._tree.walk(parsed, view))
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

    def _refuse_circle(self, spot: Spot, target: Any, view: View) -> None:
        """Raise YtError if the way to a link's target leads through the link itself."""
        if isinstance(target, str) and spot.path in self._tree.passed(target, view):
            raise generic(
                "Failed to create link: link is cyclic", target_path=str(target), path=spot.path
            )

    def copy(self, source: str, destination: str, *, tx: str | None = None, **options: Any) -> str:
        """Copy a node and return the id of the clone.

        Options: recursive, force, ignore_existing, lock_existing,
        preserve_{account,owner,acl,creation_time,modification_time,expiration_time,
        expiration_timeout}.
        """
        return self._clone(source, destination, tx, move=False, **options)

    def move(self, source: str, destination: str, *, tx: str | None = None, **options: Any) -> str:
        """Copy a node and remove the source; the moved node has a new id, as in YT."""
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
        if ignore_existing and force:
            # server/master/cypress_server/node_proxy_detail.cpp, Copy
            raise generic(
                'Cannot specify both "ignore_existing" and "force" options simultaneously'
            )
        view, parsed = self._tree.open(source, tx)
        # A move takes the link itself, since that is what disappears (model).
        original = self._tree.node(parsed, view, follow=not move)
        target = parse(destination)
        spot = self._tree.walk(target, view, follow=False)
        if not spot.rest:
            if ignore_existing:
                if lock_existing:
                    self._editor.claim(view, spot.node, Request(EXCLUSIVE))
                return spot.node.id
            if not force:
                raise already_exists(spot.node.path)
        if original.parent is None:
            raise generic("Cannot copy or move the root")
        _require_apart(original, spot)
        self._editor.check_insertion(target, spot, recursive=recursive)
        name = (spot.rest or (spot.node.name,))[-1]
        clone = self._editor.copy_tree(view, original, name, move, preserve)
        if move:
            assert original.parent is not None
            self._editor.claim_subtree(view, original)
            self._editor.claim(view, original.parent, Request(SHARED, child_key=original.name))
        self._editor.insert(view, spot, clone)
        if move:
            self._editor.detach(view, original)
        return clone.id

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
        """Return {lock_id, node_id, revision}; the revision of a lock that has to wait is 0."""
        view, parsed = self._tree.open(path, tx)
        transaction = view.transaction
        if transaction is None:
            raise generic("A valid master transaction is required")
        node = self._tree.node(parsed, view)
        request = Request(mode, child_key, attribute_key)
        frozen = view.freeze(node) if mode == SNAPSHOT else None
        lock = locks.take(node, transaction, request, self._clock.now(), waitable=waitable)
        if frozen is not None:
            self._transactions.branch(transaction, node).frozen = frozen
        return {
            "lock_id": lock.id,
            "node_id": node.id,
            "revision": node.revision if lock.state == ACQUIRED else 0,
        }

    def unlock(self, path: str, *, tx: str | None) -> None:
        """Release the explicit locks, acquired and pending, that a transaction has on a node."""
        view, parsed = self._tree.open(path, tx)
        if view.transaction is None:
            raise generic("A valid master transaction is required")
        node = self._tree.node(parsed, view)
        branch = view.transaction.branches.get(node.id)
        if branch is not None and branch.changed:
            raise generic(
                f'Node #{node.id} is modified by transaction "{tx}" and cannot be unlocked'
            )
        for lock in [lock for lock in node.locks if lock.transaction is view.transaction]:
            if not lock.implicit:
                locks.release(lock)
        view.transaction.branches.pop(node.id, None)
        self._store.serve_lock_queues([node])

    def canonical(self, path: str) -> str:
        """Return the path of the object, symlinks followed; `path` if there is no object."""
        try:
            return str(self.resolve(path).path)
        except YtError:
            return path

    # Files and other payloads

    def read_file(
        self, path: str, *, tx: str | None = None, offset: int = 0, length: int | None = None
    ) -> bytes:
        view, parsed = self._tree.open(parse_rich(path).path, tx)
        node = view.effective(self._tree.node(parsed, view))
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
        """Replace the content of an existing file; append with `append` or `<append=%true>`."""
        rich = parse_rich(path)
        view, parsed = self._tree.open(rich.path, tx)
        node = self._tree.node(parsed, view)
        expect(node, rich.path, "file")
        if append or rich.attributes.get("append"):
            data = view.payload(node).data + data
        self._editor.set_payload(view, node, File.of(data, compute_md5))

    def set_payload(self, path: str, payload: Any, *, tx: str | None = None) -> None:
        """Replace the content of a node, isolated in `tx` and under the exclusive lock."""
        view, parsed = self._tree.open(path, tx)
        self._editor.set_payload(view, self._tree.node(parsed, view), payload)

    def add_payload(self, path: str, addition: Addition, *, tx: str | None = None) -> None:
        """Add to the content of a node, isolated in `tx` and under a shared lock."""
        view, parsed = self._tree.open(path, tx)
        self._editor.add_payload(view, self._tree.node(parsed, view), addition)


def _require_apart(source: Node, spot: Spot) -> None:
    """Raise YtError for a copy into what is copied.

    Source: server/master/cypress_server/node_proxy_detail.cpp, CopyImpl.
    """
    if spot.node is source:
        raise generic("Cannot copy or move a node to itself")
    if _inside(spot.node, source):
        raise generic("Cannot copy or move a node to its descendant")
    if not spot.rest and _inside(source, spot.node):
        raise generic("Cannot copy or move a node to its ancestor")  # model: a cluster does it


def _inside(node: Node | None, tree: Node) -> bool:
    while node is not None:
        if node is tree:
            return True
        node = node.parent
    return False

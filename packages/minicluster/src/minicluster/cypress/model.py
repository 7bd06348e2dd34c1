"""The data of Cypress: nodes, locks, master transactions, and what a transaction has changed.

They refer to each other, so they are declared in one place; the rules about them are elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from ..core.errors import generic

ADMIN = "root"
DEFAULT_ACCOUNT = "default"

SNAPSHOT, SHARED, EXCLUSIVE = "snapshot", "shared", "exclusive"
MODES = (SNAPSHOT, SHARED, EXCLUSIVE)
ACQUIRED, PENDING = "acquired", "pending"


class _Missing:
    """A singleton that survives pickling: "no such value", where None is a value."""

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


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
    touched: float = 0.0
    """When it or an attribute was last read: `expiration_timeout` counts from there."""
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


def escape(name: str) -> str:
    """Return a child's name in the form it has in a path (documentation, "YPath")."""
    return "".join(f"\\{char}" if char in "/@&*[{\\" else char for char in name)


@dataclass(frozen=True, slots=True)
class Request:
    """A wanted lock: on a node, or on one child's name or one attribute's name of it."""

    mode: str
    child_key: str | None = None
    attribute_key: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise generic(f'Error parsing lock mode "{self.mode}"')
        if (self.child_key or self.attribute_key) and self.mode != SHARED:
            raise generic("Only shared locks are allowed to have keys")
        if self.child_key and self.attribute_key:
            raise generic('Cannot specify both "child_key" and "attribute_key"')

    def collides(self, held: Request) -> bool:
        """Return whether two unrelated transactions cannot have both."""
        if SNAPSHOT in (self.mode, held.mode):
            return False
        if EXCLUSIVE in (self.mode, held.mode):
            return True
        return (self.child_key is not None and self.child_key == held.child_key) or (
            self.attribute_key is not None and self.attribute_key == held.attribute_key
        )

    def covers(self, wanted: Request) -> bool:
        """Return whether a transaction with this lock needs no other one for `wanted`."""
        return self == wanted or (self.mode == EXCLUSIVE and wanted.mode == SHARED)


@dataclass(eq=False, slots=True)
class Lock:
    id: str
    node: Node
    transaction: Transaction
    request: Request
    implicit: bool
    state: str
    created: float
    acquired: float | None = None

    def to_yson(self) -> dict[str, Any]:
        """Return the lock as an item of a node's `@locks`."""
        shown: dict[str, Any] = {
            "id": self.id,
            "state": self.state,
            "transaction_id": self.transaction.id,
            "mode": self.request.mode,
        }
        if self.request.child_key is not None:
            shown["child_key"] = self.request.child_key
        if self.request.attribute_key is not None:
            shown["attribute_key"] = self.request.attribute_key
        return shown


class Addition(Protocol):
    """Content that is added to a node's, so that transactions can add to one node side by side."""

    def onto(self, payload: Any) -> Any:
        """Return the payload with the addition; the given one does not change."""


@dataclass(eq=False, slots=True)
class Branch:
    """The changes of one transaction to one node.

    It holds differences, so that transactions with shared locks can change different children or
    attributes of one node, or all add to its content. A snapshot lock makes a frozen copy instead.
    """

    node: Node
    attributes: dict[str, Any] = field(default_factory=dict)
    children: dict[str, Node | None] = field(default_factory=dict)
    payload: Any = MISSING
    added: tuple[Addition, ...] = ()
    """In the order of the commits; they go onto `payload`, or onto the node's if it is missing."""
    base: Any = MISSING
    """The payload of others as the transaction saw it when it began to add to it.

    Source: integration/tables/test_tables.py, test_shared_locks_parallel_tx.
    """
    frozen: Node | None = None
    modified: float = 0.0
    revision: int = 0

    @property
    def changed(self) -> bool:
        return bool(self.attributes or self.children or self.content_changed)

    @property
    def content_changed(self) -> bool:
        return bool(self.payload is not MISSING or self.added)

    def replace_payload(self, payload: Any) -> None:
        self.payload, self.added, self.base = payload, (), MISSING

    def copy(self) -> Branch:
        """Return a copy that can be changed and thrown away."""
        return replace(self, attributes=dict(self.attributes), children=dict(self.children))

    def merge(self, other: Branch) -> None:
        """Add the changes of a nested transaction's branch."""
        self.attributes.update(other.attributes)
        self.children.update(other.children)
        if other.payload is not MISSING:
            self.replace_payload(other.payload)
        self.added += other.added
        if self.payload is MISSING and self.base is MISSING:
            self.base = other.base
        self.modified, self.revision = other.modified, other.revision

    def apply(self) -> None:
        """Apply the changes to the node itself."""
        node = self.node
        for name, value in self.attributes.items():
            if value is MISSING:
                node.attributes.pop(name, None)
            else:
                node.attributes[name] = value
        if self.attributes:
            node.attribute_revision = self.revision
        for name, child in self.children.items():
            if child is None:
                node.children.pop(name, None)
            else:
                node.children[name] = child
        if self.payload is not MISSING:
            node.payload = self.payload
        for addition in self.added:
            node.payload = addition.onto(node.payload)
        if self.children or self.content_changed:
            node.content_revision = self.revision
        if self.changed:
            node.modified, node.revision = self.modified, self.revision


@dataclass(eq=False, slots=True)
class Transaction:
    id: str
    parent: Transaction | None
    timeout: float
    """Seconds it lives without a ping."""
    started: float
    pinged: float
    deadline: float | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    prerequisites: list[str] = field(default_factory=list)
    children: list[Transaction] = field(default_factory=list)
    branches: dict[str, Branch] = field(default_factory=dict)
    locks: dict[str, Lock] = field(default_factory=dict)
    made: list[Node] = field(default_factory=list)
    owner: str = ADMIN

    def ancestry(self) -> Iterator[Transaction]:
        """Yield the transaction, its parent, and so on."""
        transaction: Transaction | None = self
        while transaction is not None:
            yield transaction
            transaction = transaction.parent

    def descends_from(self, other: Transaction) -> bool:
        """Return whether `other` is this transaction or one above it."""
        return any(transaction is other for transaction in self.ancestry())

    @property
    def expires(self) -> float:
        expires = self.pinged + self.timeout
        return expires if self.deadline is None else min(expires, self.deadline)

    def describe(self) -> dict[str, Any]:
        """Return the transaction as errors name it."""
        described: dict[str, Any] = {
            "id": self.id,
            "timeout": round(self.timeout * 1000),
            "owner": self.owner,
        }
        if "title" in self.attributes:
            described["title"] = self.attributes["title"]
        if self.parent is not None:
            described["parent"] = self.parent.describe()
        return described

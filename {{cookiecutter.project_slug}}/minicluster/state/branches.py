"""What a master transaction has changed of a node, and how a node looks from inside one.

A branch holds differences, so that transactions with shared locks can change different children or
attributes of one node. A snapshot lock makes a frozen copy instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from .nodes import KINDS, Node

if TYPE_CHECKING:
    from .cluster import Cluster
    from .transactions import Transaction


class _Missing:
    """Singleton that survives pickling: "no such value", where None is one."""

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


@dataclass(eq=False, slots=True)
class Branch:
    node: Node
    attributes: dict[str, Any] = field(default_factory=dict)
    children: dict[str, Node | None] = field(default_factory=dict)
    payload: Any = MISSING
    frozen: Node | None = None
    modified: float = 0.0
    revision: int = 0

    @property
    def changed(self) -> bool:
        return bool(self.attributes or self.children or self.payload is not MISSING)

    def copy(self) -> Branch:
        """One that can be changed and thrown away."""
        return replace(self, attributes=dict(self.attributes), children=dict(self.children))

    def merge(self, other: Branch) -> None:
        """Takes over what a nested transaction's branch has changed."""
        self.attributes.update(other.attributes)
        self.children.update(other.children)
        if other.payload is not MISSING:
            self.payload = other.payload
        self.modified, self.revision = other.modified, other.revision

    def apply(self) -> None:
        """Makes the changes those of the node itself."""
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
        if self.children or self.payload is not MISSING:
            node.content_revision = self.revision
        if self.changed:
            node.modified, node.revision = self.modified, self.revision


class View:
    """Cypress as one transaction sees it; without one, as it is."""

    def __init__(self, cluster: Cluster, transaction: Transaction | None) -> None:
        self._cluster = cluster
        self.transaction = transaction
        self._chain: list[Transaction] = list(transaction.ancestry()) if transaction else []

    def child(self, node: Node, name: str) -> Node | None:
        virtual = KINDS[node.type].virtual
        if virtual is not None:
            return virtual(self._cluster, node).get(name)
        for transaction in self._chain:
            branch = transaction.branches.get(node.id)
            if branch is None:
                continue
            if branch.frozen is not None:
                return branch.frozen.children.get(name)
            if name in branch.children:
                return branch.children[name]
        return node.children.get(name)

    def children(self, node: Node) -> dict[str, Node]:
        virtual = KINDS[node.type].virtual
        if virtual is not None:
            return virtual(self._cluster, node)
        return self.effective(node).children

    def effective(self, node: Node) -> Node:
        """The node itself, or a copy of it with what the transaction and its parents changed."""
        seen: list[Branch] = []
        base = node
        for transaction in self._chain:
            branch = transaction.branches.get(node.id)
            if branch is None:
                continue
            if branch.frozen is not None:
                base = branch.frozen
                break
            seen.append(branch)
        if not any(branch.changed for branch in seen):
            return base
        merged = Branch(
            replace(base, attributes=dict(base.attributes), children=dict(base.children))
        )
        for branch in reversed(seen):
            if branch.changed:
                merged.merge(branch)
        merged.apply()
        return merged.node

    def payload(self, node: Node) -> Any:
        return self.effective(node).payload if self._chain else node.payload

    def visible(self, node: Node) -> bool:
        """Whether a node may be addressed by its id: not when another transaction is making it."""
        return node.made_in is None or any(node.made_in == tx.id for tx in self._chain)

    def walk(self, node: Node) -> list[Node]:
        """The node and everything below it, parents first."""
        found = [node]
        for child in self.children(node).values():
            found.extend(self.walk(child))
        return found


def freeze(view: View, node: Node) -> Node:
    """The copy that a snapshot lock keeps."""
    effective = view.effective(node)
    kind = KINDS[node.type]
    return replace(
        effective,
        attributes=dict(effective.attributes),
        children=dict(effective.children),
        payload=kind.freeze(effective.payload),
        locks=node.locks,
    )

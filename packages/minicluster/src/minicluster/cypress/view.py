"""How Cypress looks from inside a master transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .kinds import Kinds
from .model import MISSING, Branch, Node, Transaction


class View:
    """Cypress as one transaction sees it; without one, as it is."""

    def __init__(self, kinds: Kinds, transaction: Transaction | None) -> None:
        self._kinds = kinds
        self.transaction = transaction
        self._chain: list[Transaction] = list(transaction.ancestry()) if transaction else []

    def child(self, node: Node, name: str) -> Node | None:
        virtual = self._kinds[node.type].virtual
        if virtual is not None:
            return virtual(node).get(name)
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
        virtual = self._kinds[node.type].virtual
        if virtual is not None:
            return virtual(node)
        return self.effective(node).children

    def effective(self, node: Node) -> Node:
        """Return the node, or a copy with the changes of the transaction and its parents."""
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
                if branch.base is not MISSING:
                    merged.replace_payload(branch.base)
                merged.merge(branch)
        merged.apply()
        return merged.node

    def payload(self, node: Node) -> Any:
        return self.effective(node).payload if self._chain else node.payload

    def visible(self, node: Node) -> bool:
        """Return whether the node has an address here: not while another transaction makes it."""
        return node.made_in is None or any(node.made_in == tx.id for tx in self._chain)

    def walk(self, node: Node) -> list[Node]:
        """Yield the node and everything below it, parents first."""
        found = [node]
        for child in self.children(node).values():
            found.extend(self.walk(child))
        return found

    def freeze(self, node: Node) -> Node:
        """Return the copy that a snapshot lock keeps."""
        effective = self.effective(node)
        return replace(
            effective,
            attributes=dict(effective.attributes),
            children=dict(effective.children),
            payload=self._kinds[node.type].freeze(effective.payload),
            locks=node.locks,
        )

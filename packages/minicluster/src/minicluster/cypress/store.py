"""All nodes, and their life: by id, from the root down, until nothing holds them any more."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import ids
from ..core.clock import Clock
from . import locks
from .kinds import MAP_NODE
from .model import PENDING, Node


class Store:
    """Every node by its id, and the revision that the last change got."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._revision = 0
        self.root = Node(ids.new(MAP_NODE), "map_node", None, "")
        self.root.created = self.root.modified = self.root.accessed = clock.now()
        self.nodes: dict[str, Node] = {self.root.id: self.root}

    def next_revision(self) -> int:
        self._revision += 1
        return self._revision

    def destroy(self, node: Node) -> None:
        """Forget a subtree that was removed from the tree; snapshot locks keep their nodes."""
        for child in node.children.values():
            self.destroy(child)
        for lock in list(node.locks):
            if lock.state == PENDING:
                locks.release(lock)
        if not node.locks:
            self.forget(node)

    def forget(self, node: Node) -> None:
        self.nodes.pop(node.id, None)

    def serve_lock_queues(self, nodes: Iterable[Node]) -> None:
        """Grant locks that became free; forget removed nodes that only locks kept."""
        now = self._clock.now()
        for node in nodes:
            locks.serve_queue(node, now)
            if not node.locks and not self._attached(node):
                self.forget(node)

    def _attached(self, node: Node) -> bool:
        while node.parent is not None:
            if node.made_in is None and node.parent.children.get(node.name) is not node:
                return False
            node = node.parent
        return node is self.root

"""The tablets that a transaction has written to: it cannot commit once they were mounted anew.

A proxy remembers the mount revision of each tablet, and the tablet node refuses another one. A
write of its own is then retried by the proxy; a transaction is not.

Source: server/node/tablet_node/tablet.cpp, ValidateMountRevision; tablet_service.cpp,
GetTabletSnapshotOrThrow; documentation, user-guide/dynamic-tables/faq.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from ..core.errors import INVALID_MOUNT_REVISION, YtError, no_such_tablet
from ..rows.from_wire import Key
from .table import Table


@dataclass(frozen=True)
class Mounts:
    """Per tablet its id, its mount revision and the least of its keys, at one moment."""

    seen: tuple[tuple[str, int, Key], ...] = ()

    @classmethod
    def of(cls, table: Table) -> Mounts:
        return cls(tuple((t.id, t.mount_revision, t.pivot) for t in table.tablets))

    def require_same(
        self, table: Table, indexes: Iterable[int], keys: Iterable[Key], path: str
    ) -> None:
        """Raise YtError if a tablet of these indexes and keys was mounted anew since then."""
        if self == Mounts.of(table):
            return
        pivots = [pivot for _, _, pivot in self.seen]
        touched = {*indexes, *(bisect_right(pivots, key) - 1 for key in keys)}
        now = {tablet.id: tablet.mount_revision for tablet in table.tablets}
        for index in sorted(touched):
            tablet, revision, _ = self.seen[index]
            if tablet not in now:
                raise no_such_tablet(f"Tablet {tablet} is not known", path=path, tablet_id=tablet)
            if now[tablet] != revision:
                raise YtError(
                    INVALID_MOUNT_REVISION,
                    f"Invalid mount revision of tablet {tablet}: "
                    f"expected {now[tablet]:x}, received {revision:x}",
                    {"tablet_id": tablet, "path": path},
                )

"""Which version of a state can be loaded: from its newest sound snapshot and the changes since.

Version N is the state after batch N - 1. Spark takes the newest snapshot up to it and applies the
changes of each version after the snapshot (RocksDB.load, HDFSBackedStateStoreProvider.loadMap). A
damaged snapshot is no loss as long as an older one and the changes since are sound.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..cluster.client import Client

_CHANGES, _SNAPSHOTS = ("changelog", "delta"), ("zip", "snapshot")
"""Of RocksDB, and of the store in memory."""


@dataclass(frozen=True)
class StatePartition:
    """The files of one partition of the state, by version."""

    path: str
    changes: dict[int, str]
    snapshots: dict[int, str]

    def base(self, version: int, is_sound: Callable[[str], bool]) -> int:
        """Return the newest sound snapshot up to a version; 0: the empty state."""
        older = (one for one in sorted(self.snapshots, reverse=True) if one <= version)
        return next((one for one in older if is_sound(self.snapshots[one])), 0)

    def is_loadable(self, version: int, is_sound: Callable[[str], bool]) -> bool:
        """Return whether Spark can load a version, without the snapshots that are damaged."""
        since = range(self.base(version, is_sound) + 1, version + 1)
        return all(one in self.changes and is_sound(self.changes[one]) for one in since)

    def gone(self, version: int, is_sound: Callable[[str], bool]) -> list[int]:
        """Return the versions up to ``version`` whose changes Spark needs and cannot find."""
        since = range(self.base(version, is_sound) + 1, version + 1)
        return [one for one in since if one not in self.changes]


def partitions(client: Client, folder: str, count: int) -> Iterator[StatePartition]:
    """Yield the partitions of each operator of a checkpoint; ``count`` of each, gone or not."""
    for operator, found in client.get(f"{folder}/state").items():
        for number in range(count):
            path = f"{folder}/state/{operator}/{number}"
            names = found.get(str(number), {})
            yield StatePartition(
                path, _versions(path, names, _CHANGES), _versions(path, names, _SNAPSHOTS)
            )


def newest(found: list[StatePartition], version: int, is_sound: Callable[[str], bool]) -> int:
    """Return the newest version up to ``version`` that all partitions can load.

    0 can always be: it is the empty state before the first batch of the checkpoint.
    """
    versions = range(version, -1, -1)
    return next(v for v in versions if all(one.is_loadable(v, is_sound) for one in found))


def _versions(path: str, names: object, kinds: tuple[str, ...]) -> dict[int, str]:
    split = [str(name).partition(".") for name in names] if isinstance(names, dict) else []
    return {
        int(number): f"{path}/{number}.{kind}"
        for number, _, kind in split
        if number.isdigit() and kind in kinds
    }

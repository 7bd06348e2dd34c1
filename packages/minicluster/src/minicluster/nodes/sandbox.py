"""The folders of a node: a cache of artifacts, and a slot with a sandbox for each job."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from ..operations.model import Artifact, Launch

LONGEST_SOCKET_PATH = 107
"""Bytes of a Unix socket's path (sun_path has 108, the last one is zero)."""


@dataclass(frozen=True)
class Slot:
    """The folders of one job. Its sandbox holds nothing but the files of the spec."""

    root: Path

    @property
    def sandbox(self) -> Path:
        return self.root / "sandbox"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def socket(self) -> Path:
        return self.root / "rpc"


class Folders:
    """Everything below one folder; the jobs see the cache through links."""

    def __init__(self, root: Path) -> None:
        self._cache = root / "cache"
        self._slots = root / "slots"
        self._cache.mkdir(parents=True)
        self._slots.mkdir()

    def slot(self, number: int) -> Slot:
        return Slot(self._slots / str(number))

    def prepare(self, slot: Slot, launch: Launch) -> None:
        """Make the folders of a job and lay its files into the sandbox."""
        slot.sandbox.mkdir(parents=True)
        slot.temporary.mkdir()
        for artifact in launch.artifacts:
            place = slot.sandbox / artifact.name
            place.parent.mkdir(parents=True, exist_ok=True)
            cached = self._cached(artifact)
            if launch.task.copy_files:
                shutil.copyfile(cached, place)
                place.chmod(0o755 if artifact.executable else 0o644)
            else:
                place.symlink_to(cached)

    def _cached(self, artifact: Artifact) -> Path:
        """Return the file in the cache, written once for all jobs and not to be changed."""
        data = artifact.content.data
        mode = 0o555 if artifact.executable else 0o444
        path = self._cache / f"{hashlib.sha256(data).hexdigest()}-{mode:o}"
        if not path.exists():
            temporary = path.with_suffix(f".{id(artifact)}")
            temporary.write_bytes(data)
            temporary.chmod(mode)
            temporary.replace(path)
        return path

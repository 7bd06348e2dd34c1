"""The versions of a job: a record of each start by `submit`, in a folder beside the ledger.

The operation's own note says the same of a version (ytstream_tools/submitting/launch_plan.py), so
that a submitter that died before it could write a record has lost nothing while the cluster knows
the operation. A record outlives that, and keeps what the version can be started from again.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum, auto
from typing import Any

from ytstream.cluster import operation
from ytstream.cluster.client import Client, plain
from ytstream.cluster.operation import Operation
from ytstream.settings.job_settings import Settings

from .fingerprint import identified
from .launch_plan import LaunchPlan
from .submission import StartRecord

KEPT = 50
_RECORD, _SPEC, _REPLACING = "ytstream_version", "ytstream_spec", "ytstream_replacing"


class StartState(StrEnum):
    """The status of a start."""

    STARTED = auto()
    WORKS = auto()
    """It had a batch, or found no row to read."""
    REFUSED = auto()
    """It failed, and the former version was started again."""
    FAILED = auto()
    """It failed, and there was no former version."""


@dataclass(frozen=True)
class DeployedVersion:
    """One start of one version."""

    key: str
    """The word that its submit was given."""
    state: StartState
    note: Mapping[str, Any]
    """What the operation's note says: commit, version, checksums, the epoch before the start."""
    operation: str = ""
    """The id of the driver's operation; empty if none was started."""
    user: str = ""
    started: str = ""
    ended: str = ""
    how: str = ""
    """How it ended, or why it was refused; empty while it runs."""

    @property
    def commit(self) -> str:
        """The commit as people know it."""
        return str(self.note.get("commit") or "none")

    @property
    def identity(self) -> tuple[str, str]:
        """The checksums of its files and of its configuration."""
        return str(self.note.get("files", "")), str(self.note.get("configuration", ""))

    @property
    def named(self) -> str:
        """The version in a message."""
        return f"commit {self.commit}, configuration {self.identity[1] or 'not known'}"


@dataclass(frozen=True)
class PendingReplacement:
    """A replacement that has begun: the version to come back to, and the one that comes."""

    former: str
    files: str
    configuration: str


@dataclass
class VersionHistory:
    """Reads and writes the records of one job."""

    client: Client
    settings: Settings
    kept: int = KEPT

    @property
    def folder(self) -> str:
        """Where they are."""
        return self.settings.versions

    def all(self) -> list[DeployedVersion]:
        """Return the records, the newest first."""
        if not self.client.exists(self.folder):
            return []
        found = self.client.get(self.folder, attributes=[_RECORD])
        kept = [_version(node.attributes[_RECORD]) for node in found.values()
                if _RECORD in node.attributes]  # fmt: skip
        return sorted(kept, key=lambda one: one.started, reverse=True)

    def write(self, version: DeployedVersion, spec: Mapping[str, Any] | None = None) -> None:
        """Write a record; one that is there keeps its spec."""
        path = f"{self.folder}/{version.key}"
        self.client.create("map_node", path, recursive=True, ignore_existing=True)
        if spec is not None:
            self.client.set(f"{path}/@{_SPEC}", spec)
        self.client.set(f"{path}/@{_RECORD}", asdict(version))

    def spec(self, version: DeployedVersion) -> Mapping[str, Any] | None:
        """Return what the cluster was given for a version, without its vault."""
        found = self.client.get_attribute(f"{self.folder}/{version.key}", _SPEC, None)
        return found if isinstance(found, Mapping) else None

    def replacing(self) -> PendingReplacement | None:
        """Return the replacement that has begun and not ended."""
        if not self.client.exists(self.folder):
            return None
        found = self.client.get_attribute(self.folder, _REPLACING, None)
        return (
            PendingReplacement(**{key: str(value) for key, value in found.items()})
            if found
            else None
        )

    def replace(self, begun: PendingReplacement | None) -> None:
        """Remember that a replacement begins; None: it is over."""
        self.client.create("map_node", self.folder, recursive=True, ignore_existing=True)
        if begun is not None:
            self.client.set(f"{self.folder}/@{_REPLACING}", asdict(begun))
        elif self.client.exists(f"{self.folder}/@{_REPLACING}"):
            self.client.remove(f"{self.folder}/@{_REPLACING}")

    def adopt(self, found: Operation) -> DeployedVersion:
        """Return the record of an operation; written now if its submitter had no time to."""
        known = {one.key: one for one in self.all()}
        for one in known.values():
            if one.operation == found.id:
                return one
        version = version_of(found)
        version = replace(
            version, state=getattr(known.get(version.key), "state", StartState.STARTED)
        )
        self.write(version, spec_of(self.client, found.id))
        return version

    def settle(self, except_for: str = "") -> None:
        """Write how versions have ended whose operations are final, and remove the oldest records.

        The cluster forgets an operation some time after its end.
        """
        versions = self.all()
        for one in versions:
            if not one.ended and one.operation and one.operation != except_for:
                self.write(now(self.client, one))
        begun = self.replacing()
        needed = {begun.former} if begun is not None else set()
        for one in versions[self.kept :]:
            if one.ended and one.key not in needed:
                self.client.remove(f"{self.folder}/{one.key}", recursive=True, force=True)

    def end(
        self, version: DeployedVersion, how: str, state: StartState | None = None
    ) -> DeployedVersion:
        """Write how a version has ended, or is about to."""
        done = replace(version, ended=_now(), how=how, state=state or version.state)
        self.write(done)
        return done


def read(client: Client, settings: Settings, count: int) -> list[DeployedVersion]:
    """Return the newest records, with what the cluster says of those that have no end yet."""
    return [now(client, one) for one in VersionHistory(client, settings).all()[:count]]


def now(client: Client, version: DeployedVersion) -> DeployedVersion:
    """Return a record with what the cluster says of its end, if it has ended; writes nothing."""
    if version.ended or not version.operation:
        return version
    found = operation.get(client, version.operation)
    if found is None:
        return replace(version, ended=version.started, how="the cluster knows it no more")
    if not found.is_final:
        return version
    how = f"{found.state}: {found.error}" if found.error else found.state
    return replace(version, ended=found.ended, how=version.how or how)


def version_of(found: Operation) -> DeployedVersion:
    """Return the version that an operation's note describes."""
    key = str(found.note.get("submit") or found.id)
    return DeployedVersion(
        key=key,
        state=StartState.STARTED,
        note=plain(found.note),
        operation=found.id,
        user=found.user,
        started=found.started,
    )


def spec_of(client: Client, id_: str) -> Mapping[str, Any]:
    """Return the spec that an operation was started with; the cluster gives out no vault."""
    found = client.get_operation(operation_id=id_, attributes=["provided_spec"])["provided_spec"]
    return {key: value for key, value in found.items() if key != "secure_vault"}


def is_same(version: DeployedVersion, made: LaunchPlan) -> bool:
    """Return whether a version has these files with this configuration."""
    wanted = made.identity["files"], made.identity["configuration"]
    return version.identity == wanted and version.commit == (made.commit or "none")


def latest(versions: Iterable[DeployedVersion], made: LaunchPlan) -> DeployedVersion | None:
    """Return the last start of the version that is planned."""
    return next((one for one in versions if is_same(one, made)), None)


@dataclass
class StoredStartRecord(StartRecord):
    """Writes the record of a start while it happens."""

    versions: VersionHistory
    failing: StartState = StartState.FAILED
    """What a start that fails has been: StartState.REFUSED if the former version comes back."""
    found: DeployedVersion | None = field(default=None, init=False)
    seen: Sequence[tuple[str, float]] = ()
    times: dict[str, float] = field(default_factory=dict)

    def planned(self, made: LaunchPlan, epoch: int) -> LaunchPlan:
        """Return the plan with the checksums of its files."""
        return identified(made, epoch)

    def started(self, made: LaunchPlan, id_: str) -> None:
        """Write the record, and how the versions before have ended."""
        self.times["started"] = time.monotonic()
        begun = operation.get(self.versions.client, id_)
        if begun is not None:
            self.found = replace(version_of(begun), key=made.identity["submit"])
            self.versions.write(self.found, spec_of(self.versions.client, id_))
        self.versions.settle(except_for=id_)

    def works(self, made: LaunchPlan, seen: Sequence[tuple[str, float]]) -> None:
        """Write that it works."""
        self.seen = seen
        if self.found is not None:
            self.found = replace(self.found, state=StartState.WORKS)
            self.versions.write(self.found)

    def failed(self, made: LaunchPlan, why: str) -> None:
        """Write that it does not work, and why."""
        note = {**made.identity, "commit": made.commit, "version": made.version}
        version = self.found or DeployedVersion(
            made.identity["submit"], StartState.STARTED, note, started=_now()
        )
        self.versions.end(version, why.splitlines()[0], self.failing)


def _version(found: Mapping[str, Any]) -> DeployedVersion:
    texts = {key: str(value) for key, value in found.items() if key not in ("note", "state")}
    return DeployedVersion(
        **texts, state=StartState(str(found["state"])), note=plain(found["note"])
    )


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")

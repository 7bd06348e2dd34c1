"""Points: the requests of a driver, classified by method, object and place.

A place is a part of a driver's life. The commits that write the ledger part it: the first one
raises the epoch, the second one commits the start, and each later one commits a micro-batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from minicluster.client import Entry
from tests.faults import protocol

WRITES = frozenset(
    {
        "StartTransaction", "ModifyRows", "CommitTransaction", "AdvanceConsumer", "CreateNode",
        "RemoveNode", "MoveNode", "WriteFile", "WriteTable", "SetNode", "LockNode", "CopyNode",
        "AbortTransaction", "LinkNode", "ConcatenateNodes",
        "start_transaction", "commit_transaction", "start_tx", "commit_tx", "create", "remove",
        "set", "move", "copy", "write_file", "write_table", "lock", "advance_queue_consumer",
        "insert_rows", "delete_rows", "concatenate", "abort_transaction", "abort_tx",
    }
)  # fmt: skip
"""Requests that change the cluster, or may. Others only read."""
COMMITS = frozenset({"CommitTransaction", "commit_transaction", "commit_tx"})
STARTS = frozenset({"StartTransaction", "start_transaction", "start_tx"})
_IGNORED = frozenset(
    {
        "Discover", "discover_proxies", "hosts",
        "PingTransaction", "ping_transaction", "ping_tx",
    }
)  # fmt: skip
"""Not of the driver's work: connections, and the beat that keeps transactions alive."""
NOTHING = "nothing"
LAST, MIDDLE = "last", "middle"
_KEPT = ("place", "method", "object", "is_write", "in_transaction", "after")
_BESIDE = frozenset({"select_rows", "get_tablet_infos"})
"""What threads beside the batch read in any place, at times of their own: the watch, and `stop`."""
_TABLE = re.compile(r"from \[([^]]+)\]")
_QUEUE_PARTITIONS = "@queue_partitions"


@dataclass(frozen=True)
class Point:
    """A request of a recorded run: the first, the middle or the last of its class in its place."""

    place: str
    method: str
    object: str
    which: str
    """Which one of its class in its place: "first", "last" where there are several, "middle" where
    there are more."""
    is_write: bool
    """Whether the cluster may be changed by it."""
    in_transaction: bool
    """Whether it is in a transaction, which may be gone."""
    commits: int
    """How a rule finds it: after so many borders of the life, behind so many that match."""
    skip: int
    where: Mapping[str, Any] = field(default_factory=dict)
    n: int = 0
    """Its number in the journal of the recording."""
    after: str = ""
    """The point that writes next before it, if no other request that may write lies between them: a
    driver that is killed before this one leaves what one leaves that is killed after that one."""

    @property
    def name(self) -> str:
        """The name by which cases know it."""
        which = "" if self.which == "first" else f"~{self.which}"
        return f"{self.place}:{self.method}.{self.object}{which}"

    def as_json(self) -> dict[str, Any]:
        """Return what is kept of it in a file: what makes cases of it, not how a rule finds it."""
        found = asdict(self)
        return {key: found[key] for key in _KEPT}


_PLANNED = "checkpoint/offsets/N"
"""What parts a life of the listing, which has no ledger: it plans a batch."""


def is_border(entry: Entry, name: str, *, is_listing: bool) -> bool:
    """Return whether a request about ``name`` parts a life."""
    if is_listing:
        return entry.method == "MoveNode" and name == _PLANNED
    return entry.method in COMMITS and name == "ledger"


def places(batches: Sequence[str], *, start: str, is_listing: bool) -> list[str]:
    """Return the places of a life whose micro-batches have these names."""
    if is_listing:
        return [f"{start}-open", *batches]
    return [*(f"{start}-{part}" for part in protocol.LIFE), *batches]


def classified(
    entries: Iterable[Entry], root: str, names: Sequence[str], *, is_listing: bool = False
) -> list[Point]:
    """Return the points of a life, whose requests these are, in their order.

    ``names`` are those of the places, of which the third one ends with a request and not with a
    commit: the first look at a queue's ends. What follows the last place is left out.
    """
    # SPYT speaks RPC; by HTTP come the looks at the listing's checkpoint, which are not its own.
    life = [
        entry
        for entry in entries
        if entry.method not in _IGNORED and not (is_listing and entry.protocol == "http")
    ]
    objects = named(life, root)
    found: dict[tuple[str, str, str], list[Point]] = {}
    commits, has_looked = 0, False
    since: list[Entry] = []
    for entry, name in zip(life, objects, strict=True):
        has_looked |= commits == 2 and _QUEUE_PARTITIONS in name
        place = commits
        if not is_listing:
            place += commits > 2 or (commits == 2 and has_looked)
        if place >= len(names):
            break
        if place > 2 and (entry.method in _BESIDE or (entry.protocol, name[-2:]) == ("http", "/@")):
            continue
        where = _where(entry, root)
        point = Point(
            names[place],
            entry.method,
            name,
            "first",
            entry.method in WRITES,
            "transaction" in entry.args and entry.method not in STARTS,
            commits,
            sum(_matches(former, entry.method, where) for former in since),
            where,
            entry.n,
        )
        found.setdefault((point.place, point.method, point.object), []).append(point)
        since.append(entry)
        if is_border(entry, name, is_listing=is_listing):
            commits += 1
            since.clear()
    writes = [entry.n for entry in life if entry.method in WRITES]
    return _linked(sorted(_chosen(found.values()), key=lambda point: point.n), writes)


def _linked(points: Sequence[Point], writes: Sequence[int]) -> list[Point]:
    """Return the points with what they are ``after``; ``writes`` are the numbers of all writes.

    Nothing is killed at a point in the middle: no other one is like it.
    """
    before = dict(zip(writes[1:], writes, strict=False))
    names = {point.n: point.name for point in points if point.which != MIDDLE}
    return [replace(point, after=names.get(before.get(point.n, 0), "")) for point in points]


def _chosen(classes: Iterable[list[Point]]) -> list[Point]:
    """Return the first point of each class, the last one of several and the middle one of more."""
    points = []
    for requests in classes:
        points.append(requests[0])
        if len(requests) > 1:
            points.append(replace(requests[-1], which=LAST))
        if len(requests) > 2:
            points.append(replace(requests[len(requests) // 2], which=MIDDLE))
    return points


def named(entries: Sequence[Entry], root: str) -> list[str]:
    """Return what each request is about; a commit is about what its transaction has written."""
    written: dict[str, str] = {}
    for entry in entries:
        transaction = str(entry.args.get("transaction"))
        if entry.method in WRITES and entry.method not in COMMITS | STARTS:
            name = object_of(entry, root)
            # The ledger decides: SPYT moves the consumer after the head was written.
            if written.get(transaction) != "ledger":
                written[transaction] = name
    return [
        written.get(str(entry.args.get("transaction")), NOTHING)
        if entry.method in COMMITS
        else object_of(entry, root)
        for entry in entries
    ]


def object_of(entry: Entry, root: str) -> str:
    """Return the object of a request, without numbers that differ from run to run."""
    args = entry.args
    if entry.method in STARTS:
        return {"1": "tablet", "tablet": "tablet"}.get(str(args.get("type")), "master")
    path = next(
        (args[key] for key in ("destination_path", "path", "consumer") if args.get(key)), ""
    )
    if not path and (table := _TABLE.search(str(args.get("query", "")))):
        path = table[1]
    return _plain(str(path), root) or NOTHING


def _plain(path: str, root: str) -> str:
    name = path.removeprefix(f"{root}/").removeprefix("//")
    name = re.sub(r"/\.?(\d+\.)?[0-9a-f-]{36}\.tmp", "/tmp", name)
    name = re.sub(r"/\.[^/]*", "/tmp", name)
    return re.sub(r"(?<=/)\d+(?=[/.]|$)", "N", name)


def _where(entry: Entry, root: str) -> dict[str, Any]:
    """Return the arguments by which a rule knows the request in any run."""
    args = entry.args
    for key in ("destination_path", "path"):
        if args.get(key):
            path = str(args[key])
            name = _plain(path, root)
            # Numbers and temporary names differ from run to run.
            return {key: path if name in path else _glob(path, root)}
    if query := args.get("query"):
        table = _TABLE.search(str(query))
        return {"query": f"*{table[1]}*"} if table else {}
    if entry.method == "StartTransaction":
        return {"type": args["type"]}
    return {}


def _matches(entry: Entry, method: str, where: Mapping[str, Any]) -> bool:
    """Return whether a rule for this method and these arguments finds a request, as the gate does.

    The star of a pattern stands for several names, too.
    """
    return entry.method == method and all(
        fnmatchcase(str(entry.args.get(name)), wanted)
        if isinstance(wanted, str) and "*" in wanted
        else entry.args.get(name) == wanted
        for name, wanted in where.items()
    )


def _glob(path: str, root: str) -> str:
    """Return a pattern for the path; brackets would be a set of letters in it."""
    name = path.removeprefix(f"{root}/")
    name = re.sub(r"/\.[^/]*", "/.*", name)
    return f"*{re.sub(r'(?<=/)[0-9]+(?=[/.]|$)', '*', name)}"

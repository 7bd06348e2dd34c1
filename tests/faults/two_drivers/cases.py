"""The cases: a job, and the request at which its older driver is paused, late or killed.

Places are paths of requests: each one counts once the one before it was seen, the last one acts.
Braces in their arguments are fields of ``paths`` in job_site.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from tests.faults import protocol
from tests.faults.after_requests import Request
from tests.faults.variants import Variant
from tests.support.examples import MERGE, TOTALS

VARIANTS = (
    *(
        Variant("transactional", processing, queues)
        for processing, queues in product(("map", "window", "deduplicate"), (1, 2))
    ),
    Variant("transactional", "aggregate", 1),  # its output has a key
    # What is written twice is added twice, and an older row may replace a newer one.
    *(
        Variant("transactional", processing, queues)
        for processing, queues in product((TOTALS, MERGE), (1, 2))
    ),
    Variant("idempotent", "map", 2),
    *(
        Variant("at_least_once", processing, 1)
        for processing in ("map", "window", "deduplicate", "join", "sessions")
    ),
)
START_VARIANTS = (
    Variant("transactional", "map", 2),
    Variant("transactional", "window", 1),
    Variant("idempotent", "map", 2),
    Variant("at_least_once", "window", 1),
)
"""Jobs whose starts are cut off."""
UPLOAD_VARIANTS = tuple(
    Variant("transactional", processing, 1, has_snapshots=True)
    for processing in ("window", "deduplicate", "aggregate", "sessions")
)
"""Jobs that are killed while they upload their state."""
STATIC_VARIANTS = (
    Variant("transactional", "map", 1, is_static=True),
    Variant("transactional", "window", 1, is_static=True),
    Variant("transactional", "deduplicate", 1, is_static=True),
    Variant("at_least_once", "window", 1, is_static=True),
    Variant("idempotent", "map", 2, is_static=True),
    Variant("at_least_once", "map", 1, is_static=True),
)
"""Jobs whose micro-batches are tables in a folder, which a reader polls."""


@dataclass(frozen=True)
class Place:
    """A moment in a driver's life, reached by these requests in turn."""

    name: str
    steps: tuple[Request, ...]
    late_is_refused: bool = False
    """Whether a commit that is applied at this place fails, since the head was written meanwhile.
    """
    leaves: tuple[Literal["nothing", "an orphan", "a named table"], ...] = ()
    """What a driver that is killed at this place may leave aside: nothing, a table that the ledger
    names, or one that it does not name (an orphan)."""


OPENED, HEAD, COMMIT = map(protocol.request, ("open T", "write_head", "commit T"))
AUDIT = protocol.request("audit")
COMMITTED = replace(COMMIT, when="after")
PLANNED = replace(protocol.request("write offsets"), skip=1)
"""Not the next batch: it may be one without rows, which Spark runs to close windows."""


def _second_batch(variant: Variant) -> tuple[Request, ...]:
    """Return what leads into a batch in the middle of a backlog.

    A checkpoint on the driver's disk shows no request of its own: the batch before has ended.
    """
    return (PLANNED,) if variant.is_stateful else (AUDIT, HEAD, COMMITTED)


def pauses(variant: Variant) -> tuple[Place, ...]:
    """Return where the older driver is paused, in the middle of a backlog.

    The next commit after the head was written is that of the head's transaction; under
    `transactional` ``commits/N`` comes in between, and then SPYT moves the consumer. Continued
    after 31 s, the driver finds its transaction alive: SPYT gives it five minutes
    (YTsaurusStreamingTransactionSupport.createTransaction).
    """
    planned = _second_batch(variant)
    written = protocol.request("write_outputs")
    logged = [protocol.request("write commits")]
    if not variant.is_stateful:
        is_exact = variant.guarantee == "transactional"
        logged = [protocol.request("advance")] if is_exact else []
    return (
        Place("opened", (*planned, OPENED)),
        Place("outputs", (*planned, replace(written, skip=1))),
        Place("audit", (*planned, written, AUDIT)),
        Place("head", (*planned, replace(HEAD, when="after"))),
        *(Place("log", (*planned, request)) for request in logged),
        Place("commit", (*planned, HEAD, COMMIT)),
    )


def late(variant: Variant) -> Place:
    """Return the request of the older driver that the cluster applies late."""
    return Place("late", (*_second_batch(variant), HEAD, COMMIT))


_RAISED = (HEAD, COMMITTED)
_BEGUN = (*_RAISED, HEAD, COMMITTED)
MOMENTS = (
    Place("before-raise", (HEAD,)),
    Place("raised", _RAISED, late_is_refused=True),
    Place("begun", _BEGUN, late_is_refused=True),
    Place("first-batch", (*_BEGUN, HEAD, COMMITTED), late_is_refused=True),
)
"""When it is applied, in the life of the newer driver: that writes the head to raise the epoch, to
begin, and in each batch."""


def _kills(variant: Variant) -> tuple[Place, ...]:
    """Return where the older driver is killed while it writes a static output.

    SPYT writes the table in a master transaction of its own, one request for each task; the head is
    written after that.
    """
    planned = _second_batch(variant)
    return (
        Place(
            "before-write",
            (*planned, Request("create", {"path": "{aside}/*"})),
            leaves=("nothing", "a named table"),  # that of the batch before, if it still waits
        ),
        Place(
            "half-written",
            (*planned, Request("WriteTable", {"path": "*{aside}/*"}, "after")),
            leaves=("an orphan",),
        ),
        Place(
            "before-commit",
            (*planned, Request("WriteTable", {"path": "*{aside}/*"}), HEAD, COMMIT),
            leaves=("an orphan",),
        ),
        Place(
            "before-publication",
            (*planned, Request("move", {"destination_path": "{output}/*"})),
            leaves=("a named table",),
        ),
    )


def _state(method: str, pattern: str, when: Literal["before", "after"] = "after") -> Request:
    """Return a request about a file of the state, in one of the two partitions."""
    argument = "destination_path" if method == "MoveNode" else "path"
    return Request(method, {argument: f"*/state/0/{pattern}"}, when)


UPLOADS = (
    Place("changes-begun", (PLANNED, _state("WriteFile", "*.changelog*", "before"))),
    Place("changes-written", (PLANNED, _state("WriteFile", "*.changelog*"))),
    Place("changes-of-one-partition", (PLANNED, _state("MoveNode", "*.changelog"))),
    Place("snapshot-files", (PLANNED, _state("WriteFile", "*/SSTs/*"))),
    Place("snapshot-list", (PLANNED, _state("WriteFile", "*.zip*"))),
    Place("snapshot-of-one-partition", (PLANNED, _state("MoveNode", "*.zip"))),
)
"""Where the older driver is killed while it uploads state. Spark writes a batch's changes and a
snapshot's list under temporary names and moves them, and the files of a snapshot directly
(RocksDBFileManager). A thread of its own uploads snapshots, in a batch or between two."""

STATE = Place("state", (PLANNED, _state("WriteFile", "*", "before")))
"""Where a cluster goes away while a job uploads its state: the first file of a batch."""


def _starts(variant: Variant) -> tuple[Place, ...]:
    """Return where a start is cut off: one request for each step of start.py.

    The last one is the query's first: it has planned a batch.
    """
    planned = protocol.request("write offsets")
    return (
        Place("before-raise", (protocol.request("raise_epoch"),)),
        Place("raised", _RAISED),
        Place("folder", (*_RAISED, protocol.request("new_folder"))),
        Place("begin", (*_RAISED, protocol.request("begin"))),
        Place("begun", _BEGUN),
        Place("mark", (*_BEGUN, Request("set", {"path": "*@ytstream_job"}, "after"))),
        Place("planned", (*_BEGUN, planned if variant.is_stateful else OPENED)),
    )


@dataclass(frozen=True)
class Case:
    """One older driver, one newer one; of a start a third, which is cut off between them."""

    variant: Variant
    kind: Literal["paused", "late", "killed", "upload-killed", "start-killed", "start-paused"]
    place: Place

    @property
    def name(self) -> str:
        """The name that `--only` looks into."""
        return f"{self.variant.name}-{self.kind}-{self.place.name}"


CASES = (
    *(
        case
        for variant in VARIANTS
        for case in (
            *(Case(variant, "paused", place) for place in pauses(variant)),
            *(Case(variant, "late", moment) for moment in MOMENTS),
        )
    ),
    *(
        case
        for variant in START_VARIANTS
        for case in (
            *(Case(variant, "start-killed", place) for place in _starts(variant)),
            # Paused before it raises the epoch, a driver without the lock may raise it freely.
            *(Case(variant, "start-paused", place) for place in _starts(variant)[1:]),
        )
    ),
    *(Case(variant, "upload-killed", place) for variant in UPLOAD_VARIANTS for place in UPLOADS),
    *(Case(variant, "killed", place) for variant in STATIC_VARIANTS for place in _kills(variant)),
)


def chosen(only: str) -> list[Case]:
    """Return the cases whose name contains ``only``."""
    return [case for case in CASES if only in case.name]

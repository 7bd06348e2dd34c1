"""The cases: a job, and the request at which its older driver is paused or its commit delayed.

Places are paths of requests: each one counts once the one before it was seen, the last one acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

#: The guarantee, the processing, the number of queues.
Variant = tuple[str, str, int]

VARIANTS: tuple[Variant, ...] = (
    *product(("transactional",), ("map", "window", "deduplicate"), (1, 2)),
    ("idempotent", "map", 2),
    ("at_least_once", "map", 1),
)


@dataclass(frozen=True)
class Request:
    """A request to the cluster; braces in ``where`` are fields of ``paths`` in play.py."""

    method: str
    where: Mapping[str, Any] = field(default_factory=dict)
    when: Literal["before", "after"] = "before"
    skip: int = 0


@dataclass(frozen=True)
class Place:
    """A moment in a driver's life, reached by these requests in turn."""

    name: str
    steps: tuple[Request, ...]
    #: Whether a commit that is applied at this place fails, since the head was written meanwhile.
    late_is_refused: bool = False


#: ``type`` 1: a tablet transaction (ETransactionType).
OPENED = Request("StartTransaction", {"type": 1})
HEAD = Request("ModifyRows", {"path": "{ledger}"})
COMMIT = Request("CommitTransaction")
COMMITTED = Request("CommitTransaction", when="after")
#: Not the next batch: it may be one without rows, which Spark runs to close windows.
PLANNED = Request("MoveNode", {"destination_path": "*/offsets/*"}, "after", skip=1)

#: Where the older driver is paused, in the middle of a backlog. The next commit after the head was
#: written is that of the head's transaction; under `transactional` ``commits/N`` comes in between.
#: Continued after 31 s, the driver finds its transaction alive: SPYT gives it five minutes
#: (YTsaurusStreamingTransactionSupport.createTransaction).
PAUSES = (
    Place("opened", (PLANNED, OPENED)),
    Place("outputs", (PLANNED, Request("ModifyRows", {"path": "{output}"}, skip=1))),
    # The audit asks for the queue's id once all outputs are written.
    Place(
        "audit",
        (
            PLANNED,
            Request("ModifyRows", {"path": "{output}"}),
            Request("get", {"path": "{queue}/@id"}),
        ),
    ),
    Place("head", (PLANNED, Request(HEAD.method, HEAD.where, "after"))),
    Place("log", (PLANNED, Request("MoveNode", {"destination_path": "*/commits/*"}, "after"))),
    Place("commit", (PLANNED, HEAD, COMMIT)),
)
#: The request of the older driver that the cluster applies late.
LATE = Place("late", (PLANNED, HEAD, COMMIT))
_RAISED = (HEAD, COMMITTED)
_BEGUN = (*_RAISED, HEAD, COMMITTED)
#: When it is applied, in the life of the newer driver: that writes the head to raise the epoch, to
#: begin, and in each batch.
MOMENTS = (
    Place("before-raise", (HEAD,)),
    Place("raised", _RAISED, late_is_refused=True),
    Place("begun", _BEGUN, late_is_refused=True),
    Place("first-batch", (*_BEGUN, HEAD, COMMITTED), late_is_refused=True),
)


@dataclass(frozen=True)
class Case:
    """One older driver, one newer one."""

    variant: Variant
    kind: Literal["paused", "late"]
    place: Place

    @property
    def name(self) -> str:
        """The name that `--only` looks into."""
        return "-".join((*map(str, self.variant), self.kind, self.place.name))

    @property
    def may_repeat(self) -> bool:
        """Whether rows may repeat: at least once allows it, the other guarantees do not."""
        return self.variant[0] == "at_least_once"


CASES = tuple(
    case
    for variant in VARIANTS
    for case in (
        *(Case(variant, "paused", place) for place in PAUSES),
        *(Case(variant, "late", moment) for moment in MOMENTS),
    )
)


def chosen(only: str) -> list[Case]:
    """Return the cases whose name contains ``only``."""
    return [case for case in CASES if only in case.name]

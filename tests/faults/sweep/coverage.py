"""Which jobs meet which faults, and where: counted from the cases, so no sentence has to say it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from tests.faults.sweep import cases
from tests.faults.sweep.cases import Case
from tests.faults.sweep.jobs import JOBS, LISTINGS
from tests.faults.variants import Variant
from ytstream.settings.job_settings import OWN

PLACES: Mapping[str, str] = {
    "start-raise": "start: raise", "start-begin": "commit", "start-open": "open",
    "first": "first batch", "middle": "second", "last": "third", "rowless": "without rows",
    "restart-raise": "restart: raise", "restart-begin": "commit", "restart-open": "open",
    "again": "its batch", "rowless-again": "without rows",
}  # fmt: skip
"""Places of the recorded run, in their order, and the columns of the table."""
HEAD = ("jobs", "faults", *PLACES.values())
_KILL = "kill"
_MARK = "●"


@cache
def of_proof() -> Sequence[Sequence[str]]:
    """Return the rows of the table of the page."""
    return tuple(rows(cases.of_proof()))


def rows(found: Iterable[Case]) -> list[Sequence[str]]:
    """Return the rows of the table: jobs with equal faults in equal places, then each such fault.

    Stumbles are drawn from all places of several jobs, and some faults from those of a batch, so
    they are in no cell.
    """
    points = cases.load_points()
    undrawn = {
        case
        for variant in (*JOBS, *LISTINGS)
        for case in cases.cases_of(variant, points.get(variant.name, ()))
        if not cases.is_in_turn(case)
    }
    alike: dict[tuple[tuple[str, frozenset[str]], ...], list[Variant]] = {}
    for variant, known in _by_variant(case for case in found if case in undrawn).items():
        alike.setdefault(tuple(sorted(known.items())), []).append(variant)
    return [row for known, variants in alike.items() for row in _of(dict(known), named(variants))]


def _by_variant(found: Iterable[Case]) -> dict[Variant, dict[str, frozenset[str]]]:
    """Return the places in which each variant meets each fault."""
    known: dict[Variant, dict[str, frozenset[str]]] = {}
    for case in found:
        fault = _KILL if case.fault in cases.KILLS and not case.second else case.kind
        places = known.setdefault(case.variant, {})
        places[fault] = places.get(fault, frozenset()) | {case.place}
    return known


def _of(known: Mapping[str, frozenset[str]], jobs: str) -> list[Sequence[str]]:
    """Return a row for each set of places; the first one names the jobs."""
    alike: dict[frozenset[str], list[str]] = {}
    for fault in (_KILL, *(fault for fault in cases.FAULTS if fault in known)):
        alike.setdefault(known[fault], []).append("two kills" if fault == "second" else fault)
    return [
        (*("" if number else jobs, ", ".join(faults)), *(_MARK * (one in places) for one in PLACES))
        for number, (places, faults) in enumerate(alike.items())
    ]


def named(variants: Iterable[Variant]) -> str:
    """Return the names of variants in few words."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for one in variants:
        where = "SPYT's connector" if one.connector != OWN else ""
        where = "SPYT's example" if one.is_listing else where
        of = f"`{one.guarantee}`" + (f", {where}" if where else "")
        numbers.setdefault((of, one.processing), []).append(one.queues)
    alike: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (of, processing), queues in numbers.items():
        alike.setdefault((of, tuple(queues)), []).append(processing)
    return "; ".join(
        f"{of}: {', '.join(kinds)} ({_counted(queues)})" for (of, queues), kinds in alike.items()
    )


def _counted(queues: Sequence[int]) -> str:
    return "one queue or two" if len(queues) > 1 else {1: "one queue", 2: "two queues"}[queues[0]]

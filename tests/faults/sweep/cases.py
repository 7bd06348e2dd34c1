"""The cases: a variant, a point of its recorded run, and what goes wrong there.

The points are in points.json, so that every run of the proof has the same cases. A point that a new
recording does not have is a case that is missed, and not one that holds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.faults import protocol
from tests.faults.sweep.jobs import JOBS, LISTINGS, STUMBLING, VARIANTS, variant_of
from tests.faults.sweep.points import COMMITS, LAST, MIDDLE, STARTS, WRITES
from tests.faults.variants import Variant
from tests.support.examples import STATEFUL
from tests.support.server_errors import FULL as NEED_SPACE
from tests.support.server_errors import is_http
from ytstream.errors.error_codes import ErrorCode
from ytstream.settings.job_settings import OWN, ROCKSDB

POINTS = Path(__file__).with_name("points.json")

KILLED_BEFORE, KILLED_AFTER = "killed-before", "killed-after"
KILLS = (KILLED_BEFORE, KILLED_AFTER)
OVERTAKEN = "overtaken"
"""Of requests that tasks send side by side, the first one is the only one that is not applied."""
REFUSED, DROPPED, LOST_REPLY = "refused", "dropped", "lost-reply"
"""What a request meets, and the driver lives on."""
PAUSED, GONE, CLOCK, AWAY = "paused", "transaction-gone", "clock-60-s", "cluster-away"
SLOW, PROXY, FULL_DISK = "slow", "proxy-restarts", "disk-full"
REMOUNTED, RESHARDED, ALTERED = "remounted", "resharded", "altered"
OF_CLUSTER = (AWAY, SLOW, PROXY, FULL_DISK)
"""What happens to the cluster, or to the output, while a request is under way."""
OF_TABLE = (REMOUNTED, RESHARDED, ALTERED)
AWAY_LONG, FULL_LONG, TOKEN = "cluster-away-600-s", "disk-full-60-s", "token-expired"
"""What a cluster does that stumbles; a job with state meets it at each class of its requests."""
STUMBLES = (REFUSED, DROPPED, LOST_REPLY, AWAY, AWAY_LONG, FULL_LONG, TOKEN)
MUST_END: Mapping[str, tuple[ErrorCode, str]] = {
    TOKEN: (ErrorCode.TOKEN, "only a person can renew a token"),
}
"""After these a job has to end, with this code. Whatever else ends it counts against it."""
MAY_END: Mapping[str, ErrorCode] = {ALTERED: ErrorCode.NOT_PROVISIONED}
"""After these it may: a batch that fails finds out that the output has a column that tables.py
lacks. Once a person has corrected tables.py, the next driver goes on."""
LATE = ("late-before-raise", "late-raised", "late-in-start", "late-begun", "late-first-batch")
"""When a commit whose connection broke is applied, in the life after it."""
_LATE_ROWS = (LATE[0], LATE[1], LATE[3])
"""Of rows outside a transaction: the writer sends them again in the same life, so no start follows.
"""
THEN = "+"
THREAD, PROCESS = "thread", "process"

FAULTS: Mapping[str, str] = {
    KILLED_BEFORE: "the driver is killed before the request",
    KILLED_AFTER: "the driver is killed once the request is applied",
    OVERTAKEN: "the driver is killed once all requests that tasks send in parallel are applied, "
    "except this one",
    "second": "killed, and its successor is killed in a step of its start",
    REFUSED: "the cluster refuses the request",
    DROPPED: "the connection breaks before the request is applied",
    LOST_REPLY: "the request is applied, but the connection breaks before the reply",
    PAUSED: "the request is held, a successor drains the queues, then the request is applied",
    GONE: "the driver sleeps until its transaction has expired",
    CLOCK: "the cluster's clock is 60 s ahead of the driver's from then on",
    AWAY: "the cluster is unavailable for 1.5 s, from the request on",
    SLOW: "each request takes 0.2 s more for 6 s, from the request on",
    PROXY: "the RPC proxy, one of two, ends and is started again",
    FULL_DISK: "the account's disk space is used up for 1.5 s: what needs space fails",
    AWAY_LONG: "the cluster is unavailable until the job waits for it and 600 s have passed",
    FULL_LONG: "the account's disk space is used up for 60 s",
    TOKEN: "the token has expired, so every request fails: the job must end",
    REMOUNTED: "the output is unmounted and mounted",
    RESHARDED: "the output is unmounted, gets one more tablet, and is mounted",
    ALTERED: "the output is unmounted, gets one more column, and is mounted",
    LATE[0]: "the commit loses its connection, and is applied before the next epoch is raised",
    LATE[1]: "the commit is applied once the next epoch is raised",
    LATE[2]: "the commit is applied once the next start has read all positions",
    LATE[3]: "the commit is applied once the next start is committed",
    LATE[4]: "the commit is applied once the next batch is committed",
}
"""What is said of each fault, in the order of the page."""
FULL = frozenset(
    {
        "transactional-window-1",
        "transactional-window-2",
        "at_least_once-window-1",
        *(
            variant.name
            for variant in (*VARIANTS, *LISTINGS)
            if variant.connector == OWN
            and not variant.is_stateful
        ),
    }
)  # fmt: skip
"""Variants that meet every fault. The other jobs take turns: see of_turns()."""
_LIVE = ("start-raise", "start-begin", "start-open", "middle", "rowless", "restart-begin")
"""Places in which a driver that lives meets a fault: each step of a start, and a batch between two.
"""
_READS = ("start-raise", "start-open", "middle")
_OF_STATES = ("middle",)
"""Where the states of processing types differ, and those of the two connectors. Kills in the start
of a job with state are cases of two_drivers/, with processes."""
_OF_EACH_BATCH = ("middle", "again", "rowless")
"""Also the batch that reads the state from files, and the one that writes without reading rows."""
EACH_BATCH = frozenset(
    {"at_least_once-window-1", *(f"transactional-{processing}-1" for processing in STATEFUL)}
)
"""Jobs with state that are killed in all of these batches; the others in one."""
_OF_LISTINGS = ("middle", "again", "restart-open")
_PAUSED = ("start-begin", "start-open", "middle")
"""Before it has raised the epoch, a driver that comes back may raise it freely."""
_GONE = ("start-begin", "middle")
_OF_TASKS = ("output", "rejected", "checkpoint/N/state/N/", "checkpoint/state/N/")
"""What tasks write: the objects of their requests begin so."""
FIRST = (
    ("ModifyRows", "output", KILLED_AFTER),
    ("CommitTransaction", "ledger", KILLED_BEFORE),
    ("CommitTransaction", "ledger", KILLED_AFTER),
)
"""Where the first of two faults kills: method and object of a request of the middle batch."""
_STARTS = tuple(f"restart-{part}" for part in protocol.LIFE)
_FILES = re.compile(r"(?:checkpoint/N/)?(state/.*_metadata|[^/@]+)")
"""What an object is for a class: a kind of files of a checkpoint, or a node with its attributes."""
_FOREIGN = "home/"
"""The folder of all variants: an object of the variant itself has a name without it."""
STEPS = (*_STARTS, *(name.removeprefix("re") for name in _STARTS))
FIRST_OF_LISTINGS = {
    "transactional": (
        ("MoveNode", "checkpoint/commits/N", KILLED_AFTER),
        ("CommitTransaction", "consumer", KILLED_AFTER),
    ),
}
"""The listing has no ledger: its batch is over with an entry of Spark's log and a commit of SPYT's.
Its rows are in a transaction until then, or each write of them is."""
_OF_OTHERS = (FIRST[0], ("MoveNode", "checkpoint/commits/N", KILLED_AFTER))


@dataclass(frozen=True)
class Case:
    """One history: a fault at a point, and what the job makes of it."""

    variant: Variant
    point: str
    """The point's name."""
    fault: str
    second: str = ""
    """Of two faults in a row: the point of the start after the first one."""
    driver: str = THREAD
    """What meets the fault. A process is killed in fact; a thread's successor gets the state that a
    killed process has left."""

    @property
    def name(self) -> str:
        """The name that `ONLY=` takes."""
        first = f"{self.variant.name}:{self.point}:{self.fault}"
        return f"{first}{THEN}{self.second}:{KILLED_AFTER}" if self.second else first

    @property
    def kind(self) -> str:
        """Its key in FAULTS."""
        return "second" if self.second else self.fault

    @property
    def place(self) -> str:
        """The place of the point."""
        return self.point.partition(":")[0]

    @property
    def class_(self) -> tuple[str, str, str]:
        """The class of the request: of a start, a restart or a batch, the method, and the object.

        Reads of one object by one protocol are a class. So are requests about files of one kind.
        """
        stage = self.place.partition("-")[0] if self.place in STEPS else "batch"
        method, _, about = self.point.partition(":")[2].partition("~")[0].partition(".")
        file = _FILES.match(about)
        read = "read by HTTP" if is_http(method) else "read by RPC"
        return stage, method if method in WRITES else read, file[1] if file else about

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """What is played together in a stumble, two by two."""
        which = self.point.partition("~")[2] or "first"
        parts = (self.variant.store, self.variant.connector, which, self.fault)
        return [*combinations(parts, 2), ("place", self.place)]

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """What leading() counts of a stumble, two by two."""
        which = self.point.partition("~")[2] or "first"
        of_job = self.variant.processing, self.variant.store, self.variant.connector
        parts = (*of_job, which, self.fault, *(f"{n} {of}" for n, of in enumerate(self.class_)))
        return [*combinations(parts, 2)]


def cases_of(variant: Variant, points: Iterable[Mapping[str, Any]]) -> Iterator[Case]:
    """Yield the cases of a variant whose recorded run has these points, but for stumbles."""
    known = [point for point in points if _is_played(variant, point)]
    for point in known:
        name = str(point["name"])
        if point["is_write"]:
            yield from (Case(variant, name, kill) for kill in KILLS)
            if _is_side_by_side(point):
                yield Case(variant, name, OVERTAKEN)
        if is_full(variant, point["place"]) or _takes_turns(variant, point["place"]):
            yield from (Case(variant, name, fault) for fault in _living(variant, point))
    if variant.name not in FULL and (variant.is_stateful or variant.connector != OWN):
        return
    for method, kind, kill in _first(variant):
        first = f"middle:{method}.{kind}"
        if any(point["name"] == first for point in known):
            for point in known:
                if point["is_write"] and point["place"] in _STARTS:
                    yield Case(variant, first, kill, str(point["name"]))


def _first(variant: Variant) -> Sequence[tuple[str, str, str]]:
    """Return the first ones of two kills.

    Rows that are written in a transaction are as if they were not, until it is committed.
    """
    if variant.is_listing:
        return FIRST_OF_LISTINGS.get(variant.guarantee, _OF_OTHERS)
    return FIRST[1:] if variant.guarantee == "transactional" else FIRST


def _is_played(variant: Variant, point: Mapping[str, Any]) -> bool:
    """Return whether the variant has cases at that point."""
    place = point["place"]
    is_chosen = "~" not in point["name"] or (point["is_write"] and _which(point) == LAST)
    if not is_chosen or variant.store != ROCKSDB:
        return False
    if not variant.is_stateful:
        return not variant.is_listing or place in _OF_LISTINGS
    # With two queues, the files of the state are those of one queue.
    is_of_rows = variant.queues == 1 or not str(point["object"]).startswith("checkpoint")
    batches = _OF_EACH_BATCH if variant.name in EACH_BATCH else _OF_STATES
    return place in batches and is_of_rows


def is_full(variant: Variant, place: str) -> bool:
    """Return whether the variant meets every fault in that place."""
    return variant.name in FULL and (place == "middle" or not variant.is_listing)


def _takes_turns(variant: Variant, place: str) -> bool:
    """Return whether the variant meets a part of the faults in that place, with others like it."""
    is_job = not variant.is_listing and variant.store == ROCKSDB
    return is_job and variant.name not in FULL and place == "middle"


def is_in_turn(case: Case) -> bool:
    """Return whether jobs take turns in the fault of a case, which others of them do not meet."""
    is_kill = case.fault in (*KILLS, OVERTAKEN)
    return not is_kill and _takes_turns(case.variant, case.place)


def of_turns(cases: Iterable[Case]) -> set[Case]:
    """Return the cases of faults that jobs take turns in.

    Each class of request meets each fault once for each kind of job: with state or without, with
    one queue or two, on each connector. Processing types and guarantees take turns.
    """
    classes: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        variant = case.variant
        kind = (variant.is_stateful, variant.queues, variant.connector)
        classes.setdefault((kind, *case.class_, case.fault), []).append(case)
    played: Counter[object] = Counter()
    found: set[Case] = set()
    for key in sorted(classes, key=str):
        least = min(
            classes[key],
            key=lambda case: (
                played[case.variant.name, case.fault],
                played[case.variant.name],
                case.name,
            ),
        )
        played.update([(least.variant.name, least.fault), least.variant.name])
        found.add(least)
    return found


def _is_side_by_side(point: Mapping[str, Any]) -> bool:
    """Whether several tasks send such a request in one batch, and this is the first of them."""
    is_of_a_task = str(point["object"]).startswith(_OF_TASKS)
    return point["place"] == "middle" and is_of_a_task and "~" not in point["name"]


def _living(variant: Variant, point: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults that a driver meets at a point and lives on."""
    place, is_write = point["place"], point["is_write"]
    committed = _committed(variant)
    if is_write and place in _LIVE:
        yield from (REFUSED, DROPPED, LOST_REPLY)
    reads = () if variant.is_listing or variant.is_stateful else _READS
    if not is_write and place in reads and "#" not in point["object"]:  # an id differs each time
        yield REFUSED
    # Two queries of one checkpoint cannot run in one JVM: with state, real processes are paused.
    if is_write and place in _PAUSED and not (variant.is_stateful or variant.is_listing):
        yield PAUSED
    if point["in_transaction"] and is_write and place in _GONE:
        yield from (GONE, CLOCK)
    if place == "middle" and is_write and point["object"] in ("output", committed):
        is_with_data = point["method"] in NEED_SPACE
        yield from (one for one in OF_CLUSTER if one != FULL_DISK or is_with_data)
        yield from OF_TABLE
    # Without a transaction, nothing fences rows that a task has committed.
    is_of_rows = variant.guarantee != "transactional" and point["object"] == "output"
    if point["method"] in COMMITS and (point["object"] == committed or is_of_rows):
        if variant.is_listing:  # has no epoch: before the next start, or once it has read all
            yield from (LATE[0], LATE[-1]) if place == "middle" else ()
        else:
            moments = _LATE_ROWS if is_of_rows else LATE
            yield from moments if place == "middle" else LATE[:1]


def _committed(variant: Variant) -> str:
    """Return what the commit of a batch is about."""
    if not variant.is_listing:
        return "ledger"
    return "consumer" if variant.guarantee == "transactional" else "output"


Points = Mapping[str, Iterable[Mapping[str, Any]]]


def all_cases(points: Points | None = None) -> list[Case]:
    """Return every case, variant by variant."""
    known = points if points is not None else _known_points()
    found = (
        case
        for variant in (*JOBS, *LISTINGS)
        for case in (
            *cases_of(variant, known.get(variant.name, ())),
            *_stumbles(variant, known),
        )
    )
    return [*dict.fromkeys(found)]


def _stumbles(variant: Variant, points: Points) -> Iterator[Case]:
    """Yield what a variant meets of a cluster that stumbles: every fault at every point."""
    for point in points.get(variant.name, ()) if variant in STUMBLING else ():
        # In a batch, those who watch it read by HTTP, at times of their own.
        is_beside = (
            point["place"] not in STEPS and not point["is_write"] and is_http(point["method"])
        )
        # An id differs each time. A lab's JVM may still load the state of its former variant.
        is_foreign = "#" in point["object"] or point["object"].startswith(_FOREIGN)
        if not (is_beside or is_foreign):
            yield from (Case(variant, str(point["name"]), fault) for fault in _stumbles_at(point))


def _stumbles_at(point: Mapping[str, Any]) -> Iterator[str]:
    """Yield the stumbles that a request can meet."""
    for fault in STUMBLES:
        # A read without a reply is as if it had not been applied.
        is_lost = fault == LOST_REPLY and not point["is_write"]
        is_without_data = fault == FULL_LONG and point["method"] not in NEED_SPACE
        if not (is_lost or is_without_data):
            yield fault


def covering(points: Points) -> set[Case]:
    """Return the stumbles that sampled_stumbles() chooses from.

    Each processing type meets each of its faults at each class of request once. The variants and
    the points of a class take turns, so that each pair of a store, a connector, a position and a
    fault is played for each type, and each place.
    """
    found: set[Case] = set()
    for processing in STATEFUL:
        classes: dict[tuple[str, ...], list[Case]] = {}
        for variant in STUMBLING:
            if variant.processing == processing:
                for case in _stumbles(variant, points):
                    classes.setdefault((*case.class_, case.fault), []).append(case)
        played: Counter[tuple[str, str]] = Counter()
        for key in sorted(classes):
            least = min(classes[key], key=lambda case: sum(played[pair] for pair in case.pairs))
            played.update(least.pairs)
            found.add(least)
    return found


def sampled_stumbles(covered: Iterable[Case] | None = None) -> list[Case]:
    """Return the stumbles that `make proof` plays: an hour is enough for them.

    Each class of request meets each of its faults once. Types and variants take turns, so that
    each type is played at each of its classes, and each variant as often as others.
    """
    classes: dict[tuple[str, ...], list[Case]] = {}
    known = _covered() if covered is None else covered
    for case in sorted(known, key=lambda case: case.name):
        classes.setdefault((*case.class_, case.fault), []).append(case)
    at_class: Counter[tuple[str, ...]] = Counter()
    of_variant: Counter[str] = Counter()
    found = []
    for key in sorted(classes):
        least = min(
            classes[key],
            key=lambda case: (
                at_class[(case.variant.processing, *case.class_)],
                of_variant[case.variant.name],
            ),
        )
        at_class[(least.variant.processing, *least.class_)] += 1
        of_variant[least.variant.name] += 1
        found.append(least)
    return found


def leading(cases: Sequence[Case], count: int) -> list[Case]:
    """Return ``count`` cases, each of which has as many pairs as possible that none before has.

    Of a stage, a method, an object, a fault, a type, a store, a connector and a position.
    """
    left, found, seen = [*cases], list[Case](), set[tuple[str, str]]()
    while left and len(found) < count:
        best = max(left, key=lambda case: len({*case.kinds} - seen))
        found.append(best)
        seen |= {*best.kinds}
        left.remove(best)
    return found


def distinct(cases: Iterable[Case], points: Points | None = None) -> list[Case]:
    """Return the cases that `make proof` plays.

    Left out are kills that leave what another one does, stumbles beyond sampled_stumbles(), and
    faults in which jobs take turns.
    """
    known = points if points is not None else _known_points()
    covered = covering(known) if points is not None else _covered()
    stumbles = {*sampled_stumbles(covered)}
    kept = stumbles.union(
        case for variant in STUMBLING for case in cases_of(variant, known.get(variant.name, ()))
    )
    every = [
        case
        for case in cases
        if case in kept or not (case.fault in STUMBLES and case.variant in STUMBLING)
    ]
    in_turn = {case for case in every if is_in_turn(case) and case not in stumbles}
    skipped = in_turn - of_turns(in_turn)
    by_name = {name: {str(one["name"]): one for one in found} for name, found in known.items()}
    killed = [case for case in every if case.fault in KILLS]
    alike: dict[tuple[str, ...], Case] = {}
    for case in killed:
        last = _last_kill(case)
        first = _first_alike(by_name.get(case.variant.name, {}), last)
        former = (case.point, case.fault) if case.second else ()
        key = (case.variant.name, *former, *first)
        if (last.point, last.fault) == first or key not in alike:
            alike[key] = case
    left_out = skipped | {*killed} - {*alike.values()}
    return [case for case in every if case not in left_out]


def _last_kill(case: Case) -> Case:
    """Return the kill of a case that comes last, as a case of its own."""
    return replace(case, point=case.second, fault=KILLED_AFTER, second="") if case.second else case


def _first_alike(points: Mapping[str, Mapping[str, Any]], case: Case) -> tuple[str, str]:
    """Return the point and the kill that leave the same as a kill, the earliest ones."""
    name, kill = case.point, case.fault
    while (point := points.get(name)) and point["is_write"] and point["after"]:
        if kill == KILLED_AFTER and not _leaves_nothing(point):
            break
        name, kill = str(point["after"]), KILLED_AFTER
    return name, kill


def _leaves_nothing(point: Mapping[str, Any]) -> bool:
    """Return whether a driver that is killed after the request leaves what it would have before.

    What is written in a transaction is gone with it, until it is committed. A transaction without
    writes holds nothing.
    """
    return point["method"] in STARTS or (point["in_transaction"] and point["method"] not in COMMITS)


def kills() -> tuple[int, int]:
    """Return how many single kills `make proof` plays, and how many there are at all requests."""
    played, every = (
        sum(case.fault in KILLS and not case.second for case in found)
        for found in (of_proof(), all_cases())
    )
    return played, every


def _which(point: Mapping[str, Any]) -> str:
    """Return which one of its class a point is."""
    return str(point["name"]).partition("~")[2]


@cache
def _known_points() -> dict[str, list[dict[str, Any]]]:
    return load_points()


@cache
def _covered() -> set[Case]:
    return covering(_known_points())


@cache
def of_proof() -> Sequence[Case]:
    """Return the cases that `make proof` plays, variant by variant."""
    return tuple(distinct(all_cases()))


def load_points() -> dict[str, list[dict[str, Any]]]:
    """Return the recorded points by variant, whose number is a bit of each point's mask."""
    known = json.loads(POINTS.read_text(encoding="utf-8"))
    return {
        name: [_point(*text) for *text, mask in known["points"] if int(mask, 16) >> number & 1]
        for number, name in enumerate(known["variants"])
    }


def _point(name: str, flags: str, after: str) -> dict[str, Any]:
    place, _, about = name.partition("~")[0].partition(":")
    method, _, found = about.partition(".")
    return {
        "name": name, "place": place, "method": method, "object": found,
        "is_write": "w" in flags, "in_transaction": "t" in flags, "after": after,
    }  # fmt: skip


def chosen(only: str, cases: Iterable[Case]) -> list[Case]:
    """Return the case of that name, or else those whose name contains every word of ``only``."""
    known = [*cases]
    exact = [case for case in known if case.name == only]
    return exact or [case for case in known if all(word in case.name for word in only.split())]


def save_points(found: Mapping[str, list[dict[str, Any]]]) -> None:
    """Write the points that have cases, one per line, for load_points()."""
    masks: dict[tuple[str, str, str], int] = {}
    for number, variant in enumerate(sorted(found)):
        for point in found[variant]:
            is_read = variant in FULL and point["place"] in _READS and "~" not in point["name"]
            is_written = point["is_write"] and _which(point) != MIDDLE
            if is_written or is_read or variant_of(variant) in STUMBLING:
                flags = "w" * point["is_write"] + "t" * point["in_transaction"]
                key = (point["name"], flags, point["after"])
                masks[key] = masks.get(key, 0) | 1 << number
    points = ",\n".join(json.dumps([*key, f"{masks[key]:x}"]) for key in masks)
    names = json.dumps(sorted(found))
    POINTS.write_text(f'{{"variants": {names},\n"points": [\n{points}\n]}}\n', encoding="utf-8")

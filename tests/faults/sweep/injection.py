"""How a fault happens: a state that a killed driver has left, or a rule of the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from minicluster.client import Fault
from minicluster.http.commands import COMMANDS
from tests.faults.after_requests import Request, add_fault
from tests.faults.sweep import cases
from tests.faults.sweep.driver import SLOWER, Driver, StalledError, end_queries, until
from tests.faults.sweep.playing import TRANSACTION_SECONDS, MissedError, Play
from tests.faults.sweep.points import Point, is_border, named
from tests.faults.sweep.recording import RecordedLife, recovery
from tests.support import server_errors
from tests.support.remounts import (
    ADDED,
    Change,
    nothing,
    one_more_column,
    one_more_tablet,
    remount,
)
from ytstream import Column, Job
from ytstream.instance.lock import LOCK_SECONDS

_AWAY_SECONDS, _FULL_SECONDS = 1.5, 60.0
_ABSENT_SECONDS, _ROUNDS = 600.0, 3
"""A long absence, and the times that a driver finds the cluster away until it only waits."""
_SLOW_SECONDS = 6.0
_HIT_SECONDS = 180.0 * SLOWER
"""How long a fault may take to come; a start on a busy machine is slow."""
_LISTING_SECONDS = 10.0
"""How long a listing may take to end after its commit was lost."""
_NEXT_BATCH_SECONDS = 30.0 * SLOWER
"""How long the commit is held for the listing's next batches. Its next batch may wait for it."""
_QUIET_SECONDS = 1.0
"""When no request came for so long, the tasks that are not held back are done."""
Cause = Callable[[Play, Point, RecordedLife], None]
"""Makes a fault happen at a point. Raises MissedError where it did not."""


def cause_of(fault: str) -> Cause:
    """Return what makes a fault happen to a driver in a thread."""
    if fault == cases.OVERTAKEN:
        return _overtaken
    return _by_state if fault in cases.KILLS else _living


# -- killed: the state that the driver has left


def _by_state(play: Play, point: Point, life: RecordedLife) -> None:
    """Load the state that a killed driver has left; start a new one."""
    recording, case = play.recording, play.case
    n = point.n if case.fault == cases.KILLED_AFTER else point.n - 1
    state = recording.state_after(life, n)
    if case.second:
        again = recovery(recording, f"{case.point}:{case.fault}", state, life.sent)
        second = next((found for found in again.points if found.name == case.second), None)
        if second is None:
            raise MissedError("the start after the first fault has no such request")
        state = recording.state_after(again, second.n)
    _succeed(play, state)


def _succeed(play: Play, state: str) -> None:
    """Load the state that a killed driver has left, and start its successor."""
    play.begin(state, killed=True)
    play.since = time.monotonic()
    play.arrive()
    play.start()


def _overtaken(play: Play, point: Point, life: RecordedLife) -> None:
    """Hold a task's request back until the others are done; take that state for a kill's."""
    recording, control = play.recording, play.recording.control
    play.begin(life.base)
    state = str(recording.folder / "overtaken.state")
    with armed(play, point, action="delay") as rule:
        driver = play.start()
        _await(play, rule, driver)
        beside = _settled(play, point)
        control.save(state)
    driver.ask_to_end()
    hit = hit_of(play, rule)
    control.faults.remove(rule)
    verify(point, hit)
    if not beside:
        raise MissedError("no task has sent anything beside it")
    end_queries(recording.lab.spark)
    driver.end()
    control.faults.clear()
    _succeed(play, state)


def _settled(play: Play, point: Point) -> int:
    """Return how many requests of the point's class others have sent, once no more of them come."""
    count, since = _beside(play, point), time.monotonic()
    while time.monotonic() - since < _QUIET_SECONDS:
        time.sleep(0.05)
        if (now := _beside(play, point)) != count:
            count, since = now, time.monotonic()
    return count


def _beside(play: Play, point: Point) -> int:
    """Return how many requests of the point's class are in the journal since the last border."""
    entries, found = play.recording.control.journal(), 0
    for entry, name in zip(entries, named(entries, play.recording.variant.root), strict=True):
        found += (entry.method, name) == (point.method, point.object)
        if is_border(entry, name, is_listing=play.recording.variant.is_listing):
            found = 0
    return found


# -- alive: a rule of the cluster at the point


def _living(play: Play, point: Point, life: RecordedLife) -> None:
    """Start a driver from the life's beginning, and let the fault happen to it."""
    recording, fault = play.recording, play.case.fault
    play.begin(life.base)
    with armed(play, point, **_order(fault, point.method)) as rule:
        # What lasts begins with the request, not when somebody has seen it.
        lasting = [
            recording.control.faults.add(times=None, armed_by=rule, **order)
            for order in _lasting(play, fault)
        ]
        driver = play.start()
        _await(play, rule, driver)
        play.since, hit = time.monotonic(), hit_of(play, rule)
        if not lasting:  # what lasts would meet these requests, too
            play.arrive()
        _ACTIONS.get(fault, _nothing)(play, rule)
        for one in lasting:
            recording.control.faults.remove(one)
        if lasting:
            play.arrive()
        play.over = time.time()
    if fault in cases.MUST_END:
        play.start_after(cases.MUST_END[fault][0])
    verify(point, hit)


_RULES: Mapping[str, Mapping[str, Any]] = {
    cases.DROPPED: {"action": "hang_up"},
    cases.LOST_REPLY: {"action": "lose_reply"},
    cases.PAUSED: {"action": "delay"},
    cases.GONE: {"action": "delay"},
    cases.CLOCK: {"action": "delay"},
    cases.AWAY: {"action": "hang_up"},
    cases.AWAY_LONG: {"action": "hang_up"},
    cases.SLOW: {"action": "delay", "seconds": 0},
    cases.PROXY: {"action": "proxy_down"},
    **{fault: {"action": "delay"} for fault in cases.OF_TABLE},
    cases.LATE[0]: {"action": "apply_late"},
}


def _order(fault: str, method: str) -> Mapping[str, Any]:
    """Return what the rule orders for the request at the point."""
    if fault == cases.REFUSED:
        return {"action": "fail", "error": server_errors.unavailable(method)}
    if fault == cases.TOKEN:
        return {"action": "fail", "error": server_errors.token_expired(method)}
    if fault in _OF_SPACE:
        return {"action": "fail", "error": server_errors.FULL[method]}
    return _RULES[fault if fault not in cases.LATE else cases.LATE[0]]


_OF_SPACE = (cases.FULL_DISK, cases.FULL_LONG)
_FOR_EVERYBODY = "discover_proxies"
"""The HTTP proxy names the RPC proxies to everybody (TContext::TryParseUser, server/http_proxy)."""


def _lasting(play: Play, fault: str) -> Sequence[Mapping[str, Any]]:
    """Return what begins with the request and meets all such requests until it is taken back."""
    if fault in (cases.AWAY, cases.AWAY_LONG):
        return [{"action": "hang_up"}]
    if fault == cases.SLOW:
        return [{"action": "delay", "seconds": 0.2}]
    if fault in _OF_SPACE:
        return [
            {"action": "fail", "method": method, "error": error}
            for method, error in server_errors.FULL.items()
        ]
    if fault == cases.TOKEN:
        cluster = play.recording.lab.cluster
        known = [name for name in COMMANDS if name != _FOR_EVERYBODY]
        by_http = {"proxy": cluster.http, "method": known, "error": server_errors.TOKEN_BY_HTTP}
        by_rpc = ({"proxy": proxy, "error": server_errors.TOKEN} for proxy in cluster.rpc)
        return [{"action": "fail", **rule} for rule in (by_http, *by_rpc)]
    return ()


@contextmanager
def armed(play: Play, point: Point, **order: Any) -> Iterator[Fault]:
    """Order a fault for the point of the next driver: behind so many commits of the ledger."""
    recording, skip = play.recording, point.commits - 1
    steps = [Request(point.method, point.where, skip=point.skip)]
    if point.commits and recording.variant.is_listing:
        planned = {"destination_path": "*/offsets/*"}
        steps.insert(0, Request("MoveNode", planned, "after", skip))
    elif point.commits:
        steps[:0] = [_head(play, skip), _COMMITTED]
    yield add_fault(recording.control.faults, steps, **order)


_COMMITTED = Request("CommitTransaction", when="after")


def _head(play: Play, skip: int = 0) -> Request:
    """Return the request that writes the ledger's head, behind ``skip`` others."""
    return Request("ModifyRows", {"path": play.recording.context.settings.ledger}, skip=skip)


def _await(play: Play, rule: Fault, driver: Driver) -> None:
    """Wait until the fault has happened.

    Raises MissedError, or StalledError for a job that has left rows in the queue.
    """
    faults = play.recording.control.faults
    try:
        until(lambda: faults.get(rule).hits or driver.is_over, "the fault", _HIT_SECONDS)
    except StalledError:
        if play.recording.variant.is_listing or play.recording.drained()():
            raise MissedError("the request did not come") from None
        raise StalledError("the driver hangs before the fault") from None
    if not faults.get(rule).hits:
        # A job has no reason to: nothing has happened to it yet.
        play.verify_goes_on()
        error = MissedError if play.recording.variant.is_listing else StalledError
        raise error(f"the driver ended before: {driver.error}")


def hit_of(play: Play, rule: Fault) -> tuple[str, str]:
    """Return method and object of the request that the rule has hit first."""
    control = play.recording.control
    number = control.faults.get(rule).first_hit
    entries = [entry for entry in control.journal() if entry.n <= number]
    return entries[-1].method, named(entries, play.recording.variant.root)[-1]


def verify(point: Point, hit: tuple[str, str]) -> None:
    """Raise MissedError when the fault has hit a request of another class."""
    if hit != (point.method, point.object):
        raise MissedError(f"the fault hit {' of '.join(hit)}")


def _nothing(play: Play, rule: Fault) -> None:
    pass


def _successor(play: Play, rule: Fault) -> None:
    """Let a second driver drain the queues; then the first one's request goes on."""
    older = play.drivers[-1]
    play.recording.control.clock.advance(LOCK_SECONDS + 1)
    play.start()
    play.drain()
    play.recording.control.faults.remove(rule)
    until(lambda: older.is_over, "the older driver ends")
    if play.drivers[-1].is_over:
        raise StalledError(f"the newer driver has ended: {play.drivers[-1].error}")


def _sleep(seconds: float) -> Callable[[Play, Fault], None]:
    def slept(play: Play, rule: Fault) -> None:
        play.recording.control.clock.advance(seconds)
        play.recording.control.faults.remove(rule)

    return slept


def _for(seconds: float) -> Callable[[Play, Fault], None]:
    """Return a function that waits so long, or until the driver has ended."""

    def waited(play: Play, rule: Fault) -> None:
        with suppress(StalledError):
            until(lambda: play.drivers[-1].is_over, "the driver ends", seconds)

    return waited


def _absent(play: Play, rule: Fault) -> None:
    """Wait until the driver waits for the cluster; for the cluster, ten minutes have passed.

    By then whatever tries a few times has given up. What the driver does from then on it repeats.
    """
    driver, begun = play.drivers[-1], time.monotonic()
    former = driver.outages

    def waits() -> bool:
        return driver.is_over or driver.outages >= former + _ROUNDS

    with suppress(StalledError):
        until(waits, "the driver waits for the cluster", _ABSENT_SECONDS)
    play.recording.control.clock.advance(max(0.0, _ABSENT_SECONDS - (time.monotonic() - begun)))


def _ends(play: Play, rule: Fault) -> None:
    until(lambda: play.drivers[-1].is_over, "the driver ends")


def _proxy_starts(play: Play, rule: Fault) -> None:
    """Start the proxies again that are down."""
    time.sleep(_AWAY_SECONDS)
    proxies = play.recording.control.proxies
    for address, is_up in proxies.list().items():
        if not is_up:
            proxies.up(address)


def _altered(play: Play, rule: Fault) -> None:
    """Give the output a column more. A person adds it to tables.py before the next driver starts.

    A table of totals takes no other column, so its job goes on with the former ones.
    """
    context = play.recording.context
    if not context.job.totals:
        play.corrected = replace(context, job=with_column(context.job))
    _remounted(one_more_column)(play, rule)


def with_column(job: Job) -> Job:
    """Return the job with the column of one_more_column() in its first output, empty."""

    def transform(*rows: DataFrame) -> DataFrame:
        return job.transform(*rows).withColumn(ADDED["name"], lit(None).cast(ADDED["type"]))

    first = next(iter(job.outputs))
    outputs = {**job.outputs, first: [*job.outputs[first], Column(ADDED["name"], ADDED["type"])]}
    return replace(job, outputs=outputs, transform=transform)


def _remounted(change: Change) -> Callable[[Play, Fault], None]:
    """Return what remounts the output; then the request goes on."""

    def happened(play: Play, rule: Fault) -> None:
        context = play.recording.context
        remount(context.client, context.settings.output, change)
        play.recording.control.faults.remove(rule)

    return happened


_MOMENTS = {"late-raised": 1, "late-begun": 2, "late-first-batch": 3}
"""When a late commit is applied: behind so many commits of the ledger in the next life."""


def _late(play: Play, rule: Fault) -> None:
    """Apply the commit at its moment in the life of the next query."""
    if play.recording.variant.is_listing:
        with suppress(StalledError):
            if play.case.fault == cases.LATE[0]:
                # In two modes SPYT sends the rows again in another transaction, and the query goes
                # on (YtDynTableUtils.runWithRetry).
                until(lambda: play.drivers[-1].is_over, "the listing ends", _LISTING_SECONDS)
            else:
                play.drain(_NEXT_BATCH_SECONDS)
        play.recording.control.faults.release(rule)
        return
    faults, fault = play.recording.control.faults, play.case.fault
    if fault == "late-before-raise":
        steps = [_head(play)]
    elif fault == "late-in-start":
        # The folder's first request: the start has read the ledger, and opens no transaction yet.
        steps = [Request("remove", {"path": "*checkpoint/*"})]
    else:
        steps = [_head(play, _MOMENTS[fault] - 1), _COMMITTED]
    moment = add_fault(faults, steps, action="delay")
    try:
        _await(play, moment, play.drivers[-1])
    except StalledError as error:
        raise StalledError(f"after the commit was lost, {error}") from None
    faults.release(rule)
    faults.remove(moment)


_ACTIONS: Mapping[str, Callable[[Play, Fault], None]] = {
    cases.AWAY: _for(_AWAY_SECONDS),
    cases.SLOW: _for(_SLOW_SECONDS),
    cases.FULL_DISK: _for(_AWAY_SECONDS),
    cases.FULL_LONG: _for(_FULL_SECONDS),
    cases.AWAY_LONG: _absent,
    cases.TOKEN: _ends,
    cases.PAUSED: _successor,
    cases.GONE: _sleep(TRANSACTION_SECONDS),
    cases.CLOCK: _sleep(60),
    cases.PROXY: _proxy_starts,
    cases.REMOUNTED: _remounted(nothing),
    cases.RESHARDED: _remounted(one_more_tablet),
    cases.ALTERED: _altered,
    **dict.fromkeys(cases.LATE, _late),
}

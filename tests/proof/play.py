"""Plays one case on a scene, and says what the tables hold afterwards."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from minicluster.client import Entry, Fault
from tests.proof import cases, history, oracle
from tests.proof.cases import Case
from tests.proof.life import PATIENCE, Life, StalledError, end_queries, until
from tests.proof.points import Point, named
from tests.proof.scene import Recorded, Scene, recovery
from ytstream.errors import JobError
from ytstream.recovery.lock import LOCK_SECONDS

HELD, FAILED, MISSED, STALLED = "held", "failed", "missed", "stalled"
REFUSAL = {"code": 1, "message": "the proof refuses it"}
#: The longest life of a transaction: SPYT's.
_TRANSACTION_SECONDS = 310
_AWAY_SECONDS = 1.5
#: How long a fault may take to come; a start on a busy machine is slow.
_HIT_SECONDS = 60.0
#: Rows that follow once the fault is over: they show that the job goes on.
_FOLLOWING = 20
#: Drivers that end by themselves, one after the other, before the case is given up.
_STARTS = 3
#: The listing says nothing when it stalls.
_LISTING_PATIENCE = 45.0


class MissedError(Exception):
    """The fault did not happen at its point."""


@dataclass
class Result:
    """What came of a case."""

    verdict: str
    tables: oracle.Verdict = field(default_factory=oracle.Verdict)
    #: What a person has to know: why it was missed, where it stalls.
    said: str = ""
    #: Drivers that were started after the first fault.
    starts: int = 0
    #: Rows that were written again under the key of an idempotent output, which hides them.
    rewritten: int = 0
    #: Seconds from the fault until every row was in a batch.
    recovered: float = 0.0
    #: The history: rows that went in, requests, rows that were read.
    sent: Sequence[oracle.Row] = ()
    journal: Sequence[Entry] = ()
    found: Mapping[str, Counter[str]] = field(default_factory=dict)


@dataclass
class Play:
    """A case while it is played."""

    scene: Scene
    case: Case
    sent: list[dict[str, Any]] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    #: When the fault happened.
    since: float = field(default_factory=time.monotonic)

    # -- drivers

    @property
    def patience(self) -> float:
        """How long rows may wait."""
        return _LISTING_PATIENCE if self.scene.variant.is_listing else PATIENCE

    def start(self) -> Life:
        """Start a driver, as a process of its own."""
        life = self.scene.life()
        self.lives.append(life)
        life.start()
        return life

    def drain(self) -> None:
        """Wait until every row is in a batch; a driver that was refused is started once more."""
        is_drained = self.scene.drained()
        for _ in range(_STARTS):
            life = self.lives[-1]
            until(
                lambda life=life: life.is_over or is_drained(),
                "every row in a batch",
                self.patience,
            )
            if not life.is_over:
                return
            self.start()
        raise StalledError(f"{_STARTS} drivers have ended: {self.lives[-2].error}")

    def follow(self) -> None:
        """Send what follows, and what brings out the rows that wait for the watermark."""
        scene, queues = self.scene, self.scene.connection.settings.queues
        for queue, batches in zip(queues, scene.rows(90, 1), strict=True):
            self._send(queue, batches[0][:_FOLLOWING])
        self.drain()
        for row in scene.sample.closing(scene.connection.job, self.sent):
            self._send(queues[0], [row])
            self.drain()

    def _send(self, queue: str, rows: list[dict[str, Any]]) -> None:
        self.scene.put(queue, rows)
        self.sent += rows


def play(case: Case, scene: Scene, cause: Cause | None = None) -> Result:
    """Play ``case``; whatever happens, the scene can play another one afterwards.

    ``cause`` makes the fault happen, by default as the lanes do.
    """
    control = scene.control
    play = Play(scene, case)
    result = Result(STALLED)
    try:
        point = scene.find(case.point)
        if point is None:
            raise MissedError("this recording has no such request")
        life = scene.life_of(point)
        play.sent = [*life.sent]
        cause = cause or (_by_state if case.fault in cases.KILLS else _living)
        before = cause(play, point, life)
        control.faults.clear()
        with suppress(*[StalledError][: scene.variant.is_listing]):  # new rows may wake it
            play.drain()
        recovered = time.monotonic() - play.since
        play.follow()
        play.lives[-1].end()
        result = _judged(play, before)
        result.recovered = recovered
    except MissedError as error:
        result = Result(MISSED, said=str(error))
    except StalledError as error:
        result = _judged(play, 0)
        result = replace(result, verdict=STALLED, said=f"{error}; {_last_error(play)}")
    except JobError as error:
        result = Result(STALLED, said=str(error))
    finally:
        result.sent, result.journal = play.sent, control.journal()
        result.starts = len(play.lives)
        control.faults.clear()
        _end(play)
    return result


#: Makes a fault happen at a point; returns the output's rows before the case.
Cause = Callable[[Play, Point, Recorded], int]


def _end(play: Play) -> None:
    for life in play.lives:
        life.ask_to_end()
    end_queries(play.scene.lane.spark)
    for life in play.lives:
        life.end()


def _last_error(play: Play) -> str:
    errors = [life.error for life in play.lives if life.error is not None]
    return str(errors[-1]) if errors else "no driver has ended by itself"


def _judged(play: Play, before: int) -> Result:
    """Compare the tables with what must come of the rows that were sent."""
    scene, variant = play.scene, play.scene.variant
    found = oracle.read(scene.connection.client, variant.root, history.columns_of(variant))
    tables = oracle.compared(history.expected_of(variant, play.sent), found)
    may_repeat = variant.guarantee == "at_least_once"
    holds = not tables.lost and (may_repeat or not tables.repeated)
    written = oracle.written_rows(scene.control.journal(), scene.connection.settings.output)
    is_keyed = variant.guarantee == "idempotent"
    rewritten = max(0, before + written - tables.rows["output"]) if is_keyed else 0
    said = "" if holds else "; ".join(tables.examples)
    return Result(HELD if holds else FAILED, tables, said, rewritten=rewritten, found=found)


# -- killed: the state that the driver has left


def _by_state(play: Play, point: Point, life: Recorded) -> int:
    """Load the state that a killed driver has left; start a new one. Return the output's rows."""
    scene, case = play.scene, play.case
    n = point.n if case.fault == cases.KILLED_AFTER else point.n - 1
    state = scene.state_after(life, n)
    if case.second:
        again = recovery(scene, f"{case.point}:{case.fault}", state, life.sent)
        second = next((found for found in again.points if found.name == case.second), None)
        if second is None:
            raise MissedError("the start after the first fault has no such request")
        state = scene.state_after(again, second.n)
    scene.load(state)
    scene.control.journal.clear()
    rows = output_rows(scene)
    play.since = time.monotonic()
    play.start()
    return rows


def output_rows(scene: Scene) -> int:
    return int(scene.connection.client.get(f"{scene.connection.settings.output}/@row_count"))


# -- alive: a rule of the cluster at the point


def _living(play: Play, point: Point, life: Recorded) -> int:
    """Start a driver from the life's beginning, and let the fault happen to it."""
    scene = play.scene
    scene.load(life.base)
    scene.control.journal.clear()
    rows = output_rows(scene)
    fault = play.case.fault
    with armed(play, point, **_RULES[fault if fault not in cases.LATE else cases.LATE[0]]) as rule:
        driver = play.start()
        _await(play, rule, driver)
        play.since, until_hit = time.monotonic(), scene.control.journal()
        _ACTIONS.get(fault, _nothing)(play, rule)
    verify(play, point, rule, until_hit[-1].n)
    return rows


_RULES: Mapping[str, Mapping[str, Any]] = {
    cases.REFUSED: {"action": "fail", "error": REFUSAL},
    cases.DROPPED: {"action": "hang_up"},
    cases.LOST_REPLY: {"action": "lose_reply"},
    cases.PAUSED: {"action": "delay"},
    cases.GONE: {"action": "delay"},
    cases.CLOCK: {"action": "delay"},
    cases.AWAY: {"action": "hang_up"},
    cases.LATE[0]: {"action": "apply_late"},
}


@contextmanager
def armed(play: Play, point: Point, **order: Any) -> Iterator[Fault]:
    """Order a fault for the point of the next driver: behind so many commits of the ledger."""
    scene, faults = play.scene, play.scene.control.faults
    before: Fault | None = None
    skip, wait = point.commits - 1, {"action": "delay", "seconds": 0}
    if point.commits and scene.variant.is_listing:
        where = {"destination_path": "*/offsets/*"}
        before = faults.add(method="MoveNode", where=where, when="after", skip=skip, **wait)
    elif point.commits:
        where = {"path": scene.connection.settings.ledger}
        before = faults.add(method="ModifyRows", where=where, skip=skip, **wait)
        before = faults.add(method="CommitTransaction", when="after", armed_by=before, **wait)
    yield faults.add(
        method=point.method, where=dict(point.where), skip=point.skip, armed_by=before, **order
    )


def _await(play: Play, rule: Fault, driver: Life) -> None:
    """Wait until the fault has happened. Raises MissedError."""
    faults = play.scene.control.faults
    try:
        until(lambda: faults.get(rule).hits or driver.is_over, "the fault", _HIT_SECONDS)
    except StalledError:
        raise MissedError("the request did not come") from None
    if not faults.get(rule).hits:
        raise MissedError(f"the driver ended before: {driver.error}")


def verify(play: Play, point: Point, rule: Fault, last: int) -> None:
    """Raise MissedError when the rule has hit a request of another class, up to number ``last``.

    The rules that lead to it have hit requests before it.
    """
    entries = [entry for entry in play.scene.control.journal() if entry.n <= last]
    hit = [
        name
        for entry, name in zip(entries, named(entries, play.scene.variant.root), strict=True)
        if entry.fault == rule.action and entry.method == point.method
    ]
    if not hit or hit[-1] != point.object:
        raise MissedError(f"the fault hit {point.method} of {hit[-1] if hit else 'nothing'}")


def _nothing(play: Play, rule: Fault) -> None:
    pass


def _successor(play: Play, rule: Fault) -> None:
    """Let a second driver drain the queues; then the first one's request goes on."""
    older = play.lives[-1]
    play.scene.control.clock.advance(LOCK_SECONDS + 1)
    play.start()
    play.drain()
    play.scene.control.faults.remove(rule)
    until(lambda: older.is_over, "the older driver ends")
    if play.lives[-1].is_over:
        raise StalledError(f"the newer driver has ended: {play.lives[-1].error}")


def _sleep(seconds: float) -> Callable[[Play, Fault], None]:
    def slept(play: Play, rule: Fault) -> None:
        play.scene.control.clock.advance(seconds)
        play.scene.control.faults.remove(rule)

    return slept


def _away(play: Play, rule: Fault) -> None:
    """Let no request through for a while."""
    faults = play.scene.control.faults
    every = faults.add(action="hang_up", times=None)
    time.sleep(_AWAY_SECONDS)
    faults.remove(every)


#: When a late commit is applied: behind so many commits of the ledger in the next life.
_MOMENTS = {"late-raised": 1, "late-begun": 2, "late-first-batch": 3}


def _late(play: Play, rule: Fault) -> None:
    """Apply the commit at its moment in the life of the next query."""
    faults, fault = play.scene.control.faults, play.case.fault
    head: dict[str, Any] = {
        "method": "ModifyRows", "where": {"path": play.scene.connection.settings.ledger},
    }  # fmt: skip
    if fault == "late-before-raise":
        moment = faults.add(action="delay", **head)
    elif fault == "late-in-start":
        # The folder's first request: the start has read the ledger, and opens no transaction yet.
        where = {"path": "*checkpoint/*"}
        moment = faults.add(action="delay", method="remove", where=where)
    else:
        wait: dict[str, Any] = {"action": "delay", "seconds": 0}
        written = faults.add(skip=_MOMENTS[fault] - 1, **wait, **head)
        moment = faults.add(
            action="delay", method="CommitTransaction", when="after", armed_by=written
        )
    _await(play, moment, play.lives[-1])
    faults.release(rule)
    faults.remove(moment)


_ACTIONS: Mapping[str, Callable[[Play, Fault], None]] = {
    cases.PAUSED: _successor,
    cases.GONE: _sleep(_TRANSACTION_SECONDS),
    cases.CLOCK: _sleep(60),
    cases.AWAY: _away,
    **dict.fromkeys(cases.LATE, _late),
}

"""Plays one case from its recording."""

from __future__ import annotations

import time
from contextlib import suppress

from tests.faults.sweep import judging, process
from tests.faults.sweep.cases import PROCESS, Case
from tests.faults.sweep.driver import EndedError, StalledError, end_queries
from tests.faults.sweep.injection import cause_of
from tests.faults.sweep.judging import Result
from tests.faults.sweep.playing import MissedError, Play
from tests.faults.sweep.points import Point
from tests.faults.sweep.recording import RecordedLife, Recording
from tests.support.verdict import ENDED, MISSED, STALLED
from ytstream.errors import JobError

CONTINUED = "it stalled until new rows arrived"
"""Said of a case of the control that holds."""
_AT_ONCE = 0.1
"""A case whose rows were all in a batch by then had nothing to recover."""


def play(case: Case, recording: Recording) -> Result:
    """Play ``case``; whatever happens, the recording can play another one afterwards."""
    control = recording.control
    play = Play(recording, case)
    result = Result(STALLED)
    try:
        point = recording.find(case.point)
        if point is None:
            raise MissedError("this recording has no such request")
        life = recording.life_of(point)
        play.sent = [*life.sent]
        play.may_cut_batch = judging.may_cut_batch(case, point, life.points)
        _cause(play, point, life)
        control.faults.clear()
        continued = _drain(play)
        recovered = time.monotonic() - play.since
        if not continued:
            play.follow()
        _end_last(play)
        play.verify_goes_on()
        result = judging.explained(judging.judged(play), play)
        result.said = "; ".join(filter(None, (result.said, continued)))
        result.recovered = recovered if recovered > _AT_ONCE else 0.0
        result.resumed = judging.resumed(play)
    except MissedError as error:
        play.missed = str(error)
        result = Result(MISSED, said=play.missed)
    except EndedError as error:
        result = judging.stopped(ENDED, judging.judged(play), play, str(error))
    except StalledError as error:
        said = f"{error}; {_last_error(play)}"
        result = judging.stopped(STALLED, judging.judged(play), play, said)
    except JobError as error:
        result = Result(judging.unplayed(case), said=str(error))
    finally:
        result = judging.missed(result, play)
        result.sent, result.journal = play.sent, control.journal()
        result.starts, result.arrived = len(play.drivers), play.arrived
        result.failures = sum(driver.failures for driver in play.drivers)
        control.faults.clear()
        _end(play)
    return result


def _cause(play: Play, point: Point, life: RecordedLife) -> None:
    """Make the fault happen. Where it misses its point, a driver goes on all the same.

    Raises MissedError if none has begun.
    """
    cause = process.kill if play.case.driver == PROCESS else cause_of(play.case.fault)
    try:
        cause(play, point, life)
    except MissedError as error:
        if play.before is None:
            raise
        play.missed = str(error)
        if not play.drivers:
            play.start()


def _drain(play: Play) -> str:
    """Wait until every row is in a batch. The control gets new rows before it counts as stalled.

    Returns what to say if it needed them. They are those of Play.follow().
    """
    try:
        play.drain()
    except StalledError:
        if not play.recording.variant.is_listing:
            raise
        play.follow()
        return CONTINUED
    return ""


def _end_last(play: Play) -> None:
    """End the last driver. One of the control that hangs by then has read all rows."""
    with suppress(*[StalledError][: int(play.recording.variant.is_listing)]):
        play.drivers[-1].end()


def _end(play: Play) -> None:
    for driver in play.drivers:
        driver.ask_to_end()
    end_queries(play.recording.lab.spark)
    for driver in play.drivers:
        driver.end()


def _last_error(play: Play) -> str:
    errors = [driver.error for driver in play.drivers if driver.error is not None]
    return str(errors[-1]) if errors else "no driver has ended"

"""Plays one case from its recording."""

from __future__ import annotations

import time

from tests.faults.sweep import judging, process
from tests.faults.sweep.cases import PROCESS, Case
from tests.faults.sweep.driver import EndedError, StalledError, end_queries
from tests.faults.sweep.injection import cause_of
from tests.faults.sweep.judging import Result
from tests.faults.sweep.playing import MissedError, Play
from tests.faults.sweep.recording import Recording
from tests.support.verdict import ENDED, MISSED, STALLED
from ytstream.errors import JobError

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
        cause = process.kill if case.driver == PROCESS else cause_of(case.fault)
        before = cause(play, point, life)
        control.faults.clear()
        play.drain()
        recovered = time.monotonic() - play.since
        play.follow()
        play.drivers[-1].end()
        play.verify_goes_on()
        result = judging.explained(judging.judged(play, before), play)
        result.recovered = recovered if recovered > _AT_ONCE else 0.0
        result.resumed = judging.resumed(play)
    except MissedError as error:
        result = Result(MISSED, said=str(error))
    except EndedError as error:
        result = judging.stopped(ENDED, judging.judged(play, 0), play, str(error))
    except StalledError as error:
        said = f"{error}; {_last_error(play)}"
        result = judging.stopped(STALLED, judging.judged(play, 0), play, said)
    except JobError as error:
        result = Result(judging.unplayed(case), said=str(error))
    finally:
        result.sent, result.journal = play.sent, control.journal()
        result.starts = len(play.drivers)
        result.failures = sum(driver.failures for driver in play.drivers)
        control.faults.clear()
        _end(play)
    return result


def _end(play: Play) -> None:
    for driver in play.drivers:
        driver.ask_to_end()
    end_queries(play.recording.lab.spark)
    for driver in play.drivers:
        driver.end()


def _last_error(play: Play) -> str:
    errors = [driver.error for driver in play.drivers if driver.error is not None]
    return str(errors[-1]) if errors else "no driver has ended"

"""Plays one case on a scene."""

from __future__ import annotations

import time

from tests.faults.sweep import verdict
from tests.faults.sweep.cases import Case
from tests.faults.sweep.injection import Cause, cause_of
from tests.faults.sweep.life import EndedError, StalledError, end_queries
from tests.faults.sweep.playing import MissedError, Play
from tests.faults.sweep.scene import Scene
from tests.faults.sweep.verdict import Result
from ytstream.errors import JobError

_AT_ONCE = 0.1
"""A case whose rows were all in a batch by then had nothing to recover."""


def play(case: Case, scene: Scene, cause: Cause | None = None) -> Result:
    """Play ``case``; whatever happens, the scene can play another one afterwards.

    ``cause`` makes the fault happen, by default as the lanes do.
    """
    control = scene.control
    play = Play(scene, case)
    result = Result(verdict.STALLED)
    try:
        point = scene.find(case.point)
        if point is None:
            raise MissedError("this recording has no such request")
        life = scene.life_of(point)
        play.sent = [*life.sent]
        before = (cause or cause_of(case.fault))(play, point, life)
        control.faults.clear()
        play.drain()
        recovered = time.monotonic() - play.since
        play.follow()
        play.lives[-1].end()
        play.verify_goes_on()
        result = verdict.explained(verdict.judged(play, before), play)
        result.recovered = recovered if recovered > _AT_ONCE else 0.0
        result.resumed = verdict.resumed(play)
    except MissedError as error:
        result = Result(verdict.MISSED, said=str(error))
    except EndedError as error:
        result = verdict.stopped(verdict.ENDED, verdict.judged(play, 0), play, str(error))
    except StalledError as error:
        said = f"{error}; {_last_error(play)}"
        result = verdict.stopped(verdict.STALLED, verdict.judged(play, 0), play, said)
    except JobError as error:
        result = Result(verdict.unplayed(case), said=str(error))
    finally:
        result.sent, result.journal = play.sent, control.journal()
        result.starts = len(play.lives)
        result.failures = sum(life.failures for life in play.lives)
        control.faults.clear()
        _end(play)
    return result


def _end(play: Play) -> None:
    for life in play.lives:
        life.ask_to_end()
    end_queries(play.scene.lane.spark)
    for life in play.lives:
        life.end()


def _last_error(play: Play) -> str:
    errors = [life.error for life in play.lives if life.error is not None]
    return str(errors[-1]) if errors else "no driver has ended"

"""Plays cases: two drivers, real processes with the real SPYT, on one minicluster.

The newer driver of a case is the older one of the next case, so that each case starts Spark once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from minicluster.core.errors import TABLET_LOCK_CONFLICT
from tests.faults.two_drivers.cases import Case, late
from tests.faults.two_drivers.job_site import Site, SpoiltError
from tests.support.static_outputs import Reader, named, published
from tests.support.verdict import Verdict
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.ledger.positions import MARKER
from ytstream.staging import staged_tables
from ytstream_tools.demo.job_process import JobProcess

_SPYT_SECONDS = 300.0
"""So long a transaction of SPYT's outlives its driver; what it has locked nobody can remove."""

ENDED = {3: "superseded", 1: "refused"}
"""Exit codes of a driver that finds out that it is not alone: superseded, or the lock is lost."""


@dataclass(frozen=True)
class Result:
    """What came of a case."""

    tables: Verdict
    ended: str
    """How the older driver has ended."""
    may_repeat: bool = False

    @property
    def holds(self) -> bool:
        """Whether every row is counted as often as the guarantee says, and nothing is wrong."""
        return self.tables.holds(may_repeat=self.may_repeat)


def play(case: Case, site: Site) -> Result:
    """Play ``case``; its newer driver runs on. Raises SpoiltError: then the site is spoilt."""
    older = site.driver or site.start(f"{case.name}.older.log")
    wrong: tuple[str, ...] = ()
    if case.kind == "killed":
        ended, wrong = _killed(case, site, older)
    else:
        ended = _ENDS[case.kind](case, site, older)
        site.follow()
    tables = replace(site.count(), wrong=len(wrong), examples=wrong)
    return Result(tables, ended, case.variant.may_repeat)


def _paused(case: Case, site: Site, older: JobProcess) -> str:
    """Pause the older driver, let a newer one drain the queues, continue the older one."""
    rule = site.arm(case.place, action="stop", pgid=older.pgid)
    site.fill()
    site.wait_hit(rule, older)
    return _continued(case, site, older)


def _continued(case: Case, site: Site, paused: JobProcess) -> str:
    """Start a newer driver beside one that is paused; return how that ends when it goes on."""
    site.expire_the_lock()
    newer = site.start(f"{case.name}.log")
    site.drain()
    os.killpg(paused.pgid, signal.SIGCONT)
    site.wait(lambda: paused.exit_code is not None, newer)
    if (code := paused.wait()) not in ENDED:
        raise SpoiltError(f"the driver that was paused ended with {code}:\n{paused.tail()}")
    return ENDED[code]


def _late(case: Case, site: Site, older: JobProcess) -> str:
    """Kill the older driver at its commit, which is applied at a moment of a newer one's life."""
    held = site.arm(late(case.variant), action="hold")
    site.fill()
    site.wait_hit(held, older)
    older.kill()
    site.expire_the_lock()
    barrier = site.arm(case.place, action="delay")
    newer = site.start(f"{case.name}.log")
    site.wait_hit(barrier, newer)
    (entry,) = site.cluster.client.faults.release(held)
    site.cluster.client.faults.remove(barrier)
    code = entry.error["code"] if entry.error is not None else None
    if code != (TABLET_LOCK_CONFLICT if case.place.late_is_refused else None):
        raise SpoiltError(f"the late commit was answered {entry.error}")
    site.drain()
    return "killed, its commit " + ("refused" if code else "applied")


def _cut_off(case: Case, site: Site, older: JobProcess) -> str:
    """Kill the older driver at its commit; kill or pause the next one's start at the place.

    Returns how the second one ended, when a third one works.
    """
    site.kill(late(case.variant), older)
    # A start writes the mark again where it is missing.
    site.context.client.remove(f"{site.context.settings.consumer}/@{MARKER}", force=True)
    second = site.start(f"{case.name}.second.log")
    # Before its first request to write: Spark starts before that.
    if case.kind == "start-paused":
        site.wait_hit(site.arm(case.place, action="stop", pgid=second.pgid), second)
        return _continued(case, site, second)
    site.kill(case.place, second, fills=False)
    site.start(f"{case.name}.log")
    return "killed in its start"


def _killed_in_an_upload(case: Case, site: Site, older: JobProcess) -> str:
    """Kill the older driver at a request about its state; a newer one has nothing but Cypress."""
    site.kill(case.place, older)
    site.start(f"{case.name}.log")
    return "killed"


_ENDS: Mapping[str, Callable[[Case, Site, JobProcess], str]] = {
    "paused": _paused,
    "late": _late,
    "start-killed": _cut_off,
    "start-paused": _cut_off,
    "upload-killed": _killed_in_an_upload,
}
"""What is done to the older driver, by the kind of a case; each returns how it ended."""


def _killed(case: Case, site: Site, older: JobProcess) -> tuple[str, tuple[str, ...]]:
    """Kill the older driver and start a newer one, while a reader polls the output's folder.

    Returns how the older one ended, and what is wrong in the folder.
    """
    context = site.context
    with Reader(context.settings) as reader:
        site.kill(case.place, older, seconds=_SPYT_SECONDS)
        if (left := _left(context)) not in case.place.leaves:
            raise SpoiltError(f"the killed driver left {left}, not {case.place.leaves[0]}")
        site.start(f"{case.name}.log")
        site.follow()
    # The newest driver's own may be of a batch without rows, which removes its table when written.
    found = staged_tables.written(context.client, context.settings)
    head = positions.read(context.client, context.settings).head
    remains = [table.name for table in found if head is None or table.epoch < head.epoch]
    wrong = {
        "other than the reader saw them": reader.changed(),
        "aside": remains,
        "other than the ledger says": published(context).items() ^ named(context).items(),
    }
    said = tuple(f"{what}: {sorted(map(str, found))}" for what, found in wrong.items() if found)
    return f"killed, left {left}", said


def _left(context: JobContext) -> str:
    """Return what the last driver has left aside."""
    client, settings = context.client, context.settings
    found = staged_tables.written(client, settings)
    kept = staged_tables.named(client, settings, found)
    return "an orphan" if {*found} - kept.keys() else "a named table" if kept else "nothing"

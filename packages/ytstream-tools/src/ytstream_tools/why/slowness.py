"""The causes of rows that wait while batches end: each says a figure and one thing to do."""

import math

from ytstream.ledger.ledger_rows import BatchTimes
from ytstream.settings.resources import sizes_of
from ytstream.text_table import counted, duration

from ..status.alert_limits import STALLED_SECONDS
from ..status.job_status import ProcessState
from .backlog import Backlog, backlog_of, trigger_pause, usual_seconds, without_batch
from .facts import Facts
from .finding import Finding

_SHARE = 0.5
"""A part of a batch that takes this share of its time, or more, is what to look at."""
_SLOW_REQUEST_MS = 500
"""Two requests that take longer than this are slow."""
_SLOW_WRITES_MS = 1_000
"""Writes and a commit that take less are those of a small batch, and not of a slow cluster."""
_LOCAL_CORES = 2
"""Of a job that `make run` has started (spark/session.py)."""
_LONG_WAIT = 10.0
"""Rows that wait longer for a trigger are worth a word."""
_TIMES_LONGER = 5
"""A batch that takes so many times as long as those before it is not one of them."""


def long_batch(found: Facts) -> Finding | None:
    """Return that the batch under way takes much longer than those before it."""
    status = found.status
    if status is None or not status.lag or not _runs(found):
        return None
    usual, waited = usual_seconds(status), without_batch(status)
    if usual is None or waited is None or waited <= _longest_pause(found, usual):
        return None
    return Finding(
        f"no batch has ended for {duration(waited)} although rows wait: the last ones took "
        f"{usual:.1f} s",
        ("the Spark UI of the job shows the stage that runs, and on which tasks it waits",
         f"{found.make('logs')} has its warnings; a query without progress is started again after "
         f"stall_seconds"),
    )  # fmt: skip


def _longest_pause(found: Facts, usual: float) -> float:
    """Return for how long no batch may end without a reason to wonder."""
    return found.settings.trigger_seconds + _TIMES_LONGER * usual + _LONG_WAIT


def hot_tablet(found: Facts) -> Finding | None:
    """Return that one tablet has most of the waiting rows."""
    backlog = _running(found)
    if backlog is None or not backlog.is_in_one_tablet:
        return None
    one = backlog.largest
    return Finding(
        f"{counted(one.lag, 'row')} of the {backlog.rows} that wait are in tablet {one.number} of "
        f"{one.queue}, which one task reads; {_pace(backlog)}",
        ("let the producer spread its rows: without $tablet_index the cluster chooses a tablet",
         *(_limit_or_trigger(found, backlog) if backlog.is_cut and not backlog.is_busy else ()),
         "more executors do not help"),
    )  # fmt: skip


def cut_batches(found: Facts) -> Finding | None:
    """Return that batches end at their limit, and larger ones would read faster."""
    backlog = _running(found)
    if backlog is None or not backlog.is_cut or (backlog.is_busy and not backlog.is_short):
        return None
    name = "batch_seconds" if backlog.is_paced else "max_rows_per_partition"
    fixed = backlog.fixed_seconds if backlog.is_busy else None
    spent = "" if fixed is None else f", {fixed:.1f} s of it whatever they read,"
    return Finding(
        f"batches are cut at {backlog.limit} rows of a tablet ({name}): they take "
        f"{backlog.batch_seconds:.1f} s{spent} and begin every {backlog.every_seconds:.1f} s; "
        f"{_pace(backlog)}",
        tuple(_limit_or_trigger(found, backlog)),
    )


def few_cores(found: Facts) -> Finding | None:
    """Return that fewer cores read than there are tablets."""
    backlog, cores = _running(found), _cores(found)
    if backlog is None or not backlog.is_busy or not found.was_submitted:
        return None
    if cores >= backlog.tablets:
        return None
    return Finding(
        f"{counted(cores, 'core')} of the executors read {counted(backlog.tablets, 'tablet')}, and "
        f"batches take {100 * backlog.busy_share:.0f}% of the time; {_pace(backlog)}",
        (f"raise `executors` under [submit] so that there are {backlog.tablets} cores, then "
         f"{found.replace}",),
    )  # fmt: skip


def slow_requests(found: Facts) -> Finding | None:
    """Return that small requests take long: an overloaded proxy, not the rows."""
    backlog, times = _busy(found)
    if backlog is None or times.verify < _SLOW_REQUEST_MS:
        return None
    return Finding(
        f"two small requests of a batch, for the ledger's head and the consumer, take "
        f"{times.verify / 1000:.1f} s: an RPC proxy is overloaded, or the cluster is; "
        f"{_pace(backlog)}",
        ("ask the cluster's administrators how busy the RPC proxies of role "
         f"`{found.settings.proxy_role or 'default'}` are; with `proxy_role` in the configuration "
         f"the job gets some of its own, then {found.replace}",),
    )  # fmt: skip


def slow_lookups(found: Facts) -> Finding | None:
    """Return that tasks wait for lookups in a reference."""
    backlog = _running(found)
    if backlog is None or not backlog.is_busy or not backlog.lookups:
        return None
    name, spent = max(backlog.lookups.items(), key=lambda pair: pair[1])
    tasks = min(_cores(found), backlog.tablets)
    if spent < _SHARE * tasks * backlog.batch_seconds:
        return None
    path = found.settings.references.get(name, "")
    return Finding(
        f"tasks wait {spent:.1f} s for lookups in the reference {name!r} {path}, with {tasks} of "
        f"them at a time and {backlog.batch_seconds:.1f} s for a batch; {_pace(backlog)}",
        ("let `make reference` build it, with more TABLETS. Executors keep rows of a table that it "
         "has built, up to `reference_cache_mb`", "if it is: ask the cluster's administrators "
         f"about the RPC proxies and its tablet cells: `yt --proxy {found.settings.proxy} get "
         f"{path}/@tablet_cell_bundle`"),
    )  # fmt: skip


def slow_state(found: Facts) -> Finding | None:
    """Return that tasks spend their time in the state store."""
    backlog, head, cores = _running(found), found.head, _cores(found)
    if backlog is None or not backlog.is_busy or head is None or head.store is None:
        return None
    spent = head.store.milliseconds / 1000
    if spent < _SHARE * cores * backlog.batch_seconds:
        return None
    return Finding(
        f"tasks of the last batch spent {spent:.1f} s in the state store, with {cores} of them at "
        f"a time and {backlog.batch_seconds:.1f} s for a batch; the state has "
        f"{counted(head.state_rows or 0, 'row')}; {_pace(backlog)}",
        ("keep less state: a shorter watermark or fewer keys in transform.py, then "
         f"{found.replace}",),
    )  # fmt: skip


def _cores(found: Facts) -> int:
    """Return how many tasks run at a time."""
    if not found.was_submitted:
        return _LOCAL_CORES
    sizes = sizes_of(found.settings)
    return sizes.executors * int(sizes["executor_cores"])


def slow_writes(found: Facts) -> Finding | None:
    """Return that batches wait for the cluster, which writes and commits."""
    backlog, times = _busy(found)
    if backlog is None:
        return None
    waited, whole = times.write + times.commit, 1000 * backlog.batch_seconds + times.commit
    if waited < _SHARE * whole or waited < _SLOW_WRITES_MS:
        return None
    return Finding(
        f"of the {backlog.batch_seconds:.1f} s of a batch, {times.write / 1000:.1f} s go into "
        f"waiting for writes, and {times.commit / 1000:.1f} s into the commit after it; "
        f"{_pace(backlog)}",
        ("ask the cluster's administrators about the tablet cells of the outputs' bundle: "
         f"{_lookup(found)}",),
    )  # fmt: skip


def slow_transform(found: Facts) -> Finding | None:
    """Return that batches spend their time in transform(), and every tablet has a core."""
    backlog, times = _busy(found)
    if backlog is None or times.transform < _SHARE * 1000 * backlog.batch_seconds:
        return None
    return Finding(
        f"of the {backlog.batch_seconds:.1f} s of a batch, {times.transform / 1000:.1f} s go into "
        f"reading its rows and transform(), {times.write / 1000:.1f} s into writes; "
        f"{_pace(backlog)}",
        ("find the slow part of transform(), mostly a Python function that Spark's own functions "
         f"can replace: {found.make('preview')} shows how long the sample takes",
         f"if it is the number of rows, no setting helps: {_more_tablets(found)}"),
    )  # fmt: skip


def _busy(found: Facts) -> tuple[Backlog | None, BatchTimes]:
    """Return the backlog and the times of batches that leave no pause; None without one."""
    backlog = _running(found)
    if backlog is None or not backlog.is_busy or backlog.times is None:
        return None, BatchTimes()
    return backlog, backlog.times


def _lookup(found: Facts) -> str:
    return f"`yt --proxy {found.settings.proxy} get {found.settings.output}/@tablet_cell_bundle`"


def behind(found: Facts) -> Finding | None:
    """Return that more rows arrive than the job reads, and no setting holds it back."""
    backlog = _running(found)
    if backlog is None:
        return None
    each = 1000 * backlog.batch_seconds / max(backlog.reading * backlog.every_seconds, 1.0)
    return Finding(
        f"{counted(backlog.rows, 'row')} wait{_since(backlog)}; {_pace(backlog)}; a batch takes "
        f"{backlog.batch_seconds:.1f} s, {each:.2g} ms a row",
        ("no setting helps: the time is in transform() and at the cluster. "
         f"{found.make('preview')} shows the first, the Spark UI of the operation both",
         f"if the queue's rows allow it: {_more_tablets(found)}"),
    )  # fmt: skip


def _more_tablets(found: Facts) -> str:
    return f"give the queue more tablets and the job as many cores, then {found.replace}"


def long_trigger(found: Facts) -> Finding | None:
    """Return that rows wait for the next trigger, although the job has time for them."""
    status, trigger = found.status, found.settings.trigger_seconds
    pause = trigger_pause(status, found.settings) if status is not None and _runs(found) else None
    if pause is None or pause.seconds <= _LONG_WAIT:
        return None
    shorter = min(max(1.0, 2 * pause.batch_seconds), trigger / 2)
    return Finding(
        f"rows wait for the next trigger, the first for {duration(pause.seconds)}: batches have "
        f"taken {pause.worked:.1f} s of the last {pause.period:.0f} s, and one begins every "
        f"{trigger:g} s",
        (f"set trigger_seconds = {math.ceil(shorter)} in the configuration, then {found.replace}. "
         "Each batch costs requests to the cluster",),
    )  # fmt: skip


def _running(found: Facts) -> Backlog | None:
    """Return the backlog of a job that runs and whose batches end as they used to."""
    status = found.status
    if status is None or not _runs(found) or long_batch(found) is not None:
        return None
    return backlog_of(status, found.settings)


def _runs(found: Facts) -> bool:
    status = found.status
    if status is None or status.process != ProcessState.RUNNING:
        return False
    waited = without_batch(status)
    return waited is not None and waited <= STALLED_SECONDS


def _limit_or_trigger(found: Facts, backlog: Backlog) -> list[str]:
    """Return the one change with which batches fill the time."""
    if (trigger := backlog.shorter_trigger) is not None:
        return [f"set trigger_seconds = {trigger} in the configuration, then {found.replace}"]
    if backlog.is_paced:
        return [f"raise batch_seconds in the configuration, then {found.replace}"]
    return [
        f"set max_rows_per_partition = {backlog.larger_limit} in the configuration, then "
        f"{found.replace}"
    ]


def _pace(backlog: Backlog) -> str:
    arriving = "" if backlog.arriving is None else f"about {backlog.arriving:.0f} rows/s arrive, "
    return f"{arriving}{backlog.reading:.0f} rows/s are read"


def _since(backlog: Backlog) -> str:
    return "" if backlog.seconds is None else f", the first for {duration(backlog.seconds)}"

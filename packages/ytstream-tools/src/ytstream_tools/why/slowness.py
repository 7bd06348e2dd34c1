"""The causes of rows that wait while batches end: each says a figure and one thing to do."""

from ytstream.ledger.ledger_rows import BatchTimes
from ytstream.text_table import counted, duration

from ..status.alert_limits import STALLED_SECONDS
from ..status.job_status import ProcessState
from .backlog import Backlog, backlog_of
from .facts import Facts
from .finding import Finding

_SHARE = 0.5
"""A part of a batch that takes this share of its time, or more, is what to look at."""
_SLOW_REQUEST_MS = 500
"""Two requests that take longer than this are slow."""


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
    """Return that batches end at their limit, and the job then waits for the next trigger."""
    backlog = _running(found)
    if backlog is None or not backlog.is_cut or backlog.is_busy:
        return None
    name = "batch_seconds" if backlog.is_paced else "max_rows_per_partition"
    return Finding(
        f"batches are cut at {backlog.limit} rows of a tablet ({name}): they take "
        f"{backlog.batch_seconds:.1f} s and begin every {backlog.every_seconds:.1f} s; "
        f"{_pace(backlog)}",
        tuple(_limit_or_trigger(found, backlog)),
    )


def few_cores(found: Facts) -> Finding | None:
    """Return that fewer cores read than there are tablets."""
    backlog, submit = _running(found), found.settings.submit
    if backlog is None or not backlog.is_busy or not found.was_submitted:
        return None
    cores = (submit.executors or 1) * (submit.executor_cores or 1)
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


def slow_state(found: Facts) -> Finding | None:
    """Return that tasks spend their time in the state store."""
    backlog = _running(found)
    head, submit = found.head, found.settings.submit
    if backlog is None or not backlog.is_busy or head is None or head.store is None:
        return None
    cores = (submit.executors or 1) * (submit.executor_cores or 1) if found.was_submitted else 1
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


def slow_writes(found: Facts) -> Finding | None:
    """Return that batches wait for the cluster, which writes and commits."""
    backlog, times = _busy(found)
    if backlog is None or times.write + times.commit < _SHARE * 1000 * backlog.batch_seconds:
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
         f"can replace: {found.make('preview')} shows how long the sample takes",),
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
        ("the time is in transform() or at the cluster: `make preview` shows the first, the Spark "
         "UI of the operation both",
         f"if the queue's rows allow it, give the queue more tablets and the job as many cores, "
         f"then {found.replace}"),
    )  # fmt: skip


def _running(found: Facts) -> Backlog | None:
    """Return the backlog of a job that runs and whose batches end."""
    status = found.status
    if status is None or status.process != ProcessState.RUNNING:
        return None
    if status.age is None or status.age > STALLED_SECONDS:
        return None
    return backlog_of(status, found.settings)


def _limit_or_trigger(found: Facts, backlog: Backlog) -> list[str]:
    """Return the one change with which batches fill the time."""
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

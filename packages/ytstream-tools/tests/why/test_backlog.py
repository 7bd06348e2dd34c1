"""What `why` measures of rows that wait: values in, a cause with its figure out; no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.helpers import unconnected
from tests.support.status_steps import NOW
from ytstream.ledger.ledger_rows import BatchTimes, Head, StoreFigures
from ytstream.settings.submit_section import SubmitSection
from ytstream_tools.status.job_status import (
    FinishedBatch,
    JobStatus,
    PartitionStatus,
    ProcessState,
)
from ytstream_tools.why import causes
from ytstream_tools.why.backlog import backlog_of
from ytstream_tools.why.facts import Facts

QUEUE = "//home/queue"
LIMIT = 20_000


def _partitions(waiting: Sequence[int], seconds: float) -> list[PartitionStatus]:
    return [
        PartitionStatus(QUEUE, number, 0, 10**6 + rows, 10**6, 10**6, seconds if rows else None)
        for number, rows in enumerate(waiting)
    ]


def _batches(rows: int, took: float, every: float, count: int = 10) -> list[FinishedBatch]:
    """Return batches that read so many rows of each of four tablets, the newest one last."""
    begins = [NOW - timedelta(seconds=(count - n) * every) for n in range(count)]
    return [
        FinishedBatch(
            3, number, number, begun, begun + timedelta(seconds=took), 4 * rows, {}, {}, 0,
            {QUEUE: dict.fromkeys(range(4), (number * rows, (number + 1) * rows))},
        )
        for number, begun in enumerate(begins)
    ]  # fmt: skip


def _facts(
    waiting: Sequence[int],
    batches: Sequence[FinishedBatch],
    *,
    seconds: float = 60.0,
    owner: str = "process 1 on host, operation 1-2-3-4, abc",
    submit: SubmitSection | None = None,
    connector: str = "",
    trigger: float = 5.0,
) -> Facts:
    context = unconnected("transactional", "map")
    settings = replace(
        context.settings, submit=submit or SubmitSection(), max_rows_per_partition=LIMIT,
        trigger_seconds=trigger,
    )  # fmt: skip
    head = Head(epoch=3, owner=owner)
    status = JobStatus(
        NOW, "cluster", _partitions(waiting, seconds), head, batches, ProcessState.RUNNING, "",
        owner, 0, connector,
    )  # fmt: skip
    return Facts(NOW, "job", settings, lambda target: f"`make {target}`", status=status)


def _first(found: Facts) -> tuple[str, str]:
    cause, finding = next(causes.causes_of(found))
    return cause.name, "\n".join([finding.said, *finding.do])


def test_batches_that_are_cut_wait_for_the_trigger() -> None:
    name, said = _first(_facts([76_000] * 4, _batches(LIMIT, 0.7, 5.0)))
    assert name == "cut"
    assert "cut at 20000 rows of a tablet (max_rows_per_partition)" in said
    assert "they take 0.7 s and begin every 5.0 s" in said
    assert "max_rows_per_partition = 110000" in said
    assert "submit REPLACE=1" in said


def test_a_job_that_was_run_is_not_submitted() -> None:
    run = _facts([76_000] * 4, _batches(LIMIT, 0.7, 5.0), owner="process 1 on host, abc")
    _, said = _first(run)
    assert "`make run`" in said
    assert "submit" not in said


def test_a_limit_that_batch_seconds_has_chosen_is_named() -> None:
    batches = [replace(one, limit=LIMIT) for one in _batches(LIMIT, 0.7, 5.0)]
    _, said = _first(_facts([76_000] * 4, batches))
    assert "(batch_seconds)" in said
    assert "raise batch_seconds" in said


def test_one_tablet_with_most_rows_is_named() -> None:
    name, said = _first(_facts([10, 10, 490_450, 10], _batches(10, 0.3, 1.0)))
    assert name == "tablet"
    assert f"490450 rows of the 490480 that wait are in tablet 2 of {QUEUE}" in said


def test_fewer_cores_than_tablets_are_named_with_both_numbers() -> None:
    submit = SubmitSection(executors=1, executor_cores=2)
    name, said = _first(_facts([76_000] * 4, _batches(LIMIT, 5.0, 5.1), submit=submit))
    assert name == "cores"
    assert "2 cores of the executors read 4 tablets" in said
    assert "98% of the time" in said


def test_executors_that_the_configuration_does_not_name_are_those_that_run() -> None:
    """Two of one core each are the default; why counted one."""
    _, said = _first(_facts([76_000] * 4, _batches(LIMIT, 5.0, 5.1)))
    assert "2 cores of the executors read 4 tablets" in said


def test_a_job_with_a_core_for_each_tablet_is_told_where_the_time_is() -> None:
    submit = SubmitSection(executors=2, executor_cores=2)
    name, said = _first(_facts([76_000] * 4, _batches(LIMIT, 5.0, 5.1), submit=submit))
    assert name == "behind"
    assert "a batch takes 5.0 s" in said
    assert "raise `executors`" not in said


STORE = StoreFigures(10**6, 10**7, 14_000)


@pytest.mark.parametrize(
    ("times", "store", "cause", "figures"),
    [
        (BatchTimes(4_000, 300, 20, 200), None, "transform",
         ("of the 5.0 s of a batch, 4.0 s go into reading", "transform(), 0.3 s into writes")),
        (BatchTimes(1_000, 2_100, 20, 900), None, "writes",
         ("2.1 s go into waiting for writes, and 0.9 s into the commit",)),
        (BatchTimes(2_000, 1_500, 800, 900), None, "requests",
         ("two small requests of a batch", "take 0.8 s")),
        (BatchTimes(4_000, 300, 20, 200), STORE, "store",
         ("spent 14.0 s in the state store, with 4 of them at a time", "the state has 90000 rows")),
        (BatchTimes(2_000, 1_000, 20, 200), None, "behind", ("a batch takes 5.0 s",)),
        (None, STORE, "store", ("14.0 s in the state store",)),
    ],
)  # fmt: skip
def test_a_busy_job_is_told_which_part_of_a_batch_is_slow(
    times: BatchTimes | None, store: StoreFigures | None, cause: str, figures: Sequence[str]
) -> None:
    submit = SubmitSection(executors=2, executor_cores=2)
    batches = [replace(one, times=times) for one in _batches(LIMIT, 5.0, 5.1)]
    found = _facts([76_000] * 4, batches, submit=submit)
    assert found.status is not None
    assert found.head is not None
    head = replace(found.head, store=store, state_rows=90_000)
    found = replace(found, status=replace(found.status, head=head))
    name, said = _first(found)
    assert name == cause
    assert all(figure in said for figure in figures), said


OWN = "connector: own"
"""What the process says whose connector begins the next batch at once in a backlog."""
SMALL = _batches(1_000, 0.5, 5.0, count=100)[:50]
"""Batches of the same process before the backlog."""


def test_small_batches_without_a_pause_are_cut_too() -> None:
    """Our own connector leaves no pause in a backlog, and each batch has a part without rows."""
    name, said = _first(_facts([76_000] * 4, _batches(LIMIT, 0.7, 1.0), connector=OWN))
    assert name == "cut"
    assert "cut at 20000 rows of a tablet (max_rows_per_partition): they take 0.7 s and" in said
    assert "set max_rows_per_partition = 110000" in said


@pytest.mark.parametrize(("took", "cause"), [(0.7, "cut"), (3.0, "transform")])
def test_batches_before_the_backlog_show_whether_larger_ones_help(took: float, cause: str) -> None:
    """A batch of a twentieth of the rows takes 0.5 s: of 0.7 s that is most, of 3 s it is not."""
    times = BatchTimes(round(900 * took), 50, 5, 20)
    cut = [replace(one, times=times) for one in _batches(LIMIT, took, took + 0.2)]
    submit = SubmitSection(executors=2, executor_cores=2)
    found = _facts([76_000] * 4, [*SMALL, *cut], connector=OWN, submit=submit)
    name, said = _first(found)
    assert name == cause
    assert ("0.5 s of it whatever they read" in said) == (cause == "cut")


def test_what_has_become_slow_is_named_within_a_minute() -> None:
    """Seven of the last ten batches are those from before."""
    usual = [
        replace(one, times=BatchTimes(900, 50, 20, 20), started=one.started - timedelta(seconds=30),
                ended=one.ended - timedelta(seconds=30))
        for one in _batches(LIMIT, 1.0, 1.0, count=7)
    ]  # fmt: skip
    slow = [replace(one, times=BatchTimes(900, 50, 2_000, 20)) for one in
            _batches(LIMIT, 9.0, 10.0, count=3)]  # fmt: skip
    name, said = _first(_facts([76_000] * 4, [*usual, *slow], connector=OWN))
    assert name == "requests"
    assert "take 2.0 s" in said


def test_four_deploys_of_a_day_do_not_hide_a_backlog() -> None:
    """Who follows the advice starts the job again, and asks again."""
    found = _facts([76_000] * 4, _batches(LIMIT, 0.7, 5.0))
    assert found.status is not None
    found = replace(found, status=replace(found.status, epochs=4))
    names = [cause.name for cause, _ in causes.causes_of(found)]
    assert names[0] == "cut"
    assert "restarts" in names


def test_a_slow_commit_is_no_pause() -> None:
    """A batch ends before its commit: what follows is not the trigger's."""
    times = BatchTimes(600, 100, 5, 3_000)
    batches = [replace(one, times=times) for one in _batches(LIMIT, 0.8, 4.0)]
    name, said = _first(_facts([76_000] * 4, batches, connector=OWN))
    assert name == "writes"
    assert "3.0 s into the commit after it" in said


def test_the_commits_of_small_batches_are_no_slow_cluster() -> None:
    times = BatchTimes(450, 50, 5, 400)
    batches = [replace(one, times=times) for one in _batches(LIMIT, 0.8, 0.9)]
    assert _first(_facts([76_000] * 4, batches, connector=OWN))[0] == "cut"


def test_a_batch_that_does_not_end_is_not_told_the_figures_of_those_before_it() -> None:
    """They took 0.7 s. What is slow now is not in the ledger yet."""
    ago = timedelta(seconds=90)
    batches = [
        replace(one, started=one.started - ago, ended=one.ended - ago)
        for one in _batches(LIMIT, 0.7, 1.0)
    ]
    name, said = _first(_facts([76_000] * 4, batches, seconds=90.0, connector=OWN))
    assert name == "batch"
    assert "no batch has ended for 90 s although rows wait: the last ones took 0.7 s" in said
    fresh = _facts([10] * 4, batches, seconds=1.0, connector=OWN)  # until then no row had come
    assert _first(fresh)[0] == "works"


def test_rows_of_a_long_trigger_are_no_backlog() -> None:
    """Four batches at each minute, one after the other: the job has time for all rows."""
    ticks = [_batches(LIMIT, 1.0, 1.1, count=4), _batches(LIMIT, 1.0, 1.1, count=4)]
    ago = (timedelta(seconds=100), timedelta(seconds=40))
    batches = [
        replace(one, started=one.started - late, ended=one.ended - late)
        for batches, late in zip(ticks, ago, strict=True)
        for one in batches
    ]
    found = _facts([50_000] * 4, batches, seconds=40.0, connector=OWN, trigger=60.0)
    name, said = _first(found)
    assert found.status is not None
    deployed = replace(found, status=replace(found.status, epochs=4))
    assert name == _first(deployed)[0] == "trigger"
    assert "the first for 40 s: batches have taken 8.0 s of the last" in said
    assert "set trigger_seconds = 2 in the configuration" in said
    waiting = _facts([50_000] * 4, batches, seconds=90.0, connector=OWN, trigger=60.0)
    assert _first(waiting)[0] != "trigger"


def test_fast_batches_are_not_told_of_their_parts() -> None:
    """They wait for the trigger: what is cut comes first, whatever takes their time."""
    times = BatchTimes(650, 10, 5, 20)
    batches = [replace(one, times=times) for one in _batches(LIMIT, 0.7, 5.0)]
    assert _first(_facts([76_000] * 4, batches))[0] == "cut"


def test_the_figures_are_those_of_the_ledger() -> None:
    found = _facts([76_000] * 4, _batches(LIMIT, 0.7, 5.0), seconds=30.0)
    assert found.status is not None
    backlog = backlog_of(found.status, found.settings)
    assert backlog is not None
    assert backlog.arriving == pytest.approx(4 * 76_000 / 30)
    assert backlog.reading == pytest.approx(6 * 4 * LIMIT / (5 * 5.0 + 0.7))  # of half a minute
    assert (backlog.batch_seconds, backlog.every_seconds) == (0.7, 5.0)
    assert (backlog.cut_share, backlog.is_in_one_tablet, backlog.tablets) == (1.0, False, 4)


def test_a_backlog_is_named_within_a_minute() -> None:
    late = _facts([76_000] * 4, _batches(LIMIT, 0.7, 5.0), seconds=15.0)
    assert _first(late)[0] == "cut"


@pytest.mark.parametrize(
    ("waiting", "batches", "seconds"),
    [
        ([500] * 4, _batches(500, 0.7, 5.0), 4.0),  # rows of the next trigger
        ([0] * 4, _batches(500, 0.7, 5.0), 0.0),  # none waits
        ([76_000] * 4, _batches(LIMIT, 0.7, 5.0, count=1), 60.0),  # nothing is known yet
    ],
)
def test_rows_that_wait_for_the_next_batch_are_no_backlog(
    waiting: Sequence[int], batches: Sequence[FinishedBatch], seconds: float
) -> None:
    found = _facts(waiting, batches, seconds=seconds)
    names = {cause.name for cause, _ in causes.causes_of(found)}
    assert not names & {"tablet", "cut", "cores", "behind"}


def test_batches_of_an_earlier_start_say_nothing() -> None:
    former = [replace(one, epoch=2) for one in _batches(LIMIT, 0.7, 5.0)]
    found = _facts([76_000] * 4, former)
    assert found.status is not None
    assert backlog_of(found.status, found.settings) is None
    name, said = _first(found)
    assert name == "works"
    assert "its first batch since the start has not ended yet" in said

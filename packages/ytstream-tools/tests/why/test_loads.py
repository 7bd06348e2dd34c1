"""Loads of a job: what `why` says, with a figure of the ledger, and after its advice.

Values in, a cause out: the rows of the ledger are made up, as a job under each load would write
them. No job runs here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.helpers import unconnected
from tests.support.status_steps import NOW
from ytstream.cluster.account_usage import ResourceUsage
from ytstream.declaration.lookups import KEYS
from ytstream.ledger.ledger_rows import BatchTimes, Head, LookedUp, StoreFigures
from ytstream.settings.submit_section import SubmitSection
from ytstream_tools.status.job_status import (
    FinishedBatch,
    JobStatus,
    PartitionStatus,
    ProcessState,
)
from ytstream_tools.why import causes
from ytstream_tools.why.facts import Facts

QUEUE, REFERENCE, LIMIT, TABLETS = "//home/queue", "//home/auctions", 20_000, 4
USUAL = BatchTimes(1_500, 500, 20, 100)


@dataclass(frozen=True)
class Load:
    """A job that runs: its batches, and what waits for them."""

    waiting: Sequence[int] = (76_000,) * TABLETS
    """Rows of each tablet that wait, and that a batch reads."""
    rows: int = 8_000
    took: float = 4.8
    """Seconds of a batch, and between the beginnings of two."""
    every: float = 5.0
    times: BatchTimes = USUAL
    """Milliseconds of its parts; the rest of a batch belongs to none of them."""
    lookups: int = 0
    """Milliseconds for which the tasks of a batch wait for lookups in a reference."""
    store: StoreFigures | None = None
    executors: int = 4
    limit: int = LIMIT
    waits: float = 600.0
    """How long the first row has waited."""

    def facts(self, processing: str) -> Facts:
        """Return what `why` knows of it."""
        settings = replace(
            unconnected("transactional", processing).settings,
            submit=SubmitSection(executors=self.executors, executor_cores=1),
            max_rows_per_partition=self.limit,
            trigger_seconds=self.every,
            references={"auctions": REFERENCE},
        )
        owner = "process 1 on host, operation 1-2-3-4, abc"
        head = Head(epoch=3, owner=owner, store=self.store, state_rows=90_000)
        partitions = [
            PartitionStatus(QUEUE, n, 0, 10**6 + rows, 10**6, 10**6, self.waits if rows else None)
            for n, rows in enumerate(self.waiting)
        ]
        status = JobStatus(
            NOW, "cluster", partitions, head, self._batches(), ProcessState.RUNNING, "", owner, 0
        )
        return Facts(NOW, "job", settings, lambda target: f"`make {target}`", status=status)

    def _batches(self) -> list[FinishedBatch]:
        looked_up = {"auctions": LookedUp(KEYS, "1-2-3-4", 1, milliseconds=self.lookups)}
        begins = [NOW - timedelta(seconds=(10 - n) * self.every) for n in range(10)]
        return [
            FinishedBatch(
                3, n, n, begun, begun + timedelta(seconds=self.took), TABLETS * self.rows, {}, {},
                0, {QUEUE: dict.fromkeys(range(TABLETS), (n * self.rows, (n + 1) * self.rows))},
                times=self.times, lookups=looked_up,
            )
            for n, begun in enumerate(begins)
        ]  # fmt: skip


def _healthy(**changes: Any) -> Load:
    return Load(waiting=(500,) * TABLETS, rows=500, took=0.7, waits=4.0, **changes)


LOADS: dict[str, tuple[Load, str, Sequence[str], Load | None]] = {
    "too many rows": (Load(), "behind", ("a batch takes 4.8 s", "0.15 ms a row"), None),
    "a cut limit": (
        Load(rows=LIMIT, took=0.7), "cut", ("cut at 20000 rows", "they take 0.7 s"),
        _healthy(limit=110_000),
    ),
    "a long trigger": (
        Load(rows=LIMIT, took=2.0, every=60.0), "cut",
        ("begin every 60.0 s", "set trigger_seconds = 3"), _healthy(every=3.0),
    ),
    "one hot tablet": (
        Load(waiting=(10, 10, 490_450, 10), rows=10, took=0.3), "tablet",
        ("490450 rows of the 490480",), None,
    ),
    "a slow UDF": (
        Load(times=BatchTimes(4_200, 300, 20, 100)), "transform", ("4.2 s go into reading",),
        _healthy(times=BatchTimes(400, 200, 20, 100)),
    ),
    "a slow cluster": (
        Load(times=BatchTimes(1_000, 2_600, 60, 900)), "writes",
        ("2.6 s go into waiting for writes", "0.9 s into the commit"), None,
    ),
    "a slow proxy": (
        Load(times=BatchTimes(1_500, 1_400, 900, 300)), "requests", ("take 0.9 s",),
        _healthy(times=BatchTimes(300, 200, 10, 50)),
    ),
    "slow lookups": (
        Load(times=BatchTimes(4_200, 300, 20, 100), lookups=11_000), "lookups",
        (f"wait 11.0 s for lookups in the reference 'auctions' {REFERENCE}", "reference_cache_mb"),
        _healthy(times=BatchTimes(400, 200, 20, 100), lookups=300),
    ),
    "too few cores": (
        Load(executors=2), "cores", ("2 cores of the executors read 4 tablets",),
        _healthy(executors=4),
    ),
    "small batches": (
        Load(waiting=(4_000,) * TABLETS, rows=100, took=0.6, every=5.0, limit=100), "cut",
        ("cut at 100 rows", "they take 0.6 s"), _healthy(limit=660),
    ),
    "a state that grows": (
        Load(times=BatchTimes(4_200, 300, 20, 100), store=StoreFigures(10**6, 10**9, 15_000)),
        "store", ("spent 15.0 s in the state store",), None,
    ),
}  # fmt: skip
"""Name of a load -> it, the cause, the figures, and the load after the advice was followed; None
where only the producer or the administrators can help."""


@pytest.mark.parametrize("processing", ["map", "window"])
@pytest.mark.parametrize("name", LOADS)
def test_a_load_is_named_with_its_figure_and_one_thing_to_do(name: str, processing: str) -> None:
    load, cause, figures, after = LOADS[name]
    said = _said(load.facts(processing), cause)
    assert all(figure in said for figure in figures), said
    if after is not None:
        found = next(causes.causes_of(after.facts(processing)))[0]
        assert found.is_healthy, found.name


def _said(found: Facts, wanted: str) -> str:
    cause, finding = next(causes.causes_of(found))
    assert cause.name == wanted
    assert finding.do
    return "\n".join([finding.said, *finding.do])


def _poisoned(found: Facts) -> Facts:
    return _ended(found, "batch_failed", "batch 3-9: row 17 of //home/queue: division by zero")


def _deployed_wrongly(found: Facts) -> Facts:
    return _ended(found, "required_null", 'failed: `price` of "output" is null')


def _ended(found: Facts, code: str, said: str) -> Facts:
    assert found.status is not None
    status = replace(found.status, process=ProcessState.FAILED)
    return replace(found, status=status, end_code=code, end_said=said)


def _full(found: Facts) -> Facts:
    return replace(found, full=[ResourceUsage("bids", "nodes", 1_000, 1_000)])


@pytest.mark.parametrize("processing", ["map", "window"])
@pytest.mark.parametrize(
    ("change", "cause", "figures"),
    [
        (_poisoned, "failed", ("[batch_failed]", "row 17", "`make capture failed`")),
        (_deployed_wrongly, "failed", ("[required_null]", "is null")),
        (_full, "quota", ("nodes is used up (1000 of 1000)", "yt get //sys/accounts/bids")),
    ],
)
def test_what_ends_or_stops_a_job_comes_before_its_pace(
    change: Callable[[Facts], Facts], cause: str, figures: Sequence[str], processing: str
) -> None:
    said = _said(change(Load(rows=LIMIT, took=0.7).facts(processing)), cause)
    assert all(figure in said for figure in figures), said

"""Whether a batch, or all keys of a state at once, would be too many rows for a tablet."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError

from tests.support.helpers import SILENT, ContextOf, unconnected
from ytstream import JobError, RestartableError
from ytstream.cluster import resharding
from ytstream.connector.tablet_transactions import Tablets
from ytstream.guarantees import sizing
from ytstream.job import REJECTED, JobContext
from ytstream.ledger import ledger_rows
from ytstream.ledger.ledger_rows import BatchRow, Head
from ytstream.log import GrowthThresholds
from ytstream.outputs import tablet_overflow
from ytstream.outputs.tablet_overflow import TabletOverflow, judged, overflow_error, overflow_of
from ytstream.provisioning import capacity
from ytstream.provisioning.capacity import CapacityCheck
from ytstream.query import supervisor
from ytstream.query.batch import Batch
from ytstream.query.batch_log import BatchReport
from ytstream.query.batch_outcome import BatchOutcome
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner, supervise
from ytstream.spark.spark_errors import explained_spark

LIMIT = 100_000
ERROR = (
    "[STREAM_FAILED] Query terminated with exception: YTsaurusError: 'Transaction affects too many "
    """rows in tablet'; full error: {"code"=1717;"message"="Transaction affects too many rows in """
    """tablet";"attributes"={"limit"=500;"tablet_id"="1-2-3-4";};} SQLSTATE: XXKST"""
)
"""As the Java client puts it into the error of a query."""


def _note(context: JobContext, keys: int | None) -> None:
    """Write a head that knows how large the state is."""
    row = ledger_rows.head_row(Head(epoch=1, state_rows=keys))
    context.client.insert_rows(context.settings.ledger, [row])


def _cut(context: JobContext, path: str, **how: Any) -> None:
    client: Any = context.client
    client.unmount_table(path, sync=True)
    client.reshard_table(path, sync=True, **how)


def _of_full_batches(context: JobContext) -> JobContext:
    settings = replace(context.settings, max_rows_per_partition=30_000, dyn_batch_size=400)
    return replace(context, settings=settings)


def test_check_remarks_a_total_of_many_keys(provisioned_of: ContextOf) -> None:
    """Each row of a batch may change another key."""
    context = _of_full_batches(provisioned_of("transactional", "aggregate"))
    (remark,) = capacity.remarks(context)
    path = context.settings.output
    assert f"{path} has a key and 1 tablet, and a batch has up to 120000 rows" in remark
    assert "max_rows_per_partition = 25000" in remark
    _cut(context, path, pivot_keys=[[], [1], [2]])
    assert [*capacity.remarks(context)] == []


@pytest.mark.parametrize("processing", ["window", "sessions"])
def test_check_remarks_a_state_whose_keys_may_come_out_at_once(
    provisioned_of: ContextOf, processing: str
) -> None:
    """By what the last batch noted in the ledger, whatever a batch reads."""
    context = _of_full_batches(provisioned_of("transactional", processing))
    bears = sizing.borne(4, 400)
    assert [*capacity.remarks(context)] == []
    for keys in (None, int(bears * 0.7)):
        _note(context, keys)
        assert [*capacity.remarks(context)] == []
    _note(context, 440_000)
    (remark,) = capacity.remarks(context)
    assert remark.startswith("440000 keys of the state may be written in one batch")
    assert f"bears {bears} rows in one transaction (4 tablets)" in remark
    tablets = sizing.enough_tablets(880_000, 400)
    assert tablets is not None
    assert resharding.by_count(context.settings, context.settings.output, tablets) in remark
    _cut(context, context.settings.output, tablet_count=tablets)
    assert [*capacity.remarks(context)] == []


def test_no_other_guarantee_is_remarked(provisioned_of: ContextOf) -> None:
    context = _of_full_batches(provisioned_of("at_least_once", "window"))
    _note(context, 10_000_000)
    assert [*capacity.remarks(context)] == []
    room = CapacityCheck(context, GrowthThresholds())
    assert room.warnings(10_000_000) == []


def test_rejected_rows_of_one_partition_may_be_too_many(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional", rejects=True)
    settings = replace(context.settings, max_rows_per_partition=LIMIT + 1, dyn_batch_size=400)
    (remark,) = capacity.remarks(replace(context, settings=settings))
    assert remark.startswith(f"{settings.outputs[REJECTED]} has a key and 4 tablets")
    settings = replace(settings, max_rows_per_partition=LIMIT)
    assert [*capacity.remarks(replace(context, settings=settings))] == []


def test_a_running_job_warns_once_for_each_doubling(provisioned_of: ContextOf) -> None:
    context = _of_full_batches(provisioned_of("transactional", "window"))
    said, bears = GrowthThresholds(), sizing.borne(4, 400)
    nearly = int(0.8 * bears)
    found = [
        bool(CapacityCheck(context, said).warnings(keys))
        for keys in (0, nearly - 1, nearly + 1, bears, bears, 2 * bears, 2 * bears, 0, bears)
    ]
    assert found == [False, False, True, False, False, True, False, False, False]


@pytest.mark.parametrize(
    ("processing", "keys", "warns"),
    [
        ("aggregate", 120_000, True),
        ("aggregate", 79_000, False),
        ("deduplicate", 10_000_000, False),
        ("map", 10_000_000, False),
    ],
)
def test_a_total_comes_out_as_often_as_rows_come_in(
    provisioned_of: ContextOf, processing: str, keys: int, warns: bool
) -> None:
    """A state of ids holds no rows to come."""
    context = _of_full_batches(provisioned_of("transactional", processing))
    assert bool(CapacityCheck(context, GrowthThresholds()).warnings(keys)) == warns
    few = replace(context.settings, max_rows_per_partition=10_000)
    assert not CapacityCheck(replace(context, settings=few), GrowthThresholds()).warnings(keys)


def test_an_outage_is_no_reason_to_end() -> None:
    """The next batch asks again."""

    def away(*_: Any, **__: Any) -> Any:
        raise YtError("no proxy answers")

    context = unconnected("transactional", "window")
    client = cast(Any, SimpleNamespace(get=away))
    assert (
        CapacityCheck(replace(context, client=client), GrowthThresholds()).warnings(1_000_000) == []
    )


def test_what_the_error_says_of_a_batch() -> None:
    assert overflow_of(ERROR, "3-7", {"output": 600}) == TabletOverflow("3-7", {"output": 600}, 500)
    # Of an older server.
    assert overflow_of('{"code"=1717;}', "3-7", {}) == TabletOverflow("3-7", {}, LIMIT)
    assert overflow_of(ERROR.replace("1717", "17170"), "3-7", {}) is None
    assert overflow_of('{"code"=1700;"message"="Row lock conflict"}', "3-7", {}) is None


def test_rows_without_a_key_are_judged_by_their_number(provisioned_of: ContextOf) -> None:
    context = _of_full_batches(provisioned_of("transactional", "window"))
    with pytest.raises(JobError) as caught:
        judged(context, TabletOverflow("3-7", {"output": 440_000}))
    path = context.settings.output
    assert f"440000 rows into {path}, which has 4 tablets" in str(caught.value)
    assert "a smaller max_rows_per_partition does not help" in str(caught.value)
    assert f"reshard-table {path} --tablet-count 13 --sync" in str(caught.value)
    assert "\n" not in str(caught.value).partition(":")[0]


def test_a_batch_that_only_chance_refused_runs_again(provisioned_of: ContextOf) -> None:
    context = _of_full_batches(provisioned_of("transactional", "window"))
    assert judged(context, TabletOverflow("3-7", {"output": sizing.borne(4, 400)})) is None


def test_writes_that_are_too_large_are_named(provisioned_of: ContextOf) -> None:
    context = _of_full_batches(provisioned_of("transactional", "map"))
    settings = replace(context.settings, dyn_batch_size=60_000)
    with pytest.raises(JobError, match="set dyn_batch_size = 2000") as caught:
        judged(replace(context, settings=settings), TabletOverflow("3-7", {"output": 440_000}))
    assert "or lower max_rows_per_partition" in str(caught.value)


def test_rows_with_a_key_are_looked_at(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample of them: where no tablet seems too full, the fullest is named."""
    context = _of_full_batches(provisioned_of("transactional", "aggregate"))
    many, path = TabletOverflow("3-7", {"output": 120_000}), context.settings.output
    assert judged(context, many) == many
    frames = {"output": cast(DataFrame, None)}
    keys = [resharding.key([number]) for number in range(100)]
    monkeypatch.setattr(tablet_overflow, "_SAMPLE", 100)
    monkeypatch.setattr(tablet_overflow, "_keys", lambda *_: keys)
    text = str(overflow_error(context, many, frames))
    assert f"120000 rows into {path}, which has 1 tablet: about 120000 of them" in text
    assert "'[]' '[33;]' '[66;]' --sync" in text
    _cut(context, path, pivot_keys=[[], [50]])
    assert isinstance(overflow_error(context, many, {}), RestartableError)
    text = str(overflow_error(context, many, frames))
    assert f"120000 rows into {path}, which has 2 tablets: about 60000 of them" in text
    assert "'[]' '[25;]' '[50;]' '[75;]' --sync" in text


@pytest.mark.parametrize("is_judged", [True, False])
def test_a_refused_batch_ends_the_job_at_its_first_failure(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch, is_judged: bool
) -> None:
    """Without the fix the job tries the same batch again until it gives up."""
    if not is_judged:
        monkeypatch.setattr(supervisor, "overflow_of", lambda *_: None)
    context = _of_full_batches(provisioned_of("transactional", "window"))
    nothing = (cast(SparkSession, None), cast(Tablets, None))
    runner = QueryRunner(context, *nothing, StopSignal())
    tries: list[str] = []

    def refuse() -> None:
        tries.append(ERROR)
        raise StreamingQueryException(ERROR)

    query = cast(
        StreamingQuery,
        SimpleNamespace(isActive=False, awaitTermination=refuse, _jsq=SILENT),
    )
    now = datetime.now(UTC)
    done = BatchRow({}, {"output": 440_000}, now, now)
    report = BatchReport(Head(3, folder=3, batch=7), done)
    outcomes = {7: BatchOutcome("3-7", report)}
    found = SimpleNamespace(outcomes=outcomes, static_tables=MagicMock(), archives=None, disk=None)
    batch = cast(Batch, found)

    def one_query() -> None:
        with explained_spark():
            runner._follow(query, batch)

    one = SimpleNamespace(
        run=one_query,
        has_progressed=False,
        is_idle=False,
        hear_stop=lambda: None,
        refused=None,
    )
    job = replace(context.job, first_pause_seconds=0.0)
    with pytest.raises(JobError) as caught:
        supervise(job, cast(QueryRunner, one), StopSignal())
    assert len(tries) == (1 if is_judged else 5)
    assert ("is too large for its tables" in str(caught.value)) == is_judged
    assert ("gave up after 5 failures" in str(caught.value)) != is_judged

"""What `status` shows, and a command that is refused before Spark starts; no JVM."""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from yt.yson import YsonUint64

import ytstream
import ytstream_tools.status
from minicluster import testing as minicluster
from tests.support.helpers import (
    ContextOf,
    refusal,
    refusal_code,
)
from tests.support.project import ROOT
from tests.support.status_steps import (
    NOW,
    head_of_batch,
    invoke,
    send,
    without_times,
    write_batches,
    write_rows,
)
from ytstream import cli
from ytstream.cluster.operation import Operation
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance.lock import InstanceLock
from ytstream.instance.stop_request import tell_end
from ytstream.job import JobContext
from ytstream.ledger import batch_history, ledger_rows
from ytstream.ledger.ledger_rows import (
    BatchRow,
    Head,
    StoreFigures,
    batch_row,
    connector_row,
    head_row,
)
from ytstream.recovery.epoch import Epoch
from ytstream.text_table import duration
from ytstream_tools.commands import replay_rejected
from ytstream_tools.status import (
    job_status,
    lag_thresholds,
    status_json,
    status_text,
    status_watch,
)
from ytstream_tools.status.archive_status import ArchiveStatus
from ytstream_tools.status.job_status import RECENT, JobStatus
from ytstream_tools.status.lag_thresholds import LagThreshold
from ytstream_tools.status.status_text import status
from ytstream_tools.status.sum_status import SumStatus
from ytstream_tools.submitting.version_history import DeployedVersion, StartState


def _lines(context: JobContext) -> list[list[str]]:
    return [line.split() for line in status(context).splitlines()]


def _partitions(context: JobContext) -> list[list[str]]:
    """Return the table of partitions without the seconds, which the clock decides."""
    return [line[:7] for line in _lines(context)]


# -- the tables


def test_status_before_the_first_start_shows_the_consumer(provisioned_of: ContextOf) -> None:
    context = provisioned_of("at_least_once", "map", 2)
    send(context, 80)
    lines, queues = _partitions(context), context.settings.queues
    assert [queues[0], "3", "0", "20", "0", "0", "20"] in lines
    assert [queues[1], "3", "0", "0", "0", "0", "0"] in lines
    text = status(context)
    assert "lag: 80 rows" in text
    assert "the job has not started yet" in text


@pytest.mark.thorough
def test_status_shows_the_ledger_and_a_queue_that_it_does_not_know(
    provisioned_of: ContextOf,
) -> None:
    context = provisioned_of("transactional", "window", 2)
    first, second = context.settings.queues
    send(context, 80)
    head = Head(7, "process 1 on host", 7, 41, 42, {first: {3: 15}}, {first: "1-2-3-4"})
    write_rows(context, head_row(head))
    lines = _partitions(context)
    assert [first, "3", "0", "20", "0", "15", "5"] in lines
    assert [second, "3", "0", "0", "0", "0", "0"] in lines
    text = status(context)
    assert "lag: 65 rows" in text
    assert "in one tablet" not in text
    assert "epoch 7 of process 1 on host: it was killed" in text
    assert "it has not said that it ended; 42 batches until now" in text
    tell_end(context, Epoch(7, "process 1 on host"), "stopped")
    assert "epoch 7 of process 1 on host: stopped; 42 batches" in status(context)
    gone = replace(head, ids={first: "1-2-3-4", "//home/x": "1-2"}, removed=frozenset({"//home/x"}))
    write_rows(context, head_row(gone))
    assert "//home/x is not read any more" in status(context)
    one = head_row(replace(head, number=1, ends={first: {0: 20, 1: 20, 2: 19, 3: 20}}))
    write_rows(context, one)
    text = status(context)
    assert "lag: 1 row, the first for " in text
    assert "; 100% of them in one tablet" in text
    assert "stopped; 1 batch until now" in text


def test_status_shows_what_the_last_batches_did_and_how_fast(provisioned_of: ContextOf) -> None:
    """Batches of 2.5 s, one each ten seconds; an older one knows of no rejected rows."""
    context = provisioned_of("transactional", rejects=True)
    start = datetime(2024, 2, 3, 23, 59, 50, tzinfo=UTC)
    assert "rows/s" not in status(context)
    write_rows(context, head_row(head_of_batch(context, RECENT + 2)))
    for number in range(1, RECENT + 3):
        written = {"output": 99, "rejected": 1} if number > 3 else {"output": 100}
        begun = start + timedelta(0, 10 * number)
        queue = context.settings.queues[0]
        done = BatchRow({queue: {0: (0, 100)}}, written, begun, begun + timedelta(0, 2.5))
        row = batch_row(Head(epoch=3, batch=number - 1, number=number), done)
        write_rows(context, row | {name: YsonUint64(row[name]) for name in ("started", "ended")})
    lines = _lines(context)
    header = ["batch", "ended", "(UTC)", "rows", "read", "output", "rejected", "seconds"]
    first = lines.index(header) + 2
    assert lines[first] == ["3-2", "2024-02-04", "00:00:22", "100", "100", "0", "2.5"]
    assert lines[first + 1] == ["3-3", "2024-02-04", "00:00:32", "100", "99", "1", "2.5"]
    assert lines[first + RECENT - 1][0] == f"3-{RECENT + 1}"
    said = "the last 10 batches: 1000 rows in 25.0 s of work (40 rows/s), 92.5 s with the pauses"
    assert f"{said} (11 rows/s)" in status(context)


def test_rejected_rows_are_shown_by_reason(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional", rejects=True)
    write_rows(context, head_row(head_of_batch(context, 12)))
    write_batches(context, range(1, 13), rejected={"too old": 2, "no price": 1, "never": 0})
    said = "rejected in the last 12 batches: 0 never, 12 no price, 24 too old"
    assert said in status(context)


@pytest.mark.parametrize(
    ("written", "where"), [({"rejected": 5}, "in `rejected`"), ({"rejected": 2}, "only counted")]
)
def test_late_rows_are_shown_with_their_share(
    provisioned_of: ContextOf, written: dict[str, int], where: str
) -> None:
    """Written with two others, or without."""
    context = provisioned_of("transactional", "window", rejects=True)
    write_rows(context, head_row(head_of_batch(context, 2)))
    begun = datetime(2024, 2, 4, tzinfo=UTC)
    ranges = {context.settings.queues[0]: {0: (0, 40)}}
    for number in (1, 2):
        done = BatchRow(ranges, written, begun, begun, late=3, rejected={"no time": 2})
        row = batch_row(Head(epoch=3, batch=number - 1, number=number), done)
        write_rows(context, row | {name: YsonUint64(row[name]) for name in ("started", "ended")})
    assert f"late in the last 2 batches: 6, 7.5% of the rows read; they are {where}" in status(
        context
    )


def test_status_says_whether_the_process_runs(provisioned_of: ContextOf) -> None:
    """The lock names its process again, so the last word of both names differs."""
    context = provisioned_of("transactional")
    lock = InstanceLock(context.client, context.settings.consumer)
    lock.acquire(print)
    holder = next(owner for _, owner, _ in lock.holders())
    head = replace(head_of_batch(context, 1), owner=f"{holder.rpartition(',')[0]}, 0123abcd")
    write_rows(context, head_row(head))
    assert f"{head.owner}: it is running; 1 batch until now" in status(context)
    write_rows(context, head_row(replace(head, owner="process 9 on node, abc")))
    text = status(context)
    assert "process 9 on node, abc: it was killed" in text
    assert f"the lock is held by {holder}" in text
    lock.release()
    assert "the lock is held" not in status(context)


def test_state_and_watermark_are_shown(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional", "window")
    client, folder = context.client, f"{context.settings.checkpoint}/3"
    write_rows(context, head_row(replace(head_of_batch(context, 1), state_rows=1234)))
    assert "state: 1234 rows, 0.0 MiB in the checkpoint; watermark: none yet" in status(context)
    client.create("map_node", f"{folder}/commits", recursive=True)
    client.create("map_node", f"{folder}/state", recursive=True)
    mark = int(datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp() * 1000)
    written = f'v1\n{{"nextBatchWatermarkMs":{mark}}}'.encode()
    client.create("file", f"{folder}/commits/0")
    client.write_file(f"{folder}/commits/0", written)
    client.create("file", f"{folder}/state/1.delta")
    client.write_file(f"{folder}/state/1.delta", b"x" * 3 * 1024**2)
    assert "1234 rows, 3.0 MiB in the checkpoint; watermark: 2026-11-23 12:00:00 UTC" in status(
        context
    )
    store = StoreFigures(5 * 1024**2, 7 * 1024**2, 1500)
    write_rows(context, head_row(replace(head_of_batch(context, 1), store=store)))
    wanted = "state store: 5.0 MiB of memory, 7.0 MiB on disk, in all executors; "
    assert f"{wanted}the last batch spent 1.5 s" in status(context)


def test_status_refuses_a_damaged_ledger(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    write_rows(context, {**head_row(replace(Head(), epoch=1)), "queues": 5})
    assert refusal_code(lambda: status(context)) == ErrorCode.LEDGER_DAMAGED


# -- lag in seconds


def test_a_row_that_waits_tells_for_how_long(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    send(context, 4)
    found = job_status.read(context)
    assert found.lag == 4
    assert all(one.seconds is not None for one in found.partitions)
    queue = context.settings.queues[0]
    write_rows(context, head_row(head_of_batch(context, 1, ends={queue: {0: 1, 1: 1, 2: 1}})))
    seconds = [one.seconds is None for one in job_status.read(context).partitions]
    assert seconds == [True, True, True, False]


def test_without_times_of_rows_the_last_batch_that_left_none_tells(
    provisioned_of: ContextOf,
) -> None:
    context = provisioned_of("transactional")
    without_times(context)
    send(context, 4 * 300)
    queue = context.settings.queues[0]
    settings = replace(context.settings, max_rows_per_partition=100)
    context = replace(context, settings=settings)
    write_rows(
        context,
        head_row(head_of_batch(context, 4, ends={queue: {0: 300, 1: 299, 2: 0, 3: 0}})),
    )
    assert job_status.read(context).lag_seconds is None
    rows = []
    for number, ranges in enumerate(({1: (0, 99)}, {1: (99, 199)}, {0: (0, 9), 1: (199, 299)}), 1):
        ended = NOW - timedelta(seconds=100 * (4 - number))
        done = BatchRow({queue: ranges}, {}, ended, ended)
        rows.append(batch_row(Head(epoch=3, batch=number - 1, number=number), done))
    write_rows(context, *rows)
    found = job_status.read(context)
    seconds = [p.seconds for p in found.partitions]
    since = [(found.time - batch.started).total_seconds() for batch in found.batches]
    assert seconds[0] is None  # no row waits
    assert seconds[1] == since[0]  # full batches since the first one, which left none
    assert seconds[2] == since[2]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (119, "119 s"), (600, "10 min"), (9000, "2.5 h"), (345_600, "4.0 days")],
)
def test_durations_are_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"min_data_versions": 0, "max_data_ttl": 3_600_000, "min_data_ttl": 0}, "60 min"),
        ({"min_data_versions": 0, "max_data_versions": 0, "min_data_ttl": 90_000}, "90 s"),
        ({"min_data_versions": 1, "max_data_ttl": 3_600_000}, None),
    ],
)
def test_a_partition_says_when_the_queue_drops_its_unread_rows(
    provisioned_of: ContextOf, settings: dict[str, int], wanted: str | None
) -> None:
    context = provisioned_of("transactional")
    for name, value in settings.items():
        context.client.set(f"{context.settings.queues[0]}/@{name}", value)
    send(context, 3)
    found = job_status.read(context)
    just_now = [replace(one, seconds=0.0 if one.lag else None) for one in found.partitions]
    text = status_text.text(context, replace(found, partitions=just_now))
    assert ("trimmed in" in text) == (wanted is not None)
    row = next(line for line in text.splitlines() if re.search(r"-0 +0 +0 +1 ", line))
    assert wanted is None or row.endswith(wanted)
    empty = next(line for line in text.splitlines() if re.search(r"-0 +3 +0 +0 ", line))
    assert empty.split()[-1] == "0"


# -- a ledger that is long


@pytest.fixture
def long(provisioned_of: ContextOf) -> JobContext:
    """Connect a job with 3,000 batches, one a minute; every thousand of them have an epoch."""
    context = provisioned_of("transactional")
    write_batches(context, range(1, 3001), lambda number: 1 + number // 1000, 60.0)
    write_rows(context, head_row(head_of_batch(context, 3000, 5)))
    return context


@pytest.mark.thorough
def test_the_batch_at_a_time_is_found(long: JobContext) -> None:
    path, head = long.settings.ledger, head_of_batch(long, 3000)
    for number in (1, 2, 64, 65, 1500, 2999, 3000):
        time = NOW - timedelta(minutes=3000 - number)
        for late in (0, 59):
            row = batch_history.at(long.client, path, head, time + timedelta(seconds=late))
            assert row is not None
            assert row["number"] == number
    assert batch_history.at(long.client, path, head, NOW - timedelta(minutes=3000)) is None
    long.client.delete_rows(
        path, [{"kind": "batch", "number": number} for number in range(1000, 2000)]
    )
    row = batch_history.at(long.client, path, head, NOW - timedelta(minutes=1500))
    assert row is not None
    assert row["number"] == 999


def test_new_epochs_of_a_day_are_counted(long: JobContext) -> None:
    """Of 3,000 minutes the last 1,440 begin in epoch 2; two later starts had no batch yet."""
    assert job_status.read(long).epochs == 5 - 2
    path, head = long.settings.ledger, head_of_batch(long, 3000, 5)
    assert batch_history.epochs_since(long.client, path, head, NOW - timedelta(days=9)) == 5 - 1


def test_status_asks_for_few_rows_of_a_long_ledger(
    long: JobContext, cluster: minicluster.Running
) -> None:
    """A query that sorts would read all of them."""
    since = len(cluster.client.journal())
    assert len(job_status.read(long).batches) == job_status.LOOKED_AT
    asked = [
        entry for entry in cluster.client.journal()[since:]
        if entry.method in ("select_rows", "lookup_rows") and "/ledger" in str(entry.args)
    ]  # fmt: skip
    assert 3 < len(asked) < 12
    assert not [entry for entry in asked if "order by" in str(entry.args)]


# -- JSON


PAGE = (ROOT / "docs/status-json.md").read_text(encoding="utf-8")
FIELD = re.compile(r"^\| `([\w.\[\]*]+)` \| ([a-z, ]+) \|", re.MULTILINE)
"""A line of the page's table: field and type."""
_TYPES = {str: "text", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _fields(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield each leaf's name and type. Maps whose keys are data are given as ``*``."""
    if isinstance(value, dict):
        is_data = name in ("rejected.rows", "totals.written", "totals.rejected") or name.endswith(
            (
                "[].rows_written",
                "[].rejected",
                ".lookups",
                "[].lookups",
                ".warned",
                "[].warned",
                ".changes",
                "[].changes",
            )
        )
        for key, inner in value.items():
            yield from _fields(inner, f"{name}.{'*' if is_data else key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner, f"{name}[]")
    else:
        yield name, _TYPES[type(value)]


_NOTE = {"version": "1.2", "commit": "c", "files": "f", "configuration": "g"}


def _documents(context_of: ContextOf) -> Iterator[dict[str, Any]]:
    """Yield what the page has to describe: a new job, one with state, one with all the rest."""
    new = context_of("transactional", "window")
    yield status_json.document(new, job_status.read(new))
    write_rows(new, head_row(replace(head_of_batch(new, 1), state_rows=3)))
    yield status_json.document(new, job_status.read(new))


def test_json_has_the_fields_of_the_page(provisioned_of: ContextOf) -> None:
    listed = {name: set(types.split(", ")) for name, types in FIELD.findall(PAGE)}
    context = provisioned_of("transactional", rejects=True)
    send(context, 80)
    write_batches(context, range(1, 13), rejected={"too old": 2})
    used = {"auctions": ledger_rows.LookupTotals(100, 70, 10, 1.5)}
    odd, times = {"odd": 3}, ledger_rows.BatchTimes(5, 6, 7, 8)
    changes = {"output": ledger_rows.KeyChanges(90, 6, 4)}
    totals = ledger_rows.Totals(
        1200, {"output": 1188}, {"too old": 24}, 0, 30.0, lookups=used, warned=odd,
        changes=changes,
    )  # fmt: skip
    head = replace(head_of_batch(context, 12), totals=totals, removed=frozenset({"//home/x"}))
    write_rows(context, head_row(replace(head, ids={**head.ids, "//home/x": "1-2"})))
    found = job_status.read(context)
    looked_up = {"auctions": ledger_rows.LookedUp("keys", "1-2-3-4", 2**60, 100, 70, 10, 1_500)}
    seen = replace(
        found,
        batches=[
            replace(batch, lookups=looked_up, warned=odd, times=times, changes=changes)
            for batch in found.batches
        ],
        state=job_status.StateSize(3, 10, 1_700_000_000_000, StoreFigures(7, 8, 9)),
        static=job_status.UnpublishedTables(1, ["//home/job/ledger.aside/x"]),
        archives=[
            ArchiveStatus("output", "a", 3, 300, 2, 1, 4.0, "b", "c", 9, None),
            ArchiveStatus("more", "a", 3, 300, 2, 1, 4.0, "b", "c", 9, found.time),
        ],
        sums=[SumStatus("output", "total", "int64", 0, 2**62, 0.5)],
        operation=Operation("1-2-3-4", "running", started="2026-11-23T10:00:00Z"),
        versions=[
            DeployedVersion("a", StartState.WORKS, {}),
            DeployedVersion(
                "b", StartState.REFUSED, _NOTE, "1-2-3-4", "root", "2026-11-23", "2026-11-24", "no"
            ),
        ],
    )
    fields: dict[str, set[str]] = {}
    text = json.loads(status_json.text(context, seen))
    assert seen.state is not None
    without_store = replace(seen, state=replace(seen.state, store=None))
    others = (json.loads(status_json.text(context, one)) for one in (found, without_store))
    for name, kind in (*_fields(text), *chain(*map(_fields, others))):
        fields.setdefault(name, set()).add(kind)
    assert text["version"] == status_json.VERSION
    assert fields.keys() - listed.keys() == set()
    assert {
        name: kinds - listed[name] for name, kinds in fields.items() if kinds - listed[name]
    } == {}
    assert {name for name in listed if name not in fields} == set()


def test_status_says_which_connector_the_process_runs_on(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    write_rows(context, head_row(head_of_batch(context, 1)))
    mine = Epoch(head_of_batch(context, 1).epoch)
    assert job_status.read(context).connector == ""
    write_rows(context, connector_row(mine.number, "connector: spyt, since this and that"))
    found = job_status.read(context)
    assert "connector: spyt, since this and that" in status_text.text(context, found)
    write_rows(context, connector_row(mine.number - 1, "connector: own"))
    assert job_status.read(context).connector == ""  # of a former process


def test_json_of_a_new_job_is_of_the_page_too(provisioned_of: ContextOf) -> None:
    listed: dict[str, str] = dict(FIELD.findall(PAGE))
    for one in _documents(provisioned_of):
        for name, kind in _fields(one):
            assert kind in listed[name].split(", "), name


def test_figures_of_json_are_those_of_the_ledger(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional", rejects=True)
    send(context, 80)
    write_batches(context, range(1, 13), rejected={"too old": 2})
    write_rows(context, head_row(head_of_batch(context, 12)))
    found = json.loads(status_json.text(context, job_status.read(context)))
    assert found["lag"]["rows"] == 80
    assert [one["lag_rows"] for one in found["partitions"]] == [20, 20, 20, 20]
    assert found["rows_per_second"] == 40.0
    assert found["lag"]["seconds_until_caught_up"] == 2.0
    assert found["lag"]["largest_share"] == 0.25
    assert found["rejected"] == {"batches": 12, "rows": {"too old": 24}}
    assert [one["name"] for one in found["batches"]] == [f"3-{n}" for n in range(2, 12)]
    assert found["process"]["state"] == "killed"


# -- limits


@pytest.mark.parametrize(
    ("limit", "wanted"),
    [
        ("5000", LagThreshold(rows=5000)),
        ("300s", LagThreshold(seconds=300)),
        ("0", LagThreshold(rows=0)),
    ],
)
def test_a_limit_is_rows_or_seconds(limit: str, wanted: LagThreshold) -> None:
    assert lag_thresholds.lag(limit) == wanted


@pytest.mark.parametrize("limit", ["", "-1", "5 min", "s", "1e3"])
def test_another_limit_is_refused(limit: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="cannot read"):
        lag_thresholds.lag(limit)
    with pytest.raises(argparse.ArgumentTypeError, match="cannot read"):
        lag_thresholds.age(limit)


@pytest.mark.parametrize(
    ("most", "oldest", "said"),
    [
        (LagThreshold(rows=80), None, []),
        (LagThreshold(rows=79), None, ["lag: 80 rows, allowed are 79"]),
        (LagThreshold(seconds=3600), None, []),
        (LagThreshold(seconds=30), None, ["lag: a row has waited 45 s, allowed are 30 s"]),
        (None, 3600, []),
        (None, 100, ["the last batch ended 10 min ago, allowed are 100 s"]),
    ],
)
def test_a_limit_that_is_exceeded_is_said(
    provisioned_of: ContextOf, most: LagThreshold | None, oldest: float | None, said: list[str]
) -> None:
    context = provisioned_of("transactional")
    send(context, 80)
    write_batches(context, range(1, 2))
    write_rows(context, head_row(head_of_batch(context, 1)))
    found = job_status.read(context)
    found = replace(found, time=found.batches[-1].ended + timedelta(minutes=10))
    partitions = [replace(one, seconds=45.0) for one in found.partitions]
    found = replace(found, partitions=partitions)
    assert list(lag_thresholds.exceeded(found, most, oldest)) == said


def test_rows_that_wait_for_nobody_knows_how_long_exceed_a_limit_in_seconds(
    provisioned_of: ContextOf,
) -> None:
    context = provisioned_of("transactional")
    send(context, 80)
    found = job_status.read(context)
    unknown = replace(found, partitions=[replace(one, seconds=None) for one in found.partitions])
    (line,) = lag_thresholds.exceeded(unknown, LagThreshold(seconds=1e9), None)
    assert line == "lag: 80 rows wait, and nothing says for how long"
    assert list(lag_thresholds.exceeded(found, None, 1e9)) == ["no batch has ended yet"]


# -- the live view


def _view(context: JobContext, found: JobStatus, before: JobStatus | None = None) -> list[str]:
    return status_watch.view(context, found, before)


def test_the_view_fits_eighty_columns_and_a_screen(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional", "map", 2, rejects=True)
    send(context, 80)
    write_batches(context, range(1, 13), rejected={"a reason " * 12: 2})
    write_rows(context, head_row(head_of_batch(context, 12)))
    found = job_status.read(context)
    path = "//home/" + "a-long-folder/" * 8 + "queue"
    partitions = [
        replace(one, queue=path, number=n, end=10**12 + n)
        for n in range(60)
        for one in found.partitions[:1]
    ]
    lines = _view(context, replace(found, partitions=partitions))
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24
    assert any("55 partitions with less" in line for line in lines)
    assert any("/queue" in line and line.startswith("...") for line in lines)


def test_the_view_counts_what_arrives_between_two_looks(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    write_batches(context, range(1, 13))
    write_rows(context, head_row(head_of_batch(context, 12)))
    before = job_status.read(context)
    send(context, 80)
    found = replace(job_status.read(context), time=before.time + timedelta(seconds=4))
    lag = "lag 80 rows, 45 s | reads 40 rows/s | arriving 20 rows/s | caught up in 4 s"
    partitions = [replace(one, seconds=45.0) for one in found.partitions]
    found = replace(found, partitions=partitions)
    assert lag in _view(context, found, before)
    faster = replace(found, time=before.time + timedelta(seconds=1))
    assert any(line.endswith("does not catch up") for line in _view(context, faster, before))


def test_the_view_outlives_an_outage(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = provisioned_of("transactional")
    looks: Iterator[JobStatus | BaseException] = iter(
        [job_status.read(context), OSError("down"), KeyboardInterrupt()]
    )

    def read(_: JobContext) -> JobStatus:
        found = next(looks)
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr(job_status, "read", read)
    shown = io.StringIO()
    status_watch.watch(context, 0.0, shown)
    assert shown.getvalue().count("never started") == 2
    assert shown.getvalue().count("no answer: down") == 1


# -- what the page shows


def _scene(context: JobContext) -> JobStatus:
    """Return a job that was killed with 80 rows before it; what depends on clocks is given."""
    send(context, 80)
    queue, reasons = context.settings.queues[0], [*context.job.reject]
    rows, end = [], datetime(2026, 11, 23, 21, 14, 9, tzinfo=UTC)
    for number in range(1, 13):
        ended = end - timedelta(seconds=5 * (12 - number))
        ranges = dict.fromkeys(range(4), (1000 * number - 1000, 1000 * number))
        rejected = {reasons[0]: 3 * number, reasons[1]: number}
        written = {"output": 4000 - 4 * number, "rejected": 4 * number}
        begun = ended - timedelta(seconds=2 + number / 10)
        done = BatchRow({queue: ranges}, written, begun, ended, rejected=rejected)
        rows.append(batch_row(Head(epoch=1 + number // 6, batch=number, number=number), done))
    head = replace(head_of_batch(context, 12), owner="process 1293 on node-7, 512e23b0")
    write_rows(context, *rows, head_row(head))
    found = job_status.read(context)
    partitions = [
        replace(p, first=12_000, end=12_020, consumer=12_000, next=12_000, seconds=45.0)
        for p in found.partitions
    ]
    return replace(found, time=end + timedelta(seconds=50), partitions=partitions, epochs=2)


def _shown(context: JobContext, text: str) -> str:
    """Return the text with names as in a generated project, on lines without their ends' blanks."""
    text = text.replace(context.settings.queues[0], "//home/ytstream/bids")
    return text.replace(context.settings.proxy, "127.0.0.1:18080")


def _squeezed(text: str) -> str:
    """Return the text without what the width of a path and of an address decides."""
    return re.sub(r" +|-{3,}", " ", text)


def test_the_page_shows_what_status_prints(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional", rejects=True)
    found = _scene(context)
    page = _squeezed((ROOT / "docs/status.md").read_text(encoding="utf-8"))
    assert _squeezed(_shown(context, status_text.text(context, found))) in page
    before = replace(
        found,
        time=found.time - timedelta(seconds=2),
        partitions=[replace(p, end=p.end - 10) for p in found.partitions],
    )
    lines = status_watch.view(context, found, before)
    for line in lines[:4]:
        assert _squeezed(line).strip() in page
    assert _squeezed("\n".join(lines[-10:])) in page


# -- the command


def test_the_exit_code_says_whether_a_limit_is_exceeded(
    provisioned_of: ContextOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = provisioned_of("transactional")
    send(context, 80)
    assert invoke(context, tmp_path, "--max-lag", "80") == 0
    assert invoke(context, tmp_path, "--max-lag", "79") == lag_thresholds.EXCEEDED
    assert "lag: 80 rows, allowed are 79" in capsys.readouterr().err
    assert invoke(context, tmp_path, "--json", "--max-age", "60") == lag_thresholds.EXCEEDED
    said = capsys.readouterr()
    assert json.loads(said.out)["lag"]["rows"] == 80
    assert "no batch has ended yet" in said.err


@pytest.mark.parametrize("words", [["--max-lag", "many"], ["--json", "--watch"]])
def test_a_limit_that_cannot_be_read_is_wrong_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.run("bids", lambda: pytest.fail("the job was imported"), ["status", *words])
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("command", "package", "install"),
    [
        ("status", "rich", "ytstream-tools"),
        ("metrics", "prometheus-client", "ytstream-tools[metrics]"),
    ],
)
def test_a_missing_package_of_a_laptop_is_named_with_the_way_to_install_it(
    provisioned_of: ContextOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], command: str, package: str, install: str,
) -> None:  # fmt: skip
    context, module = provisioned_of("transactional"), package.replace("-", "_")
    monkeypatch.setattr(ytstream_tools, "status", ytstream_tools.status)  # back after the test
    for loaded in [*sys.modules]:
        if loaded.startswith((f"{module}.", "ytstream_tools.status")):
            monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    assert invoke(context, tmp_path, command=command) == 1
    said = capsys.readouterr().err
    assert f"`{command}` needs the package {package}, which is not installed here" in said
    assert f"pip install '{install}=={ytstream.__version__}'" in said


def test_a_missing_module_of_the_user_keeps_its_traceback(
    provisioned_of: ContextOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: JobContext) -> JobStatus:
        raise ModuleNotFoundError("No module named 'prices'", name="prices")

    context = provisioned_of("transactional")
    monkeypatch.setattr(job_status, "read", read)
    with pytest.raises(ModuleNotFoundError, match="prices"):
        invoke(context, tmp_path)


# -- other commands


def test_a_replay_beside_a_static_output_is_refused_before_sparks_start(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = provisioned_of("transactional", rejects=True)
    job = replace(context.job, static=("output",))
    monkeypatch.setattr("ytstream.spark.session.opened", lambda _: pytest.fail("Spark was started"))
    command = replay_rejected.COMMAND.run
    assert command is not None
    text = refusal(lambda: command(replace(context, job=job), Namespace()))
    assert "the outputs output are static" in text

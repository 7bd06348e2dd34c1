"""Batches too large for a tablet: the job ends at once, with the commands that let them pass."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from yt.yson import YsonUint64

from minicluster.testing import Running
from tests.support.codes import TOO_MANY_ROWS
from tests.support.helpers import StreamOf, adopt, another_process, refusal
from tests.support.job_thread import supervised
from ytstream import Column
from ytstream.cluster import resharding
from ytstream.outputs import tablet_overflow
from ytstream.provisioning import capacity, job_objects
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner, supervise
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, assert_exact

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LIMIT = 100
"""Rows of one tablet in one transaction, for these tests."""


@pytest.fixture
def small(cluster: Running) -> Iterator[None]:
    """Let a transaction touch few rows of a tablet."""
    cluster.client.set_rows_per_tablet(LIMIT)
    yield
    cluster.client.set_rows_per_tablet(100_000)


@pytest.mark.parametrize(
    ("processing", "cut"),
    [
        pytest.param("window", "--tablet-count", marks=pytest.mark.journey),
        ("aggregate", "'[]' '["),
        pytest.param("sessions", "--tablet-count", marks=pytest.mark.journey),
        pytest.param("deduplicate", "--tablet-count", marks=pytest.mark.journey),
    ],
)
def test_a_refused_batch_passes_after_the_commands_that_the_job_gives(
    stream_of: StreamOf,
    cluster: Running,
    small: None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    cut: str,
) -> None:
    stream = _of_small_writes(stream_of("transactional", processing))
    has_windows = processing in ("window", "sessions")
    monkeypatch.setattr(capacity, "NEARLY", 0.001)
    for bids in _bids(stream, 600):
        stream.publish(bids)
    if has_windows:
        with caplog.at_level(logging.INFO, "job"):
            _run(stream)
            stream.publish([stream.sent[-1]])  # a batch that knows the size of the state
            _run(stream)
        # Each of the two processes said it once, however many batches it had.
        warned, _ = [r for r in caplog.records if "may come out in one batch" in r.message]
        assert (warned.levelname, "600 keys of the state" in warned.message) == ("WARNING", True)
        (remark,) = capacity.remarks(stream.context)
        assert remark in warned.message
        stream.publish(stream.sample.closing(stream.context.job, stream.sent)[:1])
    text = _give_up(stream, cluster)
    assert f" rows into {stream.settings.output}, which has " in text
    assert cut in text
    assert not stream.found()
    # The next start has planned the same batch.
    assert _give_up(another_process(stream), cluster).splitlines()[1:] == text.splitlines()[1:]
    _paste(text)
    another_process(stream).close()
    assert_exact(stream.context.job, stream.outcomes())


def _named(rows: DataFrame) -> dict[str, DataFrame]:
    name = F.format_string('it\'s %s "%s" $1', F.lit("ы"), F.col("auction") % 7)
    named = rows.select(name.alias("name"), "auction", F.lit(1).cast("long").alias("bids"))
    return {"output": rows, "named": named}


@pytest.mark.thorough
def test_each_output_that_is_too_small_is_named(
    stream_of: StreamOf, cluster: Running, small: None
) -> None:
    """An ordered one, one with a key of a text and a number, and the rejected rows."""
    stream = _of_small_writes(stream_of("transactional", rejects=True))
    job, settings = stream.context.job, stream.settings
    columns = [
        Column("name", "utf8", key=True),
        Column("auction", "int64", key=True),
        Column("bids", "int64"),
    ]
    path = f"{settings.output}-named"
    stream.context = replace(
        stream.context,
        job=replace(
            job,
            outputs={**job.outputs, "named": columns},
            split=_named,
            reject={"odd": "auction % 2 = 1"},
        ),
        settings=replace(settings, outputs={**settings.outputs, "named": path}),
    )
    job_objects.provision(stream.context)
    for bids in _bids(stream, 1_000):
        stream.publish([{**bid, "price": 100} for bid in bids])
    text = _give_up(stream, cluster)
    assert f"500 rows into {settings.output}, which has 4 tablets" in text
    assert f"500 rows into {path}, which has 1 tablet: about 500 of them belong to one" in text
    rejected = f"500 rows into {settings.outputs['rejected']}, which has 4 tablets: about 250 of"
    assert rejected in text
    assert "lower max_rows_per_partition" in text
    _paste(text)
    another_process(stream).drain()
    for output in stream.settings.outputs.values():
        assert list(stream.client.select_rows(f"sum(1) as n from [{output}] group by 1")) == [
            {"n": 500}
        ]


def test_keys_of_spark_are_those_of_the_table(spark: SparkSession) -> None:
    """Times as the table has them, whatever the time zone of this machine."""
    at, columns = datetime(2024, 1, 1, tzinfo=UTC), ("t", "d", "s", "b", "i", "is", "n")
    types = "t timestamp, d date, s string, b binary, i long, is boolean, n long"
    rows = spark.createDataFrame(
        [(at, at.date(), "ы", bytearray(b"\xff"), -1, True, None)] * 2, types
    )
    wanted = resharding.key([1_704_067_200_000_000, 19_723, "ы", b"\xff", -1, True, None])
    assert tablet_overflow._keys(rows, columns, 1.0) == [wanted]
    same_for_python = spark.sql("select cast(s as string) s from values (x'fe'), (x'ff') as t(s)")
    assert tablet_overflow._keys(same_for_python, ["s"], 1.0) == [((1, b"\xfe"),), ((1, b"\xff"),)]
    many = spark.range(10_000)
    assert 0 < len(tablet_overflow._keys(many, ["id"], 0.1)) < 2_000


@pytest.mark.parametrize("guarantee", ["at_least_once", "idempotent"])
def test_no_other_guarantee_has_such_transactions(
    stream_of: StreamOf, small: None, guarantee: str
) -> None:
    """Each write is a transaction of its own, whatever the batch is."""
    stream = stream_of(guarantee)
    stream.configure(dyn_batch_size=LIMIT)
    adopt(stream.spark, stream.context)
    for bids in _bids(stream, 600):
        stream.publish(bids)
    stream.drain()
    assert_exact(stream.context.job, stream.outcomes())


def _of_small_writes(stream: Stream) -> Stream:
    """Let the rows of a batch be spread over many tablets, and a failed query start at once."""
    stream.configure(dyn_batch_size=5)
    stream.redeclare(first_pause_seconds=0.0)
    adopt(stream.spark, stream.context)
    return stream


def _bids(stream: Stream, count: int) -> Iterator[list[dict[str, Any]]]:
    """Yield bids of as many auctions and bidders within a second, as a transaction takes them."""
    made = stream.sample.make(count, seed=5)
    first = int(made[0]["date_time"])
    for number, row in enumerate(made):
        at = YsonUint64(first + number)
        row |= {"auction": number, "bidder": number, "date_time": at, "url": None}
        row["event_id"] = f"bid-{number}"  # a publisher's repeats would differ now
    for begin in range(0, count, LIMIT):
        yield made[begin : begin + LIMIT]


def _run(stream: Stream) -> None:
    """Run the job as a process does until every row is in a finished batch."""
    with supervised(stream) as wait:
        wait(drained(stream.context))


def _give_up(stream: Stream, cluster: Running) -> str:
    """Run the job as a process does until it ends; return why. The cluster refused one commit."""
    since = cluster.client.journal()[-1].n
    runner = QueryRunner(stream.context, stream.spark, stream.tablets, StopSignal())
    text = refusal(lambda: supervise(stream.context.job, runner, StopSignal()))
    tried = cluster.client.journal("CommitTransaction", since=since)
    assert [entry.error["code"] for entry in tried if entry.error] == [TOO_MANY_ROWS]
    return text


def _paste(text: str) -> None:
    """Run the commands at the end of a refusal in a shell, as a person does."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("yt "))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", "\n".join(lines[first:])],
        env={**os.environ, "PATH": path, "YT_TOKEN": "any"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

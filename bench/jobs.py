"""The job of a case: the example of the template, with what the case adds; and its rows.

A case about the size of a state fills it first, with rows that stand for many keys each
(``_filled``). Then each row has one of these keys, far from the one before, and a deduplication
finds a repeat in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from yt.yson import YsonUint64

from bench import lookups
from bench.cases import ARCHIVE, JOB, LISTING, NOOP, OUTPUTS, PLAIN, REJECTS, STATIC, Case, Size
from tests.support.examples import MERGE, example, settings_of
from tests.support.static_outputs import static
from ytstream import REJECTED, Column, Hourly
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import Job, JobContext
from ytstream.settings.job_settings import Settings
from ytstream_tools.demo.job_sample import SampleRow

TRIGGER_SECONDS = 1.0
AUCTIONS = "//home/auctions"
"""The reference in which keys are looked up."""
SHUFFLE_PARTITIONS = 8
"""As many as a generated job has."""
_STRIDE = 7_368_787
"""A prime number: multiples of it hit the keys one by one, and no two near each other."""
_EVENT_TIME = YsonUint64(1_704_067_200_000_000)
_ONE_IN_A_HUNDRED = {"one in a hundred": "event_id LIKE '%00'"}
_MIXED: tuple[tuple[str, Callable[[int], Any]], ...] = (
    ("int64", lambda number: number * 7919),
    ("utf8", lambda number: f"text {number % 1000}"),
    ("double", lambda number: number / 7),
    ("boolean", lambda number: number % 3 == 0),
    ("int32", lambda number: number % 10_007),
    ("timestamp", lambda number: 1_704_067_200_000_000 + number),
    ("string", lambda number: b"\x00\xff" + str(number % 1000).encode()),
    ("uint8", lambda number: None if number % 4 == 0 else number % 200),
)
"""The types of the columns that widen a row, in turn, each with the value of a row's number."""


def job_of(case: Case, way: str) -> Job:
    """Return the job that the generated files declare, with the case's extra in the way JOB."""
    extra = case.extra if way == JOB else ""
    # A table with MERGE is compared with one to which the same rows are added.
    kind = "map" if case.processing == MERGE and way == PLAIN else case.processing
    job = example(case.guarantee, kind, case.queues, rejects=extra == REJECTS).job
    job = replace(job, shuffle_partitions=SHUFFLE_PARTITIONS)
    if way in (LISTING, NOOP):  # SPYT's pages have no such function
        job.transform.__globals__.update(checked_state=lambda function: function)
    job = _widened(job, case.columns) if case.columns else job
    job = _divided(job, case.tables) if case.tables else job
    job = _filled(job) if case.keys and case.processing != MERGE else job
    if extra == REJECTS:
        job = replace(job, reject=_ONE_IN_A_HUNDRED)
    elif extra == OUTPUTS:
        columns = job.output_columns["output"]
        job = replace(job, outputs={"output": columns, "expensive": columns}, split=split)
    elif extra == STATIC:
        job = static(job, "output")
    elif extra == ARCHIVE:  # a batch of the sample has 21 minutes: rows of one hour, or of two
        outputs = {**static(job, "output").outputs, "rejected": REJECTED}
        job = replace(job, outputs=outputs, static={"output": Hourly("date_time")})
    return job


def _widened(job: Job, columns: int) -> Job:
    """Return the job `map` with so many columns: those that are new pass through."""
    added = _added(columns - len(job.queue_columns))
    names = [column.name for column in (*job.queue_columns, *added)]

    def transform(events: DataFrame) -> DataFrame:
        in_euros = F.expr("price * 908 div 1000").alias("price_eur")
        return events.select(*(in_euros if name == "price" else F.col(name) for name in names))

    output = (*job.output_columns["output"], *added)
    return replace(
        job, queue=(*job.queue_columns, *added), outputs={"output": output}, transform=transform
    )


def _added(count: int) -> list[Column]:
    return [Column(f"more_{n}", _MIXED[n % len(_MIXED)][0]) for n in range(count)]


def _filled(job: Job) -> Job:
    """Return the job in which a row brings ``bidder`` keys; without a price they give no output."""
    inner = job.transform

    def transform(events: DataFrame) -> DataFrame:
        keys = F.expr("explode(sequence(auction, auction + bidder - 1))")
        rows = events.withColumn("auction", keys)
        rows = inner(rows.withColumn("event_id", F.col("auction").cast("string")))
        if job.totals:
            return rows
        return rows.filter(f"{'total' if 'total' in rows.columns else 'price'} > 0")

    return replace(job, transform=transform)


def _divided(job: Job, tables: int) -> Job:
    """Return the job with so many outputs, each with its share of the rows."""
    names = ["output", *(f"output_{n}" for n in range(1, tables))]
    columns = job.output_columns["output"]

    def split(rows: DataFrame) -> Mapping[str, DataFrame]:
        return {name: rows.filter(f"auction % {tables} = {n}") for n, name in enumerate(names)}

    return replace(job, outputs=dict.fromkeys(names, columns), split=split)


def split(rows: DataFrame) -> Mapping[str, DataFrame]:
    """Send each row into one of two outputs, about as many into each."""
    return {"output": rows.filter("auction % 2 = 0"), "expensive": rows.filter("auction % 2 = 1")}


def context_of(case: Case, way: str, size: Size, proxy: str, root: str) -> JobContext:
    """Return the job on the cluster, with all that it writes in the Cypress folder ``root``."""
    job = job_of(case, way)
    if case.reference:
        job = lookups.job_of(job, case, size, way, root)
    settings = replace(
        settings_of(job, root, proxy=proxy, queues=case.queues),
        queues=queues_of(case),
        reference="//home/reference" if job.reference else None,
        references=dict.fromkeys(job.references, AUCTIONS),
        reference_cache_mb=Settings.reference_cache_mb if case.has_cache else 0,
        max_rows_per_partition=case.batch_rows(size) // case.tablets,
        trigger_seconds=TRIGGER_SECONDS,
        dyn_batch_size=None,  # as the runtime chooses it
    )
    return JobContext(connect(settings), settings, job, guarantee_of(job))


def queues_of(case: Case) -> tuple[str, ...]:
    """Return the queues, which all runs of a case read."""
    return tuple(f"//home/queue-{number}" for number in range(case.queues))


def rows_of(case: Case, size: Size, count: int) -> Iterator[list[Mapping[str, Any]]]:
    """Yield ``count`` rows of the example's sample in pieces."""
    sample = example(case.guarantee, case.processing, case.queues).sample
    made = iter(sample.rows(count, 7, sample.start_us))
    number = 0
    while piece := list(islice(made, 20_000)):
        yield [_adapted(row, number + offset, case, size) for offset, row in enumerate(piece)]
        number += len(piece)


def _adapted(row: SampleRow, number: int, case: Case, size: Size) -> SampleRow:
    """Return the row with as many keys and columns as the case is about."""
    keyed = _keyed(number, case, size) if case.keys else {}
    keyed |= {"bidder": lookups.drawn(number)} if case.reference else {}
    more = range(case.columns - len(row))
    return {**row, **keyed, **{f"more_{n}": _MIXED[n % len(_MIXED)][1](number) for n in more}}


def _keyed(number: int, case: Case, size: Size) -> dict[str, Any]:
    """Return the key of a row. No event time moves of a state, so nothing leaves it."""
    keys, each = case.state_keys(size), case.keys_of_a_row(size)
    moved = number if case.processing == MERGE else 0  # each row is newer than those before
    always = {"date_time": YsonUint64(_EVENT_TIME + moved)}
    if not case.has_full_table and number < case.batch_rows(size) * case.known_batches(size):
        return {"auction": number * each % keys, "bidder": each, "price": 0, **always}
    return {"auction": number * _STRIDE % keys, "bidder": 1, "price": 1, **always}


def reference_of(case: Case) -> list[SampleRow]:
    """Return the rows of the reference that is read whole; none without one."""
    if case.reference:
        return list(map(lookups.auction, range(lookups.WHOLE)))
    return list(example(case.guarantee, case.processing, case.queues).sample.reference)

"""The job of a case: the example of the template, with what the case adds; and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame

from bench.cases import JOB, LISTING, NOOP, OUTPUTS, REJECTS, STATIC, Case, Size
from packages.ytstream.tests.examples import example, settings_of
from packages.ytstream.tests.static_outputs import static
from ytstream.cluster import connect
from ytstream.demo.sample import Row
from ytstream.guarantees import guarantee_of
from ytstream.job import Connection, Job

TRIGGER_SECONDS = 1.0
#: As many as a generated job has.
SHUFFLE_PARTITIONS = 8
_ONE_IN_A_HUNDRED = {"one in a hundred": "event_id LIKE '%00'"}


def job_of(case: Case, way: str) -> Job:
    """Return the job that the generated files declare, with the case's extra in the way JOB."""
    extra = case.extra if way == JOB else ""
    job = example(case.guarantee, case.processing, case.queues, rejects=extra == REJECTS).job
    job = replace(job, shuffle_partitions=SHUFFLE_PARTITIONS)
    if way in (LISTING, NOOP):  # SPYT's pages have no such function
        job.transform.__globals__.update(checked_state=lambda function: function)
    if extra == REJECTS:
        job = replace(job, reject=_ONE_IN_A_HUNDRED)
    elif extra == OUTPUTS:
        columns = job.output_columns["output"]
        job = replace(job, outputs={"output": columns, "expensive": columns}, split=split)
    elif extra == STATIC:
        job = static(job, "output")
    return job


def split(rows: DataFrame) -> Mapping[str, DataFrame]:
    """Send each row into one of two outputs, about as many into each."""
    return {"output": rows.filter("auction % 2 = 0"), "expensive": rows.filter("auction % 2 = 1")}


def connection_of(case: Case, way: str, size: Size, proxy: str, root: str) -> Connection:
    """Return the job on the cluster, with all that it writes in the Cypress folder ``root``."""
    job = job_of(case, way)
    settings = replace(
        settings_of(job, root, proxy=proxy, queues=case.queues),
        queues=queues_of(case),
        reference="//home/reference" if job.reference else None,
        max_rows_per_partition=case.batch_rows(size) // case.tablets,
        trigger_seconds=TRIGGER_SECONDS,
        dyn_batch_size=None,  # as the runtime chooses it
    )
    return Connection(connect(settings), settings, job, guarantee_of(job))


def queues_of(case: Case) -> tuple[str, ...]:
    """Return the queues, which all runs of a case read."""
    return tuple(f"//home/queue-{number}" for number in range(case.queues))


def rows_of(case: Case, count: int) -> Iterator[list[Mapping[str, Any]]]:
    """Yield ``count`` rows of the example's sample in pieces."""
    sample = example(case.guarantee, case.processing, case.queues).sample
    made = iter(sample.rows(count, 7, sample.start_us))
    number = 0
    while piece := list(islice(made, 20_000)):
        yield [_keyed(row, number + place, case.keys) for place, row in enumerate(piece)]
        number += len(piece)


def _keyed(row: Row, number: int, keys: int) -> Row:
    return {**row, "auction": number % keys} if keys else row


def reference_of(case: Case) -> list[Row]:
    """Return the rows of the reference table; none without one."""
    return list(example(case.guarantee, case.processing, case.queues).sample.reference)

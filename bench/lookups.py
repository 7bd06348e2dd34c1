"""The job of a case that looks up keys, and the join that it is compared with.

Each row of the queue has a random number, and each run makes another key of it. So the runs of one
driver look up different keys of the same distribution, and a cache knows the frequent ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.cases import PLAIN, Case, Size
from ytstream import lookup
from ytstream.job import Job

WHOLE = 10_000
"""Rows of the reference that the join reads whole."""
_DRAWS = 1 << 32
_STRIDE = 7_368_787
"""A prime number: it puts keys that are equally frequent into all tablets."""


def drawn(number: int) -> int:
    """Return the random number of a row."""
    return int.from_bytes(blake2b(number.to_bytes(8, "little"), digest_size=4).digest(), "little")


def auction(key: int) -> dict[str, Any]:
    """Return a row of the reference."""
    return {"auction": key, "category": f"category {key % 7}", "seller": key * 10}


def job_of(job: Job, case: Case, size: Size, way: str, root: str) -> Job:
    """Return the example of a join as it looks up keys, or reads a small reference whole."""
    key = _key(case, case.reference_rows(size), root.rpartition("-")[2])
    inner = job.transform

    def joined(events: DataFrame, reference: DataFrame) -> DataFrame:
        return inner(events.withColumn("auction", F.expr(f"{key} % {WHOLE}")), reference)

    def looked_up(events: DataFrame) -> DataFrame:
        rows = events.withColumn("auction", F.expr(key))
        rows = lookup(rows, "auctions", on="auction", by="keys")
        return rows.select(*(column.name for column in job.output_columns["output"]))

    if way == PLAIN:
        return replace(job, transform=joined)
    references: Mapping[str, Any] = {"auctions": job.reference}
    return replace(job, reference=(), references=references, transform=looked_up)


def _key(case: Case, rows: int, run: str) -> str:
    """Return the SQL of the key of a row, one of 0 to ``rows`` - 1."""
    if not case.has_cache:
        return f"bidder % {rows}"
    shifted = f"(bidder + {zlib.crc32(run.encode())}) % {_DRAWS}"
    # The rank k with a probability of about 1 / k: its logarithm is uniform.
    return f"CAST(pow({rows}D, {shifted} / {_DRAWS}D) AS BIGINT) * {_STRIDE} % {rows}"

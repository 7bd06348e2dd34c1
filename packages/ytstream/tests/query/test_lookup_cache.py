"""Rows of a reference that `make reference` has built are asked for once, and are always right."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from rich.console import Console

from minicluster.testing import Running
from tests.support.helpers import ContextOf, last_request
from ytstream import Column, lookup
from ytstream.declaration.lookups import available
from ytstream.job import JobContext
from ytstream.query.references import JobReferences
from ytstream_tools.reference.building import Wanted, build
from ytstream_tools.reference.screen import Screen

pytestmark = pytest.mark.spark

COLUMNS = [
    Column("wiki", "utf8", key=True),
    Column("page", "int64", key=True),
    Column("title", "string"),
    Column("views", "uint64"),
    Column("tags", "any"),
]
SCHEMA = [
    {"name": "page", "type": "int64"}, {"name": "wiki", "type": "utf8"},
    {"name": "title", "type": "string"}, {"name": "views", "type": "uint64"},
    {"name": "tags", "type": "any"},
]  # fmt: skip


class Titles:
    """A reference behind a link, and what was asked of it."""

    def __init__(self, context: JobContext, root: str, spark: SparkSession, cluster: Running):
        settings = replace(context.settings, references={"titles": f"{root}/titles"})
        job = replace(context.job, references={"titles": COLUMNS})
        self.context = replace(context, settings=settings, job=job)
        self.client: Any = context.client
        self.spark, self.cluster = spark, cluster
        self.link, self.source = f"{root}/titles", f"{root}/source"

    def build(self, pages: Iterable[int], version: str = "") -> None:
        """Let the link lead to a table with these pages."""
        self.client.create("table", self.source, recursive=True, force=True,
                           attributes={"schema": SCHEMA})  # fmt: skip
        self.client.write_table(self.source, [_row(page, version) for page in pages])
        wanted = Wanted(self.source, self.link, ("wiki", "page"))
        build(self.context, wanted, Screen(Console(file=io.StringIO())))

    def look_up(self, pages: Iterable[int]) -> tuple[list[Row], int]:
        """Return the rows of these pages, and how many keys were asked for."""
        rows = self.spark.createDataFrame([(f"w{p % 3}", p) for p in pages], "wiki string, id long")
        since = last_request(self.cluster)
        with available(JobReferences(self.spark, self.context)):
            found = self.looked_up(rows.repartition(2)).collect()
        asked = self.cluster.client.journal("LookupRows", since=since)
        return found, sum(len(entry.args.get("keys", [None])) for entry in asked)

    def looked_up(self, rows: DataFrame) -> DataFrame:
        on = {"wiki": "wiki", "page": "id"}
        return lookup(rows, "titles", on, found="is_there", by="keys")

    def cached(self, mib: int) -> None:
        settings = replace(self.context.settings, reference_cache_mb=mib)
        self.context = replace(self.context, settings=settings)


def _row(page: int, version: str) -> dict[str, Any]:
    title = None if page % 11 == 0 else f"Ужас {page} {version}" * (page % 5)
    return {"wiki": f"w{page % 3}", "page": page, "title": title, "views": page * 7, "tags": [page]}


def _right(found: list[Row], known: Iterable[int], version: str = "") -> bool:
    pages = {*known}
    for row in found:
        wanted = _row(row["id"], version)
        values = (row["title"], row["views"], row["is_there"])
        there = (wanted["title"], wanted["views"], True)
        if values != (there if row["id"] in pages else (None, None, False)):
            return False
        if (row["tags"] is not None) != (row["id"] in pages):
            return False
    return True


@pytest.fixture
def titles(context_of: ContextOf, root: str, spark: SparkSession, cluster: Running) -> Titles:
    return Titles(context_of("transactional"), root, spark, cluster)


def test_a_key_is_asked_for_once(titles: Titles) -> None:
    """Missing ones, too, and whatever the task. Another set of columns has rows of its own."""
    titles.build(range(900))
    pages = [*range(100, 1_000), *range(500, 700)]
    found, asked = titles.look_up(pages)
    assert (len(found), _right(found, range(900)), asked > 0) == (1_100, True, True)
    found, asked = titles.look_up(reversed(pages))
    assert (len(found), _right(found, range(900)), asked) == (1_100, True, 0)
    found, asked = titles.look_up([5, 150])
    assert (_right(found, range(900)), asked > 0) == (True, True)
    titles.cached(0)
    found, asked = titles.look_up(pages)
    assert (_right(found, range(900)), asked > 0) == (True, True)


def test_another_table_behind_the_link_has_other_rows(titles: Titles) -> None:
    titles.build(range(100), "old")
    assert _right(titles.look_up(range(120))[0], range(100), "old")
    titles.build(range(110), "new")
    found, asked = titles.look_up(range(120))
    assert (_right(found, range(110), "new"), asked > 0) == (True, True)


@pytest.mark.thorough
def test_what_was_written_to_an_unfrozen_table_is_seen(titles: Titles) -> None:
    titles.build(range(50))
    titles.look_up(range(60))
    titles.client.unfreeze_table(titles.link, sync=True)
    titles.client.insert_rows(titles.link, [_row(page, "new") for page in range(55)])
    found, asked = titles.look_up(range(60))
    assert (_right(found, range(55), "new"), asked > 0) == (True, True)
    assert titles.look_up(range(60))[1] > 0  # it may be written to again
    titles.client.freeze_table(titles.link, sync=True)
    found, asked = titles.look_up(range(60))
    assert (_right(found, range(55), "new"), asked > 0) == (True, True)
    found, asked = titles.look_up(range(60))
    assert (_right(found, range(55), "new"), asked) == (True, 0)


@pytest.mark.thorough
def test_a_small_cache_keeps_what_was_asked_for_last(titles: Titles) -> None:
    """One MiB does not hold all rows, so some are asked for again; none is mixed up."""
    titles.build(range(8_300))
    titles.cached(1)
    hot = range(300)
    # What comes between two looks at the same keys fits into half of the cache.
    for start in (300, 2_300, 4_300, 6_300, 300):
        found, asked = titles.look_up([*hot, *range(start, start + 2_000)])
        assert _right(found, range(8_300))
        assert asked > 0
        assert titles.look_up(hot)[1] == 0

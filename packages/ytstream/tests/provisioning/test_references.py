"""Whether a table can be a reference: refused in words at the start, not in a batch; no Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from yt.yson import to_yson_type

from tests.support.helpers import ContextOf, refusal
from ytstream import Column
from ytstream.cluster import built_reference
from ytstream.job import JobContext
from ytstream.provisioning import job_objects, permissions, references
from ytstream.schema.columns import resolved
from ytstream.schema.table_schema import table_schema

AUCTIONS = [Column("auction", "int64", key=True), Column("seller", "int64")]
COLUMNS = resolved("REFERENCES", AUCTIONS)


def _found(**changes: Any) -> dict[str, Any]:
    schema = table_schema(COLUMNS).to_yson_type()
    return {
        "type": "table",
        "dynamic": True,
        "schema": schema,
        "tablet_state": "mounted",
        **changes,
    }


def _schema(change: Callable[[Any], None]) -> Any:
    columns = table_schema(COLUMNS).to_yson_type()
    change(columns)
    return to_yson_type([*columns], attributes=columns.attributes)


@pytest.mark.parametrize("state", ["mounted", "frozen"])
def test_a_sorted_dynamic_table_fits(state: str) -> None:
    assert [*references.unfit(COLUMNS, _found(tablet_state=state))] == []
    more = _schema(lambda columns: columns.append({"name": "more", "type": "any"}))
    assert [*references.unfit(COLUMNS, _found(schema=more))] == []
    hashed = {"name": "h", "type": "uint64", "sort_order": "ascending", "expression": "auction"}
    spread = _schema(lambda columns: columns.insert(0, hashed))
    assert [*references.unfit(COLUMNS, _found(schema=spread))] == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (_found(type="replicated_table"), "it is a replicated_table"),
        (_found(dynamic=False), "it is not a sorted dynamic table"),
        (_found(schema=_schema(lambda c: c[0].pop("sort_order"))), "not a sorted dynamic table"),
        (
            _found(schema=_schema(lambda c: c[0].update(expression="1"))),
            "its key is computed, REFERENCES",
        ),
        (_found(schema=_schema(lambda c: c[0].update(name="id"))), "its key is id, REFERENCES has"),
        (_found(schema=_schema(lambda c: c.pop())), "column seller: the table lacks it"),
        (_found(tablet_state="unmounted"), "it is unmounted"),
        (_found(min_data_ttl=0), "min_data_ttl = 0"),
        (_found(merge_rows_on_flush=True), "merge_rows_on_flush is on"),
    ],
)
def test_any_other_table_does_not(found: Mapping[str, Any], said: str) -> None:
    assert said in "; ".join(references.unfit(COLUMNS, found))


def test_a_static_table_fits_as_far_as_it_is_read_whole() -> None:
    static = _found(dynamic=False, row_count=1_000)
    assert [*references.unreadable(COLUMNS, static, 1_000)] == []
    (said,) = references.unreadable(COLUMNS, static, 999)
    assert "it is static and has 1000 rows, and at most reference_rows = 999 are read" in said
    lacks = {**static, "schema": _schema(lambda c: c.pop())}
    (said,) = references.unreadable(COLUMNS, lacks, 1_000)
    assert "column seller: the table lacks it" in said
    unmounted = _found(tablet_state="unmounted")
    assert [*references.unreadable(COLUMNS, unmounted, 1_000)] == ["it is unmounted"]


def _with_reference(context: JobContext, path: str) -> JobContext:
    job = replace(context.job, references={"auctions": AUCTIONS})
    settings = replace(context.settings, references={"auctions": path})
    return replace(context, job=job, settings=settings)


def test_provision_makes_a_missing_reference_only_where_it_makes_queues(
    context_of: ContextOf, root: str
) -> None:
    context = _with_reference(context_of("transactional"), f"{root}/auctions")
    job_objects.provision(context)
    assert f"reference auctions  {root}/auctions" in " ".join(job_objects.check(context).split(" "))
    context.client.remove(f"{root}/auctions")
    strict = replace(context, settings=replace(context.settings, create_queues=False))
    assert "make it: `make reference`" in refusal(lambda: job_objects.provision(strict))


def test_a_missing_reference_has_two_remedies_and_a_broken_link_no_provision(
    context_of: ContextOf, root: str
) -> None:
    """`provision` would make a table where `make reference` needs a link, or nothing at all."""
    context = _with_reference(context_of("transactional"), f"{root}/link")
    said = refusal(lambda: job_objects.require(context))
    assert "run `provision`, which makes an empty table for you to fill" in said
    assert "or `make reference`, which makes a link of the path and needs it free" in said
    client: Any = context.client
    client.create("map_node", root, recursive=True, ignore_existing=True)
    client.link(f"{root}/gone", f"{root}/link", force=True)
    found = refusal(lambda: job_objects.require(context))
    for said in (found, refusal(lambda: job_objects.provision(context))):
        assert f"is a link to {root}/gone, which is missing" in said
        assert f"as `make reference` does, or remove it: yt remove {root}/link" in said
    client.remove(f"{root}/link")
    job_objects.provision(context)


def test_a_reference_may_be_a_link_and_needs_to_be_read(context_of: ContextOf, root: str) -> None:
    context = _with_reference(context_of("transactional"), f"{root}/auctions")
    job_objects.provision(context)
    client: Any = context.client
    client.link(f"{root}/auctions", f"{root}/link")
    linked = _with_reference(context, f"{root}/link")
    assert [*job_objects.findings(linked)] == []
    wanted = permissions.rights(permissions.JOB, linked.job, linked.settings)
    assert f"{root}/link" in {one.path for one in wanted if one.permission == "read"}


def test_a_moment_is_kept_for_min_data_ttl_and_by_a_built_table_since_then() -> None:
    def lost(age: int, **found: Any) -> str:
        built = int(time.time()) - 7_200
        created = datetime.fromtimestamp(built, UTC).isoformat()
        facts = {"creation_time": created, "min_data_ttl": 1_800_000, "tablet_state": "mounted"}
        return references.lost({**facts, **found}, int(time.time() - age) << 30)

    assert lost(60) == ""
    assert "it keeps its rows for 1800 s" in lost(3_600)
    assert "it keeps its rows for 1800 s" in lost(3_600, tablet_state="frozen")
    built = {built_reference.MARK: built_reference.mark(1, "//static", ("auction",))}
    assert lost(3_600, tablet_state="frozen", **built) == ""
    assert "it keeps its rows for 1800 s" in lost(3_600, **built)
    assert lost(9_000, tablet_state="frozen") == "it was built later"
    written = datetime.fromtimestamp(int(time.time()) - 600, UTC).isoformat()
    static = {"dynamic": False, "modification_time": written}
    assert lost(500, **static) == ""
    assert lost(700, **static) == "it is static, and was written to later"
    mark = built_reference.mark(2**62, "//static", ("auction",))
    assert lost(60, **{built_reference.MARK: mark}) == "it was built later"

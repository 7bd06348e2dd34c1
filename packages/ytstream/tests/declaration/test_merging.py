"""MERGE that does not fit OUTPUTS, the guarantee or the configuration is refused in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yt.type_info as ti

from tests.support.examples import example, settings_of
from tests.support.helpers import refusal
from tests.support.merge_oracle import POSITIONS, QUEUE
from ytstream import REJECTED, Column, Job, newest
from ytstream.declaration.validation import verify, verify_configuration
from ytstream.guarantees import guarantee_of
from ytstream.provisioning import permissions
from ytstream.schema.changes import Newest

NEWEST = newest(sequence_by="at")
PLAIN = [Column("at", "int64")]
WITH_ANY = [*POSITIONS, Column("extra", "any")]
WITH_DICT = [*POSITIONS, Column("extra", ti.List[ti.Dict[ti.Utf8, ti.Int64]])]


def _job(**changes: Any) -> Job:
    declared = {
        "queue": QUEUE,
        "outputs": {"output": POSITIONS, "rejected": REJECTED},
        "merge": {"output": NEWEST},
        "reject": {},
    }
    return replace(example("transactional", "map").job, **{**declared, **changes})


def _merge(rows: Any) -> Any:
    return rows


def test_what_fits_is_accepted() -> None:
    for rule in (NEWEST, newest("at", "on_ground"), _merge):
        outputs = {"output": POSITIONS, **({"rejected": REJECTED} if rule is not _merge else {})}
        job = _job(outputs=outputs, merge={"output": rule})
        verify(job)
        verify_configuration(job, settings_of(job, "//home/job"), guarantee_of(job))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"merge": {"positions": NEWEST}}, "MERGE names 'positions', which OUTPUTS does not have"),
        ({"outputs": {"output": PLAIN, "rejected": REJECTED}}, "the output has no key column"),
        (
            {"outputs": {"output": [POSITIONS[0], Column("at", "int64", aggregate="max")]}},
            "its table adds up what is written",
        ),
        ({"guarantee": "at_least_once"}, "at_least_once writes without a transaction"),
        ({"guarantee": "idempotent"}, "idempotent writes without a transaction"),
        (
            {"outputs": {"output": PLAIN, "rejected": REJECTED}, "static": ("output",)},
            "the output is static",
        ),
        ({"merge": {"rejected": NEWEST}}, "the runtime writes the rejected rows"),
        ({"merge": {"output": newest("time")}}, "sequence_by='time' is not a value column"),
        ({"merge": {"output": newest("aircraft")}}, "sequence_by='aircraft' is not a value column"),
        ({"merge": {"output": newest("at", "aircraft")}}, "'aircraft' is a key column"),
        ({"merge": {"output": newest("at", "note")}}, "'note' is utf8, wanted a boolean"),
        ({"outputs": {"output": WITH_ANY, "rejected": REJECTED}}, "column extra is any, which has"),
        ({"outputs": {"output": WITH_DICT, "rejected": REJECTED}}, "which has no order"),
        (
            {"outputs": {"output": [*POSITIONS, Column("is_stored", "boolean")]}},
            "a column is_stored, a name that MERGE uses",
        ),
        ({"outputs": {"output": POSITIONS}}, "REJECT needs an output in OUTPUTS"),
        ({"merge": [NEWEST]}, "wanted a dict of outputs and newest(), or functions"),
        ({"merge": {"output": "newest"}}, "wanted newest(sequence_by=...), or a function"),
        ({"merge": {"output": newest}}, "wanted newest(sequence_by=...), or a function"),
        ({"merge": {}, "processing": "merge"}, 'processing="merge" and no MERGE'),
        ({"merge": {"output": Newest("")}}, "sequence_by='', wanted the name of a column"),
        (
            {"merge": {"output": Newest("at", 1)}},  # type: ignore[arg-type]
            "apply_as_deletes=1, wanted the name of a column",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(changes: dict[str, Any], said: str) -> None:
    assert said in refusal(lambda: verify(_job(**changes)))


def test_a_connector_that_cannot_merge_is_refused() -> None:
    job = _job()
    settings = replace(settings_of(job, "//home/job"), connector="spyt")
    text = refusal(lambda: verify_configuration(job, settings, guarantee_of(job)))
    assert 'connector = "spyt" looks up and deletes no rows, as MERGE of output needs it' in text


def test_an_output_cannot_be_where_deletes_are_remembered() -> None:
    job = _job(merge={"output": newest("at", "on_ground")})
    outputs = {"output": "//home/job/output", "rejected": "//home/job/output_deleted"}
    settings = replace(settings_of(job, "//home/job"), outputs=outputs)
    text = refusal(lambda: verify_configuration(job, settings, guarantee_of(job)))
    assert "//home/job/output_deleted, in which the job remembers deletes of output" in text


def test_rows_without_a_sequence_value_are_rejected_where_the_queue_may_have_them() -> None:
    assert _job().reject == {"at is null": "`at` IS NULL"}
    required = [replace(column, required=True) for column in QUEUE]
    assert _job(queue=required).reject == {}
    assert _job(merge={"output": _merge}).reject == {}
    heights = _job(queue=required, merge={"output": newest("height")})
    assert heights.reject == {"height is NaN": "isnan(`height`)"}
    described = [(column.name, column.type, column.required) for column in required]
    assert _job(queue=described, merge={"output": newest("height")}).reject == heights.reject
    without = replace(heights, reject={}, outputs={"output": POSITIONS})
    assert "height of QUEUE may be null or NaN" in refusal(lambda: verify(without))
    assert _job(reject={"low": "height < 0"}).reject == {
        "low": "height < 0",
        "at is null": "`at` IS NULL",
    }


@pytest.mark.parametrize("remembers", [False, True])
def test_a_job_needs_the_rights_of_the_table_of_deletes(remembers: bool) -> None:
    job = _job(merge={"output": newest("at", "on_ground" if remembers else None)})
    found = permissions.rights(permissions.OPERATOR, job, settings_of(job, "//home/job"))
    on_deletes = {one.permission for one in found if one.path.endswith("/output_deleted")}
    assert on_deletes == ({"read", "write", "mount"} if remembers else set())

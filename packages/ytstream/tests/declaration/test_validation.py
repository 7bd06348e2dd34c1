"""A job.py that does not fit its tables, its configuration or the runtime is refused.

test_mistakes.py has the whole message of many a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import yt.type_info as ti

from tests.support.examples import PAIRS, example, settings_of
from tests.support.helpers import refusal
from ytstream import REJECTED, Column, Job
from ytstream.declaration.compatibility import KEYED
from ytstream.declaration.validation import verify, verify_configuration
from ytstream.guarantees import GUARANTEES, guarantee_of
from ytstream.job import PROCESSINGS
from ytstream.schema.columns import Described, key_of
from ytstream.text_table import counted
from ytstream_tools.status import description

PLAIN = Column("price", "int64")
POSITION = [Column("tablet_index", "int64", key=True), Column("row_index", "int64", key=True)]


def _job(**changes: Any) -> Job:
    return replace(example("transactional", "map").job, **changes)


def _refused(job: Job) -> str:
    return refusal(lambda: verify(job))


def _refused_configuration(job: Job, *, queues: int = 1, **changes: Any) -> str:
    settings = replace(settings_of(job, "//home/job", queues=queues), **changes)
    return refusal(lambda: verify_configuration(job, settings, guarantee_of(job)))


def _refused_output(columns: Sequence[Any]) -> str:
    return _refused(_job(outputs={"output": columns}))


@pytest.mark.parametrize(("guarantee", "processing"), PAIRS)
@pytest.mark.parametrize("queues", [1, 2])
def test_what_the_template_offers_is_accepted(guarantee: str, processing: str, queues: int) -> None:
    job = example(guarantee, processing, queues, rejects=True).job
    verify(job)
    settings = settings_of(job, "//home/job", queues=queues)
    verify_configuration(job, settings, guarantee_of(job))


@pytest.mark.parametrize("processing", ["map", "window"])
def test_rejected_has_the_columns_that_the_number_of_queues_asks_for(processing: str) -> None:
    """REJECTED of tables.py stands for them; listed, they are those of one number alone."""
    job = example("transactional", processing, rejects=True).job
    assert job.outputs["rejected"] is REJECTED
    by_queues = {queues: job.reading(queues).output_columns["rejected"] for queues in (1, 2)}
    position = ("tablet_index", "row_index")
    assert {n: key_of(columns) for n, columns in by_queues.items()} == {
        1: position,
        2: ("queue_id", *position),
    }
    # Back again, too: what REJECTED stands for is not kept.
    assert job.reading(2).reading(1).output_columns["rejected"] == by_queues[1]
    settings = settings_of(job, "//home/job", queues=2)
    listed = replace(job, outputs={**job.outputs, "rejected": list(by_queues[1])})
    said = refusal(lambda: verify_configuration(listed, settings, guarantee_of(job)))
    assert "OUTPUTS['rejected'] needs, with 2 queues, the columns\n" in said
    assert "or REJECTED of ytstream" in said
    printed = description.tables(job.reading(2), settings)
    assert "rejected //home/job/rejected: sorted dynamic table" in printed
    assert "queue_id" in printed.partition("rejected //home")[2].partition("\n\n")[0]


def test_rejected_columns_need_reject() -> None:
    job = example("transactional", "window", rejects=True).job
    assert "nothing fills the outputs rejected" in _refused(replace(job, reject={}))
    verify(replace(job, reject={}, late="reject"))


def test_late_rows_need_a_state_an_output_and_a_reason_of_their_own() -> None:
    job = replace(example("transactional", "window", rejects=True).job, late="reject")
    verify(job)
    plain = replace(job, reject={}, outputs={"output": job.outputs["output"]})
    assert "late=\"reject\" needs an output in OUTPUTS: 'rejected'" in _refused(plain)
    assert "REJECT['late']: rows behind the" in _refused(replace(job, reject={"late": "price < 0"}))
    assert 'late=\'drop\': wanted "count" or "reject"' in _refused(replace(job, late="drop"))
    stateless = replace(example("transactional", "map").job, late="reject")
    assert "processing map keeps no state, so no row is late" in _refused(stateless)


def test_a_limit_of_late_rows_needs_late_rows_that_are_kept() -> None:
    job = example("transactional", "window", rejects=True).job
    assert "late_limit needs late=" in _refused_configuration(job, late_limit=0.1)
    settings = replace(settings_of(job, "//home/job"), late_limit=0.1)
    job = replace(job, late="reject")
    verify_configuration(job, settings, guarantee_of(job))


@pytest.mark.parametrize(
    ("guarantee", "processing"),
    [pair for pair in product(GUARANTEES, PROCESSINGS) if pair not in PAIRS],
)
def test_another_pair_is_refused_with_the_guarantee_that_fits(
    guarantee: str, processing: str
) -> None:
    text = refusal(lambda: guarantee_of(_job(processing=processing, guarantee=guarantee)))
    assert text.startswith(
        f"guarantee idempotent goes with processing map only, not with {processing}: "
        if guarantee == "idempotent"
        else f"processing {processing} goes with guarantee transactional only, not with {guarantee}"
    )
    assert 'set guarantee="transactional" in job.py' in text


_NEWEST = [Column("auction", "int64", key=True), PLAIN]
_TABLES = {"output": [PLAIN], "newest": _NEWEST}


def test_a_key_of_the_users_own_is_refused_under_at_least_once() -> None:
    job = _job(guarantee="at_least_once", outputs=_TABLES, split=lambda rows: {})
    assert _refused_configuration(job) == (
        "the configuration and the job do not fit:\n"
        f"  OUTPUTS['newest'] has the key auction under at_least_once: {KEYED}; "
        'set guarantee="transactional" in job.py, or leave the key '
        "out\n  -> correct the configuration or tables.py; nothing was started"
    )
    settings = settings_of(job, "//home/job")
    fitting = replace(job, guarantee="transactional")
    verify_configuration(fitting, settings, guarantee_of(fitting))


@pytest.mark.parametrize("queues", [1, 2])
def test_rejected_rows_have_their_key_under_at_least_once_and_no_other_table_of_that_name(
    queues: int,
) -> None:
    """A rejected row does not change: what is written late is what is there."""
    job = example("at_least_once", "map", queues, rejects=True).job
    settings = settings_of(job, "//home/job", queues=queues)
    verify_configuration(job, settings, guarantee_of(job))
    own = replace(job, reject={}, split=lambda rows: {})
    assert "OUTPUTS['rejected'] has the key " in _refused_configuration(own, queues=queues)


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ({}, 'must be "output", it is None'),
        ({"result": [PLAIN]}, "must be \"output\", it is 'result'"),
        ({"output": [PLAIN], "totals": [PLAIN]}, "nothing fills the outputs totals"),
    ],
)
def test_outputs_that_are_not_written_are_refused(
    outputs: dict[str, list[Column]], said: str
) -> None:
    assert said in _refused(_job(outputs=outputs))


def test_a_join_needs_a_reference_with_a_key() -> None:
    assert "a join needs REFERENCE" in _refused(_job(processing="join"))
    assert "REFERENCE has no key column" in _refused(_job(processing="join", reference=[PLAIN]))
    text = _refused_configuration(_job(processing="join"), reference=None)
    assert "a join needs the key `reference`" in text


def test_a_reference_that_is_not_used_is_refused() -> None:
    keyed = [Column("auction", "int64", key=True)]
    assert "map does not use REFERENCE" in _refused(_job(reference=keyed))
    text = _refused_configuration(_job(), reference="//home/job/reference")
    assert "map does not use the key `reference`" in text


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ({}, "[outputs] lacks output"),
        ({"output": "//home/o", "totals": "//home/t"}, "[outputs] names totals"),
    ],
)
def test_the_outputs_of_the_configuration_have_to_be_those_of_the_job(
    outputs: dict[str, str], said: str
) -> None:
    assert said in _refused_configuration(_job(), outputs=outputs)


@pytest.mark.parametrize(
    ("job_queues", "queues", "wanted", "found"),
    [
        (1, 2, "queue_id, tablet_index, row_index", "tablet_index, row_index"),
        (2, 1, "tablet_index, row_index", "queue_id, tablet_index, row_index"),
    ],
)
def test_the_key_of_idempotent_has_to_fit_the_number_of_queues(
    job_queues: int, queues: int, wanted: str, found: str
) -> None:
    text = _refused_configuration(example("idempotent", "map", job_queues).job, queues=queues)
    assert f"with {counted(queues, 'queue')} needs the key columns {wanted} in front" in text
    assert f"it has {found}" in text


@pytest.mark.parametrize("queues", [1, 2])
def test_idempotent_without_its_key_is_refused(queues: int) -> None:
    job = replace(example("idempotent", "map", queues).job, outputs={"output": [PLAIN]})
    assert "it has none" in _refused_configuration(job, queues=queues)


@pytest.mark.parametrize(
    ("guarantee", "queues", "name"),
    [("idempotent", 1, "row_index"), ("transactional", 2, "queue_id")],
)
def test_a_queue_has_no_column_under_which_its_position_is_added(
    guarantee: str, queues: int, name: str
) -> None:
    job = example(guarantee, "map", queues).job
    job = replace(job, queue=[*job.queue, Column(name, "int64")])
    assert f"QUEUE has {name}, a name" in _refused_configuration(job, queues=queues)


def test_all_problems_of_a_declaration_are_reported_at_once() -> None:
    text = _refused(_job(outputs={"result": [PLAIN]}, transform=None))
    assert 'must be "output"' in text
    assert "transform is not a function" in text


@pytest.mark.parametrize(
    "key", ["spark.task.maxFailures", "spark.sql.adaptive.enabled", "spark.driver.port"]
)
def test_a_spark_setting_that_the_runtime_needs_is_refused(key: str) -> None:
    text = _refused_configuration(_job(), spark={"spark.executor.cores": 2, key: "4"})
    assert f"[spark] sets {key}" in text
    assert "cores" not in text


def test_entries_may_be_tuples() -> None:
    tuples: list[Described] = [
        ("event_id", "utf8", True),
        ("tags", ti.List[ti.Utf8], False),
        PLAIN,
    ]
    job = _job(queue=tuples)
    verify(job)
    assert job.queue_columns == (
        Column("event_id", ti.Utf8, required=True),
        Column("tags", ti.List[ti.Utf8]),
        Column("price", ti.Int64),
    )
    assert key_of(job.queue_columns) == ()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ([], "has no columns"),
        ([("price", "int64")], "wanted a Column"),
        ([("price", "int64", "yes")], "wanted a Column"),
        (["price"], "wanted a Column"),
        ([Column("price", "decimal")], "there is no type 'decimal'"),
        ([PLAIN, PLAIN], "duplicate column name"),
        ([PLAIN, Column("id", "utf8", key=True)], "a key column after one that is not"),
        ([Column("id", ti.List[ti.Utf8], key=True), PLAIN], "a key cannot be of type"),
        ([Column("id", "any", key=True), PLAIN], "a key cannot be of type"),
        ([Column("id", "json", key=True), PLAIN], "a key cannot be of type"),
    ],
)
def test_a_wrong_column_is_named_with_its_list(columns: list[Any], said: str) -> None:
    text = _refused_output(columns)
    assert "tables.py" in text
    assert "OUTPUTS['output']" in text
    assert said in text


KEY = Column("auction", "int64", key=True)
BIDS = Column("bids", "int64", aggregate="sum")


@pytest.mark.parametrize(
    ("column", "said", "remedy"),
    [
        (Column("k", "int64", key=True, aggregate="sum"), "a key column cannot have", "leave it"),
        (
            Column("v", "int64", aggregate="avg"),
            "no aggregate function 'avg'",
            "the reader divides",
        ),
        (Column("v", "int64", aggregate="xdelta"), "no aggregate function", "sum, min, max, first"),
        (Column("v", "int64", aggregate=True), "function True", "sum, min"),  # type: ignore[arg-type]
        (Column("v", "timestamp", aggregate="max"), "not go with type timestamp", "F.unix_micros"),
        (Column("v", "date", aggregate="max"), "not go with type date", 'use "int64"'),
        (Column("v", "int32", aggregate="sum"), "not go with type int32", 'use "int64"'),
        (Column("v", "float", aggregate="sum"), "not go with type float", 'use "double"'),
        (Column("v", "utf8", aggregate="min"), "not go with type utf8", 'use "string"'),
        (Column("v", "utf8", aggregate="sum"), "not go with type utf8", "use one of int64"),
        (Column("v", "string", aggregate="sum"), "not go with type string", "use one of int64"),
        (Column("v", "any", aggregate="max"), "not go with type any", "use one of int64"),
        (Column("v", ti.Decimal(9, 2), aggregate="sum"), "ti.Decimal(9, 2)", "use one of int64"),
    ],
)
def test_an_aggregate_function_takes_few_types(column: Column, said: str, remedy: str) -> None:
    text = _refused_output([KEY, column])
    assert said in text
    assert remedy in text


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ([KEY, BIDS, PLAIN], "has columns with aggregate= and without (price)"),
        ([BIDS], "has aggregate= and no key column"),
    ],
)
def test_totals_have_a_key_and_functions_only(outputs: list[Column], said: str) -> None:
    assert said in _refused_output(outputs)


def test_only_outputs_have_totals() -> None:
    assert "QUEUE has columns with aggregate=" in _refused(_job(queue=[PLAIN, BIDS]))
    text = _refused(_job(references={"totals": [KEY, BIDS]}))
    assert "REFERENCES['totals'] has columns with aggregate=" in text


def test_totals_need_the_transaction() -> None:
    """Under a key that is the position, nothing else would refuse it."""
    job = replace(example("idempotent", "map").job, outputs={"output": [*POSITION, BIDS]})
    assert "has aggregate= under idempotent: a write that is repeated" in _refused(job)


def test_totals_need_the_connector_that_adds() -> None:
    job = _job(outputs={"output": [KEY, BIDS]})
    text = _refused_configuration(job, connector="spyt")
    assert 'connector = "spyt" writes no totals, and output has aggregate=' in text


def test_the_first_value_needs_a_word_of_the_owner() -> None:
    job = _job(outputs={"output": [KEY, Column("first", "any", aggregate="first")]})
    text = _refused_configuration(job)
    assert 'accept = ["one_tablet:output"]' in text
    settings = replace(settings_of(job, "//home/job"), accept=("one_tablet:output",))
    verify_configuration(job, settings, guarantee_of(job))


def test_a_job_of_totals_has_no_state() -> None:
    job = example("transactional", "aggregate").job
    plain = [replace(column, aggregate=None) for column in job.output_columns["output"]]
    summed = [column if column.key else replace(column, aggregate="sum") for column in plain]
    assert replace(job, outputs={"output": plain}).kind.is_stateful
    totals = replace(job, outputs={"output": summed})
    assert (totals.kind.is_stateful, totals.kind.output_mode) == (False, "append")


@pytest.mark.parametrize("name", ["QUEUE", "REFERENCE", "OUTPUTS['output']"])
def test_a_table_with_more_columns_than_a_row_has_values_is_refused(name: str) -> None:
    wide = [Column("c0", "int64", key=name == "REFERENCE")]
    wide += [Column(f"c{number}", "int64") for number in range(1, 1_025)]
    tables: dict[str, dict[str, Any]] = {
        "QUEUE": {"queue": wide},
        "REFERENCE": {"processing": "join", "reference": wide},
        "OUTPUTS['output']": {"outputs": {"output": wide}},
    }
    text = _refused(_job(**tables[name]))
    assert f"{name} has 1025 columns; a row of a YTsaurus table has at most 1024 values" in text


def test_a_wrong_column_of_queue_and_reference_is_named_too() -> None:
    assert "tables.py, QUEUE[1]" in _refused(_job(queue=[PLAIN, PLAIN]))
    wrong = [Column("auction", "int64", key=True), ("name",)]
    assert "tables.py, REFERENCE[1]" in _refused(_job(processing="join", reference=wrong))

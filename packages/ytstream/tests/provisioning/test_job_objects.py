"""provision and check against the minicluster; no Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from yt.common import YtError

from minicluster.testing import Running
from tests.support.helpers import ContextOf, refusal
from tests.support.server_errors import denied, error
from ytstream import Column, JobError, RestartableError
from ytstream.cluster.client import connect, explained
from ytstream.errors import OutageError
from ytstream.guarantees import sizing
from ytstream.job import JobContext
from ytstream.provisioning import retention
from ytstream.provisioning.capacity import remarks
from ytstream.provisioning.job_objects import check, provision, require, sized
from ytstream.recovery import added_totals
from ytstream.schema.columns import resolved
from ytstream.settings.job_settings import Settings


@pytest.fixture
def context(context_of: ContextOf) -> JobContext:
    """Connect a job of which nothing exists."""
    return context_of("transactional")


@pytest.fixture
def provisioned(provisioned_of: ContextOf) -> JobContext:
    """Connect a job whose objects all exist."""
    return provisioned_of("transactional")


def _configured(context: JobContext, **changes: Any) -> JobContext:
    return replace(context, settings=replace(context.settings, **changes))


def _required(context: JobContext) -> str:
    return refusal(lambda: require(context))


def _not_provisioned(context: JobContext) -> str:
    return refusal(lambda: provision(context))


@pytest.mark.parametrize(
    ("guarantee", "processing", "queues"),
    [
        ("transactional", "join", 1),
        ("idempotent", "map", 2),
        ("idempotent", "map", 1),
        ("at_least_once", "window", 2),
    ],
)
def test_provision_makes_everything_and_can_be_repeated(
    context_of: ContextOf, guarantee: str, processing: str, queues: int
) -> None:
    context = context_of(guarantee, processing, queues)
    client, settings = context.client, context.settings
    assert provision(context)
    assert provision(context) == []
    require(context)
    tables = [*settings.queues, settings.consumer, *settings.outputs.values()]
    tables += [settings.reference] if settings.reference else []
    assert {client.get(f"{path}/@tablet_state") for path in tables} == {"mounted"}
    assert client.get(f"{settings.output}/@sorted") == (guarantee == "idempotent")
    for path in (*tables, settings.checkpoint):
        assert path in check(context)


def test_nothing_is_asked_twice(provisioned_of: ContextOf, cluster: Running) -> None:
    # On a far cluster a start waits for each request.
    context = provisioned_of("transactional", "join", 2)
    since = len(cluster.client.journal())
    assert provision(context) == []
    asked = [
        entry.args["path"] for entry in cluster.client.journal()[since:] if entry.method == "get"
    ]
    settings = context.settings
    objects = {*settings.queues, *settings.outputs.values(), settings.consumer, settings.ledger}
    objects |= {settings.checkpoint, str(settings.reference)}
    assert sorted(asked) == sorted(f"{path}/@" for path in objects)


def test_a_new_job_is_looked_at_three_times(context_of: ContextOf, cluster: Running) -> None:
    """Before there are queues, before the outputs, whose tablets follow theirs, and at the end."""
    context = context_of("transactional", "map")
    since = len(cluster.client.journal())
    provision(context)
    asked = [entry.args.get("path") for entry in cluster.client.journal()[since:]]
    assert asked.count(f"{context.settings.ledger}/@") == 3


@pytest.mark.parametrize(
    ("guarantee", "queues", "pivots"),
    [
        ("idempotent", 1, [[], [1], [2], [3]]),
        ("idempotent", 2, [[], *([0, n] for n in (1, 2, 3)), *([1, n] for n in range(4))]),
    ],
)
def test_an_output_by_position_has_a_tablet_for_each_tablet_of_the_queues(
    provisioned_of: ContextOf, guarantee: str, queues: int, pivots: list[list[Any]]
) -> None:
    context = provisioned_of(guarantee, "map", queues)
    settings = context.settings
    wanted = [[settings.queues[key[0]], key[1]] if len(key) > 1 else key for key in pivots]
    assert context.client.get(f"{settings.output}/@pivot_keys") == wanted


def test_check_changes_nothing(context: JobContext) -> None:
    assert "missing" in refusal(lambda: check(context))
    assert not context.client.exists(context.settings.consumer.rpartition("/")[0])


def test_queues_of_others_are_not_created(context: JobContext) -> None:
    queue = context.settings.queues[0]
    text = _not_provisioned(_configured(context, create_queues=False))
    assert queue in text
    assert "create_queues" in text
    assert not context.client.exists(queue)


def test_a_path_that_is_nearly_right_is_shown_before_it_is_created(context: JobContext) -> None:
    queue = context.settings.queues[0]
    folder, _, name = queue.rpartition("/")
    context.client.create("map_node", f"{folder}/{name[:-1]}", recursive=True)
    text = refusal(lambda: check(context))
    said = (
        f"queue {queue}: missing\n  -> {folder}/{name[:-1]} is there: if you mean it, correct the "
        "configuration; only for a new one under this very path run `provision`"
    )
    assert said in text
    assert "is there" not in text.replace(said, "")
    text = refusal(lambda: check(_configured(context, create_queues=False)))
    assert f"{folder}/{name[:-1]} is there: if you mean it, correct the configuration; else" in text
    assert (
        f"queue {queue}: missing; created, though {folder}/{name[:-1]} is there: remove the new "
        "one if you mean that"
    ) in provision(context)
    context.client.remove(queue)
    text = refusal(lambda: check(context))
    assert f"{folder}/{name[:-1]} is there" in text


@pytest.mark.parametrize("does_create", [True, False])
def test_a_slip_in_the_folder_of_a_queue_is_shown(context: JobContext, does_create: bool) -> None:
    meant = context.settings.queues[0].replace("//home/tests/", "//home/team/raw/")
    context.client.create("map_node", meant, recursive=True)
    for slip in (meant.replace("/raw/", "/rww/"), meant.replace("//home/team", "//home/teams")):
        wrong = _configured(context, queues=(slip,), create_queues=does_create)
        assert f"queue {slip}: missing\n  -> {meant} is there: " in _required(wrong)
    other = meant.replace("/raw/", "/cooked/")
    assert f"{meant} is there" not in _required(_configured(context, queues=(other,)))


def test_the_objects_of_a_job_like_this_one_are_not_taken_for_its_own(
    context: JobContext,
) -> None:
    """A team has a folder for each job, with equal names in it."""
    settings = context.settings
    for path in (settings.consumer, settings.ledger, settings.output):
        context.client.create("map_node", path.replace("//home/t", "//home/tt"), recursive=True)
    assert "//home/tt" not in _required(context)


def test_a_registration_that_is_not_permitted_prints_the_command(
    context: JobContext, cluster: Running
) -> None:
    settings = context.settings
    cluster.client.faults.add(
        method="register_queue_consumer",
        action="fail",
        where={"queue": settings.queues[0]},
        error=denied("register_queue_consumer", settings.queues[0]),
    )
    command = f"yt register-queue-consumer {settings.queues[0]} {settings.consumer} --vital"
    assert command in _not_provisioned(context)


def test_a_missing_registration_is_found(provisioned: JobContext) -> None:
    client: Any = provisioned.client
    settings = provisioned.settings
    client.unregister_queue_consumer(settings.queues[0], settings.consumer)
    assert "not registered" in _required(provisioned)


def test_a_consumer_that_is_not_vital_is_reported_not_changed(provisioned: JobContext) -> None:
    settings = provisioned.settings
    provisioned.client.register_queue_consumer(settings.queues[0], settings.consumer, vital=False)
    assert "not vital" in _not_provisioned(provisioned)


def test_a_table_that_is_not_a_consumer_is_refused_and_left_alone(context: JobContext) -> None:
    client, path = context.client, context.settings.consumer
    attributes = {"dynamic": True, "schema": [{"name": "a", "type": "int64"}]}
    client.create("table", path, recursive=True, attributes=attributes)
    assert "is not a queue consumer" in _not_provisioned(context)
    assert client.get(f"{path}/@tablet_state") == "unmounted"


def _path(settings: Settings, name: str) -> str:
    return settings.output if name == "output" else str(getattr(settings, name))


@pytest.mark.parametrize("name", ["consumer", "output"])
def test_an_unmounted_table_is_found_and_mounted(provisioned: JobContext, name: str) -> None:
    client: Any = provisioned.client
    path = _path(provisioned.settings, name)
    client.unmount_table(path, sync=True)
    assert f"{path}: is unmounted" in _required(provisioned)
    assert provision(provisioned)
    assert client.get(f"{path}/@tablet_state") == "mounted"


def test_a_frozen_table_is_reported_with_the_command(provisioned: JobContext) -> None:
    client: Any = provisioned.client
    output = provisioned.settings.output
    client.freeze_table(output, sync=True)
    assert f"yt unfreeze-table {output} --sync" in _required(provisioned)


@pytest.mark.parametrize("name", ["queues", "consumer", "output", "checkpoint"])
def test_a_link_is_refused(provisioned: JobContext, name: str) -> None:
    client: Any = provisioned.client
    settings = provisioned.settings
    path = settings.queues[0] if name == "queues" else _path(settings, name)
    client.link(path, f"{path}-link")
    linked: dict[str, dict[str, Any]] = {
        "queues": {"queues": (f"{path}-link",)},
        "output": {"outputs": {"output": f"{path}-link"}},
    }
    changes = linked.get(name, {name: f"{path}-link"})
    assert f"is a link to {path}" in _not_provisioned(_configured(provisioned, **changes))


@pytest.mark.parametrize(
    ("code", "said", "setting"),
    [
        (905, 'No such account "typo"', "account"),
        (901, '"use" permission for tablet cell bundle "b" is not allowed', "tablet_cell_bundle"),
        (719, 'No such medium "typo"', "medium"),
    ],
)
def test_a_resource_that_the_cluster_refuses_is_named_as_the_setting(
    context: JobContext, cluster: Running, code: int, said: str, setting: str
) -> None:
    cluster.client.faults.add(method="create", action="fail", error=error(code, said))
    with (
        pytest.raises(JobError, match=f"{said}\n  -> correct `{setting}`"),
        explained(context.settings),
    ):
        provision(context)


def test_a_mount_that_takes_too_long_is_no_outage(context: JobContext) -> None:
    """The cluster has answered all the time: a running job would wait for ever for an outage."""
    with (
        pytest.raises(RestartableError, match="Timed out while waiting for tablets") as caught,
        explained(context.settings),
    ):
        raise YtError("Timed out while waiting for tablets")
    assert caught.type is not OutageError


@pytest.mark.thorough
def test_a_cluster_that_is_not_there_is_said_in_words(context: JobContext) -> None:
    settings = replace(context.settings, proxy="127.0.0.1:1")
    with pytest.raises(OutageError, match=r"127\.0\.0\.1:1: Connection refused$") as caught:
        connect(settings)
    assert caught.value.remedy == "start `python -m minicluster` in another terminal"


@pytest.mark.parametrize(
    ("guarantee", "processing", "remedy"),
    [
        ("transactional", "map", "name one of: output:shared"),
        ("idempotent", "map", "name one of: join:unique-key, subquery:constant, output:shared"),
        ("transactional", "window", "name one of: output:shared, late:{queue}"),
    ],
)
def test_an_accepted_refusal_that_does_not_exist_is_refused(
    provisioned_of: ContextOf, guarantee: str, processing: str, remedy: str
) -> None:
    context = provisioned_of(guarantee, processing)
    text = _required(_configured(context, accept=("nonsense",)))
    queue = context.settings.queues[0]
    assert f"no such refusal\n  -> {remedy.format(queue=queue)}" in text
    if processing == "window":
        require(_configured(context, accept=(f"late:{queue}",)))


def test_another_schema_is_reported_and_left_alone(provisioned: JobContext) -> None:
    client, path = provisioned.client, provisioned.settings.output
    client.remove(path)
    schema = [{"name": "something_else", "type": "int64"}]
    client.create("table", path, attributes={"dynamic": True, "schema": schema})
    text = _not_provisioned(provisioned)
    assert "column something_else: the table has it, tables.py does not" in text
    assert "column event_id: the table lacks it, tables.py has it" in text
    assert "correct OUTPUTS in tables.py" in text
    assert [column["name"] for column in client.get(f"{path}/@schema")] == ["something_else"]


def test_a_queue_without_a_column_of_ours_is_reported(context: JobContext) -> None:
    attributes = {"dynamic": True, "schema": [{"name": "something_else", "type": "int64"}]}
    context.client.create(
        "table", context.settings.queues[0], recursive=True, attributes=attributes
    )
    assert "correct QUEUE in tables.py" in _not_provisioned(context)


def test_a_queue_may_have_more_columns_and_the_output_may_not(provisioned: JobContext) -> None:
    job = provisioned.job
    fewer = replace(job, queue=[column for column in job.queue_columns if column.name != "extra"])
    require(replace(provisioned, job=fewer))
    output = [column for column in job.output_columns["output"] if column.name != "extra"]
    changed = replace(provisioned, job=replace(job, outputs={"output": output}))
    assert "column extra: the table has it, tables.py does not" in _required(changed)


def test_an_unsorted_output_of_idempotent_is_refused(provisioned_of: ContextOf) -> None:
    """Such a table would take every repeat as a new row."""
    context = provisioned_of("idempotent")
    client, output = context.client, context.settings.output
    schema = [
        {name: value for name, value in column.items() if name != "sort_order"}
        for column in client.get(f"{output}/@schema")
    ]
    client.remove(output)
    client.create("table", output, attributes={"dynamic": True, "schema": schema})
    client.mount_table(output, sync=True)
    assert "the table's key columns are none, those of tables.py " in _not_provisioned(context)


def test_too_few_tablets_are_refused_with_the_number_that_would_do(
    provisioned: JobContext,
) -> None:
    assert sizing.problem(100_000, 50_000, 1) is None
    assert "tablets are too few" in str(sizing.problem(200_000, 50_000, 4))
    for rows in (100_001, 120_000, 200_000, 500_000, 1_000_000, 10_000_000):
        write, tablets = sizing.default_write_batch(rows), sizing.default_tablets(rows)
        assert sizing.problem(rows, write, tablets) is None
    refused = _required(_configured(provisioned, max_rows_per_partition=1_000_000))
    assert "tablets would do" in refused
    assert f"reshard-table {provisioned.settings.output} --tablet-count" in refused


@pytest.mark.parametrize(
    ("guarantee", "rows"),
    [("transactional", 400), ("idempotent", 10_000), ("at_least_once", 10_000)],
)
def test_the_guarantee_chooses_the_rows_of_a_write(
    provisioned_of: ContextOf, guarantee: str, rows: int
) -> None:
    context = provisioned_of(guarantee)
    assert sized(context) is context
    chosen = sized(_configured(context, dyn_batch_size=None))
    assert chosen.settings.dyn_batch_size == rows


def test_output_retention_is_given_to_the_output(context: JobContext) -> None:
    kept = _configured(context, output_retention=60_000)
    provision(kept)
    output = kept.settings.output
    assert kept.client.get(f"{output}/@max_data_ttl") == 60_000
    assert kept.client.get(f"{output}/@min_data_ttl") == 0
    assert kept.client.get(f"{output}/@min_data_versions") == 0


def test_a_job_proxy_is_refused(context: JobContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_YT_RPC_JOB_PROXY_ENABLED", "true")
    rows: Any = None  # it is not looked at
    text = refusal(lambda: context.guarantee.admit(rows, context.settings))
    assert "job proxy" in text


def test_an_output_with_an_aggregate_column_is_refused_by_name(
    provisioned_of: ContextOf,
) -> None:
    context = provisioned_of("idempotent")
    client, output = context.client, context.settings.output
    schema = client.get(f"{output}/@schema")
    (price,) = (column for column in schema if column["name"] == "price_eur")
    price["aggregate"] = "sum"
    client.remove(output)
    client.create("table", output, attributes={"dynamic": True, "schema": schema})
    client.mount_table(output, sync=True)
    text = _not_provisioned(context)
    assert f"output {output}: column price_eur has the aggregate function sum" in text
    assert text.count("output ") == 1


def _of_totals(context: JobContext, **functions: str | None) -> JobContext:
    """Return the job with totals of an auction in its output."""
    columns = [Column("auction", "int64", key=True)]
    columns += [Column(name, "int64", aggregate=function) for name, function in functions.items()]
    return replace(context, job=replace(context.job, outputs={"output": columns}))


def test_totals_are_made_with_their_functions(context: JobContext) -> None:
    totals = _configured(_of_totals(context, bids="sum", highest="max"), output_retention=10**6)
    provision(totals)
    check(totals)
    found = totals.client.get(f"{totals.settings.output}/@schema")
    assert [column.get("aggregate") for column in found] == [None, "sum", "max"]
    # Old contributions would go out of totals that are still added to.
    assert totals.client.get_attribute(totals.settings.output, "min_data_ttl", None) is None


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        (
            {"bids": "sum", "highest": "min"},
            "highest has the aggregate function max, tables.py says",
        ),
        ({"bids": "sum", "highest": None}, "highest has the aggregate function max: a row that is"),
    ],
)
def test_a_table_keeps_its_functions(
    context: JobContext, functions: dict[str, str | None], said: str
) -> None:
    provision(_of_totals(context, bids="sum", highest="max"))
    text = _required(_of_totals(context, **functions))
    assert f"column {said}" in text
    assert "the table cannot lose or change it" in text


def test_a_table_gets_functions_by_migrate(context: JobContext) -> None:
    """A start refuses the table; `migrate` does not, not even one that it has left unmounted."""
    plain = _of_totals(context, bids=None, highest=None)
    provision(plain)
    plain.client.insert_rows(plain.settings.output, [{"auction": 1, "bids": 5, "highest": 7}])
    totals = _of_totals(context, bids="sum", highest="max")
    assert "column bids has no aggregate function, tables.py says sum" in _required(totals)
    lacking = added_totals.lacking(totals)
    assert lacking["output"][0] == ["bids", "highest"]
    totals.client.unmount_table(totals.settings.output, sync=True)
    require(totals, migrating=True)
    added_totals.add(totals, lacking)
    added_totals.add(totals, added_totals.lacking(totals))
    require(totals)
    row = {"auction": 1, "bids": 2, "highest": 6}
    cast(Any, totals.client).insert_rows(totals.settings.output, [row], aggregate=True, update=True)
    found = totals.client.select_rows(f"* from [{totals.settings.output}]")
    assert list(found) == [{"auction": 1, "bids": 7, "highest": 7}]


@pytest.mark.parametrize("guarantee", ["transactional", "idempotent", "at_least_once"])
def test_a_table_whose_writes_are_not_atomic_is_refused_by_name(
    provisioned_of: ContextOf, guarantee: str
) -> None:
    """Each batch would fail: every write is in a transaction, also without the batch's own."""
    context = provisioned_of(guarantee, rejects=True)
    client, settings = cast(Any, context.client), context.settings
    written = [settings.consumer, *settings.outputs.values(), settings.ledger]
    for path in [*settings.queues, *written]:
        client.unmount_table(path, sync=True)
        client.set(f"{path}/@atomicity", "none")
        client.mount_table(path, sync=True)
    text = _required(context)
    for path in written:
        assert f"{path}: has @atomicity = none" in text
        assert f"yt set {path}/@atomicity full" in text
    assert text.count("has @atomicity = none") == len(written)  # a queue is only read


def test_a_ledger_of_another_layout_is_refused_and_left_alone(provisioned: JobContext) -> None:
    client, path = provisioned.client, provisioned.settings.ledger
    schema = client.get(f"{path}/@schema")
    schema.remove(next(column for column in schema if column["name"] == "ended"))
    client.remove(path)
    client.create("table", path, attributes={"dynamic": True, "schema": schema})
    client.mount_table(path, sync=True)
    text = _not_provisioned(provisioned)
    assert (
        f"ledger {path}: column ended: the table lacks it, this version of ytstream has it" in text
    )
    assert "it is of another layout: name another table, or run the version that made it" in text
    assert "ended" not in {column["name"] for column in client.get(f"{path}/@schema")}


def test_a_ledger_keeps_its_rows_whatever_their_age(provisioned: JobContext) -> None:
    client, path = provisioned.client, provisioned.settings.ledger
    assert client.get(f"{path}/@min_data_versions") == 1
    assert client.get(f"{path}/@tablet_state") == "mounted"


def test_a_queue_that_keeps_its_rows_gets_no_remark(provisioned: JobContext) -> None:
    assert [*retention.remarks(provisioned.client, provisioned.settings)] == []


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({}, "drops rows 30 min after they were written, read or not (min"),
        ({"max_data_ttl": 129_600_000}, "drops rows 36 h after they were written"),
        ({"min_data_ttl": 0, "max_data_ttl": 90_500}, "drops rows 90.5 s after they were written"),
        ({"max_data_ttl": 129_600_000, "max_data_versions": 0}, "drops rows 30 min after"),
        ({"row_count_to_keep": 500}, "read or not, but for the last 500 of each tablet (min"),
    ],
)
def test_a_queue_that_drops_unread_rows_is_remarked_with_their_age(
    provisioned: JobContext, attributes: dict[str, int], said: str
) -> None:
    client, (queue,) = provisioned.client, provisioned.settings.queues
    for name, value in {"min_data_versions": 0, **attributes}.items():
        client.set(f"{queue}/@{name}", value)
    (remark,) = retention.remarks(client, provisioned.settings)
    assert remark.startswith(f"{queue} drops rows ")
    assert said in remark
    require(provisioned)


@pytest.mark.parametrize(
    ("more", "others", "said"),
    [
        ({}, False, "drops rows that this job has read (auto_trim_config)"),
        (
            {"retained_rows": 7},
            True,
            "this job and 1 other vital consumers have read, but for the ",
        ),
        ({"retained_lifetime_duration": 60_000}, False, "read, and those of the last 1 min (auto"),
    ],
)
def test_a_queue_that_is_trimmed_after_its_consumers_is_remarked(
    provisioned: JobContext, more: dict[str, int], others: bool, said: str
) -> None:
    client, (queue,) = provisioned.client, provisioned.settings.queues
    if others:
        for name, vital in (("other", True), ("idle", False)):
            client.create("queue_consumer", f"{queue}-{name}")
            client.register_queue_consumer(queue, f"{queue}-{name}", vital=vital)
    client.set(f"{queue}/@auto_trim_config", {"enable": True, **more})
    (remark,) = retention.remarks(client, provisioned.settings)
    assert said in remark
    require(provisioned)


@pytest.mark.thorough
@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once", "idempotent"])
def test_rejected_rows_go_to_as_many_tablets_as_the_queues_have(
    context_of: ContextOf, guarantee: str
) -> None:
    """Sorted by position, they go by key: large batches ask for no more tablets."""
    context = context_of(guarantee, "map", 2, rejects=True)
    settings = replace(context.settings, max_rows_per_partition=20_000, dyn_batch_size=None)
    context = replace(context, settings=settings)
    provision(context)
    path = settings.outputs["rejected"]
    assert context.client.get(f"{path}/@tablet_count") == 8
    assert context.client.get(f"{path}/@pivot_keys")[1] == [settings.queues[0], 1]


def test_a_second_queue_asks_for_another_rejected_and_says_what_was_made(
    context_of: ContextOf,
) -> None:
    provision(context_of("transactional", rejects=True))
    two = context_of("transactional", queues=2, rejects=True)
    said = _not_provisioned(two)
    made, _, left = said.partition("and what is left")
    assert f"queue {two.settings.queues[1]}: missing; created" in made
    assert "column queue_id: the table lacks it" in left
    assert "name a new table under [outputs], then `provision` and `migrate`" in left


def test_large_batches_of_totals_are_no_reason_to_refuse(context_of: ContextOf) -> None:
    context = context_of("transactional", "aggregate", 2)
    settings = replace(context.settings, max_rows_per_partition=100_000, dyn_batch_size=None)
    provision(replace(context, settings=settings))


def test_a_batch_that_may_be_too_large_for_the_tablet_of_a_key_is_remarked(
    provisioned_of: ContextOf,
) -> None:
    """Nothing says how the rows are spread; `rejected` has tablets by position."""
    context = provisioned_of("transactional", rejects=True)
    settings = replace(context.settings, max_rows_per_partition=25_001)
    columns = resolved("OUTPUTS", context.job.outputs["output"])
    keyed = [replace(column, key=column is columns[0]) for column in columns]
    outputs = {**context.job.outputs, "output": keyed}
    large = replace(context, settings=settings, job=replace(context.job, outputs=outputs))
    client: Any = context.client
    client.unmount_table(settings.output, sync=True)
    client.reshard_table(settings.output, tablet_count=1, sync=True)
    (remark,) = remarks(large)
    assert remark.startswith(
        f"{settings.output} has a key and 1 tablet, and a batch has up to 100004 rows"
    )
    assert "with max_rows_per_partition = 25000 a batch reads no more" in remark
    settings = replace(settings, max_rows_per_partition=25_000)
    assert [*remarks(replace(large, settings=settings))] == []
    assert [*remarks(replace(large, job=context.job))] == []
    window = replace(large.job, processing="window")
    assert [*remarks(replace(large, job=window))] == []

"""provision, check and the lock against the minicluster; no Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from conftest import Module


@pytest.fixture
def provisioned(module: Module, client: Any, settings: Any) -> Any:
    """The settings of a job whose objects all exist."""
    module("provision").provision(client, settings)
    return settings


def _refusal(module: Module, client: Any, settings: Any, what: str = "require") -> str:
    with pytest.raises(module("errors").JobError) as caught:
        getattr(module("provision"), what)(client, settings)
    return str(caught.value)


def test_provision_makes_everything_and_can_be_repeated(
    module: Module, client: Any, settings: Any
) -> None:
    assert module("provision").provision(client, settings)
    assert module("provision").provision(client, settings) == []
    module("provision").require(client, settings)
    for path in (*settings.queues, settings.consumer, settings.output):
        assert client.get(f"{path}/@tablet_state") == "mounted"


def test_check_changes_nothing(module: Module, client: Any, settings: Any) -> None:
    assert "missing" in _refusal(module, client, settings)
    assert not client.exists(settings.consumer.rpartition("/")[0])


def test_queues_of_others_are_not_created(module: Module, client: Any, settings: Any) -> None:
    refusal = _refusal(module, client, replace(settings, create_queues=False), "provision")
    assert settings.queues[0] in refusal
    assert "create_queues" in refusal
    assert not client.exists(settings.queues[0])


def test_a_registration_that_is_not_permitted_prints_the_command(
    module: Module, client: Any, settings: Any, cluster: Any
) -> None:
    cluster.client.faults.add(
        method="register_queue_consumer",
        action="fail",
        where={"queue": settings.queues[0]},
        error={"code": 901, "message": "Access denied for user"},
    )
    refusal = _refusal(module, client, settings, "provision")
    assert f"yt register-queue-consumer {settings.queues[0]} {settings.consumer} --vital" in refusal


def test_a_missing_registration_is_found(module: Module, client: Any, provisioned: Any) -> None:
    client.unregister_queue_consumer(provisioned.queues[0], provisioned.consumer)
    assert "not registered" in _refusal(module, client, provisioned)


def test_a_consumer_that_is_not_vital_is_reported_not_changed(
    module: Module, client: Any, provisioned: Any
) -> None:
    client.register_queue_consumer(provisioned.queues[0], provisioned.consumer, vital=False)
    assert "not vital" in _refusal(module, client, provisioned, "provision")


def test_a_table_that_is_no_consumer_is_refused_and_left_alone(
    module: Module, client: Any, settings: Any
) -> None:
    schema = [{"name": "a", "type": "int64"}]
    attributes = {"dynamic": True, "schema": schema}
    client.create("table", settings.consumer, recursive=True, attributes=attributes)
    assert "is no queue consumer" in _refusal(module, client, settings, "provision")
    assert client.get(f"{settings.consumer}/@tablet_state") == "unmounted"


@pytest.mark.parametrize("name", ["consumer", "output"])
def test_an_unmounted_table_is_found_and_mounted(
    module: Module, client: Any, provisioned: Any, name: str
) -> None:
    path = getattr(provisioned, name)
    client.unmount_table(path, sync=True)
    assert f"{path}: is unmounted" in _refusal(module, client, provisioned)
    assert module("provision").provision(client, provisioned)


def test_a_frozen_table_is_reported_with_the_command(
    module: Module, client: Any, provisioned: Any
) -> None:
    client.freeze_table(provisioned.output, sync=True)
    assert f"yt unfreeze-table {provisioned.output} --sync" in _refusal(module, client, provisioned)


@pytest.mark.parametrize("name", ["queues", "consumer", "output", "checkpoint"])
def test_a_link_is_refused(module: Module, client: Any, provisioned: Any, name: str) -> None:
    given = getattr(provisioned, name)
    path, *others = given if name == "queues" else [given]
    client.link(path, f"{path}-link")
    value = (f"{path}-link", *others) if name == "queues" else f"{path}-link"
    linked = replace(provisioned, **{name: value})
    assert f"is a link to {path}" in _refusal(module, client, linked, "provision")


@pytest.mark.parametrize(
    ("said", "setting"),
    [
        ('No such account "typo"', "account"),
        ('"use" permission for tablet cell bundle "b" is not allowed', "tablet_cell_bundle"),
        ('No such medium "typo"', "medium"),
    ],
)
def test_what_the_cluster_does_not_give_is_named_as_the_setting(
    module: Module, client: Any, settings: Any, cluster: Any, said: str, setting: str
) -> None:
    cluster.client.faults.add(method="create", action="fail", error={"code": 1, "message": said})
    with (
        pytest.raises(module("errors").JobError, match=f"{said}\n  -> correct `{setting}`"),
        module("cluster").explained(settings),
    ):
        module("provision").provision(client, settings)


def test_a_cluster_that_is_not_there_is_said_in_words(module: Module, settings: Any) -> None:
    with pytest.raises(module("errors").JobError, match=r"127\.0\.0\.1:1: Connection refused\n"):
        module("cluster").connect(replace(settings, proxy="127.0.0.1:1"))


def test_an_accepted_refusal_that_does_not_exist_is_refused(
    module: Module, client: Any, provisioned: Any
) -> None:
    assert "no such refusal" in _refusal(module, client, replace(provisioned, accept=("nonsense",)))


def test_another_schema_is_reported_and_left_alone(
    module: Module, client: Any, provisioned: Any
) -> None:
    path = provisioned.output
    client.remove(path)
    schema = [{"name": "something_else", "type": "int64"}]
    client.create("table", path, attributes={"dynamic": True, "schema": schema})
    refusal = _refusal(module, client, provisioned, "provision")
    assert "column something_else: not in tables.py" in refusal
    assert "missing" in refusal
    assert [column["name"] for column in client.get(f"{path}/@schema")] == ["something_else"]


def test_a_queue_without_a_column_of_ours_is_reported(
    module: Module, client: Any, settings: Any
) -> None:
    schema = [{"name": "something_else", "type": "int64"}]
    client.create(
        "table", settings.queues[0], recursive=True, attributes={"dynamic": True, "schema": schema}
    )
    assert "QUEUE in tables.py" in _refusal(module, client, settings, "provision")


def test_a_second_instance_is_refused_while_the_first_one_lives(
    module: Module, client: Any, provisioned: Any
) -> None:
    lock = module("lock").InstanceLock
    first, second = lock(client, provisioned.consumer), lock(client, provisioned.consumer)
    first.acquire(print)
    try:
        with pytest.raises(module("errors").JobError, match="another instance"):
            second.acquire(print)
    finally:
        first.release()
    second.acquire(print)
    second.release()


def test_the_lock_of_a_dead_instance_runs_out(
    module: Module, client: Any, provisioned: Any, cluster: Any
) -> None:
    transaction = client.start_transaction(timeout=5_000)
    folder, _, name = provisioned.consumer.rpartition("/")
    with client.Transaction(transaction_id=transaction):
        client.lock(folder, mode="shared", child_key=f"{name}.lock")
    said: list[str] = []

    def time_passes(line: str) -> None:
        said.append(line)
        # Past the dead one's time-out, not past that of the one that waits.
        cluster.client.clock.advance(6)

    lock = module("lock").InstanceLock(client, provisioned.consumer)
    lock.acquire(time_passes)
    lock.release()
    assert "holds the lock" in said[0]

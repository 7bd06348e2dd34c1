"""Rows of FACTS.md that say `different` or `refused`: the minicluster answers as they say.

They are not in the conformance suite, because a cluster answers otherwise. p11 is fixed: it needs
an operation, and the suite starts none.
"""

from __future__ import annotations

from typing import Any

import pytest
import requests
import yt.wrapper as yt

from minicluster import testing
from packages.minicluster.tests.operations.conftest import Lab

REFUSED = "not supported by minicluster"

KEYED = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "int64"},
]
QUEUE = [
    {"name": "data", "type": "string"},
    {"name": "$timestamp", "type": "uint64"},
    {"name": "$cumulative_data_weight", "type": "int64"},
]


def ask(cluster: testing.Running, verb: str, command: str, **parameters: Any) -> requests.Response:
    """Send one command over HTTP, without a client in between."""
    url = f"http://{cluster.http}/api/v4/{command}"
    if verb == "get":
        return requests.get(url, params=parameters, timeout=30)
    return getattr(requests, verb)(url, json=parameters, timeout=30)  # type: ignore[no-any-return]


def made(client: Any, path: str, schema: list[dict[str, Any]], **attributes: Any) -> str:
    """Make a mounted dynamic table."""
    unique = "sort_order" in schema[0]
    typed = yt.yson.to_yson_type(schema, attributes={"strict": True, "unique_keys": unique})
    client.create("table", path, attributes={"dynamic": True, "schema": typed, **attributes})
    client.mount_table(path, sync=True)
    return path


def error_of(answer: requests.Response) -> str:
    """Return the error of an answer, with those inside it."""
    assert answer.status_code >= 400, answer.text
    return answer.text


# Queues


@pytest.fixture
def queue(client: Any, root: str) -> str:
    return made(client, f"{root}/q", QUEUE)


@pytest.fixture
def consumer(client: Any, root: str) -> str:
    client.create("queue_consumer", f"{root}/c")
    client.mount_table(f"{root}/c", sync=True)
    return f"{root}/c"


def test_the_columns_of_the_schema_come_first(
    running: testing.Running, client: Any, queue: str
) -> None:
    """FACTS.md q02"""
    client.insert_rows(queue, [{"data": "a"}])
    (row,) = client.pull_queue(queue, 0, 0)
    assert [*row] == [
        "data", "$timestamp", "$cumulative_data_weight", "$tablet_index", "$row_index",
    ]  # fmt: skip


def test_a_path_of_another_cluster_is_an_error(client: Any, queue: str) -> None:
    """FACTS.md q24, q28"""
    path = yt.YPath(f'<cluster="elsewhere">{queue}')
    with pytest.raises(yt.YtError, match="elsewhere"):
        client.list_queue_consumer_registrations(queue_path=path)
    with pytest.raises(yt.YtError, match="elsewhere"):
        list(client.pull_queue(path, 0, 0))


def test_vital_is_refused_in_a_check_of_permission(running: testing.Running, queue: str) -> None:
    """FACTS.md q37"""
    answer = ask(
        running, "post", "check_permission", user="root", path=queue,
        permission="register_queue_consumer", vital=True,
    )  # fmt: skip
    assert REFUSED in error_of(answer)


def test_a_repeated_mutation_needs_the_mark_of_a_retry(
    running: testing.Running, client: Any, root: str, queue: str
) -> None:
    """FACTS.md q51"""
    client.create("queue_producer", f"{root}/p")
    client.mount_table(f"{root}/p", sync=True)

    def session() -> requests.Response:
        return ask(
            running, "post", "create_queue_producer_session", producer_path=f"{root}/p",
            queue_path=queue, session_id="s", mutation_id="1-2-3-51",
        )  # fmt: skip

    assert session().status_code == 200
    assert 'not marked as \\"retry\\"' in error_of(session())


def test_a_sequence_number_that_is_text_is_refused(
    running: testing.Running, client: Any, root: str, queue: str
) -> None:
    """FACTS.md q56"""
    client.create("queue_producer", f"{root}/p")
    client.mount_table(f"{root}/p", sync=True)
    client.create_queue_producer_session(f"{root}/p", queue, "s")
    row = {"data": "a", "$sequence_number": "0"}
    with pytest.raises(yt.YtError) as caught:
        client.push_queue_producer(f"{root}/p", queue, "s", 0, [row])
    assert "Error parsing sequence number" not in str(caught.value)


# Dynamic tables


def test_a_commit_ordering_changes_only_while_nothing_is_mounted(client: Any, root: str) -> None:
    """FACTS.md o09"""
    table = made(client, f"{root}/t", QUEUE)
    with pytest.raises(yt.YtError, match="Cannot change table commit ordering mode"):
        client.set(f"{table}/@commit_ordering", "strong")


def test_a_missing_required_column_has_its_code(client: Any, root: str) -> None:
    """FACTS.md o14"""
    required = [{"name": "a", "type": "int64", "required": True}]
    table = made(client, f"{root}/t", required)
    with pytest.raises(yt.YtError) as caught:
        client.insert_rows(table, [{}])
    assert caught.value.contains_code(307)
    assert "cannot have" not in str(caught.value)


def test_a_forced_unmount_loses_nothing(client: Any, root: str) -> None:
    """FACTS.md o16"""
    table = made(client, f"{root}/t", [{"name": "a", "type": "int64"}])
    client.insert_rows(table, [{"a": 2}])
    client.unmount_table(table, force=True, sync=True)
    client.mount_table(table, sync=True)
    assert [row["a"] for row in client.select_rows(f"a from [{table}]")] == [2]


def test_a_trimmed_row_count_without_a_tablet_count_is_accepted(client: Any, root: str) -> None:
    """FACTS.md o17"""
    attributes = {"dynamic": True, "schema": QUEUE, "trimmed_row_counts": [7]}
    client.create("table", f"{root}/t", attributes=attributes)
    assert client.exists(f"{root}/t")


def test_a_limit_of_a_tablets_weight_is_refused(client: Any, root: str) -> None:
    """FACTS.md o19"""
    table = made(client, f"{root}/t", QUEUE)
    with pytest.raises(yt.YtError, match=REFUSED):
        client.set(f"{table}/@mount_config", {"max_ordered_tablet_data_weight": 1})


@pytest.mark.parametrize(
    "request_of",
    [
        lambda client, table: client.insert_rows(table, [], lock_type="shared_write"),
        lambda client, table: client.lookup_rows(table, [{"k": 1}], versioned=True),
        lambda client, table: client.select_rows(f"* from [{table}]", allow_full_scan=False),
    ],
    ids=["s08", "s14", "y03"],
)
def test_parameters_that_are_refused(client: Any, root: str, request_of: Any) -> None:
    """FACTS.md s08, s14, y03"""
    table = made(client, f"{root}/t", KEYED)
    with pytest.raises(yt.YtError, match=REFUSED):
        request_of(client, table)


def test_pivot_keys_are_refused(running: testing.Running, client: Any, root: str) -> None:
    """FACTS.md s22"""
    table = made(client, f"{root}/t", KEYED)
    answer = ask(running, "get", "get_table_pivot_keys", path=table)
    assert "Unknown command" in error_of(answer)


def test_settings_of_storage_of_a_mounted_table_change(client: Any, root: str) -> None:
    """FACTS.md d08"""
    table = made(client, f"{root}/t", KEYED)
    client.set(f"{table}/@compression_codec", "lz4")
    assert client.get(f"{table}/@compression_codec") == "lz4"


def test_a_bundle_that_does_not_exist_has_tables(client: Any, root: str) -> None:
    """FACTS.md d09"""
    attributes = {"dynamic": True, "schema": QUEUE, "tablet_cell_bundle": "none-of-that-name"}
    client.create("table", f"{root}/t", attributes=attributes)
    assert client.exists(f"{root}/t")


# Cypress and master transactions


def test_removing_a_builtin_attribute_does_not_resolve(client: Any, root: str) -> None:
    """FACTS.md c06"""
    with pytest.raises(yt.YtError) as caught:
        client.remove(f"{root}/@recursive_resource_usage/missing")
    assert caught.value.contains_code(500)


def test_a_moved_node_keeps_its_acl(client: Any, root: str) -> None:
    """FACTS.md c19"""
    entry = {"action": "deny", "subjects": ["guest"], "permissions": ["write"]}
    client.create("map_node", f"{root}/a", attributes={"acl": [entry]})
    client.move(f"{root}/a", f"{root}/b")
    assert len(client.get(f"{root}/b/@acl")) == 1


def test_a_copy_belongs_to_the_account_default(client: Any, root: str) -> None:
    """FACTS.md c20"""
    client.create("map_node", f"{root}/a")
    client.copy(f"{root}/a", f"{root}/b")
    assert client.get(f"{root}/b/@account") == "default"


def test_a_builtin_attribute_is_not_set_in_a_transaction(client: Any, root: str) -> None:
    """FACTS.md c22"""
    client.create("table", f"{root}/t")
    with pytest.raises(yt.YtError, match=REFUSED), client.Transaction():
        client.set(f"{root}/t/@compression_codec", "lz4")


def test_a_lock_without_a_transaction_or_of_no_mode_is_refused(client: Any, root: str) -> None:
    """FACTS.md l01"""
    with pytest.raises(yt.YtError):
        client.lock(root, "exclusive")
    with pytest.raises(yt.YtError, match="lock mode"), client.Transaction():
        client.lock(root, "none")


def test_a_transaction_keeps_its_timeout(client: Any) -> None:
    """FACTS.md m07"""
    transaction = client.start_transaction(timeout=60_000)
    with pytest.raises(yt.YtError, match='"timeout" cannot be set'):
        client.set(f"#{transaction}/@timeout", 10_000)
    client.abort_transaction(transaction)


def test_dependent_transactions_are_not_told(client: Any) -> None:
    """FACTS.md m08"""
    transaction = client.start_transaction(timeout=60_000)
    with pytest.raises(yt.YtError) as caught:
        client.get(f"#{transaction}/@dependent_transaction_ids")
    assert caught.value.contains_code(500)
    client.abort_transaction(transaction)


def test_a_commit_does_not_raise_the_revision_again(client: Any, root: str) -> None:
    """FACTS.md m09"""
    client.set(f"{root}/d", 1)
    with client.Transaction():
        client.set(f"{root}/d", 2)
        inside = client.get(f"{root}/d/@revision")
    assert client.get(f"{root}/d/@revision") == inside


def test_an_id_that_was_never_given_is_a_missing_object(client: Any) -> None:
    """FACTS.md m10"""
    with pytest.raises(yt.YtError, match="No such object 1-2-3-4"):
        client.get("#1-2-3-4/@timeout")


# Static tables


def test_a_write_into_a_missing_table_is_one_error(running: testing.Running, root: str) -> None:
    """FACTS.md t09"""
    answer = requests.put(
        f"http://{running.http}/api/v4/write_table",
        headers={"X-YT-Parameters": f'{{"path":"{root}/none"}}', "X-YT-Input-Format": '"json"'},
        data=b'{"a":1}\n',
        timeout=30,
    )
    assert "Error getting basic attributes" not in error_of(answer)
    assert "has no child with key" in answer.text


def test_a_value_with_attributes_is_accepted(running: testing.Running, client: Any,
                                             root: str) -> None:  # fmt: skip
    """FACTS.md t11"""
    client.create("table", f"{root}/t")
    answer = requests.put(
        f"http://{running.http}/api/v4/write_table",
        headers={"X-YT-Parameters": f'{{"path":"{root}/t"}}', "X-YT-Input-Format": '"yson"'},
        data=b"{a=<x=1>2};",
        timeout=30,
    )
    assert answer.status_code == 200, answer.text


def test_a_schema_beside_the_attributes_is_refused(running: testing.Running, root: str) -> None:
    """FACTS.md t12"""
    answer = ask(running, "post", "create", type="table", path=f"{root}/t", schema=QUEUE)
    assert REFUSED in error_of(answer)


# The HTTP proxy


def test_one_version_is_offered_and_names_of_the_older_one_are_known(
    running: testing.Running,
) -> None:
    """FACTS.md h01, h10"""
    assert requests.get(f"http://{running.http}/api", timeout=10).json() == ["v4"]
    assert ask(running, "post", "start_tx").status_code == 200


def test_features_are_those_that_a_client_asks_for(running: testing.Running) -> None:
    """FACTS.md h11"""
    features = ask(running, "get", "get_supported_features").json()["features"]
    assert "primitive_types" in features
    assert "node_flavors" not in features


def test_the_folders_of_the_proxies_are_empty(client: Any) -> None:
    """FACTS.md h22"""
    assert [client.list(f"//sys/{kind}_proxies") for kind in ("http", "rpc")] == [[], []]


# Operations


def test_an_operation_is_told_without_what_this_model_lacks(lab: Lab) -> None:
    """FACTS.md p04, p09, p10, p16"""
    id_ = lab.start("sleep 60", alias="*differing", weight=1.0)
    found = ask(lab.cluster, "get", "get_operation", operation_alias="*differing").json()
    assert found["id"] == id_
    missing = {"erased_trees", "options_per_job_shell", "scheduling_tag_filter"}
    assert not missing & {*found["runtime_parameters"]}
    (listed,) = ask(lab.cluster, "get", "list_jobs", operation_id=id_).json()["jobs"]
    told = ask(lab.cluster, "get", "get_job", operation_id=id_, job_id=listed["id"]).json()
    assert not {"allocation_id", "addresses", "has_competitors"} & {*told}
    ask(
        lab.cluster, "post", "update_operation_parameters", operation_id=id_,
        parameters={"weight": 2.5},
    )  # fmt: skip
    found = ask(lab.cluster, "get", "get_operation", operation_id=id_).json()
    assert found["runtime_parameters"]["weight"] == 2.5
    ask(lab.cluster, "post", "abort_operation", operation_id=id_)


def test_an_abort_of_an_unknown_operation_is_an_error(lab: Lab) -> None:
    """FACTS.md p17"""
    answer = ask(lab.cluster, "post", "abort_operation", operation_id="1-2-3e8-4")
    assert answer.json()["code"] == 1915


def test_suspending_is_refused(lab: Lab) -> None:
    """FACTS.md p18"""
    for command in ("suspend_operation", "resume_operation"):
        assert REFUSED in error_of(ask(lab.cluster, "post", command, operation_id="1-2-3e8-4"))


def test_a_list_of_jobs_has_a_token_to_go_on(lab: Lab) -> None:
    """FACTS.md p11"""
    id_ = lab.start("true")
    lab.wait(id_)
    listed = ask(lab.cluster, "get", "list_jobs", operation_id=id_).json()
    assert listed["continuation_token"] is None

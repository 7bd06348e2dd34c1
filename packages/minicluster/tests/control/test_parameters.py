"""Each command knows its parameters: its rules agree with its code, and all others are refused."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import requests

from minicluster import testing
from minicluster.control.parameters import Harmless, Only, Rule
from minicluster.http.commands import COMMANDS
from minicluster.rpc import parameters as rpc
from minicluster.rpc import protos
from minicluster.rpc.methods import METHODS
from packages.minicluster.tests.support.rpc_client import RpcClient, RpcError, build
from tests.support import project

LIST = project.ROOT / "packages/minicluster/tests/conformance/README.md"
OF_ALL = {"input_format", "output_format", "mutation_id", "retry"} | {
    "prerequisite_transaction_ids",
    "prerequisite_revisions",
}
"""Read where all commands are run, not by each one."""


def bodies(function: Callable[..., Any]) -> Iterator[ast.AST]:
    """Yield the nodes of a function, and of those of its module that it calls."""
    module = ast.parse(inspect.getsource(inspect.getmodule(function)))  # type: ignore[arg-type]
    known = {node.name: node for node in module.body if hasattr(node, "name")}
    waiting, seen = [function.__name__], set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in known:
            continue
        seen.add(name)
        for node in ast.walk(ast.Module(known[name].body, [])):  # type: ignore[attr-defined]
            yield node
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                waiting.append(node.func.id)
            if isinstance(node, ast.Name) and node.id.isupper():
                constant = inspect.getmodule(function).__dict__.get(node.id)
                if isinstance(constant, tuple):
                    yield from (ast.Constant(item) for item in constant)


def words(function: Callable[..., Any]) -> set[str]:
    """Return the fields that an RPC method takes from its message, and the texts in it."""
    found = set()
    for node in bodies(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        if isinstance(node, ast.Attribute):
            base = node.value
            name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            if name in ("message", "options", "call"):
                found.add(node.attr)
        if isinstance(node, ast.Name) and node.id == "tablet_transaction":
            found.add("transaction_id")
    return found


ASKS: tuple[str, ...] = (
    "path",
    "rich",
    "string",
    "get",
    "require",
    "flag",
    "integer",
    "number",
    "mapping",
)
ASKS += ("strings", "required_strings", "integers", "required_flag", "choose")


def asked(function: Callable[..., Any]) -> set[str]:
    """Return the parameters that the body of an HTTP command asks its Invocation for."""
    found: set[str] = set()
    for node in bodies(function):
        if isinstance(node, ast.Attribute) and node.attr in ("tx", "tablet_tx"):
            found.add("transaction_id")
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "call"):
            continue
        if node.func.attr in ASKS:
            given = node.args if node.func.attr == "choose" else node.args[:1]
            found |= {str(each.value) for each in given if isinstance(each, ast.Constant)}
            if not node.args:
                found.add("path")
            if any(isinstance(each, ast.Starred) for each in node.args):
                found |= set(inspect.getmodule(function).__dict__["_COPY_FLAGS"])
    return found


FIRST_NAMES = {command.known.command: command for command in COMMANDS.values()}
KNOWN = [command.known for command in FIRST_NAMES.values()]
KNOWN += [entry.known for entry in METHODS.values()]


@pytest.mark.parametrize("name", sorted(FIRST_NAMES))
def test_an_http_command_reads_what_its_rules_say(name: str) -> None:
    command = FIRST_NAMES[name]
    assert asked(command.body) - OF_ALL == command.known.read - OF_ALL


@pytest.mark.parametrize(("service", "name"), sorted(METHODS))
def test_an_rpc_method_reads_what_its_rules_say(service: str, name: str) -> None:
    entry = METHODS[service, name]
    fields = protos.message(entry.request).DESCRIPTOR.fields_by_name
    found = words(entry.body)
    read = {field for field in fields if field in found and field not in rpc.PARTS}
    for part in rpc.PARTS & set(fields) & found:
        inner = fields[part].message_type.fields_by_name
        read |= {f"{part}.{field}" for field in inner if field in found}
    if "transaction" in found and "transactional_options" in fields:
        read.add("transactional_options.transaction_id")
    of_all = {"prerequisite_options", "transactional_options.transaction_id"}
    assert read - of_all == entry.known.read - of_all
    if "transactional_options" in fields:
        assert of_all & read - {"prerequisite_options"} == of_all & entry.known.read & {
            "transactional_options.transaction_id"
        }


@pytest.mark.parametrize(("service", "name"), sorted(METHODS))
def test_rules_name_fields_that_the_request_has(service: str, name: str) -> None:
    fields = protos.message(METHODS[service, name].request).DESCRIPTOR.fields_by_name
    for rule in METHODS[service, name].known.own:
        head, _, part = rule.partition(".")
        assert head in fields
        assert not part or part in fields[head].message_type.fields_by_name


@pytest.mark.parametrize(("service", "name"), sorted(METHODS))
def test_all_fields_of_a_part_have_a_rule(service: str, name: str) -> None:
    entry = METHODS[service, name]
    fields = protos.message(entry.request).DESCRIPTOR.fields_by_name
    for part in rpc.PARTS & set(fields):
        inner = fields[part].message_type.fields_by_name
        assert {f"{part}.{field}" for field in inner} <= set(entry.known.rules)


def test_what_is_let_through_unread_has_a_reason() -> None:
    for known in KNOWN:
        for rule in known.rules.values():
            assert not isinstance(rule, Harmless) or rule.why


def limited(rules: Mapping[str, Rule]) -> set[str]:
    """Return the rules that let only some values through, as text."""
    return {
        f"{name}={'|'.join(map(str, rule.values)).lower() or '-'}"
        for name, rule in rules.items()
        if isinstance(rule, Only)
    }


def test_the_list_of_refusals_names_the_values_that_are_taken() -> None:
    expected = {known.command: limited(known.own) for known in KNOWN}
    expected["every method"] = limited(rpc.EVERY)
    rows = re.findall(r"^\| ([a-zA-Z_ ]+) \| (`[a-z_.]+=.*) \|$", LIST.read_text(), re.MULTILINE)
    listed = {name: set(re.findall(r"`([^`]+)`", values)) for name, values in rows}
    assert listed == {name: values for name, values in expected.items() if values}


# Refusals


def ask(running: testing.Running, verb: str, query: str) -> Any:
    call = requests.post if verb == "post" else requests.get
    return call(f"http://{running.http}/api/v4/{query}", timeout=10)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("create?type=map_node&path=//tmp/refused&fly=1", "fly=1 (create)"),
        ("create?type=map_node&path=//tmp/refused&attribute={}", "attribute={} (create)"),
        ("alter_table?path=//tmp&schema_id=1-2-3-4", "schema_id=1-2-3-4 (alter_table)"),
        ("unmount_table?path=//tmp&x=" + "y" * 200, f"x={'y' * 100}... (unmount_table)"),
    ],
)
def test_a_parameter_that_is_not_known_is_refused(
    running: testing.Running, query: str, message: str
) -> None:
    answer = ask(running, "post", query)
    assert answer.status_code == 400
    assert answer.json()["message"] == f"not supported by minicluster: {message}"
    assert not requests.get(
        f"http://{running.http}/api/v4/exists?path=//tmp/refused", timeout=10
    ).json()["value"]


def test_a_value_that_is_not_implemented_is_refused(client: Any, root: str) -> None:
    schema = [{"name": "v", "type": "string"}]
    client.create("table", f"{root}/t", attributes={"dynamic": True, "schema": schema})
    client.mount_table(f"{root}/t")
    rows = [{"v": "x"}]
    with pytest.raises(Exception, match=r"minicluster: lock_type=shared_write \(insert_rows\)"):
        client.insert_rows(f"{root}/t", rows, lock_type="shared_write")
    client.insert_rows(f"{root}/t", rows, lock_type="exclusive")
    assert list(client.select_rows(f"v from [{root}/t]")) == rows


def test_flags_of_a_query_string_and_entities_count_as_what_they_say() -> None:
    known = COMMANDS["insert_rows"].known
    known.check({"path": "//t", "allow_missing_key_columns": "false", "lock_type": None})
    with pytest.raises(Exception, match="allow_missing_key_columns=true"):
        known.check({"path": "//t", "allow_missing_key_columns": "true"})


def test_a_refusal_passes_the_gate(fresh: testing.Running) -> None:
    ask(fresh, "get", "get?path=//tmp&fly=1")
    entry = fresh.client.journal()[-1]
    assert entry.method == "get"
    assert "fly=1" in str(entry.error)


def test_fields_of_rpc_requests_are_refused_too(running: testing.Running) -> None:
    commit = build("TReqCommitTransaction", transaction_id="1-1-1-1")
    commit.max_allowed_commit_timestamp = 5
    retry = build("TReqRemoveNode", path="//tmp/nothing", force=True)
    retry.mutating_options.retry = True
    newer = protos.api("TReqExistsNode").FromString(
        build("TReqExistsNode", path="//tmp").SerializeToString() + b"\x98\x3f\x05"
    )

    async def refusal(client: RpcClient, method: str, message: Any) -> str:
        client.send(method, message)
        with pytest.raises(RpcError) as caught:
            client.open_response(await client.read_message(), f"{protos.API}TRsp{method}")
        return str(caught.value.message)

    async def scenario() -> list[str]:
        client = await RpcClient.connect(running.rpc[0])
        requests = {"CommitTransaction": commit, "RemoveNode": retry, "ExistsNode": newer}
        found = [await refusal(client, *request) for request in requests.items()]
        await client.close()
        return found

    assert asyncio.run(asyncio.wait_for(scenario(), 30)) == [
        "not supported by minicluster: max_allowed_commit_timestamp=5 (CommitTransaction)",
        "not supported by minicluster: mutating_options.retry=true (RemoveNode)",
        "not supported by minicluster: field 1011=5 (ExistsNode)",
    ]

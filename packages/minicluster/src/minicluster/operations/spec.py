"""The spec of a vanilla operation: what is read, what is refused by name.

A field that asks for what is not here (an image, a GPU, a disk) is refused when it is set. Fields
that change nothing here (limits, pools, titles) are accepted. A field that a real cluster does not
know either is accepted there and listed as `unrecognized_spec`, and so it is here.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import generic, not_supported
from .model import MERGE, SORT, Task

MAX_FAILED_JOBS = 10
"""The default of max_failed_job_count (documentation, "Operation options")."""
STDERR_BOUND = 5 * 1024 * 1024
"""The default of max_stderr_size (documentation, "User script options")."""

REFUSED_OF_TASKS = (
    "layer_paths",
    "docker_image",
    "squashfs_layer_paths",
    "enable_squashfs",
    "root_volume_disk_request",
    "volumes",
    "job_volume_mounts",
    "network_project",
    "gpu_limit",
    "enable_gpu_layers",
    "cuda_toolkit_version",
    "tmpfs_path",
    "tmpfs_size",
    "tmpfs_volumes",
    "disk_request",
    "disk_space_limit",
    "inode_limit",
    "port_count",
    "output_table_paths",
    "enable_shuffle_service_in_job_proxy",
    "gang_options",
    "gang_manager",
    "interruption_signal",
    "monitoring",
    "profilers",
    "sidecars",
    "extra_environment",
)
"""Task fields that ask for what no job gets here."""
REFUSED_OF_OPERATIONS = (
    "stderr_table_path",
    "core_table_path",
    "time_limit",
    "fail_on_job_restart_in_gang",
    "probing_ratio",
    "input_query",
)
"""Fields of the whole spec that ask for what is not done here."""

HARMLESS_OF_TASKS = frozenset(
    {
        "cpu_limit",
        "memory_limit",
        "memory_reserve_factor",
        "user_job_memory_digest_default_value",
        "user_job_memory_digest_lower_bound",
        "job_memory_tracking",
        "set_container_cpu_limit",
        "container_cpu_limit",
        "thread_limit",
        "format",
        "input_format",
        "output_format",
        "enable_input_table_index",
        "use_porto_memory_tracking",
        "check_input_fully_consumed",
        "custom_statistics_count_limit",
        "deterministic",
        "make_rootfs_writable",
        "enable_porto",
        "fail_job_on_core_dump",
        "title",
        "started_by",
    }
)
HARMLESS_OF_OPERATIONS = frozenset(
    {
        "acl",
        "aco_name",
        "pool",
        "pool_trees",
        "scheduling_options_per_pool_tree",
        "scheduling_tag_filter",
        "preemption_mode",
        "weight",
        "resource_limits",
        "title",
        "description",
        "started_by",
        "owners",
        "authenticated_user",
        "job_node_account",
        "stderr_count_limit",
        "max_stderr_count",
        "fail_context_count_limit",
        "is_gang",
        "suspend_operation_if_account_limit_exceeded",
        "unavailable_chunk_strategy",
        "try_avoid_duplicating_jobs",
        "use_legacy_controller",
        "job_proxy_memory_digest",
        "job_io",
        "job_count",
        "controller_agent_tag",
        "mutation_id",
    }
)
_READ_OF_TASKS = frozenset(
    {
        "job_count",
        "command",
        "environment",
        "file_paths",
        "restart_completed_jobs",
        "enable_rpc_proxy_in_job_proxy",
        "copy_files",
        "redirect_stdout_to_stderr",
        "max_stderr_size",
        "job_time_limit",
    }
)
_READ_OF_OPERATIONS = frozenset(
    {
        "tasks",
        "alias",
        "annotations",
        "secure_vault",
        "issue_temporary_token",
        "temporary_token_environment_variable_name",
        "max_failed_job_count",
        "fail_on_job_restart",
    }
)


@dataclass(frozen=True)
class Spec:
    """A checked spec. `provided` is as it was given, without the vault."""

    provided: dict[str, Any]
    unrecognized: dict[str, Any]
    tasks: dict[str, Task]
    alias: str | None
    annotations: dict[str, Any]
    vault: dict[str, Any]
    max_failed_jobs: int
    fail_on_job_restart: bool


def parse(given: Any) -> Spec:
    """Return the checked spec. Raises YtError for one that is wrong or asks for too much."""
    spec = _map(given, "/spec")
    _refuse(spec, REFUSED_OF_OPERATIONS, "")
    tasks = _map(spec.get("tasks"), "/tasks")
    if not tasks:
        raise generic('"tasks" must be non-empty')
    alias = spec.get("alias")
    if alias is not None and not (isinstance(alias, str) and alias.startswith("*")):
        raise generic('Operation alias should start with "*"', operation_alias=str(alias))
    failed = _integer(spec.get("max_failed_job_count", MAX_FAILED_JOBS), "/max_failed_job_count", 0)
    unknown: dict[str, Any] = _unknown(spec, _READ_OF_OPERATIONS | HARMLESS_OF_OPERATIONS)
    unknown_of_tasks = {}
    for name, task in tasks.items():
        if found := _unknown(_map(task, f"/tasks/{name}"), _READ_OF_TASKS | HARMLESS_OF_TASKS):
            unknown_of_tasks[str(name)] = found
    if unknown_of_tasks:
        unknown["tasks"] = unknown_of_tasks
    return Spec(
        {key: value for key, value in spec.items() if key != "secure_vault"},
        unknown,
        {str(name): _task(str(name), task) for name, task in tasks.items()},
        None if alias is None else str(alias),
        _annotations(spec),
        _vault(spec),
        failed,
        _flag(spec.get("fail_on_job_restart", False), "/fail_on_job_restart"),
    )


@dataclass(frozen=True)
class OfTables:
    """The checked spec of a merge or a sort; `columns` are those to merge or sort by."""

    provided: dict[str, Any]
    unrecognized: dict[str, Any]
    inputs: tuple[Any, ...]
    output: Any
    mode: str
    columns: tuple[str, ...]
    transforms: bool
    """Whether all rows go into new chunks."""
    alias: str | None
    annotations: dict[str, Any]


_READ_OF_TABLES = frozenset(
    {
        "input_table_paths",
        "output_table_path",
        "mode",
        "merge_by",
        "sort_by",
        "combine_chunks",
        "force_transform",
        "alias",
        "annotations",
    }
)
_HARMLESS_OF_TABLES = frozenset(
    {
        "data_size_per_job",
        "data_weight_per_job",
        "data_size_per_sort_job",
        "data_weight_per_sort_job",
        "job_count",
        "partition_count",
        "partition_data_size",
        "partition_job_count",
        "partition_job_io",
        "sort_job_io",
        "merge_job_io",
        "intermediate_data_replication_factor",
        "schema_inference_mode",
        "max_failed_job_count",
        "fail_on_job_restart",
    }
)
MODES = ("unordered", "ordered", "sorted")


def parse_of_tables(type: str, given: Any) -> OfTables:
    """Return the checked spec of a merge or a sort. Raises YtError."""
    spec = _map(given, "/spec")
    _refuse(spec, REFUSED_OF_OPERATIONS, "")
    if spec.get("schema_inference_mode", "auto") != "auto":
        raise not_supported("schema_inference_mode in the spec of an operation")
    for name in ("input_table_paths", "output_table_path"):
        if not spec.get(name):
            raise generic(f"Missing required parameter /{name}")
    mode = str(spec.get("mode", "unordered")) if type == MERGE else "sorted"
    if mode not in MODES:
        raise generic(f'Error parsing EMergeMode value "{mode}"')
    alias = spec.get("alias")
    return OfTables(
        dict(spec),
        _unknown(spec, _READ_OF_TABLES | _HARMLESS_OF_TABLES | HARMLESS_OF_OPERATIONS),
        tuple(_list(spec["input_table_paths"], "/input_table_paths")),
        spec["output_table_path"],
        mode,
        _columns(spec, "merge_by" if type == MERGE else "sort_by"),
        type == SORT
        or mode == "sorted"
        or any(
            _flag(spec.get(name, False), name) for name in ("combine_chunks", "force_transform")
        ),
        None if alias is None else str(alias),
        _annotations(spec),
    )


def _columns(spec: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = []
    for item in _list(spec.get(name, []), f"/{name}"):
        if isinstance(item, dict):
            if item.get("sort_order", "ascending") != "ascending":
                raise not_supported(f"a descending order in {name}")
            item = item.get("name")
        found.append(_text(item, f"/{name}"))
    if name == "sort_by" and not found:
        raise generic("Missing required parameter /sort_by")
    return tuple(found)


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(place, "list", value)
    return value


def _vault(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what only jobs see: the vault, and a token of the operation if it asks for one.

    A driver finds it among the variables of the vault (SPYT, YTsaurusUtils.getToken; spec.py
    asks for it for its server of Spark Connect).
    """
    vault = dict(_map(spec.get("secure_vault", {}), "/secure_vault"))
    if _flag(spec.get("issue_temporary_token", False), "/issue_temporary_token"):
        name = str(spec.get("temporary_token_environment_variable_name", "YT_TOKEN"))
        vault.setdefault(name, f"temporary-{secrets.token_hex(16)}")
    return vault


def _annotations(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations; the spec's description is one (server/scheduler/scheduler.cpp)."""
    found = dict(_map(spec.get("annotations", {}), "/annotations"))
    return found | ({"description": spec["description"]} if "description" in spec else {})


def _task(name: str, task: Mapping[str, Any]) -> Task:
    place = f"/tasks/{name}"
    _refuse(task, REFUSED_OF_TASKS, f"tasks/{name}/")
    command = task.get("command")
    if not isinstance(command, str) or not command:
        raise generic(f"Missing required parameter {place}/command")
    environment = _map(task.get("environment", {}), f"{place}/environment")
    paths = task.get("file_paths", [])
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise _wrong(f"{place}/file_paths", "list", paths)
    limit = task.get("job_time_limit")
    if "job_count" not in task:
        raise generic(f"Missing required parameter {place}/job_count")
    variables = {
        str(key): _text(value, f"{place}/environment/{key}") for key, value in environment.items()
    }
    flags = {flag: _flag(task.get(field, False), f"{place}/{field}") for flag, field in FLAGS}
    return Task(
        name,
        _integer(task["job_count"], f"{place}/job_count", 1),
        str(command),
        variables,
        tuple(paths),
        stderr_bound=_integer(task.get("max_stderr_size", STDERR_BOUND), "/max_stderr_size", 0),
        time_limit=None if limit is None else _integer(limit, "/job_time_limit", 1) / 1000,
        **flags,
    )


FLAGS = (
    ("restart_completed_jobs", "restart_completed_jobs"),
    ("rpc_socket", "enable_rpc_proxy_in_job_proxy"),
    ("copy_files", "copy_files"),
    ("stdout_to_stderr", "redirect_stdout_to_stderr"),
)
"""Field of a Task -> boolean field of its spec."""


def _refuse(given: Mapping[str, Any], names: tuple[str, ...], place: str) -> None:
    """Raise YtError for the first field that asks for something: empty and false ask nothing."""
    for name in names:
        if given.get(name) and given[name] != "false":
            raise not_supported(f"{place}{name} in the spec of an operation")


def _unknown(given: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {
        str(name): value
        for name, value in given.items()
        if name not in known and name not in REFUSED_OF_TASKS and name not in REFUSED_OF_OPERATIONS
    }


def _map(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(place, "map", value)
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise _wrong(place, "string", value)
    return str(value)


def _integer(value: Any, place: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(place, "int64", value)
    if value < least:
        raise generic(f"Validation failed at {place}: expected >= {least}, found {value}")
    return int(value)


def _flag(value: Any, place: str) -> bool:
    """Return a boolean; SPYT sends "false" as text, which the server converts."""
    if isinstance(value, str) and value in ("true", "false"):
        return value == "true"
    if not isinstance(value, int) or value not in (0, 1):
        raise _wrong(place, "boolean", value)
    return bool(value)


def _wrong(place: str, expected: str, value: Any) -> Exception:
    return generic(f'Error reading parameter {place}: expected "{expected}", actual {value!r:.100}')

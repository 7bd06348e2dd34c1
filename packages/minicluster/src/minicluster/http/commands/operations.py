"""Operations and their jobs."""

from __future__ import annotations

from typing import Any

from ...control.parameters import AT_ONCE, NO_INTERRUPT, Harmless, each, only, read
from ...core.errors import generic
from ...operations import listing, reports
from ...operations.model import Operation
from ..registry import BINARY, STRUCTURED, Invocation, command

_OPERATION = read("operation_id operation_alias")
_ONE_SOURCE = Harmless("operations and their jobs are kept in one place")

SHOWN_IN_LISTS = (
    "id",
    "type",
    "operation_type",
    "state",
    "authenticated_user",
    "start_time",
    "finish_time",
    "brief_spec",
    "brief_progress",
    "runtime_parameters",
    "suspended",
)


def _named(call: Invocation) -> tuple[str | None, str | None]:
    """Return the id or the alias that a request gives. Raises YtError unless it is one of them."""
    operation_id, alias = call.get("operation_id"), call.get("operation_alias")
    if (operation_id is None) == (alias is None):
        raise generic('Exactly one of "operation_id" and "operation_alias" should be specified')
    return (
        None if operation_id is None else call.string("operation_id"),
        None if alias is None else call.string("operation_alias"),
    )


def _operation(call: Invocation) -> Operation:
    return call.cluster.scheduler.find(*_named(call))


def _managed(call: Invocation) -> Operation:
    return call.cluster.scheduler.manage(*_named(call))


@command(
    "start_operation",
    "start_op",
    parameters=read("operation_type spec transaction_id"),
    output=STRUCTURED,
    volatile=True,
)
def start_operation(call: Invocation) -> Any:
    kind, spec = call.string("operation_type"), call.require("spec")
    started = call.cluster.scheduler.start(kind, spec, tx=call.tx)
    return {"operation_id": started}


@command(
    "get_operation",
    parameters={
        **_OPERATION,
        **read("attributes"),
        **each("include_runtime include_scheduler maximum_cypress_progress_age", AT_ONCE),
    },
    output=STRUCTURED,
)
def get_operation(call: Invocation) -> Any:
    now = call.cluster.clock.now()
    return reports.operation_shown(_operation(call), call.strings("attributes"), now)


@command(
    "list_operations",
    parameters={
        **read(
            "user state type filter with_failed_jobs limit attributes from_time to_time "
            "cursor_time cursor_direction include_counters"
        ),
        "enable_ui_mode": only(False),
        "pool": only(),
        "pool_tree": only(),
        "access": only(),
        "include_archive": _ONE_SOURCE,
        "archive_fetching_timeout": _ONE_SOURCE,
    },
    output=STRUCTURED,
)
def list_operations(call: Invocation) -> Any:
    failed = call.get("with_failed_jobs")
    found = listing.operations_listed(
        call.cluster.scheduler.operations.values(),
        user=call.get("user"),
        state=call.get("state"),
        type=call.get("type"),
        filter=call.get("filter"),
        from_time=call.get("from_time"),
        to_time=call.get("to_time"),
        cursor_time=call.get("cursor_time"),
        cursor_direction=str(call.get("cursor_direction", "past")),
        with_failed_jobs=None if failed is None else call.flag("with_failed_jobs"),
    )
    limit = call.integer("limit", 100) or 100
    attributes = call.strings("attributes") or SHOWN_IN_LISTS
    now = call.cluster.clock.now()
    answer: dict[str, Any] = {
        "operations": [reports.operation_shown(one, attributes, now) for one in found[:limit]],
        "incomplete": len(found) > limit,
    }
    return answer | listing.counts(found) if call.flag("include_counters", True) else answer


@command(
    "abort_operation", "abort_op", parameters={**_OPERATION, **read("abort_message")}, volatile=True
)
def abort_operation(call: Invocation) -> None:
    message = call.get("abort_message")
    call.cluster.scheduler.abort(_managed(call), None if message is None else str(message))


@command("complete_operation", "complete_op", parameters=_OPERATION, volatile=True)
def complete_operation(call: Invocation) -> None:
    call.cluster.scheduler.complete(_managed(call))


@command(
    "update_operation_parameters",
    "update_op_parameters",
    parameters={**_OPERATION, **read("parameters")},
    volatile=True,
)
def update_operation_parameters(call: Invocation) -> None:
    call.cluster.scheduler.update_parameters(_managed(call), call.mapping("parameters"))


@command(
    "list_jobs",
    parameters={
        **_OPERATION,
        **each(
            "data_source include_cypress include_controller_agent include_runtime "
            "include_scheduler include_archive running_jobs_lookbehind_period",
            _ONE_SOURCE,
        ),
        **read("job_state state address task_name sort_field sort_order limit offset with_stderr"),
        "job_type": only("vanilla"),
        "type": only("vanilla"),
        "with_spec": only(True),
        "with_fail_context": only(False),
        "with_competitors": only(False),
        "with_monitoring_descriptor": only(False),
        "with_interruption_info": only(False),
        "attributes": Harmless("every attribute is shown"),
    },
    output=STRUCTURED,
)
def list_jobs(call: Invocation) -> Any:
    scheduler = call.cluster.scheduler
    found = listing.jobs_listed(
        _operation(call).jobs.values(),
        state=call.get("job_state", call.get("state")),
        address=call.get("address"),
        task_name=call.get("task_name"),
        sort_field=str(call.get("sort_field", "none")),
        descending=call.get("sort_order", "ascending") == "descending",
    )
    if call.get("with_stderr") is not None:
        wanted = call.flag("with_stderr")
        found = [job for job in found if bool(scheduler.stderr(job)) == wanted]
    offset, limit = call.integer("offset", 0) or 0, call.integer("limit", 1000) or 1000
    return {
        "jobs": [
            reports.job_shown(job, scheduler.stderr(job)) for job in found[offset : offset + limit]
        ],
        "cypress_job_count": None,
        "scheduler_job_count": len(found),
        "controller_agent_job_count": len(found),
        "archive_job_count": None,
        "type_counts": {"vanilla": len(found)} if found else {},
        "state_counts": reports.state_counts(found),
        "errors": [],
        "continuation_token": None,
    }


@command("get_job", parameters={**_OPERATION, **read("job_id attributes")}, output=STRUCTURED)
def get_job(call: Invocation) -> Any:
    job = call.cluster.scheduler.job_of(_operation(call), call.string("job_id"))
    shown = reports.job_shown(job, call.cluster.scheduler.stderr(job))
    wanted = call.strings("attributes")
    return shown if wanted is None else {name: shown[name] for name in wanted if name in shown}


@command(
    "get_job_stderr",
    parameters={**_OPERATION, **read("job_id limit offset"), "type": only("user_job_stderr")},
    output=BINARY,
    heavy=True,
)
def get_job_stderr(call: Invocation) -> bytes:
    scheduler = call.cluster.scheduler
    data = scheduler.stderr(scheduler.job_of(_operation(call), call.string("job_id")))
    offset, limit = call.integer("offset", 0) or 0, call.integer("limit")
    return data[offset : None if limit is None else offset + limit]


@command(
    "abort_job", parameters={**read("job_id"), "interrupt_timeout": NO_INTERRUPT}, volatile=True
)
def abort_job(call: Invocation) -> None:
    call.cluster.scheduler.abort_job(call.string("job_id"))

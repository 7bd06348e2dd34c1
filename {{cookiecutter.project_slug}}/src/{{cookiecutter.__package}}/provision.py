"""What the job needs on the cluster: compared with what is there, and made where it is missing.

One list of findings serves `check` (show them), `provision` (mend those that can be mended without
touching anybody's data) and `run` (refuse while there are any).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import yt.type_info as ti
from yt.common import YtError
from yt.wrapper.schema import TableSchema

from .cluster import first_line
from .errors import JobError
from .guarantee import output_attributes, output_columns, sizing_problem, write_batch
from .schema import Column, columns, differences, table_schema
from .settings import Settings
from .tables import OUTPUT, QUEUE
from .text import table

#: Filled in by the tablets; the Queue Agent needs them for lag and throughput figures
#: (YTsaurus documentation, "Queues").
SERVICE_COLUMNS = {"$timestamp": ti.Uint64, "$cumulative_data_weight": ti.Int64}

_REGISTER = "yt register-queue-consumer {queue} {consumer} --vital true"


@dataclass(frozen=True)
class Finding:
    """Something that is not as it must be. ``mend`` is None where only a person may decide."""

    object: str
    problem: str
    remedy: str
    mend: Callable[[], None] | None = None

    def __str__(self) -> str:
        return f"{self.object}: {self.problem}\n  -> {self.remedy}"


def provision(client: Any, settings: Settings) -> list[str]:
    """Create, mount and register what is missing; returns what was done, a line each.

    May be repeated: what is there is left alone. Mending one thing can bring the next to light (a
    table that was just made is not mounted yet), hence the rounds.

    Raises JobError for drift: objects that exist and differ.
    """
    done: list[str] = []
    while True:
        found = list(findings(client, settings))
        mendable = [finding for finding in found if finding.mend is not None]
        if not mendable:
            break
        for finding in mendable:
            assert finding.mend is not None
            finding.mend()
            done.append(f"{finding.object}: {finding.problem}; {finding.remedy}")
    _refuse(found, "provisioning left alone what it may not change")
    return done


def require(client: Any, settings: Settings) -> None:
    """Raise JobError, with all findings, unless everything is in place; changes nothing."""
    _refuse(list(findings(client, settings)), "the job cannot start")


def check(client: Any, settings: Settings) -> str:
    """A table of the job's objects. Raises JobError, with all findings, if anything is wrong."""
    require(client, settings)
    rows = [("queue", queue) for queue in settings.queues]
    rows += [
        ("consumer", settings.consumer),
        ("output", settings.output),
        ("checkpoint", settings.checkpoint),
    ]
    found = table(("object", "path", "state"), [(*row, "ok") for row in rows])
    tablets = queue_tablets(client, settings)
    return (
        f"{found}\n\nat most {settings.max_rows_per_partition * sum(tablets.values())} rows per "
        f"batch, {sized(client, settings).dyn_batch_size} per write, into "
        f"{client.get(f'{settings.output}/@tablet_count')} tablets of the output"
    )


def _refuse(found: list[Finding], what: str) -> None:
    if found:
        raise JobError(f"{what}:\n" + "\n".join(map(str, found)))


def findings(client: Any, settings: Settings) -> Iterator[Finding]:
    """Everything that is missing or differs, in the order in which it has to be mended."""
    queue_columns = columns("QUEUE", QUEUE)
    ready = True
    for queue in settings.queues:
        found = list(_queue(client, settings, queue, queue_columns))
        ready = ready and not found
        yield from found
    found = list(_consumer(client, settings))
    yield from found
    if ready and not found:
        for queue in settings.queues:
            yield from _registration(client, settings, queue)
    if ready:  # how many tablets the output needs depends on the queues'
        yield from _output(client, settings)
    yield from _folder(client, settings.checkpoint)


def _queue(
    client: Any, settings: Settings, queue: str, described: list[Column]
) -> Iterator[Finding]:
    if not client.exists(queue):
        if settings.create_queues:
            yield Finding(
                f"queue {queue}",
                "missing",
                "created",
                partial(_create_queue, client, settings, queue, described),
            )
        else:
            yield Finding(
                f"queue {queue}",
                "missing",
                "ask its producer for the path, and correct `queues` in the configuration "
                "(this job creates queues only with create_queues = true)",
            )
        return
    if client.get(f"{queue}/@path") != queue:
        yield Finding(
            f"queue {queue}",
            f"is a link to {client.get(f'{queue}/@path')}",
            "name that path in `queues`: SPYT finds the consumer's rows by the path's text",
        )
        return
    if not _is_dynamic(client, queue) or client.get(f"{queue}/@sorted"):
        yield Finding(f"queue {queue}", "is not an ordered dynamic table", "correct `queues`")
        return
    schema = TableSchema.from_yson_type(client.get(f"{queue}/@schema"))
    names = {column.name for column in described}
    extra = frozenset(column.name for column in schema.columns if column.name not in names)
    for line in differences(table_schema(described), schema, ignore=extra):
        yield Finding(
            f"queue {queue}", line, "correct QUEUE in tables.py: the queue is its producer's"
        )
    yield from _mounted(client, f"queue {queue}", queue, may_mount=settings.create_queues)


def _create_queue(client: Any, settings: Settings, queue: str, described: list[Column]) -> None:
    schema = table_schema(described)
    for name, type_ in SERVICE_COLUMNS.items():
        schema.add_column(name, ti.Optional[type_])
    client.create(
        "table",
        queue,
        recursive=True,
        attributes={
            **_placement(settings),
            "dynamic": True,
            "schema": schema.to_yson_type(),
            "tablet_count": 4,
            "auto_trim_config": {"enable": False},
        },
    )


def _consumer(client: Any, settings: Settings) -> Iterator[Finding]:
    consumer = settings.consumer
    label = f"consumer {consumer}"
    if not client.exists(consumer):
        yield Finding(
            label,
            "missing",
            "created",
            lambda: client.create(
                "queue_consumer", consumer, recursive=True, attributes=_placement(settings)
            ),
        )
        return
    if not client.get(f"{consumer}/@", attributes=["treat_as_queue_consumer"]).get(
        "treat_as_queue_consumer", False
    ):
        yield Finding(label, "is not a queue consumer", "correct `consumer` in the configuration")
        return
    yield from _mounted(client, label, consumer, may_mount=True)


def _registration(client: Any, settings: Settings, queue: str) -> Iterator[Finding]:
    label = f"consumer {settings.consumer}"
    by_hand = _REGISTER.format(queue=queue, consumer=settings.consumer)
    registrations = client.list_queue_consumer_registrations(
        queue_path=queue, consumer_path=settings.consumer
    )
    if not registrations:
        yield Finding(
            label,
            f"not registered with {queue}",
            f"registered, vital (by hand: {by_hand})",
            lambda: _register(client, queue, settings.consumer, by_hand),
        )
    elif not registrations[0]["vital"]:
        yield Finding(
            label,
            f"registered with {queue}, but not vital: unread rows may be trimmed",
            f"let the queue's owner run: {by_hand}",
        )


def _register(client: Any, queue: str, consumer: str, by_hand: str) -> None:
    try:
        client.register_queue_consumer(queue, consumer, vital=True)
    except YtError as error:
        raise JobError(
            f"consumer {consumer} may not be registered with {queue} by you: {first_line(error)}",
            f"let the queue's owner run: {by_hand}",
        ) from error


def _output(client: Any, settings: Settings) -> Iterator[Finding]:
    output = settings.output
    label = f"output {output}"
    wanted = table_schema(output_columns(columns("OUTPUT", OUTPUT)))
    tablets = queue_tablets(client, settings)
    if not client.exists(output):
        yield Finding(
            label,
            "missing",
            "created",
            lambda: client.create(
                "table",
                output,
                recursive=True,
                attributes={
                    **_placement(settings),
                    **_retention(settings),
                    "dynamic": True,
                    "schema": wanted.to_yson_type(),
                    **output_attributes(settings, tablets),
                },
            ),
        )
        return
    if not _is_dynamic(client, output):
        yield Finding(
            label, "is not a dynamic table", "correct `output`: SPYT's sink writes no other"
        )
        return
    schema = TableSchema.from_yson_type(client.get(f"{output}/@schema"))
    for line in differences(wanted, schema):
        yield Finding(
            label,
            line,
            "correct OUTPUT in tables.py, or change the table yourself (unmount, alter, mount), or "
            "configure another output",
        )
    problem = sizing_problem(settings, tablets, int(client.get(f"{output}/@tablet_count")))
    if problem is not None:
        yield Finding(
            label,
            problem,
            "reshard the output, or lower max_rows_per_partition or dyn_batch_size",
        )
    yield from _mounted(client, label, output, may_mount=True)


def queue_tablets(client: Any, settings: Settings) -> dict[str, int]:
    """The number of tablets of each queue."""
    return {queue: int(client.get(f"{queue}/@tablet_count")) for queue in settings.queues}


def sized(client: Any, settings: Settings) -> Settings:
    """The settings with ``dyn_batch_size`` chosen, where the configuration leaves it open."""
    if settings.dyn_batch_size is not None:
        return settings
    return replace(settings, dyn_batch_size=write_batch(settings, queue_tablets(client, settings)))


def _folder(client: Any, path: str) -> Iterator[Finding]:
    if not client.exists(path):
        yield Finding(
            f"checkpoint {path}",
            "missing",
            "created",
            lambda: client.create("map_node", path, recursive=True),
        )
    elif client.get(f"{path}/@type") != "map_node":
        yield Finding(f"checkpoint {path}", "is not a folder", "correct `checkpoint`")


def _mounted(client: Any, label: str, path: str, *, may_mount: bool) -> Iterator[Finding]:
    state = str(client.get(f"{path}/@tablet_state"))
    if state == "mounted":
        return
    if may_mount:
        yield Finding(label, f"is {state}", "mounted", lambda: client.mount_table(path, sync=True))
    else:
        yield Finding(label, f"is {state}", f"let its owner run: yt mount-table {path} --sync")


def _is_dynamic(client: Any, path: str) -> bool:
    return client.get(f"{path}/@type") == "table" and bool(client.get(f"{path}/@dynamic"))


def _placement(settings: Settings) -> dict[str, Any]:
    wanted = {
        "account": settings.account,
        "tablet_cell_bundle": settings.tablet_cell_bundle,
        "primary_medium": settings.medium,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _retention(settings: Settings) -> dict[str, Any]:
    if settings.output_retention is None:
        return {}
    # Rows of any age may go once they are older than max_data_ttl (YTsaurus documentation, "TTL").
    return {"min_data_versions": 0, "max_data_ttl": settings.output_retention}

"""What the job needs on the cluster: compared with what is there, and made where it is missing.

One list of findings serves `check` and `run` (refuse) and `provision` (mend what may be mended).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import yt.type_info as ti
from yt.common import YtError
from yt.wrapper.schema import TableSchema

from .cluster import first_line
from .errors import JobError
from .guarantee import ACCEPTABLE, KEY, output_attributes, sizing_problem, write_batch
from .inputs import TABLES
from .schema import Column, columns, differences, table_schema
from .settings import Settings
from .tables import OUTPUT, QUEUE
from .text import table

#: Filled in by the tablets; the Queue Agent needs them for lag and throughput figures
#: (YTsaurus documentation, "Queues").
SERVICE_COLUMNS = (
    Column("$timestamp", ti.Uint64, required=False),
    Column("$cumulative_data_weight", ti.Int64, required=False),
)
LOCAL_QUEUE_TABLETS = 4

#: By type: the attribute that tells whether it is one, its value then, and what it is called.
_KINDS = {
    "table": ("dynamic", True, "dynamic table"),
    "queue_consumer": ("treat_as_queue_consumer", True, "queue consumer"),
    "map_node": ("type", "map_node", "folder"),
}


@dataclass(frozen=True)
class Finding:
    """Something that is not as it must be. ``mend`` is None where only a person may decide."""

    object: str
    problem: str
    remedy: str
    mend: Callable[[], Any] | None = None

    def __str__(self) -> str:
        remedy = "run `provision`" if self.mend is not None else self.remedy
        return f"{self.object}: {self.problem}\n  -> {remedy}"


@dataclass(frozen=True)
class Wanted:
    """An object as it has to be. ``type``: "table" (dynamic), "queue_consumer" or "map_node"."""

    name: str
    path: str
    type: str
    columns: Sequence[Column] = ()
    #: Besides ``columns`` in a table that is made here; if any, others may have columns as well.
    service_columns: Sequence[Column] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    #: False: it belongs to somebody else, who makes and mounts it.
    is_ours: bool = True


def provision(client: Any, settings: Settings) -> list[str]:
    """Create, mount and register what is missing; returns what was done, a line each.

    May be repeated: what is there is left alone. Raises JobError for objects that differ.
    """
    done: list[str] = []
    # In rounds: a table that was just made is not mounted yet.
    while mendable := [(found, found.mend) for found in findings(client, settings) if found.mend]:
        for finding, mend in mendable:
            mend()
            done.append(f"{finding.object}: {finding.problem}; {finding.remedy}")
    require(client, settings, "provisioning left alone what it may not change")
    return done


def require(client: Any, settings: Settings, what: str = "the job cannot start") -> None:
    """Raise JobError, with all findings, unless everything is in place; changes nothing."""
    if found := list(findings(client, settings)):
        raise JobError(f"{what}:\n" + "\n".join(map(str, found)))


def check(client: Any, settings: Settings) -> str:
    """A table of the job's objects. Raises JobError, with all findings, if anything is wrong."""
    require(client, settings)
    rows = [("queue", queue, "ok") for queue in settings.queues]
    objects = ("consumer", "output", *TABLES, "checkpoint")
    rows += [(name, getattr(settings, name), "ok") for name in objects]
    tablets = queue_tablets(client, settings)
    return (
        f"{table(('object', 'path', 'state'), rows)}\n\n"
        f"at most {settings.max_rows_per_partition * sum(tablets.values())} rows per batch, "
        f"{sized(client, settings).dyn_batch_size} per write, into "
        f"{client.get(f'{settings.output}/@tablet_count')} tablets of the output"
    )


def queue_tablets(client: Any, settings: Settings) -> dict[str, int]:
    """The number of tablets of each queue."""
    return {queue: int(client.get(f"{queue}/@tablet_count")) for queue in settings.queues}


def sized(client: Any, settings: Settings) -> Settings:
    """The settings with ``dyn_batch_size`` chosen, where the configuration leaves it open."""
    if settings.dyn_batch_size is not None:
        return settings
    return replace(settings, dyn_batch_size=write_batch(settings, queue_tablets(client, settings)))


def findings(client: Any, settings: Settings) -> Iterator[Finding]:
    """Everything that is missing or differs, in the order in which it has to be mended."""
    for name in settings.accept:
        if name not in ACCEPTABLE:
            known = f"name one of: {', '.join(ACCEPTABLE)}" if ACCEPTABLE else "remove it"
            yield Finding(f"accept = [{name!r}]", "no such refusal", known)
    inspect = partial(_inspect, client, settings)
    attributes = {"tablet_count": LOCAL_QUEUE_TABLETS}
    parts = ("table", columns("QUEUE", QUEUE), SERVICE_COLUMNS, attributes, settings.create_queues)
    queues = [found for path in settings.queues for found in inspect(Wanted("queue", path, *parts))]
    consumer = list(inspect(Wanted("consumer", settings.consumer, "queue_consumer")))
    yield from [*queues, *consumer]
    if not queues and not consumer:
        for queue in settings.queues:
            yield from _registration(client, settings.consumer, queue)
    if not queues:  # how many tablets the output needs depends on the queues'
        tablets = queue_tablets(client, settings)
        yield from inspect(_output(settings, tablets))
        yield from _sizing(client, settings, tablets)
    for name, described in TABLES.items():
        yield from inspect(Wanted(name, getattr(settings, name), "table", described))
    yield from inspect(Wanted("checkpoint", settings.checkpoint, "map_node"))


def _output(settings: Settings, tablets: Mapping[str, int]) -> Wanted:
    attributes = output_attributes(settings, tablets)
    if settings.output_retention is not None:
        # Rows may go once they are older than max_data_ttl (YTsaurus documentation, "TTL").
        attributes |= {"min_data_versions": 0, "max_data_ttl": settings.output_retention}
    described = [*KEY, *columns("OUTPUT", OUTPUT)]
    return Wanted("output", settings.output, "table", described, attributes=attributes)


def _inspect(client: Any, settings: Settings, wanted: Wanted) -> Iterator[Finding]:
    label, fact = f"{wanted.name} {wanted.path}", partial(client.get_attribute, wanted.path)
    attribute, value, kind = _KINDS[wanted.type]
    target = fact("path", None)
    if target is None and wanted.is_ours:
        yield Finding(label, "missing", "created", partial(_create, client, settings, wanted))
    elif target is None:
        remedy = "ask its owner for the path (with create_queues = true the job makes its queues)"
        yield Finding(label, "missing", remedy)
    elif target != wanted.path:
        remedy = "name that path in the configuration: SPYT goes by the text of paths"
        yield Finding(label, f"is a link to {target}", remedy)
    elif fact(attribute, None) != value:
        yield Finding(label, f"is no {kind}", "correct it in the configuration")
    elif wanted.type != "map_node":
        if wanted.columns:
            yield from _differences(label, TableSchema.from_yson_type(fact("schema")), wanted)
        yield from _mounted(client, label, fact("tablet_state"), wanted)


def _differences(label: str, found: Any, wanted: Wanted) -> Iterator[Finding]:
    more = {column.name for column in found.columns} - {column.name for column in wanted.columns}
    ignore = frozenset(more if wanted.service_columns else ())
    remedy = f"correct {wanted.name.upper()} in tables.py"
    if wanted.is_ours:
        remedy += ", or change the table yourself (unmount, alter, mount), or configure another"
    for line in differences(table_schema(wanted.columns), found, ignore=ignore):
        yield Finding(label, line, remedy)


def _mounted(client: Any, label: str, state: str, wanted: Wanted) -> Iterator[Finding]:
    if state != "mounted" and state != "frozen" and wanted.is_ours:
        mount = partial(client.mount_table, wanted.path, sync=True)
        yield Finding(label, f"is {state}", "mounted", mount)
    elif state != "mounted":
        command = "unfreeze-table" if state == "frozen" else "mount-table"
        yield Finding(label, f"is {state}", f"let its owner run: yt {command} {wanted.path} --sync")


def _sizing(client: Any, settings: Settings, tablets: Mapping[str, int]) -> Iterator[Finding]:
    path = f"{settings.output}/@tablet_count"
    if client.exists(path) and (problem := sizing_problem(settings, tablets, client.get(path))):
        remedy = "reshard the output, or lower max_rows_per_partition or dyn_batch_size"
        yield Finding(f"output {settings.output}", problem, remedy)


def _registration(client: Any, consumer: str, queue: str) -> Iterator[Finding]:
    label = f"consumer {consumer}"
    by_hand = f"let its owner run: yt register-queue-consumer {queue} {consumer} --vital"
    found = client.list_queue_consumer_registrations(queue_path=queue, consumer_path=consumer)
    if not found:
        register = partial(_register, client, consumer, queue, by_hand)
        yield Finding(label, f"not registered with {queue}", "registered, vital", register)
    elif not found[0]["vital"]:
        problem = f"registered with {queue}, but not vital: unread rows may be trimmed"
        yield Finding(label, problem, by_hand)


def _create(client: Any, settings: Settings, wanted: Wanted) -> None:
    attributes = dict(wanted.attributes)
    if wanted.type == "table":
        schema = table_schema([*wanted.columns, *wanted.service_columns])
        attributes |= {"dynamic": True, "schema": schema.to_yson_type()}
    if wanted.type != "map_node":
        attributes |= {
            "account": settings.account,
            "tablet_cell_bundle": settings.tablet_cell_bundle,
            "primary_medium": settings.medium,
        }
    given = {name: value for name, value in attributes.items() if value is not None}
    client.create(wanted.type, wanted.path, recursive=True, attributes=given)


def _register(client: Any, consumer: str, queue: str, by_hand: str) -> None:
    try:
        client.register_queue_consumer(queue, consumer, vital=True)
    except YtError as error:
        raise JobError(
            f"you may not register consumer {consumer} with {queue}: {first_line(error)}",
            by_hand,
        ) from error

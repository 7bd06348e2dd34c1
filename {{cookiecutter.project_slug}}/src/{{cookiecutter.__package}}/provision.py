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
from .schema import columns, differences, table_schema
from .settings import Settings
from .tables import OUTPUT, QUEUE
from .text import table

#: Filled in by the tablets; the Queue Agent needs them for lag and throughput figures
#: (YTsaurus documentation, "Queues").
SERVICE_COLUMNS = {"$timestamp": ti.Uint64, "$cumulative_data_weight": ti.Int64}
LOCAL_QUEUE_TABLETS = 4


@dataclass(frozen=True)
class Finding:
    """Something that is not as it must be. ``mend`` is None where only a person may decide."""

    object: str
    problem: str
    remedy: str
    mend: Callable[[], None] | None = None

    def __str__(self) -> str:
        remedy = "run `provision`" if self.mend is not None else self.remedy
        return f"{self.object}: {self.problem}\n  -> {remedy}"


def provision(client: Any, settings: Settings) -> list[str]:
    """Create, mount and register what is missing; returns what was done, a line each.

    May be repeated: what is there is left alone. Mending one thing can bring the next to light (a
    table that was just made is not mounted yet), hence the rounds.

    Raises JobError for drift: objects that exist and differ.
    """
    done: list[str] = []
    while mendable := [finding for finding in findings(client, settings) if finding.mend]:
        for finding in mendable:
            assert finding.mend is not None
            finding.mend()
            done.append(f"{finding.object}: {finding.problem}; {finding.remedy}")
    _refuse(client, settings, "provisioning left alone what it may not change")
    return done


def require(client: Any, settings: Settings) -> None:
    """Raise JobError, with all findings, unless everything is in place; changes nothing."""
    _refuse(client, settings, "the job cannot start")


def check(client: Any, settings: Settings) -> str:
    """A table of the job's objects. Raises JobError, with all findings, if anything is wrong."""
    require(client, settings)
    rows = [("queue", queue, "ok") for queue in settings.queues]
    rows += [(name, getattr(settings, name), "ok") for name in ("consumer", "output", "checkpoint")]
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
    inspection = _Inspection(client, settings)
    queues = [finding for queue in settings.queues for finding in inspection.queue(queue)]
    consumer = list(inspection.consumer())
    yield from [*queues, *consumer]
    if not queues and not consumer:
        for queue in settings.queues:
            yield from inspection.registration(queue)
    if not queues:  # how many tablets the output needs depends on the queues'
        yield from inspection.output()
    yield from inspection.checkpoint()


def _refuse(client: Any, settings: Settings, what: str) -> None:
    found = list(findings(client, settings))
    if found:
        raise JobError(f"{what}:\n" + "\n".join(map(str, found)))


class _Inspection:
    """One method per kind of object; each yields what is wrong with it."""

    def __init__(self, client: Any, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    def queue(self, path: str) -> Iterator[Finding]:
        label, mine = f"queue {path}", self._settings.create_queues
        if not self._client.exists(path):
            if mine:
                yield Finding(label, "missing", "created", partial(self._create_queue, path))
            else:
                yield Finding(
                    label,
                    "missing",
                    "ask its producer for the path and correct `queues` in the configuration (this "
                    "job creates queues only with create_queues = true)",
                )
            return
        target = self._client.get(f"{path}/@path")
        if target != path:
            remedy = "name that path in `queues`: SPYT finds the consumer's rows by the path's text"
            yield Finding(label, f"is a link to {target}", remedy)
            return
        if not self._is_dynamic(path) or self._client.get(f"{path}/@sorted"):
            yield Finding(label, "is not an ordered dynamic table", "correct `queues`")
            return
        wanted, found = table_schema(columns("QUEUE", QUEUE)), self._schema(path)
        extra = {column.name for column in found.columns} - {name for name, _, _ in QUEUE}
        for line in differences(wanted, found, ignore=frozenset(extra)):
            yield Finding(label, line, "correct QUEUE in tables.py: the queue is its producer's")
        yield from self._mounted(label, path, may_mount=mine)

    def consumer(self) -> Iterator[Finding]:
        path = self._settings.consumer
        label = f"consumer {path}"
        if not self._client.exists(path):
            yield Finding(
                label, "missing", "created", partial(self._create, "queue_consumer", path)
            )
        elif not self._is_consumer(path):
            yield Finding(label, "is not a queue consumer", "correct `consumer`")
        else:
            yield from self._mounted(label, path, may_mount=True)

    def registration(self, queue: str) -> Iterator[Finding]:
        consumer = self._settings.consumer
        label = f"consumer {consumer}"
        by_hand = f"yt register-queue-consumer {queue} {consumer} --vital"
        found = self._client.list_queue_consumer_registrations(
            queue_path=queue, consumer_path=consumer
        )
        if not found:
            register = partial(self._register, queue, by_hand)
            yield Finding(label, f"not registered with {queue}", "registered, vital", register)
        elif not found[0]["vital"]:
            problem = f"registered with {queue}, but not vital: unread rows may be trimmed"
            yield Finding(label, problem, f"let the queue's owner run: {by_hand}")

    def output(self) -> Iterator[Finding]:
        path, settings = self._settings.output, self._settings
        label = f"output {path}"
        wanted = table_schema(output_columns(columns("OUTPUT", OUTPUT)))
        tablets = queue_tablets(self._client, settings)
        if not self._client.exists(path):
            attributes = {**self._retention(), **output_attributes(settings, tablets)}
            schema = wanted.to_yson_type()
            make = partial(self._create, "table", path, dynamic=True, schema=schema, **attributes)
            yield Finding(label, "missing", "created", make)
            return
        if not self._is_dynamic(path):
            yield Finding(label, "is not a dynamic table", "correct `output`: no other is written")
            return
        remedy = (
            "correct OUTPUT in tables.py, or change the table yourself (unmount, alter, mount), or "
            "configure another output"
        )
        for line in differences(wanted, self._schema(path)):
            yield Finding(label, line, remedy)
        tablet_count = int(self._client.get(f"{path}/@tablet_count"))
        if problem := sizing_problem(settings, tablets, tablet_count):
            remedy = "reshard the output, or lower max_rows_per_partition or dyn_batch_size"
            yield Finding(label, problem, remedy)
        yield from self._mounted(label, path, may_mount=True)

    def checkpoint(self) -> Iterator[Finding]:
        path = self._settings.checkpoint
        label = f"checkpoint {path}"
        if not self._client.exists(path):
            make = partial(self._client.create, "map_node", path, recursive=True)
            yield Finding(label, "missing", "created", make)
        elif self._client.get(f"{path}/@type") != "map_node":
            yield Finding(label, "is not a folder", "correct `checkpoint`")

    def _mounted(self, label: str, path: str, *, may_mount: bool) -> Iterator[Finding]:
        state = str(self._client.get(f"{path}/@tablet_state"))
        if state != "mounted":
            mount = partial(self._client.mount_table, path, sync=True) if may_mount else None
            remedy = "mounted" if may_mount else f"let its owner run: yt mount-table {path} --sync"
            yield Finding(label, f"is {state}", remedy, mount)

    def _create_queue(self, path: str) -> None:
        schema = table_schema(columns("QUEUE", QUEUE))
        for name, type_ in SERVICE_COLUMNS.items():
            schema.add_column(name, ti.Optional[type_])
        wanted = {"schema": schema.to_yson_type(), "tablet_count": LOCAL_QUEUE_TABLETS}
        self._create("table", path, dynamic=True, **wanted)

    def _create(self, type_: str, path: str, **attributes: Any) -> None:
        placement = {
            "account": self._settings.account,
            "tablet_cell_bundle": self._settings.tablet_cell_bundle,
            "primary_medium": self._settings.medium,
        }
        given = {name: value for name, value in placement.items() if value is not None}
        self._client.create(type_, path, recursive=True, attributes={**given, **attributes})

    def _retention(self) -> dict[str, Any]:
        if self._settings.output_retention is None:
            return {}
        # Rows may go once they are older than max_data_ttl (YTsaurus documentation, "TTL").
        return {"min_data_versions": 0, "max_data_ttl": self._settings.output_retention}

    def _register(self, queue: str, by_hand: str) -> None:
        consumer = self._settings.consumer
        try:
            self._client.register_queue_consumer(queue, consumer, vital=True)
        except YtError as error:
            raise JobError(
                f"you may not register consumer {consumer} with {queue}: {first_line(error)}",
                f"let the queue's owner run: {by_hand}",
            ) from error

    def _is_consumer(self, path: str) -> bool:
        attribute = f"{path}/@treat_as_queue_consumer"
        return bool(self._client.exists(attribute) and self._client.get(attribute))

    def _schema(self, path: str) -> Any:
        return TableSchema.from_yson_type(self._client.get(f"{path}/@schema"))

    def _is_dynamic(self, path: str) -> bool:
        is_table = self._client.get(f"{path}/@type") == "table"
        return is_table and bool(self._client.get(f"{path}/@dynamic"))

"""What the job needs on the cluster: compared with what is there, and made where it is missing.

One list of findings serves `check` (show them), `provision` (mend those that can be mended without
touching anybody's data) and `run` (refuse while there are any).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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

_NOT_OURS = (
    "ask its producer for the path and correct `queues` in the configuration (this job creates "
    "queues only with create_queues = true)"
)


@dataclass(frozen=True)
class Finding:
    """Something that is not as it must be. ``mend`` is None where only a person may decide."""

    problem: str
    remedy: str
    mend: Callable[[], object] | None = None
    object: str = ""

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
            yield Finding("no such refusal", known, object=f"accept = [{name!r}]")
    inspection = _Inspection(client, settings)
    queues = [finding for queue in settings.queues for finding in inspection.queue(queue)]
    consumer = list(inspection.consumer())
    yield from [*queues, *consumer]
    if not queues and not consumer:
        for queue in settings.queues:
            yield from inspection.registration(queue)
    if not queues:  # how many tablets the output needs depends on the queues'
        yield from inspection.output()
    for name, described in TABLES.items():
        yield from inspection.table(name, described)
    yield from inspection.checkpoint()


class _Inspection:
    """For each kind of object what would make it, and what can be wrong with one that is there."""

    def __init__(self, client: Any, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    def queue(self, path: str) -> Iterator[Finding]:
        schema = table_schema([*columns("QUEUE", QUEUE), *SERVICE_COLUMNS]).to_yson_type()
        attributes = {"dynamic": True, "schema": schema, "tablet_count": LOCAL_QUEUE_TABLETS}
        make = partial(self._create, "table", path, attributes)
        return self._inspect(
            "queue", path, make if self._settings.create_queues else None, self._in_queue(path)
        )

    def consumer(self) -> Iterator[Finding]:
        path = self._settings.consumer
        make = partial(self._create, "queue_consumer", path, {})
        return self._inspect("consumer", path, make, self._in_consumer(path))

    def output(self) -> Iterator[Finding]:
        path, settings = self._settings.output, self._settings
        wanted = table_schema([*KEY, *columns("OUTPUT", OUTPUT)])
        tablets = queue_tablets(self._client, settings)
        attributes = {"dynamic": True, "schema": wanted.to_yson_type()}
        attributes |= output_attributes(settings, tablets)
        if settings.output_retention is not None:
            # Rows may go once they are older than max_data_ttl (YTsaurus documentation, "TTL").
            attributes |= {"min_data_versions": 0, "max_data_ttl": settings.output_retention}
        make = partial(self._create, "table", path, attributes)
        return self._inspect("output", path, make, self._in_output(path, wanted, tablets))

    def table(self, name: str, described: Sequence[Column]) -> Iterator[Finding]:
        path, wanted = getattr(self._settings, name), table_schema(described)
        attributes = {"dynamic": True, "schema": wanted.to_yson_type()}
        make = partial(self._create, "table", path, attributes)
        return self._inspect(name, path, make, self._in_table(path, wanted, name))

    def checkpoint(self) -> Iterator[Finding]:
        path = self._settings.checkpoint
        make = partial(self._client.create, "map_node", path, recursive=True)
        return self._inspect("checkpoint", path, make, self._in_checkpoint(path))

    def registration(self, queue: str) -> Iterator[Finding]:
        consumer = self._settings.consumer
        label = f"consumer {consumer}"
        by_hand = f"let its owner run: yt register-queue-consumer {queue} {consumer} --vital"
        found = self._client.list_queue_consumer_registrations(
            queue_path=queue, consumer_path=consumer
        )
        if not found:
            register = partial(self._register, queue, by_hand)
            yield Finding(f"not registered with {queue}", "registered, vital", register, label)
        elif not found[0]["vital"]:
            problem = f"registered with {queue}, but not vital: unread rows may be trimmed"
            yield Finding(problem, by_hand, object=label)

    def _inspect(
        self, name: str, path: str, make: Callable[[], object] | None, inside: Iterator[Finding]
    ) -> Iterator[Finding]:
        """That the object is missing; else what is found ``inside``, looked for only then."""
        found = inside
        if not self._client.exists(path):
            found = iter([Finding("missing", "created" if make else _NOT_OURS, make)])
        elif (target := self._client.get(f"{path}/@path")) != path:
            remedy = "name that path in the configuration: SPYT goes by the text of paths"
            found = iter([Finding(f"is a link to {target}", remedy)])
        return (replace(finding, object=f"{name} {path}") for finding in found)

    def _in_queue(self, path: str) -> Iterator[Finding]:
        if not self._is_dynamic(path) or self._client.get(f"{path}/@sorted"):
            yield Finding("is not an ordered dynamic table", "correct `queues`")
            return
        wanted, found = table_schema(columns("QUEUE", QUEUE)), self._schema(path)
        extra = {column.name for column in found.columns} - {name for name, _, _ in QUEUE}
        for line in differences(wanted, found, ignore=frozenset(extra)):
            yield Finding(line, "correct QUEUE in tables.py: the queue is its producer's")
        yield from self._mounted(path, may_mount=self._settings.create_queues)

    def _in_consumer(self, path: str) -> Iterator[Finding]:
        attribute = f"{path}/@treat_as_queue_consumer"
        if self._client.exists(attribute) and self._client.get(attribute):
            yield from self._mounted(path, may_mount=True)
        else:
            yield Finding("is not a queue consumer", "correct `consumer`")

    def _in_table(self, path: str, wanted: Any, name: str) -> Iterator[Finding]:
        if not self._is_dynamic(path):
            yield Finding("is not a dynamic table", f"correct `{name}`: no other will do")
            return
        remedy = (
            f"correct {name.upper()} in tables.py, or change the table yourself (unmount, alter, "
            f"mount), or configure another {name}"
        )
        for line in differences(wanted, self._schema(path)):
            yield Finding(line, remedy)
        yield from self._mounted(path, may_mount=True)

    def _in_output(self, path: str, wanted: Any, tablets: dict[str, int]) -> Iterator[Finding]:
        yield from self._in_table(path, wanted, "output")
        if not self._is_dynamic(path):
            return
        tablet_count = int(self._client.get(f"{path}/@tablet_count"))
        if problem := sizing_problem(self._settings, tablets, tablet_count):
            remedy = "reshard the output, or lower max_rows_per_partition or dyn_batch_size"
            yield Finding(problem, remedy)

    def _in_checkpoint(self, path: str) -> Iterator[Finding]:
        if self._client.get(f"{path}/@type") != "map_node":
            yield Finding("is not a folder", "correct `checkpoint`")

    def _mounted(self, path: str, *, may_mount: bool) -> Iterator[Finding]:
        state = self._client.get(f"{path}/@tablet_state")
        mount = partial(self._client.mount_table, path, sync=True)
        if state != "mounted" and state != "frozen" and may_mount:
            yield Finding(f"is {state}", "mounted", mount)
        elif state != "mounted":
            command = "unfreeze-table" if state == "frozen" else "mount-table"
            yield Finding(f"is {state}", f"let its owner run: yt {command} {path} --sync")

    def _create(self, type_: str, path: str, attributes: dict[str, Any]) -> None:
        placement = {
            "account": self._settings.account,
            "tablet_cell_bundle": self._settings.tablet_cell_bundle,
            "primary_medium": self._settings.medium,
        }
        given = {name: value for name, value in placement.items() if value is not None}
        self._client.create(type_, path, recursive=True, attributes=given | attributes)

    def _register(self, queue: str, by_hand: str) -> None:
        consumer = self._settings.consumer
        try:
            self._client.register_queue_consumer(queue, consumer, vital=True)
        except YtError as error:
            raise JobError(
                f"you may not register consumer {consumer} with {queue}: {first_line(error)}",
                by_hand,
            ) from error

    def _schema(self, path: str) -> Any:
        return TableSchema.from_yson_type(self._client.get(f"{path}/@schema"))

    def _is_dynamic(self, path: str) -> bool:
        is_table = self._client.get(f"{path}/@type") == "table"
        return is_table and bool(self._client.get(f"{path}/@dynamic"))

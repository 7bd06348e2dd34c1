"""Compares the job's objects on the cluster with what it needs, and creates the missing ones.

One list of findings serves `check` and `run`, which refuse, and `provision`, which repairs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, partial
from typing import Any

from yt.common import YtError
from yt.wrapper.schema import TableSchema

from ..cluster.client import Client, facts, first_line
from ..cluster.resharding import by_count
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..guarantees import sizing
from ..job import REJECTED, JobContext
from ..ledger import ledger_rows
from ..ledger.positions import MARKER
from ..ledger.row_timestamps import TIMESTAMP
from ..ownership import output_marks
from ..schema.changes import deleted_columns, deleted_path
from ..schema.columns import Column, key_of
from ..schema.table_schema import (
    SERVICE_COLUMNS,
    differences,
    functions_of,
    split_by_position,
    table_schema,
    unlike,
)
from ..sealing import completeness
from ..settings.job_settings import OWN, Settings, late_rows_of, one_tablet_of
from ..text_table import counted, table
from . import references

LOCAL_QUEUE_TABLETS = 4

_KINDS = {
    "table": ("dynamic", True, "dynamic table"),
    "queue_consumer": ("treat_as_queue_consumer", True, "queue consumer"),
    "map_node": ("type", "map_node", "folder"),
}
"""Type -> the attribute that shows it, its value then, and the name of the kind."""
_OF_KINDS = tuple(attribute for attribute, *_ in _KINDS.values())
_ASKED = (
    "path", "schema", "tablet_state", "tablet_count", "atomicity", "min_data_versions",
    "min_data_ttl", "max_data_ttl", "merge_rows_on_flush", MARKER, *_OF_KINDS,
)  # fmt: skip
AttributesOf = Callable[[str], Mapping[str, Any]]
"""Path -> _ASKED of its object, without those that it does not have: one request for each object.
"""
TabletCounts = Mapping[str, int]

_READ_ONLY = ("queue", "reference")
"""What batches only read; every other object is written in transactions."""
_NAMES_IN_TABLES = {"queue": "QUEUE", "reference": "REFERENCE"}
"""Object -> its name in tables.py; every other table is one of OUTPUTS."""


@dataclass(frozen=True)
class Discrepancy:
    """A difference. ``repair`` is None where only a person may decide."""

    object: str
    problem: str
    remedy: str
    repair: Callable[[], Any] | None = None
    near: str | None = None
    """A path that is there and may be the one that is meant."""
    instead: str = ""
    """What a person may do instead of `provision`."""

    def __str__(self) -> str:
        remedy = f"run `provision`{self.instead}" if self.repair is not None else self.remedy
        if self.near is not None:
            others = f"else {remedy}"
            if self.repair is not None:
                others = "only for a new one under this very path run `provision`"
            remedy = f"{self.near} is there: if you mean it, correct the configuration; {others}"
        return f"{self.object}: {self.problem}\n  -> {remedy}"


@dataclass(frozen=True)
class DeclaredObject:
    """An object as it must be. ``type``: "table" (dynamic), "queue_consumer" or "map_node"."""

    name: str
    path: str
    type: str
    columns: Sequence[Column] = ()
    service_columns: Sequence[Column] = ()
    """Added to tables that we create. If set, an existing table may have further columns."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    is_ours: bool = True
    """False: its owner creates and mounts it."""
    is_mounted: bool = True
    """False: it may be unmounted."""


def provision(context: JobContext) -> list[str]:
    """Create, mount and register what is missing; return what was done, a line each.

    May be repeated: existing objects are not changed. Raises JobError for objects that differ.
    """
    done: list[str] = []
    found = list(findings(context))
    # In rounds: how many tablets an output needs depends on those of the queues.
    while repairs := [(finding, finding.repair) for finding in found if finding.repair]:
        for finding, repair in repairs:
            repair()
            done.append(f"{finding.object}: {finding.problem}; {finding.remedy}")
            if finding.near is not None:
                done[-1] += f", though {finding.near} is there: remove the new one if you mean that"
        found = list(findings(context))
    made = "; what it has done:\n" + "\n".join(done) + "\nand what is left" if done else ""
    if found:
        require(context, f"provisioning did not change what it may not change{made}")
    return done


def require(
    context: JobContext,
    what: str = "the job cannot start",
    *,
    declared: bool = True,
    migrating: bool = False,
) -> None:
    """Raise JobError, with all findings, unless everything is in place; changes nothing."""
    if found := list(findings(context, declared=declared, migrating=migrating)):
        raise JobError(f"{what}:\n" + "\n".join(map(str, found)), code=ErrorCode.NOT_PROVISIONED)


def check(context: JobContext) -> str:
    """Return a table of the job's objects. Raises JobError, with all findings, if any differs."""
    require(context)
    client, settings = context.client, context.settings
    rows = [("queue", queue, "ok") for queue in settings.queues]
    rows.append(("consumer", settings.consumer, "ok"))
    rows += [(name, path, "ok") for name, path in settings.outputs.items()]
    rows += [
        (deleted_path(name), deleted_path(settings.outputs[name]), "ok")
        for name in context.job.deletions
    ]
    rows += [("staging", settings.staging, "ok")] if context.job.static else []
    rows += [("reference", settings.reference, "ok")] if settings.reference else []
    rows += [(f"reference {name}", path, "ok") for name, path in settings.references.items()]
    rows.append(("checkpoint", settings.checkpoint, "ok"))
    rows.append(("ledger", settings.ledger, "ok"))
    tablets = queue_tablets(client, settings)
    into = "a static table of its own"
    if "output" not in context.job.static:
        tablet_count = int(client.get(f"{settings.output}/@tablet_count"))
        into = f"{counted(tablet_count, 'tablet')} of the output"
    return (
        f"{table(('object', 'path', 'state'), rows)}\n\n"
        f"at most {settings.max_rows_per_partition * sum(tablets.values())} rows per batch, "
        f"{_write_size(context)} per write, into {into}"
    )


def _write_size(context: JobContext) -> str:
    context = sized(context)
    is_full = context.settings.connector == OWN and context.write_rows is None
    return "up to 6 MiB" if is_full else f"{context.settings.dyn_batch_size} rows"


def queue_tablets(client: Client, settings: Settings) -> dict[str, int]:
    """Return the number of tablets of each queue."""
    return {queue: int(client.get(f"{queue}/@tablet_count")) for queue in settings.queues}


def sized(context: JobContext) -> JobContext:
    """Return the context with ``dyn_batch_size`` chosen where the configuration has none."""
    settings = context.settings
    if settings.dyn_batch_size is not None:
        return context
    tablets = queue_tablets(context.client, settings)
    rows = context.guarantee.write_batch(settings, tablets)
    return replace(context, settings=replace(settings, dyn_batch_size=rows), is_sized=True)


def findings(
    context: JobContext, *, declared: bool = True, migrating: bool = False
) -> Iterator[Discrepancy]:
    """Yield everything that is missing or differs, in the order in which to repair it.

    Not ``declared``: without what tables.py says, which may be about the next version of the job.
    ``migrating``: without aggregate functions that tables lack, and may be unmounted to get.
    """
    client, settings, job = context.client, context.settings, context.job
    late = [late_rows_of(queue) for queue in settings.queues] if job.kind.is_stateful else []
    waivers = [*context.guarantee.acceptable, output_marks.SHARED, *late]
    waivers += [one_tablet_of(name) for name in job.totals]
    yield from _unknown_waivers(settings, waivers)
    look: AttributesOf = cache(lambda path: facts(client, path, _ASKED) or {})
    inspect = partial(_inspect, client, settings, look)
    tablet_count = {"tablet_count": LOCAL_QUEUE_TABLETS}
    columns = job.queue_columns if declared else ()
    parts = ("table", columns, SERVICE_COLUMNS, tablet_count, settings.create_queues)
    queues = [
        found
        for path in settings.queues
        for found in inspect(DeclaredObject("queue", path, *parts))
    ]
    if declared and not queues:
        yield from _without_times(context, look)
    consumer = list(inspect(DeclaredObject("consumer", settings.consumer, "queue_consumer")))
    yield from [*queues, *consumer]
    if not queues and not consumer:
        for queue in settings.queues:
            yield from _registration(client, settings.consumer, queue)
    if declared:
        counts = {path: int(look(path)["tablet_count"]) for path in settings.queues if not queues}
        yield from _outputs(context, look, counts, migrating=migrating)
    if declared and settings.reference is not None:
        yield from inspect(
            DeclaredObject("reference", settings.reference, "table", job.reference_columns)
        )
    if declared:
        yield from _references(context)
    yield from inspect(DeclaredObject("checkpoint", settings.checkpoint, "map_node"))
    yield from inspect(
        DeclaredObject(
            "ledger",
            settings.ledger,
            "table",
            ledger_rows.COLUMNS,
            attributes=ledger_rows.ATTRIBUTES,
        )
    )


def _outputs(
    context: JobContext, look: AttributesOf, tablets: TabletCounts, *, migrating: bool
) -> Iterator[Discrepancy]:
    settings, job = context.settings, context.job
    inspect = partial(_inspect, context.client, settings, look)
    for name, path in settings.outputs.items():
        if problem := output_marks.foreign(context, name, look(path).get(MARKER)):
            yield Discrepancy(f"output {path}", *problem)
    if tablets:  # the number of tablets that an output needs depends on the queues'
        for name in (name for name in job.outputs if name not in job.static):
            wanted = wanted_output(context, name, tablets)
            is_altered = migrating and name in job.totals
            yield from inspect(replace(wanted, is_mounted=not is_altered))
            there = look(path := settings.outputs[name])
            yield from _functions(context, name, there.get("schema", ()), migrating=migrating)
            if name in job.merge:
                yield from _moments(name, path, look(path))
            # With a key, rows go by it and not at random.
            if "tablet_count" in there and not key_of(job.output_columns[name]):
                yield from _sizing(context, path, int(there["tablet_count"]), tablets)
    for name in job.deletions:
        wanted = wanted_deletes(context, name)
        yield from inspect(wanted)
        yield from _moments(wanted.name, wanted.path, look(wanted.path))
        yield from _kept_deletes(wanted, look(wanted.path))
    folder = {"account": settings.account, "primary_medium": settings.medium}
    for name in job.static:
        yield from inspect(
            DeclaredObject(name, settings.outputs[name], "map_node", attributes=folder)
        )
    if job.static:
        yield from inspect(
            DeclaredObject("staging", settings.staging, "map_node", attributes=folder)
        )


def _without_times(context: JobContext, look: AttributesOf) -> Iterator[Discrepancy]:
    """Yield queues that do not tell when a row was written: then no period is ever complete."""
    job = context.job
    archives = job.arrivals if completeness.has_watermark(job) else [*job.archives]
    if not archives:
        return
    for path in context.settings.queues:
        names = {str(column["name"]) for column in look(path).get("schema", ())}
        if names and TIMESTAMP not in names:
            yield Discrepancy(
                f"queue {path}",
                f"has no column {TIMESTAMP}, so nobody can tell when a period of "
                f"{', '.join(archives)} is complete",
                "ask its owner to declare the column, which the cluster fills in",
            )


def _references(context: JobContext) -> Iterator[Discrepancy]:
    """Yield what keeps lookup() from the references, which others make and which may be links."""
    client, settings, job = context.client, context.settings, context.job
    for name, columns in job.lookup_columns.items():
        path = settings.references[name]
        wanted = DeclaredObject(f"reference {name}", path, "table", columns)
        label = f"{wanted.name} {path}"
        found = facts(client, path, references.ASKED)
        if found is None and (target := _missing_target(client, path)):
            yield _broken_link(label, path, target)
        elif found is None and settings.create_queues:
            create = partial(_create, client, settings, wanted)
            yield Discrepancy(label, "missing", "created", create, instead=_BUILT_INSTEAD)
        elif found is None:
            remedy = "ask its owner for the path, or make it: `make reference`"
            yield Discrepancy(label, "missing", remedy, near=_near(client, settings, wanted))
        elif found.get("tablet_state") == "unmounted" and settings.create_queues:
            mount = partial(client.mount_table, path, sync=True)
            yield Discrepancy(label, "is unmounted", "mounted", mount)
        else:
            remedy = f"correct REFERENCES[{name!r}] in tables.py, or the table"
            unfit = references.unreadable(columns, found, job.reference_rows)
            yield from (Discrepancy(label, one, remedy) for one in unfit)


_BUILT_INSTEAD = (
    ", which makes an empty table for you to fill; or `make reference`, which makes a link of the "
    "path and needs it free"
)


def _missing_target(client: Client, path: str) -> str:
    """Return where a link leads that leads nowhere; empty if the path is not such a link."""
    found = facts(client, f"{path}&", ["target_path"]) or {}
    return str(found.get("target_path", ""))


def _broken_link(label: str, path: str, target: str) -> Discrepancy:
    """Return what to do about a link to a table that is missing: nothing can be created there."""
    remedy = "let it lead to a table again, as `make reference` does, or remove it: yt remove "
    return Discrepancy(label, f"is a link to {target}, which is missing", remedy + path)


def wanted_output(context: JobContext, name: str, tablets: Mapping[str, int]) -> DeclaredObject:
    """Return the output table ``name`` as it must be; ``tablets`` counts those of the queues."""
    settings, columns = context.settings, context.job.output_columns[name]
    if context.job.rejects and name == REJECTED:
        attributes = split_by_position(tablets)
    else:
        attributes = context.guarantee.output_attributes(columns, settings, tablets)
    if settings.output_retention is not None and name not in context.job.totals:
        # Rows may go once they are older than both: min_data_ttl is 30 minutes by default, and an
        # ordered table keeps rows for the longer one (YTsaurus, store_trimmer.cpp).
        kept = settings.output_retention
        attributes |= {"min_data_versions": 0, "min_data_ttl": 0, "max_data_ttl": kept}
        if name in context.job.merge:  # a batch reads the rows of a moment
            attributes["min_data_ttl"] = min(kept, references.MIN_DATA_TTL)
    return DeclaredObject(name, settings.outputs[name], "table", columns, attributes=attributes)


def wanted_deletes(context: JobContext, name: str) -> DeclaredObject:
    """Return the table that remembers the deletes of output ``name`` as it must be.

    Rows go once they are older than ``deleted_keep``, by the time of the transaction that wrote
    them. The rows of a moment stay readable for ``min_data_ttl`` (YTsaurus, "Dynamic tables: TTL").
    """
    job, settings = context.job, context.settings
    columns = deleted_columns(job.output_columns[name], job.deletions[name])
    attributes = {"min_data_versions": 0, "max_data_ttl": settings.deleted_keep}
    path = deleted_path(settings.outputs[name])
    return DeclaredObject(deleted_path(name), path, "table", columns, attributes=attributes)


def _moments(name: str, path: str, found: Mapping[str, Any]) -> Iterator[Discrepancy]:
    """Yield why a table may not have the rows of the moment at which a batch reads them."""
    for problem, attribute, value in references.forgets(found):
        change = f"yt set {path}/@{attribute} {value}; yt remount-table {path} --sync"
        yield Discrepancy(f"{name} {path}", f"MERGE reads it: {problem}", f"run: {change}")


def _kept_deletes(wanted: DeclaredObject, found: Mapping[str, Any]) -> Iterator[Discrepancy]:
    kept, keep = found.get("max_data_ttl"), wanted.attributes["max_data_ttl"]
    if found and (kept != keep or found.get("min_data_versions") != 0):
        change = (
            f"yt set {wanted.path}/@max_data_ttl {keep}; yt set {wanted.path}/@min_data_versions 0"
        )
        yield Discrepancy(
            f"{wanted.name} {wanted.path}",
            f"it keeps deletes for {kept} ms, deleted_keep says {keep}",
            f"run: {change}; yt remount-table {wanted.path}",
        )


def _unknown_waivers(settings: Settings, acceptable: Sequence[str]) -> Iterator[Discrepancy]:
    for name in settings.accept:
        if name not in acceptable:
            known = f"name one of: {', '.join(acceptable)}"
            yield Discrepancy(f"accept = [{name!r}]", "no such refusal", known)


def _inspect(
    client: Client, settings: Settings, look: AttributesOf, wanted: DeclaredObject
) -> Iterator[Discrepancy]:
    label = f"{wanted.name} {wanted.path}"
    attribute, value, kind = _KINDS[wanted.type]
    found = look(wanted.path)
    if not found and (target := _missing_target(client, wanted.path)):
        yield _broken_link(label, wanted.path, target)
    elif not found and wanted.is_ours:
        create = partial(_create, client, settings, wanted)
        yield Discrepancy(label, "missing", "created", create, _near(client, settings, wanted))
    elif not found:
        remedy = "ask its owner for the path (with create_queues = true the job makes its queues)"
        yield Discrepancy(label, "missing", remedy, near=_near(client, settings, wanted))
    elif found["path"] != wanted.path:
        remedy = "name that path in the configuration: SPYT goes by the text of paths"
        yield Discrepancy(label, f"is a link to {found['path']}", remedy)
    elif _is_static_reference(wanted, found):
        remedy = "correct REFERENCE in tables.py, or the table"
        for line in unlike(wanted.columns, found["schema"]):
            yield Discrepancy(label, line, remedy)
    elif found.get(attribute) != value:
        yield Discrepancy(label, f"is not a {kind}", "correct it in the configuration")
    elif wanted.type != "map_node":
        if wanted.columns:
            yield from _differences(label, TableSchema.from_yson_type(found["schema"]), wanted)
        if found.get("atomicity") == "none" and wanted.name not in _READ_ONLY:
            yield _not_atomic(label, wanted.path)
        if wanted.is_mounted:
            yield from _mounted(client, label, found["tablet_state"], wanted)


def _is_static_reference(wanted: DeclaredObject, found: Mapping[str, Any]) -> bool:
    """Return whether it is a static table that is read whole: nobody sorts or mounts it."""
    is_static = found.get("type") == "table" and not found.get("dynamic")
    return wanted.name == "reference" and is_static


def _not_atomic(label: str, path: str) -> Discrepancy:
    """Return what is wrong with a table that no transaction may write to.

    Under each guarantee: without the batch's transaction, each write has one of its own. The
    cluster refuses it when it commits (YTsaurus, server/node/tablet_node/tablet_service.cpp, Write)
    and names no table.
    """
    problem = "has @atomicity = none: the cluster refuses each transaction that writes to it"
    change = f"yt unmount-table {path} --sync; yt set {path}/@atomicity full"
    return Discrepancy(label, problem, f"let its owner run: {change}; yt mount-table {path} --sync")


def _near(client: Client, settings: Settings, wanted: DeclaredObject) -> str | None:
    """Return a path like the wanted one that is there and that the configuration does not name.

    In the same folder; for a queue, which others make, also in a folder with a name like its.
    """
    ours = {settings.consumer, settings.checkpoint, settings.ledger, settings.reference}
    ours |= {*settings.queues, *settings.outputs.values(), *settings.references.values()}
    ours |= {*map(deleted_path, settings.outputs.values())}
    folder, _, name = wanted.path.rpartition("/")
    rest = ""
    while wanted.name == "queue" and folder.strip("/") and not client.exists(folder):
        rest = f"/{name}{rest}"
        folder, _, name = folder.rpartition("/")
    try:
        beside = sorted(str(sibling) for sibling in client.list(folder))
    except YtError:  # no such folder, or no right to look into it
        return None
    others = [sibling for sibling in beside if f"{folder}/{sibling}{rest}" not in ours]
    cutoff = 0.6 if rest else 0.8  # what is in the folder has the right name already
    alike = (f"{folder}/{found}{rest}" for found in get_close_matches(name, others, 3, cutoff))
    return next((path for path in alike if not rest or client.exists(path)), None)


def _differences(label: str, found: Any, wanted: DeclaredObject) -> Iterator[Discrepancy]:
    more = {column.name for column in found.columns} - {column.name for column in wanted.columns}
    ignore = frozenset(more if wanted.service_columns else ())
    remedy = f"correct {_NAMES_IN_TABLES.get(wanted.name, 'OUTPUTS')} in tables.py"
    if wanted.name == "ledger":
        remedy = "it is of another layout: name another table, or run the version that made it"
    elif wanted.name == REJECTED:
        remedy = "name a new table under [outputs], then `provision` and `migrate`: its columns are"
        remedy += " those of REJECTED, with `queue_id` once there are several queues"
    elif wanted.is_ours:
        remedy += (
            ", or change the table yourself (unmount, alter, mount), or configure another table"
        )
    by = "this version of ytstream" if wanted.name == "ledger" else "tables.py"
    for line in differences(table_schema(wanted.columns), found, ignore=ignore, said_by=by):
        yield Discrepancy(label, line, remedy)


def _functions(
    context: JobContext, name: str, schema: Any, *, migrating: bool
) -> Iterator[Discrepancy]:
    """Yield columns whose aggregate function is not the one of tables.py.

    With one that tables.py does not know, a row that is written again would be added to the first
    one. Not those that `migrate` adds if it runs now.
    """
    columns = {column.name: column.aggregate for column in context.job.output_columns[name]}
    label, found = f"{name} {context.settings.outputs[name]}", functions_of(schema)
    stays = "the table cannot lose or change it: {}, or configure another table"
    for column, function in found.items():
        wanted = columns.get(column)
        if wanted is None:
            yield Discrepancy(
                label,
                f"column {column} has the aggregate function {function}: a row that is written "
                "again would be added to the first one instead of replacing it",
                stays.format(f'give the column aggregate="{function}" in tables.py'),
            )
        elif wanted != function:
            yield Discrepancy(
                label,
                f"column {column} has the aggregate function {function}, tables.py says {wanted}",
                stays.format("correct tables.py"),
            )
    there = {column["name"] for column in schema}
    for column, wanted in columns.items():
        if wanted is not None and column in there and column not in found and not migrating:
            yield Discrepancy(
                label,
                f"column {column} has no aggregate function, tables.py says {wanted}",
                "stop the job and run `migrate`, which adds it: what the rows have there is where "
                "their totals begin",
            )


def _mounted(
    client: Client, label: str, state: str, wanted: DeclaredObject
) -> Iterator[Discrepancy]:
    if state != "mounted" and state != "frozen" and wanted.is_ours:
        mount = partial(client.mount_table, wanted.path, sync=True)
        yield Discrepancy(label, f"is {state}", "mounted", mount)
    elif state != "mounted":
        command = "unfreeze-table" if state == "frozen" else "mount-table"
        yield Discrepancy(
            label, f"is {state}", f"let its owner run: yt {command} {wanted.path} --sync"
        )


def _sizing(
    context: JobContext, path: str, count: int, tablets: TabletCounts
) -> Iterator[Discrepancy]:
    settings = context.settings
    if problem := context.guarantee.sizing_problem(settings, tablets, count):
        remedy = "lower max_rows_per_partition or dyn_batch_size"
        rows = settings.max_rows_per_partition * sum(tablets.values())
        write = settings.dyn_batch_size or context.guarantee.write_batch(settings, tablets)
        if enough := sizing.enough_tablets(sizing.HEADROOM * rows, write):
            remedy += f", or with the job stopped:\n{by_count(settings, path, enough)}"
        yield Discrepancy(f"output {path}", problem, remedy)


def _registration(client: Client, consumer: str, queue: str) -> Iterator[Discrepancy]:
    label = f"consumer {consumer}"
    by_hand = f"let its owner run: yt register-queue-consumer {queue} {consumer} --vital"
    found = client.list_queue_consumer_registrations(queue_path=queue, consumer_path=consumer)
    if not found:
        register = partial(_register, client, consumer, queue, by_hand)
        yield Discrepancy(label, f"not registered with {queue}", "registered, vital", register)
    elif not found[0]["vital"]:
        problem = f"registered with {queue}, but not vital: unread rows may be trimmed"
        yield Discrepancy(label, problem, by_hand)


def _create(client: Client, settings: Settings, wanted: DeclaredObject) -> None:
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
    if wanted.type != "map_node":
        client.mount_table(wanted.path, sync=True)


def _register(client: Client, consumer: str, queue: str, by_hand: str) -> None:
    try:
        client.register_queue_consumer(queue, consumer, vital=True)
    except YtError as error:
        raise JobError(
            f"you may not register consumer {consumer} with {queue}: {first_line(error)}",
            by_hand,
            code=ErrorCode.PERMISSION,
        ) from error

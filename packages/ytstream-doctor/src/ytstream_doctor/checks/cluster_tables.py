"""Checks of a job's tables on the cluster: only attributes are read."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ytstream.cluster.client import Client, connect, explained, facts
from ytstream.guarantees import sizing
from ytstream.provisioning.retention import DEFAULTS, by_age
from ytstream.settings.addresses import is_path
from ytstream.settings.job_settings import Settings

from ..reading.dataframes import QueueReader
from ..reading.inspected_job import InspectedJob
from ..reading.queries import Query
from ..reading.syntax import GAP
from ..rules import Finding, spellings
from .references import SIZE

_MEMORY = "enable_dynamic_store_read"
_ATTRIBUTES = (
    "dynamic", "sorted", "schema", "tablet_count", "treat_as_queue_consumer", _MEMORY, *SIZE,
)  # fmt: skip
_COMPOSITE = {"list", "struct", "tuple", "dict", "variant", "decimal"}
_WRITE = 50_000
_MOST_PATHS = 500
"""A job's own files name fewer."""


@dataclass(frozen=True)
class ClusterTables:
    """What the cluster says of the paths in a job's files, and of its consumers."""

    found: Mapping[str, Mapping[str, Any]]
    registered: Mapping[tuple[str, str], bool]
    """(queue, consumer) -> vital"""

    def of(self, path: object) -> Mapping[str, Any] | None:
        """Return the attributes of a table; None for a path that is unknown or leads nowhere."""
        return self.found.get(path) if isinstance(path, str) else None


def read(job: InspectedJob, proxy: str) -> ClusterTables:
    """Ask the cluster. Raises JobError or OutageError without an answer."""
    settings = Settings(proxy=proxy, queues=(), consumer="", checkpoint="", ledger="", outputs={})
    with explained(settings):
        return _read(job, connect(settings, patient=False))


def findings(job: InspectedJob, tables: ClusterTables) -> Iterator[Finding]:
    """Yield what the cluster's tables show."""
    yield from _consumers(tables)
    yield from _beside(job, tables)
    for query in job.queries:
        yield from _composite(tables, query)
        yield from _output(job, tables, query)


def _paths(job: InspectedJob) -> list[str]:
    texts = [line for text in job.texts for _, line in text.lines]
    for _, node in job.code.walk():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    found = [path for text in texts for path in re.findall(r"(?<![:\w])//[\w./+=~-]*\w", text)]
    computed = [path for read in (*job.sources, *job.batch_reads) for path in read.paths]
    computed += [query.path for query in job.queries]
    computed += [source.options.value("consumer_path") for source in job.sources]
    known = [path for path in computed if isinstance(path, str) and GAP not in path]
    return list(dict.fromkeys(path for path in (*known, *found) if is_path(path)))[:_MOST_PATHS]


def _read(job: InspectedJob, client: Client) -> ClusterTables:
    names = [*_ATTRIBUTES, *DEFAULTS]
    found = {path: facts(client, path, names) or {} for path in _paths(job)}
    registered = {}
    for path, attributes in list(found.items()):
        if attributes.get("treat_as_queue_consumer"):
            for each in client.list_queue_consumer_registrations(None, path):
                queue = str(each["queue_path"])
                registered[queue, path] = bool(each["vital"])
                if queue not in found:
                    found[queue] = facts(client, queue, names) or {}
    return ClusterTables(found, registered)


def _consumers(tables: ClusterTables) -> Iterator[Finding]:
    for (queue, consumer), is_vital in tables.registered.items():
        if not is_vital:
            what = f"registered for {queue}, not vital"
            yield Finding(consumer, 0, "consumer-not-vital", what)
    for queue in sorted({queue for queue, _ in tables.registered}):
        for remark in by_age(queue, {**DEFAULTS, **(tables.of(queue) or {})}):
            what = remark.partition(" (")[0].removeprefix(f"{queue} ")
            yield Finding(queue, 0, "trimmed-by-age", what)


def _beside(job: InspectedJob, tables: ClusterTables) -> Iterator[Finding]:
    """Yield the dynamic tables whose rows in memory a read that is not a stream does not see."""
    for read in job.batch_reads:
        for path in read.paths:
            attributes = tables.of(path)
            if attributes and attributes.get("dynamic") and not attributes.get(_MEMORY):
                what = f"{path} is dynamic, without {_MEMORY}"
                yield Finding(read.file, read.line, "unflushed-rows", what)


def _composite(tables: ClusterTables, query: Query) -> Iterator[Finding]:
    for source in query.flow.sources:
        for path in source.paths:
            columns = _composites(tables.of(path))
            if columns and source.options.value("parsing_type_v3") in (None, False, "false"):
                what = f"{path} has {columns}, the reader no parsing_type_v3"
                yield Finding(source.file, source.line, "composite-types", what)
    columns = _composites(tables.of(query.path))
    if columns and query.options.value("write_type_v3") in (None, False, "false"):
        what = f"{query.path} has {columns}, the writer no write_type_v3"
        yield Finding(query.file, query.line, "composite-types", what)


def _composites(attributes: Mapping[str, Any] | None) -> str:
    return ", ".join(
        str(column["name"])
        for column in (attributes or {}).get("schema", ())
        if _kind(column.get("type_v3")) in _COMPOSITE
    )


def _kind(type_v3: Any) -> str:
    while isinstance(type_v3, Mapping) and type_v3.get("type_name") in ("optional", "tagged"):
        type_v3 = type_v3["item"]
    return str(type_v3["type_name"] if isinstance(type_v3, Mapping) else type_v3)


def _output(job: InspectedJob, tables: ClusterTables, query: Query) -> Iterator[Finding]:
    attributes = tables.of(query.path)
    if not attributes or not attributes.get("dynamic"):
        return
    path = str(query.path)
    if job.is_idempotent(query):
        keys = [column["name"] for column in attributes["schema"] if "sort_order" in column]
        if not attributes.get("sorted"):
            yield Finding(path, 0, "output-not-keyed", "the table is ordered")
        elif len(keys) < 3 and len(query.queues) > 1:
            what = f"{len(query.queues)} queues, and the key is {', '.join(keys)}"
            yield Finding(path, 0, "queue-key", what)
    if job.is_transactional and not attributes.get("sorted"):
        yield from _size(job, tables, query, int(attributes["tablet_count"]))


def _size(
    job: InspectedJob, tables: ClusterTables, query: Query, tablets: int
) -> Iterator[Finding]:
    """Compare a full batch with the tablets of an ordered output."""
    rows = sum(_rows(tables, source) for source in query.flow.sources)
    values = job.settings.values(*spellings("spark.yt.write.dynBatchSize"))
    sizes = [int(value) for value in values if value and value.isdigit()]
    if rows and (why := sizing.problem(rows, max([*sizes] or [_WRITE]), tablets)):
        yield Finding(str(query.path), 0, "tablet-limit", why)


def _rows(tables: ClusterTables, source: QueueReader) -> int:
    limit = source.options.value("max_rows_per_partition")
    number = int(limit) if re.fullmatch(r"\d+", str(limit)) else 0
    read = [tables.of(path) or {} for path in source.paths]
    return number * sum(int(attributes.get("tablet_count", 0)) for attributes in read)

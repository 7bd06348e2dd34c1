"""Checks of readers and writers: options, checkpoints, triggers, and what two queries share."""

import ast
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator

from ..reading.dataframes import QueueReader
from ..reading.inspected_job import InspectedJob
from ..reading.queries import Query
from ..reading.syntax import GAP, UNKNOWN, BoundExpression
from ..rules import UNREAD, Finding

_AWAITS = {"awaitTermination", "awaitAnyTermination", "processAllAvailable", "isActive"}
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_LIMIT = "max_rows_per_partition"
_MOST_ROWS = 1_000_000
"""A transaction takes 100,000 rows of a tablet; more than ten times that limits nothing."""


def findings(job: InspectedJob) -> Iterator[Finding]:
    """Yield what is wrong with the options of readers and writers."""
    for query in job.queries:
        yield from _checkpoint(job, query)
        yield from _output_mode(query)
        yield from _trigger(job, query)
        yield from _queues(query)
    for source in job.sources:
        if source.is_of_spyt:
            yield from _reader(source)
    for setting in job.settings.of(_CHECKPOINTS):
        for rule, what in _place(setting.value or ""):
            yield Finding(setting.file, setting.line, rule, f"{_CHECKPOINTS} is {what}")
    yield from _shared(job)
    awaited = any(
        isinstance(node, ast.Attribute) and node.attr in _AWAITS for _, node in job.code.walk()
    )
    for query in () if awaited else job.queries:
        yield _at(query, "no-await", "nothing waits for the query")


def _at(query: Query, rule: str, what: str) -> Finding:
    return Finding(query.file, query.line, rule, what)


# -- writers ---------------------------------------------------------------------------------------


def _checkpoint(job: InspectedJob, query: Query) -> Iterator[Finding]:
    path = query.options.value("checkpointlocation")
    is_asked_for = query.options.value("format") == "yt" or query.step("foreachBatch")
    if path is None and is_asked_for and not job.settings.of(_CHECKPOINTS):
        yield _at(query, "checkpoint-local", "the writer has no checkpointLocation")
    if isinstance(path, str):
        line = query.options.line("checkpointlocation")
        for rule, what in _place(path):
            file = query.options.file("checkpointlocation")
            yield Finding(file, line, rule, f"checkpointLocation is {what}")


def _place(path: str) -> Iterator[tuple[str, str]]:
    """Yield the rule that a checkpoint's path breaks; one that begins with a gap is unknown."""
    shown = f'"{path.replace(GAP, "...")}"'
    if path.startswith("file:"):
        yield "checkpoint-local", shown
    elif path and re.match(r"yt://[^/\ufffc]|(?!\ufffc)(?![a-zA-Z][\w+.-]*:)", path):
        yield "checkpoint-path", shown


def _output_mode(query: Query) -> Iterator[Finding]:
    mode = query.options.value("outputmode")
    is_sink = query.options.value("format") == "yt"
    if is_sink and isinstance(mode, str) and mode.lower() in ("update", "complete"):
        line = query.options.line("outputmode")
        yield Finding(query.options.file("outputmode"), line, "output-mode", f'"{mode}"')


def _trigger(job: InspectedJob, query: Query) -> Iterator[Finding]:
    trigger = query.step("trigger")
    if trigger is None:
        yield _at(query, "no-trigger", "the writer has no trigger")
        return
    for word in trigger.call.keywords if trigger.call else ():
        value = job.code.value(BoundExpression(word.value, trigger.context))
        if word.arg in ("availableNow", "once") and value is True:
            what = f"trigger({word.arg}=True)"
            yield Finding(trigger.context.module.file, trigger.line, "available-now", what)


# -- readers ---------------------------------------------------------------------------------------


def _reader(source: QueueReader) -> Iterator[Finding]:
    if source.options.value("consumer_path") is None:
        yield Finding(source.file, source.line, "no-consumer", "the reader has no consumer_path")
    limit = source.options.value(_LIMIT)
    if limit is None:
        what = f"the reader has no {_LIMIT}"
        yield Finding(source.file, source.line, "no-row-limit", what)
    elif limit is not UNKNOWN and re.fullmatch(r"\d+", str(limit)) and int(limit) > _MOST_ROWS:
        file, line = source.options.file(_LIMIT), source.options.line(_LIMIT)
        yield Finding(file, line, "no-row-limit", f"{_LIMIT} is {limit}")
    for name, why in UNREAD.items():
        if name.lower() in source.options.given:
            file, line = source.options.file(name.lower()), source.options.line(name.lower())
            yield Finding(file, line, "no-effect", f"option {name}: {why}")


def _queues(query: Query) -> Iterator[Finding]:
    seen: dict[str, QueueReader] = {}
    for source in query.flow.sources if query.is_traced else ():
        for path in source.paths:
            if isinstance(path, str) and GAP not in path:
                if path in seen:
                    what = f"{path} is read here and on line {seen[path].line}"
                    yield Finding(source.file, source.line, "same-queue-twice", what)
                seen[path] = source


# -- several queries -------------------------------------------------------------------------------


def _shared(job: InspectedJob) -> Iterator[Finding]:
    checkpoints: dict[Hashable, list[Query]] = defaultdict(list)
    consumers: dict[Hashable, list[Query]] = defaultdict(list)
    for query in job.queries:
        path = query.options.value("checkpointlocation")
        if isinstance(path, str) and GAP not in path:
            checkpoints[path.rstrip("/")].append(query)
        for consumer, queue in _read(query):
            consumers[consumer, queue].append(query)
    for place, queries in checkpoints.items():
        for query in queries[1:]:
            what = f"{place} is the checkpoint of {_named(queries[0])} as well"
            yield _at(query, "shared-checkpoint", what)
    for key, queries in consumers.items():
        for query in queries[1:]:
            consumer, queue = key if isinstance(key, tuple) else (key, key)
            what = f"{_named(queries[0])} reads {queue} with {consumer} as well"
            yield _at(query, "shared-consumer", what)


def _read(query: Query) -> set[tuple[str, str]]:
    """Return the consumers of a query with the queues that it reads with them, as far as known."""
    return {
        (consumer, path)
        for source in query.flow.sources
        if query.is_traced
        for path in source.paths
        if isinstance(path, str) and GAP not in path
        if isinstance(consumer := source.options.value("consumer_path"), str)
        if GAP not in consumer
    }


def _named(query: Query) -> str:
    return f"the query at {query.file}:{query.line}"

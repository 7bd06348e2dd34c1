"""The answers for cookiecutter that fit an audited job, as far as its code tells them."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping

from .reading.inspected_job import InspectedJob
from .reading.queries import Query

_PROCESSING: Mapping[str, frozenset[str]] = {
    "sessions": frozenset(
        ("applyInPandasWithState", "transformWithState", "transformWithStateInPandas")
    ),
    "group": frozenset(("groupBy", "groupby", "rollup", "cube")),
    "deduplicate": frozenset(
        ("dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark", "distinct")
    ),
    "join": frozenset(("join", "crossJoin")),
}
"""Calls on the rows of a stream -> the processing type; the first one that is there counts."""


def answers(job: InspectedJob) -> dict[str, str]:
    """Return option -> answer for the first query; nothing for a job without one."""
    if not job.queries or job.is_of_ytstream:
        return {}
    query = job.queries[0]
    found = {"processing": _processing(query)}
    found["guarantee"] = _guarantee(job, query, found["processing"])
    if queues := sorted(path for path in query.queues if isinstance(path, str)):
        found["queue_paths"] = " ".join(queues)
    if root := _root(query):
        found["cypress_root"] = root
    return found


def command(job: InspectedJob) -> str | None:
    """Return the command that generates a repository with these answers."""
    if not (found := answers(job)):
        return None
    words = (shlex.quote(f"{name}={value}") for name, value in found.items())
    return " \\\n    ".join(("  cookiecutter gh:ORG/REPO", *words))


def _processing(query: Query) -> str:
    names = {step.name for step in query.flow.steps}
    kind = next((kind for kind, calls in _PROCESSING.items() if names & calls), "map")
    if kind != "group":
        return kind
    # Without a watermark a total goes on for ever, as in `aggregate`.
    return "window" if "withWatermark" in names else "aggregate"


def _guarantee(job: InspectedJob, query: Query, processing: str) -> str:
    """Return the guarantee of the job, or the one that its processing type needs."""
    if processing == "aggregate" or job.is_transactional:
        return "transactional"
    return "idempotent" if processing == "map" and job.is_idempotent(query) else "at_least_once"


def _root(query: Query) -> str | None:
    """Return the folder of the consumer, where a generated job would keep its tables."""
    paths = (source.options.value("consumer_path") for source in query.flow.sources)
    consumer = next((path for path in paths if isinstance(path, str)), None)
    return posixpath.dirname(consumer) if consumer and consumer.count("/") > 3 else None

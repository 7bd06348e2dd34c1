"""The references of a job, for `why`: whether lookup() can read them, and whether they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yt.common import YtError

from ytstream.cluster.client import explanation, facts, first_line
from ytstream.cluster.mounting import STATIC
from ytstream.errors import OutageError
from ytstream.job import JobContext
from ytstream.provisioning.references import ASKED, given_key, unreadable

_USABLE = ("mounted", "frozen", STATIC)
_NOTHING = {"string": "", "utf8": "", "boolean": False, "double": 0.0, "float": 0.0}
"""A value of a required key column to ask for, by its type; 0 for all others."""


@dataclass(frozen=True)
class ReferenceState:
    """A reference that is there and mounted."""

    name: str
    path: str
    problems: tuple[str, ...] = ()
    """Why lookup() cannot read it, by REFERENCES of tables.py."""
    refused: str = ""
    """What the cluster answers to a lookup of one key if it cannot serve it now."""


def states(context: JobContext) -> Iterator[ReferenceState]:
    """Look one key up in each reference."""
    job = context.job
    for name, path in context.settings.references.items():
        found = facts(context.client, path, ASKED)
        if found is None or found.get("tablet_state", STATIC) not in _USABLE:
            continue
        problems: tuple[str, ...] = ()
        if job.references.get(name):  # a job that is known by its record has no columns
            problems = tuple(unreadable(job.lookup_columns[name], found, job.reference_rows))
        is_asked = found.get("dynamic") and not problems
        refused = _refused(context, path, found["schema"]) if is_asked else ""
        yield ReferenceState(name, path, problems, refused)


def _refused(context: JobContext, path: str, schema: Any) -> str:
    """Return why the cluster serves no lookup now.

    Another error says nothing about the job: this user may lack the right to read the rows.
    """
    given = given_key(schema)
    key = {column["name"]: _any(column) for column in schema if column["name"] in given}
    try:
        list(context.client.lookup_rows(path, [key]))
    except (YtError, OSError) as error:
        if isinstance(explanation(error, context.settings.proxy), OutageError):
            return first_line(error)
    return ""


def _any(column: Mapping[str, Any]) -> Any:
    return _NOTHING.get(str(column["type"]), 0) if column.get("required") else None

"""Finds jobs: by the notes of operations, and by ledgers under folders."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from yt.common import YtError

from ytstream.cluster.client import plain
from ytstream.cluster.operation import NOTE
from ytstream.ownership.job_record import RECORD

_PAGE, _PAGES = 100, 20
"""Operations that one request lists (YTsaurus allows 1,000), and how many requests there are."""
_PERIOD = timedelta(days=2)
"""Operations that ended longer ago are left to their ledgers."""
_COLUMNS = {"kind", "number", "epoch", "batch", "queues", "state"}
"""The columns by which a table is a ledger, of any version (ledger_rows.COLUMNS)."""
_ATTRIBUTES = ("schema", RECORD)


@dataclass(frozen=True)
class SeenOperation:
    """A driver's operation that runs or has ended lately."""

    id: str
    state: str
    user: str
    started: str
    ledger: str
    note: Mapping[str, Any]


def operations(client: Any) -> list[SeenOperation]:
    """Return the drivers' operations whose note names a ledger, the newest first."""
    found, executors = [], set()
    for one in _listed(client):
        parameters = one.get("runtime_parameters") or {}
        annotations = parameters.get("annotations") or {}
        note, description = annotations.get(NOTE), annotations.get("description")
        if isinstance(description, Mapping):
            executors.add(str(description.get("Executors operation ID")))
        if isinstance(note, Mapping) and note.get("ledger"):
            found.append(
                SeenOperation(
                    str(one["id"]), str(one["state"]), str(one.get("authenticated_user", "")),
                    str(one.get("start_time") or ""), str(note["ledger"]), plain(note),
                )
            )  # fmt: skip
    return [one for one in found if one.id not in executors]


def _listed(client: Any) -> Iterator[Mapping[str, Any]]:
    cursor = None
    since = (datetime.now(UTC) - _PERIOD).isoformat().replace("+00:00", "Z")
    for _ in range(_PAGES):
        answer = client.list_operations(
            limit=_PAGE, from_time=since, cursor_time=cursor, cursor_direction="past",
            include_counters=False,
            attributes=["id", "state", "authenticated_user", "start_time", "runtime_parameters"],
        )  # fmt: skip
        yield from answer["operations"]
        if not answer["incomplete"]:
            return
        cursor = answer["operations"][-1]["start_time"]


def ledgers(client: Any, folders: Sequence[str]) -> list[str]:
    """Return the paths of all ledgers under the folders; a folder that cannot be read has none."""
    found = []
    for folder in folders:
        with suppress(YtError):
            nodes = client.search(folder, node_type=["table"], attributes=[*_ATTRIBUTES])
            found += [str(node) for node in nodes if _is_ledger(node.attributes)]
    return found


def _is_ledger(attributes: Mapping[str, Any]) -> bool:
    names = {str(column["name"]) for column in attributes.get("schema", ())}
    return RECORD in attributes or names >= _COLUMNS

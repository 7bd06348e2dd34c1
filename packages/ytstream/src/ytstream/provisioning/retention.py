"""Remarks of `check`: settings that remove rows of a queue, perhaps before the job has read them.

A queue belongs to its producers, so this only warns.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..cluster.client import Client, facts
from ..settings.job_settings import Settings

DEFAULTS = {
    "min_data_versions": 1,
    "max_data_versions": 1,
    "min_data_ttl": 1_800_000,
    "max_data_ttl": 1_800_000,
    "row_count_to_keep": 0,
}
"""What a table has that was given none (YTsaurus, client/table_client/config.cpp)."""


def remarks(client: Client, settings: Settings) -> Iterator[str]:
    """Yield a line for each setting that removes rows of a queue."""
    for path in settings.queues:
        found = facts(client, path, [*DEFAULTS, "auto_trim_config"]) or {}
        yield from by_age(path, {**DEFAULTS, **found})
        trim = found.get("auto_trim_config") or {}
        if trim.get("enable"):
            yield _by_consumers(client, settings, path, trim)


def oldest_age(client: Client, path: str) -> float | None:
    """Return after how many seconds a queue drops rows, read or not; None: it does not."""
    age = _age({**DEFAULTS, **(facts(client, path, [*DEFAULTS]) or {})})
    return None if age is None else age / 1000


def _age(found: Mapping[str, Any]) -> int | None:
    """Return the milliseconds after which rows go, read or not; None: they stay.

    The rule is the server's (store_trimmer.cpp): rows go that are older than ``min_data_ttl`` and,
    unless ``max_data_versions`` is 0, than ``max_data_ttl``.
    """
    if found["min_data_versions"] != 0:
        return None
    age = int(found["min_data_ttl"])
    return age if found["max_data_versions"] == 0 else max(age, int(found["max_data_ttl"]))


def by_age(path: str, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the age at which rows go, read or not, if they do."""
    age = _age(found)
    if age is None:
        return
    kept = _kept(found["row_count_to_keep"])
    yield (
        f"{path} drops rows {_span(age)} after they were written, read or not{kept} "
        "(min_data_versions = 0): a job that is stopped or behind for longer loses them, and "
        "on_data_loss says what it does then"
    )


def _by_consumers(client: Client, settings: Settings, path: str, trim: Mapping[str, Any]) -> str:
    """Return how far back `rewind` may reach: our consumer is vital, so unread rows stay."""
    registered = client.list_queue_consumer_registrations(queue_path=path, consumer_path=None)
    others = sum(1 for found in registered if found["vital"]) - 1
    readers = f"this job and {others} other vital consumers have" if others else "this job has"
    kept = _kept(trim.get("retained_rows") or 0)
    if age := trim.get("retained_lifetime_duration"):
        kept += f", and those of the last {_span(age)}"
    return (
        f"{path} drops rows that {readers} read{kept} (auto_trim_config): `rewind` moves back no "
        "further"
    )


def _kept(rows: int) -> str:
    return f", but for the last {rows} of each tablet" if rows else ""


def _span(milliseconds: int) -> str:
    """Return a time in the largest unit that leaves a whole number of it, or in seconds."""
    for unit, size in (("h", 3_600_000), ("min", 60_000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds / 1000:g} s"

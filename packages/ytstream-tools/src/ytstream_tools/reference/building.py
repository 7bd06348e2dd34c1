"""Builds a reference: each step leaves the former one in use, until the last one switches the link.

1. A transaction takes a snapshot of the source and sorts it into a table that only the transaction
   sees. The cluster ends the operation and removes the table if this process dies.
2. Outside of it, the table becomes dynamic (YTsaurus refuses this in a transaction:
   table_node_proxy_detail.cpp, Alter), is cut into tablets and mounted frozen.
3. Another transaction switches the link. The mark of the table says from which moment on it can be
   looked up, and the mark of the former one since when it is not in use.

What a process leaves that dies between them, the next call removes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from yt.common import YtError

from ytstream.cluster import account_usage, built_reference, operation
from ytstream.cluster.client import Client, connect, facts, first_line
from ytstream.cluster.timestamps import unix_seconds
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import lock
from ytstream.instance.lock import Holder
from ytstream.job import JobContext
from ytstream.provisioning import permissions
from ytstream.provisioning.permissions import Permission
from ytstream.schema.columns import key_of
from ytstream.settings.addresses import is_path
from ytstream.settings.job_settings import Settings
from ytstream.text_table import counted

from . import places, source_table
from .places import Places
from .repeated_keys import examples
from .screen import Advance, Screen
from .source_table import SourceTable

_BYTES_PER_TABLET = 1 << 30
"""A tablet has about so many bytes, before compression."""
_MOST_TABLETS = 100
_WRITER = {"block_size": 256 << 10, "desired_chunk_size": 100 << 20}
"""Blocks of a static table are larger, and a dynamic one cannot be made of these (YTsaurus,
"MapReduce over dynamic tables")."""
_REPEATED = 306
"""UniqueKeyViolation (YTsaurus, yt/yt/client/table_client/public.h)."""
_POLL_SECONDS = 0.5
_LIFETIME_MS = 60_000
"""A transaction ends so long after the last ping, and its operation with it. The requests of the
building itself are given up after about that time."""
_ANOTHER = Holder("another `make reference` builds it", "wait for it; nothing was changed")


@dataclass(frozen=True)
class Wanted:
    """What the command was given."""

    source: str
    link: str
    key: tuple[str, ...]
    tablets: int | None = None
    """None: by the size of the table."""


@dataclass(frozen=True)
class Plan:
    """What is going to be built, verified."""

    source: SourceTable
    places: Places
    tablets: int

    def lines(self) -> Iterator[str]:
        """Yield what would be done."""
        read, key = self.source, ", ".join(self.source.key)
        yield f"{read.path}: {counted(read.rows, 'row')}, {counted(len(read.columns), 'column')}"
        yield (
            f"a table in {self.places.folder}, sorted by {key}, with "
            f"{counted(self.tablets, 'tablet')}"
        )
        for name in read.undeclared:
            yield (
                f"remark: REFERENCES of tables.py cannot name the column {name!r}, so no job reads "
                "it. Rename it in the source if one should"
            )


def rehearse(context: JobContext, wanted: Wanted) -> list[str]:
    """Return what would be done; changes nothing.

    Raises JobError as `build` does, except for what only the sorting shows: repeated keys.
    """
    _verify_arguments(context, wanted)
    with _snapshot(context.client, wanted):
        plan = _verified(context, wanted)
    found = plan.places
    former = f", which leads to {found.target}," if found.target else ""
    now = int(context.client.generate_timestamp())
    return [
        *plan.lines(),
        f"the link {found.link}{former} would be switched to it",
        *(f"{table} would be removed: {why}" for table, why in found.leftovers(now)),
        "nothing was changed; only the sorting shows whether a key is repeated",
    ]


def build(context: JobContext, wanted: Wanted, screen: Screen) -> None:
    """Build the table and switch the link to it.

    Raises JobError, and the previous reference stays in use.
    """
    client, settings = context.client, context.settings
    _verify_arguments(context, wanted)
    with lock.held(context, wanted.link, _ANOTHER):
        with _snapshot(client, wanted):
            plan = _verified(context, wanted)
            for line in plan.lines():
                screen.say(line)
            _make_room(connect(settings), plan.places, screen)
            table = _name(client, plan.places)
            _create(client, settings, plan.source, table)
            _sort(client, settings, plan.source, table, screen)
        _make_dynamic(client, plan, table, screen)
        _switch(client, plan, table)
        screen.say(f"{wanted.link} leads to {table}")
        for line in _remarks(client, wanted, plan):
            screen.say(line)


@contextmanager
def _snapshot(client: Client, wanted: Wanted) -> Iterator[None]:
    """Do what is in the block in a transaction, in which the source does not change."""
    with _transaction(client, wanted.link):
        try:
            client.lock(wanted.source, mode="snapshot")
        except YtError as error:
            if not error.is_resolve_error():
                raise
            raise source_table.refused(wanted.source, "it is missing") from error
        yield


def _transaction(client: Client, link: str) -> Any:
    return client.Transaction(timeout=_LIFETIME_MS, attributes={"title": f"the reference {link}"})


def _verify_arguments(context: JobContext, wanted: Wanted) -> None:
    """Raise JobError for arguments that cannot be right."""
    for name, path in (("FROM", wanted.source), ("TO", wanted.link)):
        if not is_path(path):
            raise _usage(f"{name}: {path!r} is not a plain Cypress path", "e.g. //home/team/titles")
    if not wanted.key:
        raise _usage("KEY names no column", "name the columns of the key: KEY=wiki,title")
    for name, key in _declared(context, wanted.link):
        if key != wanted.key:
            raise _usage(
                f"{wanted.link} is the reference {name!r} of this repository, and its key in "
                f"tables.py is {', '.join(key)}, not {', '.join(wanted.key)}",
                "correct KEY or REFERENCES; the order of the columns counts",
            )
    folder = wanted.link.rpartition("/")[0]
    if not context.client.exists(folder):
        raise _usage(f"the folder {folder} is missing", "make it, or correct TO")


def _usage(problem: str, remedy: str) -> JobError:
    return JobError(problem, f"{remedy}; nothing was changed", code=ErrorCode.USAGE)


def _declared(context: JobContext, link: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield name and key of each reference of the job that looks keys up in the link."""
    columns = context.job.lookup_columns
    for name, path in context.settings.references.items():
        if path == link and name in columns:
            yield name, tuple(key_of(columns[name]))


def _verified(context: JobContext, wanted: Wanted) -> Plan:
    """Return the plan. Raises JobError for what would fail later; changes nothing."""
    client, settings = context.client, context.settings
    found = places.read(client, wanted.link)
    source = source_table.read(client, wanted.source, wanted.key)
    if source.path in (wanted.link, found.target) or source.path.startswith(f"{found.folder}/"):
        raise source_table.refused(wanted.source, "it is the reference itself")
    _verify_names(client, settings)
    user = str(client.get_user_name())
    if lacking := [*permissions.missing(client, _rights(settings, source, found), user)]:
        raise JobError(
            f"{user} may not build {wanted.link}:\n  " + "\n  ".join(lacking),
            "ask the owners for these rights; nothing was changed",
            code=ErrorCode.PERMISSION,
        )
    tablets = min(wanted.tablets or _tablets(source), source.rows)
    _verify_quota(client, settings, wanted.link.rpartition("/")[0], tablets)
    return Plan(source, found, tablets)


def _verify_names(client: Client, settings: Settings) -> None:
    """Raise JobError if the cluster does not have what the configuration names."""
    for setting, folder, name in (
        ("account", "accounts", settings.account),
        ("tablet_cell_bundle", "tablet_cell_bundles", settings.tablet_cell_bundle),
        ("medium", "media", settings.medium),
    ):
        if name is not None and not client.exists(f"//sys/{folder}/{name}"):
            raise JobError(
                f"the cluster has nothing named {name!r} in //sys/{folder}",
                f"correct `{setting}` in the configuration; nothing was changed",
                code=ErrorCode.QUOTA,
            )


def _rights(settings: Settings, source: SourceTable, found: Places) -> Iterator[Permission]:
    folder = found.link.rpartition("/")[0]
    yield Permission("read", "FROM", source.path, "the rows")
    yield Permission("write", "the folder", folder, "the tables and the link are made in it")
    yield Permission("remove", "the folder", folder, "the tables that were replaced")
    yield Permission("mount", "the folder", folder, "the tables in it")
    if found.target is not None:
        yield Permission("remove", "the link", f"{found.link}&", "to replace it")
    if settings.account is not None:
        yield Permission("use", "account", f"//sys/accounts/{settings.account}", "the table")
    if settings.tablet_cell_bundle is not None:
        bundle = f"//sys/tablet_cell_bundles/{settings.tablet_cell_bundle}"
        yield Permission("use", "bundle", bundle, "the table")


def _verify_quota(client: Client, settings: Settings, folder: str, tablets: int) -> None:
    """Raise JobError if the account has no room for so many tablets."""
    account = settings.account or (facts(client, folder, ["account"]) or {}).get("account")
    for found in account_usage.usage(client, str(account)):
        if found.resource == "tablet_count" and found.used + tablets > found.limit:
            raise JobError(
                f"the account {account} has {found}, and the table needs "
                f"{counted(tablets, 'tablet')} more",
                "ask for more, or name fewer with TABLETS=; nothing was changed",
                code=ErrorCode.QUOTA,
            )


def _tablets(source: SourceTable) -> int:
    return min(_MOST_TABLETS, max(1, math.ceil(source.bytes / _BYTES_PER_TABLET)))


def _make_room(outside: Client, found: Places, screen: Screen) -> None:
    """Remove what nobody needs, and make the folder.

    By a client that is not in the transaction: if that outlives a process that was killed, a folder
    that was made in it would stay locked.
    """
    for table, why in found.leftovers(int(outside.generate_timestamp())):
        outside.remove(table, force=True)
        screen.say(f"removed {table}: {why}")
    outside.create("map_node", found.folder, ignore_existing=True)


def _name(client: Client, found: Places) -> str:
    """Return the path of the new table: the time of the cluster, to the microsecond or so."""
    now = int(client.generate_timestamp())
    seconds = time.strftime("%Y%m%dT%H%M%S", time.gmtime(unix_seconds(now)))
    return f"{found.folder}/{seconds}-{now & 0xFFFF:04x}"


def _create(client: Client, settings: Settings, source: SourceTable, table: str) -> None:
    attributes = {
        built_reference.MARK: built_reference.begun(source.path, source.key),
        "schema": source.schema.to_yson_type(),
        "optimize_for": "lookup",
        "account": settings.account,
        "tablet_cell_bundle": settings.tablet_cell_bundle,
        "primary_medium": settings.medium,
        # The balancer would unmount it to merge small tablets.
        "tablet_balancer_config": {"enable_auto_reshard": False},
    }
    given = {name: value for name, value in attributes.items() if value is not None}
    client.create("table", table, attributes=given)


def _sort(
    client: Client, settings: Settings, source: SourceTable, table: str, screen: Screen
) -> None:
    """Sort the source into the table. Raises JobError, with examples, for repeated keys."""
    with screen.step(f"sorting {counted(source.rows, 'row')}") as advance:
        error = _sorted(client, settings, source, table, advance)
    if error is None:
        return
    if not error.contains_code(_REPEATED):
        raise JobError(
            f"the rows of {source.path} cannot be sorted: {first_line(error)}",
            "`yt get-operation` has more; the previous reference stays in use",
            code=ErrorCode.COMMAND_FAILED,
        ) from error
    with screen.step("looking for repeated keys") as advance:
        found = _examples(client, settings, source, f"{table}-repeated", advance)
    raise source_table.refused(
        source.path,
        f"the key ({', '.join(source.key)}) is repeated, for example {', '.join(found)}",
        remedy="make the rows unique, or name more columns in KEY",
    )


def _examples(
    client: Client, settings: Settings, source: SourceTable, table: str, advance: Advance
) -> list[str]:
    """Return repeated keys, from a table that the transaction will take with it when it ends."""
    client.create("table", table)
    if error := _sorted(client, settings, source, table, advance):
        raise error
    return examples(source_table.keys(client, source, table))


def _sorted(
    client: Client, settings: Settings, source: SourceTable, table: str, advance: Advance
) -> YtError | None:
    """Sort the source into the table; return the error of the operation, if it fails."""
    given = {"title": f"the reference {table}"}
    if settings.pool is not None:
        given["pool"] = settings.pool
    started = client.run_sort(
        source.path, table, sort_by=[*source.key], sync=False, table_writer=_WRITER, spec=given
    )
    while True:
        found = client.get_operation(
            operation_id=started.id, attributes=["state", "result", "brief_progress"]
        )
        if found["state"] in operation.FINAL:
            break
        jobs = (found.get("brief_progress") or {}).get("jobs") or {}
        advance(int(jobs.get("completed", 0)), int(jobs.get("total", 0)))
        time.sleep(_POLL_SECONDS)
    failure = (found.get("result") or {}).get("error") or {}
    return None if found["state"] == "completed" else YtError(**failure)


def _make_dynamic(client: Client, plan: Plan, table: str, screen: Screen) -> None:
    """Let the table be looked up; remove it if that fails."""
    try:
        with screen.step("making it a dynamic table"):
            pivots = _pivots(client, plan, table)
            client.alter_table(table, dynamic=True)
        if pivots:
            with screen.step(f"cutting it into {counted(plan.tablets, 'tablet')}"):
                client.reshard_table(table, pivot_keys=[[], *pivots], sync=True)
        with screen.step("mounting it, frozen"):
            client.mount_table(table, freeze=True, sync=True)
    except YtError:
        with suppress(YtError, OSError):
            client.remove(table, recursive=True, force=True)
        raise


def _pivots(client: Client, plan: Plan, table: str) -> list[Sequence[Any]]:
    """Return the first key of each tablet but the first: each gets as many rows."""
    rows, tablets = plan.source.rows, plan.tablets
    return [
        [*next(source_table.keys(client, plan.source, table, rows * number // tablets))]
        for number in range(1, tablets)
    ]


def _switch(client: Client, plan: Plan, table: str) -> None:
    """Let the link lead to the table, and mark the tables: all of it or nothing.

    Raises JobError if something else has come to the path of the link.
    """
    link = plan.places.link
    folder, _, name = link.rpartition("/")
    with _transaction(client, link):
        # What is there stays there. One that was killed here holds the lock until it expires.
        client.lock(folder, mode="shared", child_key=name, waitable=True, wait_for=2 * _LIFETIME_MS)
        found, now = places.read(client, link), int(client.generate_timestamp())
        for former in found.freed():
            client.set(f"{former}/@{built_reference.MARK}/{built_reference.UNUSED}", now)
        built_reference.finish(client, table, plan.source.path, plan.source.key)
        client.link(table, link, force=True, attributes={built_reference.SWITCHED: now})


def _remarks(client: Client, wanted: Wanted, plan: Plan) -> Iterator[str]:
    """Yield what else there is to know after the switch."""
    found = facts(client, wanted.source, ["id", "content_revision"]) or {}
    if (found.get("id"), found.get("content_revision")) != (plan.source.id, plan.source.revision):
        yield (
            f"remark: {wanted.source} has changed in the meantime. The reference has its rows as "
            "they were at the beginning: build it again"
        )
    after = places.read(client, wanted.link)
    for table in after.unused():
        yield (
            f"{table} stays mounted for the batches that still read it. A call in "
            f"{places.KEEP_SECONDS // 60} minutes or later removes it"
        )
    former = plan.places.target
    if former is not None and not former.startswith(f"{after.folder}/"):
        yield f"{former} was not made by `reference`, so it stays"

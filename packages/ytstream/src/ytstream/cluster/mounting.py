"""Tables that are not mounted, as during a maintenance: a running job waits for them.

Errors name a tablet by its id, or come from a task as a trace of Java's. So the tables' own state
is asked.
"""

from collections.abc import Iterator
from contextlib import suppress

from yt.common import YtError

from ..errors import UnmountedError
from ..settings.job_settings import Settings
from .built_reference import MARK
from .client import Client, facts

STATIC = "none"
"""The state of a static table, if it has one. A folder of such tables has none."""


def verify_mounted(client: Client, settings: Settings) -> None:
    """Raise UnmountedError for tables that the job cannot read or write now.

    If the cluster does not answer, assume the tables are mounted.
    """
    if lines := closed(client, settings):
        raise UnmountedError("; ".join(lines))


def closed(client: Client, settings: Settings) -> list[str]:
    """Return a line for each table that the job cannot read or write now; none without answers."""
    lines = []
    with suppress(YtError, OSError):
        for name, path, usable in _tables(settings):
            found = facts(client, path, ["tablet_state", MARK]) or {}
            state = str(found.get("tablet_state", STATIC))
            if state not in (*usable, STATIC):
                how = command(state, is_built=MARK in found)
                lines.append(f"{name} {path} is {state}, run: yt {how[0]} {path} {how[1]}")
    return lines


def command(state: str, *, is_built: bool) -> tuple[str, str]:
    """Return the command that makes a table usable again, and its options.

    One that ``make reference`` has built stays frozen.
    """
    if state == "frozen":
        return "unfreeze-table", "--sync"
    return "mount-table", "--freeze --sync" if is_built else "--sync"


def _tables(settings: Settings) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield name, path and usable states of what each batch needs."""
    for path in settings.queues:
        yield "queue", path, ("mounted", "frozen")  # one that is frozen can be read
    for name, path in settings.references.items():
        yield f"reference {name!r}", path, ("mounted", "frozen")
    for name, path in (("consumer", settings.consumer), ("ledger", settings.ledger)):
        yield name, path, ("mounted",)
    for name, path in settings.outputs.items():
        yield f"output {name!r}", path, ("mounted",)

"""Looks before a replacement: what would keep the former version from coming back, too."""

from collections.abc import Iterator

from .. import operation
from ..recovery import before_start
from ..recovery.snapshot import read_head
from ..submitting.look import LOOKS, Look, Problem, running
from ..submitting.plan import Plan

_BY_HAND = "`make stop`, then `make submit`, without a way back"


def _replaced(plan: Plan) -> Iterator[Problem]:
    """As running(), but for an operation of this job, which is to be replaced."""
    found = operation.get(plan.connection.client, alias=plan.settings.alias)
    is_ours = found is not None and found.note.get("ledger") == plan.settings.ledger
    if found is None or found.is_final or not is_ours:
        yield from running(plan)
        return
    for name in ("consumer", "checkpoint"):
        was, now = found.note.get(name), getattr(plan.settings, name)
        if was not in (None, now):
            yield f"the {name} is {now}, and that of the running version is {was}", _BY_HAND


def _next_start(plan: Plan) -> Iterator[Problem]:
    """Look whether this version continues where the running one is, and that one after it."""
    before_start.preview(plan.connection)
    client, settings = plan.connection.client, plan.settings
    head = read_head(settings.ledger, client.select_rows)
    new = sorted({*settings.queues} - {*head.ids}) if head is not None and head.folder else []
    if new:
        yield (
            f"{', '.join(new)} would be new to the job: the running version could not come back, "
            "since it does not read it",
            _BY_HAND,
        )


REPLACING: tuple[Look, ...] = (
    *(_replaced if one is running else one for one in LOOKS),
    _next_start,
)

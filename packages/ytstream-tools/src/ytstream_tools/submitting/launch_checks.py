"""All checks before a submit, and those before a replacement: the former version may come back."""

from collections.abc import Iterator

from ytstream.cluster import operation
from ytstream.ledger.positions import read_head
from ytstream.provisioning import permissions
from ytstream.recovery import start

from . import preflight
from .launch_plan import LaunchPlan
from .preflight import PreflightCheck, Problem, running


def _rights(plan: LaunchPlan) -> Iterator[Problem]:
    """Ask for each right that the job needs, of the user whose token it will have."""
    client = plan.context.client
    user = str(client.get_user_name())
    wanted = permissions.of_submit(plan.context.job, plan.settings)
    for line in permissions.missing(client, wanted, user):
        yield f"{user} lacks a right: {line}", "ask its owner for it"


def _replaced(plan: LaunchPlan) -> Iterator[Problem]:
    """As running(), but for an operation of this job, which is to be replaced."""
    found = operation.get(plan.context.client, alias=plan.settings.alias)
    is_ours = found is not None and found.note.get("ledger") == plan.settings.ledger
    if found is None or found.is_final or not is_ours:
        yield from running(plan)
        return
    for name in ("consumer", "checkpoint"):
        was, now = found.note.get(name), getattr(plan.settings, name)
        if was not in (None, now):
            remedy = plan.without_a_way_back
            yield f"the {name} is {now}, and that of the running version is {was}", remedy


def _next_start(plan: LaunchPlan) -> Iterator[Problem]:
    """Look whether this version continues where the running one is, and that one after it."""
    start.preview(plan.context)
    client, settings = plan.context.client, plan.settings
    head = read_head(settings.ledger, client.select_rows)
    new = sorted({*settings.queues} - {*head.ids}) if head is not None and head.folder else []
    if new:
        yield (
            f"{', '.join(new)} would be new to the job: the running version could not be restored, "
            "since it does not read it",
            plan.without_a_way_back,
        )


LOOKS: tuple[PreflightCheck, ...] = (*preflight.LOOKS, _rights)
REPLACING: tuple[PreflightCheck, ...] = (
    *(_replaced if one is running else one for one in LOOKS),
    _next_start,
)

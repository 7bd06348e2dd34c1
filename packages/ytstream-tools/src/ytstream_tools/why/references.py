"""The causes of a job that waits for a reference of lookup(), or has ended with one."""

from .facts import Facts
from .finding import Finding


def unfit(found: Facts) -> Finding | None:
    """Return that a reference has other columns than the job needs, or cannot be looked up."""
    wrong = [one for one in found.references if one.problems]
    if not wrong:
        return None
    return Finding(
        "; ".join(f"reference {one.name!r} {one.path}: {', '.join(one.problems)}" for one in wrong),
        ("correct REFERENCES in tables.py, or let the table's owner change it back",
         f"then {found.start}: the batch that could not use it runs again, nothing is lost"),
    )  # fmt: skip


def refused(found: Facts) -> Finding | None:
    """Return that the cluster does not serve lookups in a reference now."""
    busy = [one for one in found.references if one.refused]
    if not busy:
        return None
    return Finding(
        "; ".join(
            f"reference {one.name!r} {one.path} answers no lookup: {one.refused}" for one in busy
        ),
        ("the job waits for it and goes on automatically: nothing is lost",
         "ask the cluster's administrators about the tablet cells of its bundle: "
         f"`yt --proxy {found.settings.proxy} get {busy[0].path}/@tablet_cell_bundle`"),
    )  # fmt: skip

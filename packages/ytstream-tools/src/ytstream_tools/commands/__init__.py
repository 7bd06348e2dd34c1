"""The commands of this package; the entry point `ytstream.commands` names COMMANDS.

Each module imports what its command needs when the command runs, so a package that is missing
fails one command, in words, and hides none.
"""

from . import (
    adopt,
    alerts,
    approve,
    capture,
    complete_until,
    confs,
    demo,
    drain,
    logs,
    metrics,
    page,
    preview,
    real,
    reference,
    rehearse,
    replay_rejected,
    rows,
    seal,
    status,
    submit,
    tables,
    why,
)

COMMANDS = tuple(
    module.COMMAND
    for module in (
        rows, submit, logs, status, metrics, page, drain, complete_until, capture, rehearse,
        replay_rejected, demo, real, tables, confs, alerts, why,
        adopt, approve, preview, reference, seal,
    )
)  # fmt: skip

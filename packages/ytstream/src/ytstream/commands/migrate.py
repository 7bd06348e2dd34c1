"""`migrate`: adopts the stopped job after its guarantee, its outputs or its queues have changed."""

import argparse

from ..instance import stop_request
from ..instance.lock import alone
from ..job import JobContext
from ..recovery import migration
from .command import Command, RequiredTables


def _run(context: JobContext, given: argparse.Namespace) -> None:
    if given.dry_run:
        print(*migration.rehearse_migrate(context), sep="\n")
        return
    from ..spark import jvm_process, session

    with alone(context), jvm_process.explained_jvm():
        said = migration.migrate(context, session.open_tablets(context))
        stop_request.tell_command(context, "migrated, and not started since")
        print(*said, sep="\n")


COMMAND = Command(
    name="migrate",
    help=(
        "Update a stopped job's ledger after you change guarantee or outputs, or remove a queue. "
        "Add aggregate functions of tables.py to the tables."
    ),
    run=_run,
    tables=RequiredTables.ALTERABLE,
    starts_jvm=True,
    needs_stopped_job=True,
    changes="the ledger, the consumer, the schemas of totals and the marks on outputs",
)

"""`rewind`: moves the stopped job to other rows."""

import argparse

from ..job import JobContext
from ..recovery import positions_at_time, repositioning
from ..recovery.lock import alone
from .command import Command


def _run(context: JobContext, given: argparse.Namespace) -> None:
    to, rows, options = given.to, given.rows, {"overwrite": given.overwrite}
    if to == "to-time":
        time = positions_at_time.parsed(rows)
        to, (rows, said) = "rows", positions_at_time.places(context, time)
        print(*said, sep="\n")
    if given.dry_run:
        print(*repositioning.rehearse_rewind(context, to, rows, **options), sep="\n")
        return
    from ..spark import jvm_process, session

    with alone(context), jvm_process.explained_jvm():
        tablets = session.open_tablets(context)
        print(*repositioning.rewind(context, tablets, to, rows, **options), sep="\n")


def _arguments(parser: argparse.ArgumentParser) -> None:
    to = ("earliest", "latest", "rows", "to-time")
    parser.add_argument("to", choices=to, metavar="|".join(to))
    example = "e.g. rows //home/team/bids:0=42, or to-time 2026-11-21T10:00 (UTC)"
    row = "QUEUE:PARTITION=ROW|TIME"
    parser.add_argument("rows", nargs="*", metavar=row, default=(), help=example)
    over = "rows of a recreated queue may replace those stored under the same positions"
    parser.add_argument("--overwrite", action="store_true", help=over)


COMMAND = Command(
    name="rewind",
    help="Move the job to other rows: it reads rows again or skips them. Drops the state.",
    run=_run,
    arguments=_arguments,
    starts_jvm=True,
    needs_stopped_job=True,
    changes="the ledger, the consumer and the checkpoint",
)

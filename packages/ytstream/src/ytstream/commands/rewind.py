"""`rewind`: moves the stopped job to other rows."""

import argparse

from ..instance import stop_request
from ..instance.lock import alone, without_replays
from ..job import JobContext
from ..recovery import emptied_totals, positions_at_time, repositioning
from .command import Command


def _run(context: JobContext, given: argparse.Namespace) -> None:
    to, rows = given.to, given.rows
    options = {"overwrite": given.overwrite, "empty": given.totals == "empty"}
    if to == "state":
        _rebuild(context, dry_run=given.dry_run)
        return
    if to == "to-time":
        time = positions_at_time.parsed(rows)
        to, (rows, said) = "rows", positions_at_time.places(context, time)
        print(*said, sep="\n")
    if given.dry_run:
        print(*repositioning.rehearse_rewind(context, to, rows, **options), sep="\n")
        return
    from ..spark import jvm_process, session

    with alone(context), without_replays(context), jvm_process.explained_jvm():
        tablets = session.open_tablets(context)
        said = repositioning.rewind(context, tablets, to, rows, **options)
        stop_request.tell_command(context, "moved by `rewind`, and not started since")
        print(*said, sep="\n")


def _rebuild(context: JobContext, *, dry_run: bool) -> None:
    """Build the state again from the newest version of it that can be loaded."""
    from ..connector.java import jvm_of
    from ..connector.tablet_transactions import Tablets
    from ..query import state_rebuild
    from ..recovery import state_check
    from ..spark import session

    with alone(context), session.opened(known := state_check.with_state_store(context)) as spark:
        if dry_run:
            print(*state_rebuild.planned(known, spark).said, "nothing was changed", sep="\n")
            return
        for line in state_rebuild.rebuild(known, spark, Tablets(jvm_of(spark), known.settings)):
            print(line, flush=True)


def _arguments(parser: argparse.ArgumentParser) -> None:
    to = ("earliest", "latest", "rows", "to-time", "state")
    parser.add_argument("to", choices=to, metavar="|".join(to))
    example = "e.g. rows //home/team/bids:0=42, or to-time 2026-11-21T10:00 (UTC)"
    row = "QUEUE:PARTITION=ROW|TIME"
    parser.add_argument("rows", nargs="*", metavar=row, default=(), help=example)
    over = "rows of a recreated queue may replace those stored under the same positions"
    parser.add_argument("--overwrite", action="store_true", help=over)
    totals = "begin with empty tables where totals are (aggregate= in tables.py)"
    parser.add_argument("--totals", choices=("empty",), help=totals)


COMMAND = Command(
    name="rewind",
    help=(
        "Move the job to other rows: it reads rows again or skips them. Drops the state. `state` "
        "moves nothing and builds a damaged state again."
    ),
    run=_run,
    arguments=_arguments,
    before=emptied_totals.resume,
    starts_jvm=True,
    needs_stopped_job=True,
    changes="the ledger, the consumer and the checkpoint",
)

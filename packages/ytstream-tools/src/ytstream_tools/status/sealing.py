"""`seal`: asks the job to close a period of an archive, and says what that gives up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger import archive_rows
from ytstream.schema.periods import REJECT, grouped, moment, named, second_of
from ytstream.text_table import counted, duration

from . import job_status


def seal(
    context: JobContext, period: str, output: str | None, *, dry_run: bool = False
) -> Iterator[str]:
    """Yield what closing the period means, a line each; then write the request into the ledger.

    Raises JobError for a period that is closed already, or has not begun.
    """
    name = _archive(context, output)
    archive, ledger = context.job.archives[name], context.settings.ledger
    begin = archive.begin(second_of(_parsed(period)))
    until = begin + archive.seconds
    client = context.client
    state, _ = archive_rows.state_of(client.select_rows(archive_rows.archive_query(ledger, name)))
    found = job_status.read(context)
    if until <= state.closed:
        raise JobError(
            f"{named(begin)} of {name!r} is closed: all periods before {named(state.closed)} are",
            "`status` names the period that is open",
            code=ErrorCode.USAGE,
        )
    if begin > found.time.timestamp():
        raise JobError(
            f"{named(begin)} has not begun", "name a period in the past", code=ErrorCode.USAGE
        )
    rows = client.select_rows(archive_rows.pieces_query(ledger, name))
    groups = grouped(map(archive_rows.piece_of, rows))
    sealed = {g: pieces for g, pieces in groups.items() if g.due <= until}
    count = sum(one.piece.rows for pieces in sealed.values() for one in pieces)
    yield f"{name}: {counted(count, 'row')} in {counted(len(sealed), 'table')} up to {named(until)}"
    waiting = [one for one in found.partitions if one.lag]
    for one in waiting:
        since = f", the first for {duration(one.seconds)}" if one.seconds else ""
        yield f"{counted(one.lag, 'row')} of {one.queue}, partition {one.number}, wait{since}"
    kept = "go to `rejected`" if archive.late == REJECT else "become a further table of it"
    yield f"rows of {named(begin)} or before that the job has not read yet {kept}"
    yield f"readers then take all before {moment(until):%Y-%m-%d %H:%M:%S} UTC for complete"
    if dry_run:
        yield "nothing was changed"
        return
    client.insert_rows(ledger, [archive_rows.request_row(name, until)])
    yield "the running job seals it within 15 s, a stopped one at its next start"


def _archive(context: JobContext, output: str | None) -> str:
    names = [*context.job.archives]
    if output in names or (output is None and len(names) == 1):
        return output or names[0]
    listed = ", ".join(names)
    raise JobError(
        f"{output!r} is not an archive of this job" if output else "which archive?",
        f"name one of STATIC with --output: {listed}" if names else "STATIC of tables.py has none",
        code=ErrorCode.USAGE,
    )


def _parsed(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise JobError(
            f"cannot read the period {text!r}", "e.g. 2026-11-21T10:00:00Z", code=ErrorCode.USAGE
        ) from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)

"""What `rewind` tells: the state that it drops, and the rows that come out a second time."""

from collections.abc import Iterator
from contextlib import suppress

from yt.common import YtError

from ..errors import JobError
from ..job import JobContext
from ..ledger.ledger_rows import Head
from ..ledger.offsets import ByQueue, Rows
from ..ledger.positions import Snapshot
from ..schema.changes import Newest
from ..schema.columns import key_of
from ..text_table import duration
from . import checkpoint_repair, spark_logs


def of_state(context: JobContext, found: Snapshot, targets: Rows) -> Iterator[str]:
    """Yield how much state is dropped, and from which rows on nothing of it is lost."""
    job, head = context.job, found.begun
    if not job.kind.is_stateful or head is None or head.batch < 0 or head.state_rows == 0:
        return
    held = "an unknown number" if head.state_rows is None else str(head.state_rows)
    yield f"the state is dropped: {job.kind.state}, {held} of them"
    if watermark := _watermark(context, head):
        yield (
            f"its watermark was at {spark_logs.named(watermark)}: it was made of rows with later "
            "event times, and of earlier ones as far as a window, a session or `WITHIN` is long"
        )
    pairs = zip(found.queues, targets, strict=True)
    whole = [(queue, rows) for queue, rows in pairs if queue.path not in found.renumbered]
    now = {queue.path: rows for queue, rows in whole}
    first = {queue.path: dict(enumerate(queue.lower)) for queue, _ in whole}
    since = _made_of(head)
    if head.state_since and _reaches(now, since):
        yield "all rows that it was made of are read again"
        return
    yield "what comes out from now on is made only of the rows that are read from now on"
    if not head.state_since:
        yield "`rewind earliest` reads all rows that are left"
    elif _reaches(first, since):
        places = " ".join(f"{q}:{p}={row}" for q, rows in since.items() for p, row in rows.items())
        yield f"`rewind rows {places}` loses nothing of it"
    else:
        yield (
            "some rows that it was made of are trimmed, or of a queue that was recreated or that "
            "the configuration does not name; `rewind earliest` reads all others"
        )


def _made_of(head: Head) -> dict[str, dict[int, int]]:
    """Return the first rows that the state may have to do with, of partitions read since then."""
    return {
        path: {p: row for p, row in rows.items() if head.ends.get(path, {}).get(p, 0) > row}
        for path, rows in head.state_since.items()
    }


def _watermark(context: JobContext, head: Head) -> int:
    """Return the watermark of the state, 0 if it is not known."""
    if head.folder is None:
        return 0
    path = checkpoint_repair.path_of(context.settings, head.folder)
    with suppress(JobError, YtError):
        return spark_logs.watermark(context.client, path, head.batch)
    return 0


def _reaches(begins: ByQueue, rows: ByQueue) -> bool:
    """Return whether reading from ``begins`` reads all that is read from ``rows``."""
    return all(
        queue in begins and begins[queue].get(partition, 0) <= row
        for queue, partitions in rows.items()
        for partition, row in partitions.items()
    )


def written_again(context: JobContext) -> list[str]:
    """Return which outputs may hold rows twice: in a table with a key they are replaced."""
    return [*_twice(context), *_merged_again(context)]


def _merged_again(context: JobContext) -> Iterator[str]:
    """Yield what MERGE makes of rows that it gets again.

    newest() makes the same table of them, as long as it remembers what was deleted.
    """
    for name, rule in context.job.merge.items():
        path = context.settings.outputs[name]
        if isinstance(rule, Newest) and rule.apply_as_deletes is not None:
            kept = duration(context.settings.deleted_keep / 1000)
            yield (
                f"a key that was deleted more than {kept} ago (deleted_keep) is back in {path} if "
                "an older row of it is read again, until its delete is read again"
            )
        elif not isinstance(rule, Newest):
            yield (
                f"MERGE[{name!r}] gets what is read again once more: a function that counts rows "
                f"counts them again in {path}"
            )


def _twice(context: JobContext) -> list[str]:
    job, paths = context.job, context.settings.outputs
    twice = [paths[name] for name, columns in job.output_columns.items() if not key_of(columns)]
    if not twice:
        return []
    where = ", ".join(twice)
    if not job.kind.is_stateful:
        return [f"rows that are read again are duplicated in {where}"]
    return [
        "a result that was written is duplicated if its rows are read again: it is twice in "
        f"{where} then. One that was open is written once"
    ]

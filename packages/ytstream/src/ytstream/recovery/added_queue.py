"""A queue that comes to a job with state: its older rows may lie behind the watermark.

Spark leaves out rows that are older than the watermark (late rows). The watermark is one for all
queues, and a queue that comes later knows nothing of it: only a person can say whether its older
rows may be left out.
"""

from collections.abc import Sequence

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger.ledger_rows import Head
from ..ledger.offsets import Queue, Rows
from ..settings.job_settings import late_rows_of
from . import checkpoint_repair, rewind_consequences, spark_logs


def verify_late_rows(
    context: JobContext, queues: Sequence[Queue], head: Head, rows: Rows
) -> list[str]:
    """Return what to tell of the queues that join a state.

    Raises JobError for one with rows that may be late, unless the configuration accepts it.
    """
    settings = context.settings
    if not context.job.kind.is_stateful or head.batch < 0 or head.folder is None:
        return []
    waiting = {
        queue.path: sum(max(0, end - begins.get(p, 0)) for p, end in enumerate(queue.upper))
        for queue, begins in zip(queues, rows, strict=True)
        if queue.path not in head.queues
    }
    if not any(waiting.values()):
        return []
    path = checkpoint_repair.path_of(settings, head.folder)
    watermark = spark_logs.watermark(context.client, path, head.batch)
    if not watermark:  # a state without event time, or no row with one yet
        return []
    at = spark_logs.named(watermark)
    notes, read = [], {queue.path for queue in queues if queue.consumed}
    for queue, count in waiting.items():
        told = (
            f"{queue} joins a state whose watermark is at {at}, and has {count} rows that the "
            "job has not read: those with an older event time are late, and Spark leaves them out"
        )
        if count and late_rows_of(queue) not in settings.accept:
            # One that was read before continues where it was: see before_start.
            is_new = queue not in head.ids and queue not in read
            raise JobError(
                told,
                "\n     ".join(_ways(context, queue, count, is_new=is_new)),
                code=ErrorCode.QUEUE_ADDED,
            )
        notes += [told] if count else []
    return notes


def _ways(context: JobContext, queue: str, count: int, *, is_new: bool) -> list[str]:
    """Return what the owner of the job may do, and what each of it keeps and drops."""
    ways = [
        f'to read what is not late: accept = ["{late_rows_of(queue)}"] in the configuration, and '
        "start; the state is kept, and late rows are counted in the ledger and not read again "
        "(more of them than reject_limit end the job: then it names a higher one)"
    ]
    if is_new:
        ways.append(
            'to begin with its next rows: start_from = "latest" in the configuration, and start; '
            f"the state is kept, and these {count} rows are not read"
        )
    again = "; ".join(rewind_consequences.written_again(context))
    ways.append(
        "to count all rows: `rewind earliest`, and start; the state is dropped, and the rows of "
        "all queues that are left are read again" + (f": {again}" if again else "")
    )
    return ways

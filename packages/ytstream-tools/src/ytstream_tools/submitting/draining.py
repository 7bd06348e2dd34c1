"""`drain`: waits until the rows that are there now have been read, and stops the job.

The job itself only reads on. This command watches its ledger. So it may be cut off and
repeated: a second one waits for the rows that are there then.
"""

import time
from collections.abc import Callable, Mapping

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import stop_request
from ytstream.instance.lock import InstanceLock
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.ledger.offsets import Queue
from ytstream.text_table import counted

_POLL_SECONDS = 1.0
_SAY_SECONDS = 10.0
"""How often it says how many rows are left."""


def rehearse(context: JobContext) -> str:
    """Return what `drain` would wait for; changes nothing."""
    found = positions.read(context.client, context.settings)
    wanted = _ends(found.queues)
    left = _left(context, wanted)
    lines = [
        f"{queue}, partition {partition}: from row {row} to row {wanted[queue][partition]}"
        for queue, partitions in left.items()
        for partition, row in partitions.items()
    ]
    rows = _count(left, wanted)
    return "\n".join(
        [*lines, f"{counted(rows, 'row')} would be read, then the job would stop",
         "nothing was changed"]
    )  # fmt: skip


def drain(context: JobContext, say: Callable[[str], None]) -> str:
    """Wait until the job has read what is in its queues now, and stop it; return how it ended.

    Raises JobError for a job that does not run, or that ends before that.
    """
    lock = InstanceLock(context.client, context.settings.consumer)
    if not list(lock.holders()):
        raise JobError(
            "the job does not run",
            "start it, then `drain`; `status` shows its lag",
            code=ErrorCode.NOT_RUNNING,
        )
    wanted = _ends(positions.read(context.client, context.settings).queues)
    next_line = 0.0
    while True:
        is_held = bool(list(lock.holders()))  # first: what an ended job has read changes no more
        rows = _count(_left(context, wanted), wanted)
        if not rows:
            break
        if not is_held:
            raise JobError(
                f"the job has ended, and {counted(rows, 'row')} are left of those that were there",
                "`status` says how it ended; start it, then `drain`",
                code=ErrorCode.NOT_RUNNING,
            )
        if time.monotonic() > next_line:
            say(f"{counted(rows, 'row')} left of those that were there")
            next_line = time.monotonic() + _SAY_SECONDS
        time.sleep(_POLL_SECONDS)
    say("all rows that were there have been read")
    return stop_request.stop(context, say)


def _ends(queues: tuple[Queue, ...]) -> dict[str, tuple[int, ...]]:
    return {queue.path: queue.upper for queue in queues}


def _left(context: JobContext, wanted: Mapping[str, tuple[int, ...]]) -> dict[str, dict[int, int]]:
    """Return the partitions that are not read to these rows: queue -> partition -> next row."""
    client, settings = context.client, context.settings
    head = positions.read_head(settings.ledger, client.select_rows)
    ends = head.ends if head is not None else {}
    left = {
        queue: {
            partition: ends.get(queue, {}).get(partition, 0)
            for partition, end in enumerate(uppers)
            if ends.get(queue, {}).get(partition, 0) < end
        }
        for queue, uppers in wanted.items()
    }
    return {queue: partitions for queue, partitions in left.items() if partitions}


def _count(left: Mapping[str, Mapping[int, int]], wanted: Mapping[str, tuple[int, ...]]) -> int:
    return sum(
        wanted[queue][partition] - row
        for queue, partitions in left.items()
        for partition, row in partitions.items()
    )

"""A queue whose tablets are others than those that the ledger's positions belong to: see layout.

A start goes on only where more tablets came to the former ones. `migrate` applies any other layout
once all rows that it holds were read: then the job is at its end, whatever numbers the rows have.
"""

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..ledger.ledger_rows import Head
from ..ledger.offsets import Queue
from ..ledger.positions import Snapshot, is_moved
from ..ledger.queue_layout import is_drained
from ..text_table import counted

_DRAIN = (
    "before the next reshard drain the queue: stop its producers, wait until `status` shows no "
    "waiting rows, and stop the job; then reshard it, run `migrate`, and start"
)


def verify_layouts(found: Snapshot, head: Head, *, migrating: bool) -> None:
    """Raise JobError for a queue whose rows have other numbers, unless `migrate` can apply them."""
    for queue in (queue for queue in found.queues if is_moved(head, queue)):
        ends = head.ends.get(queue.path, {})
        said = _said(head, queue)
        if not is_drained(ends, queue.lower, queue.upper, queue.newer):
            raise JobError(
                f"{said}; {_unread(queue, sum(ends.values()))}",
                _ways(queue),
                code=ErrorCode.QUEUE_RESHARDED,
            )
        if not migrating:
            raise JobError(
                f"{said}; the job has read all of them",
                "run `migrate`, which lets the job continue behind these rows, and start it again",
                code=ErrorCode.QUEUE_RESHARDED,
            )


def applied(queue: Queue) -> str:
    """Return what to say of a queue whose new layout is applied."""
    ends = ", ".join(map(str, queue.upper))
    return f"{queue.path}: continues behind the rows of its new tablets, by partition {ends}"


def _said(head: Head, queue: Queue) -> str:
    known, now = head.layouts[queue.path], queue.layout
    tablets = f"from {known.tablets} to {now.tablets} tablets" if now else ""
    return f"queue {queue.path} was resharded {tablets}: its rows have other numbers than before"


def _unread(queue: Queue, read: int) -> str:
    if (count := sum(queue.upper) - read) > 0:
        return f"{counted(count, 'row')} of it {'was' if count == 1 else 'were'} not read before"
    newer = " Some of these are newer than the job's last batch." if queue.newer else ""
    return (  # rows that were trimmed in a removed tablet count in what was read, and nowhere else
        f"the job has read {read} rows, and the queue counts {sum(queue.upper)}.{newer} Rows of "
        "removed tablets may have been trimmed, so nothing tells whether the job has read all "
        "others"
    )


def _ways(queue: Queue) -> str:
    return (
        "nothing tells which rows these are. `rewind latest` skips them, `rewind earliest` reads "
        f"all rows again, `rewind rows {queue.path}:0=42` begins at rows that you name\n"
        f"     {_DRAIN}"
    )

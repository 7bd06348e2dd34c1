"""State and offsets belong together: refuses a checkpoint whose state does not fit its offsets.

Offsets without their state, or state that is older than its offsets, give wrong figures and no
error.
"""

from ..config import Settings
from ..errors import JobError
from ..job import Job
from ..positions import Snapshot


def verify_partitions(found: Snapshot, job: Job) -> None:
    """Raise JobError when the checkpoint has another number of state partitions than the job.

    Spark would keep the checkpoint's number, whatever the session says.
    """
    last = found.checkpoint.last
    if not job.kind.is_stateful or last is None:
        return
    wanted = str(job.shuffle_partitions)
    frozen = last.metadata.get("conf", {}).get("spark.sql.shuffle.partitions", wanted)
    if frozen != wanted:
        raise JobError(
            f"the state in the checkpoint has {frozen} partitions, the job's shuffle_partitions is "
            f"{wanted}",
            f"set shuffle_partitions={frozen} in job.py, or use `rewind`, which starts a new "
            "checkpoint with an empty state",
        )


def lost_checkpoint(found: Snapshot, settings: Settings, job: Job) -> list[str]:
    """Return what to say of a checkpoint that is gone; nothing when it is there.

    Raises JobError for a stateful job: rows before the consumer's are in the state alone.
    """
    if not found.is_checkpoint_lost:
        return []
    if not job.kind.is_stateful:
        return [
            f"the checkpoint {settings.checkpoint} is gone: continuing from the consumer, which "
            "is at most one micro-batch behind"
        ]
    read = sum(sum(queue.consumed.values()) for queue in found.queues)
    raise JobError(
        f"the checkpoint is gone and the state with it, after {read} rows",
        "restore the checkpoint as it was, or use `rewind`: `earliest` reads all rows again into "
        "an empty state (and writes their results again), `latest` begins with the next row",
    )

"""State and offsets belong together: refuses a checkpoint whose state does not fit the ledger.

Offsets without their state, or a state that is older than its offsets, give wrong figures and no
error.
"""

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger.ledger_rows import Head, last_name
from . import checkpoint_dir, spark_logs

_REWIND = (
    "restore the checkpoint as it was, or use `rewind`: `earliest` reads all rows again into an "
    "empty state (and writes their results again), `latest` begins with the next row"
)


def verify_state(context: JobContext, head: Head) -> None:
    """Raise JobError unless the head's folder holds the state after the head's batch."""
    client, job = context.client, context.job
    if not job.kind.is_stateful or head.batch < 0 or head.folder is None:
        return
    path = checkpoint_dir.path_of(context.settings, head.folder)
    if not client.exists(f"{path}/offsets/{head.batch}"):
        read = sum(sum(rows.values()) for rows in head.ends.values())
        raise JobError(
            f"the ledger is at batch {last_name(head)}, after {read} rows, and the checkpoint "
            f"{path} does not have that batch: it is gone, or older, and the state with it",
            _REWIND,
            code=ErrorCode.STATE_LOST,
        )
    metadata = spark_logs.planned(client, path, head.batch).metadata
    wanted = str(job.shuffle_partitions)
    # Spark would keep the checkpoint's number, whatever the session says.
    frozen = metadata.get("conf", {}).get("spark.sql.shuffle.partitions", wanted)
    if frozen != wanted:
        raise JobError(
            f"the state in the checkpoint has {frozen} partitions, the job's shuffle_partitions is "
            f"{wanted}",
            f"set shuffle_partitions={frozen} in job.py, or use `rewind`, which starts a new "
            "checkpoint with an empty state",
            code=ErrorCode.STATE_MISMATCH,
        )
